"""Finding what has the ball's colour: less is looked at than there is, and nothing is missed."""

import cv2
import numpy as np
import pytest

from dris.perception.detect import BallColour, opened_mask

COLOUR, ORANGE = BallColour(), (20, 110, 230)


def clutter(generator, height, width):
    """Ellipses anywhere, over the edges too, and specks."""
    image = generator.integers(0, 90, (height, width, 3), dtype=np.uint8)
    for _ in range(generator.integers(0, 4)):
        centre = [int(generator.integers(-5, size + 5)) for size in (width, height)]
        axes = [int(a) for a in generator.integers(1, 16, 2)]
        cv2.ellipse(image, centre, axes, float(generator.uniform(0, 180)), 0, 360, ORANGE, -1)
    image[generator.random((height, width)) < generator.choice([0.0, 0.02, 0.2, 0.6])] = ORANGE
    return image


@pytest.mark.parametrize("seed", range(8))
def test_looking_at_a_ninth_first_misses_nothing(seed):
    """The whole mask, opened, is what the part holds: to the last pixel, edges and ignored ones included."""
    generator = np.random.default_rng(seed)
    for _ in range(25):
        height, width = (int(n) for n in generator.integers(5, 60, 2))
        image = clutter(generator, height, width)
        ignore = (
            (generator.random((height, width)) < 0.1).astype(np.uint8) if generator.random() < 0.3 else None
        )
        mask = COLOUR.mask(image)
        if ignore is not None:
            mask[ignore > 0] = 0
        # Opening by its definition: all 3 x 3 blocks of coloured pixels, whose edge may be beyond the image.
        beyond = np.pad(mask, 1, constant_values=255)
        whole = np.zeros_like(beyond)
        for top in range(height):
            for left in range(width):
                if beyond[top : top + 3, left : left + 3].all():
                    whole[top : top + 3, left : left + 3] = 255
        whole = whole[1:-1, 1:-1]
        pasted = np.zeros_like(whole)
        if (found := opened_mask(image, COLOUR, ignore)) is not None:
            part, (left, top) = found
            pasted[top : top + part.shape[0], left : left + part.shape[1]] = part
        assert (pasted == whole).all()


def test_a_ninth_of_the_pixels_leaves_gaps_of_two_at_most():
    """OpenCV's choice of every third: from the first on, at most three apart, the last among the last three."""
    for size in range(3, 1300):
        picked = cv2.resize(
            np.arange(size, dtype=np.float32)[None], (-(-size // 3), 1), interpolation=cv2.INTER_NEAREST
        )
        picked = picked[0].astype(int)
        assert picked[0] == 0 and picked[-1] >= size - 3 and (np.diff(picked) <= 3).all()


@pytest.mark.parametrize("size", [12, 13, 14])
def test_a_single_block_is_found_wherever_it_is(size):
    """Three by three pixels, the least that opening keeps, at every place of a small image."""
    for top in range(size - 2):
        for left in range(size - 2):
            image = np.zeros((size, size, 3), np.uint8)
            image[top : top + 3, left : left + 3] = ORANGE
            part, (x, y) = opened_mask(image, COLOUR)
            rows, columns = np.nonzero(part)
            assert (rows.min() + y, rows.max() + y) == (top, top + 2)
            assert (columns.min() + x, columns.max() + x) == (left, left + 2)
