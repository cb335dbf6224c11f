"""Find the ball in an image: colour, outline, circle or ellipse through the outline.

A whole ball, blurred by its motion or not, has an outline that an ellipse fits, and the ellipse's centre is
the middle of the exposure. A ball that is partly hidden or cut by the image's edge has not: then a circle is
fitted to the largest part of the outline that agrees on one.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from dris.perception.camera import Array

Image = NDArray[np.uint8]

_BLOCK = np.ones((3, 3), np.uint8)
_AT_EDGE = 2
"""Rows that opening with that block gets wrong at an edge that is none."""


@dataclass(frozen=True)
class BallColour:
    """A range in hue, saturation and value. Shading changes value most, so its range is the widest."""

    hue_degrees: tuple[float, float] = (5.0, 35.0)
    """From, to, counted upwards through 360: (350, 10) is red. The default is orange."""
    saturation: tuple[float, float] = (0.5, 1.0)
    value: tuple[float, float] = (0.2, 1.0)

    def __post_init__(self) -> None:
        """Refuse ranges that hold nothing."""
        if not all(0 <= hue <= 360 for hue in self.hue_degrees):
            raise ValueError(f"hue_degrees must lie in 0 to 360, got {self.hue_degrees}")
        for name in ("saturation", "value"):
            low, high = getattr(self, name)
            if not 0 <= low < high <= 1:
                raise ValueError(f"{name} must satisfy 0 <= low < high <= 1, got ({low}, {high})")

    def mask(self, image: Image) -> Image:
        """255 where an image's colour lies in the range, else 0."""
        hsv = cv2.cvtColor(image, cv2.COLOR_BGR2HSV)
        masks = [cv2.inRange(hsv, low, high) for low, high in self._spans]
        return masks[0] if len(masks) == 1 else cv2.bitwise_or(masks[0], masks[1])  # type: ignore[return-value]

    @cached_property
    def _spans(self) -> list[tuple[Array, Array]]:
        """From, to [3] in OpenCV's units; two spans if the hue passes 360."""
        first, last = (hue / 2 for hue in self.hue_degrees)  # OpenCV stores half degrees
        spans = [(first, last)] if first <= last else [(first, 180.0), (0.0, last)]
        darkest, brightest = ((255 * self.saturation[k], 255 * self.value[k]) for k in (0, 1))
        return [(np.array([low, *darkest]), np.array([high, *brightest])) for low, high in spans]


@dataclass(frozen=True)
class DetectorConfig:
    """What counts as the ball in an image."""

    colour: BallColour = field(default_factory=BallColour)
    radius_px: tuple[float, float] = (3.0, 80.0)
    """A ball of 2 to 4 cm at 1 to 3 m has 4 to 24 px with f = 600 px."""
    elongation: float = 2.5
    """Largest ratio of the ellipse's axes: blur by one and a half diameters."""
    tolerance_px: float = 0.8
    """How far from its curve a point of the outline may lie; pixels alone make 0.3."""
    asymmetry_px: float = 0.2
    """Largest third harmonic in a whole ball's outline, times the ellipse's ratio of axes up to 1.75: pixels
    make 0.1, a fifth cut off more than 0.2, a long blur of a shaded ball 0.3, a ball cut in half 0.4."""
    score: float = 0.35
    """Least share of the full circle that the outline must cover."""
    roi_half_px: int = 64
    """Half side of the region that is searched around a prediction."""

    def __post_init__(self) -> None:
        """Refuse values that can find nothing."""
        low, high = self.radius_px
        if not 1 <= low < high:
            raise ValueError(f"radius_px must satisfy 1 <= low < high, got {self.radius_px}")
        positive = min(self.tolerance_px, self.asymmetry_px) > 0
        if not (0 < self.score <= 1 and self.elongation >= 1 and positive):
            raise ValueError(
                "need 0 < score <= 1, elongation >= 1, tolerance_px > 0, asymmetry_px > 0, got "
                f"{self.score}, {self.elongation}, {self.tolerance_px}, {self.asymmetry_px}"
            )
        if self.roi_half_px < 8:
            raise ValueError(f"roi_half_px must be at least 8, got {self.roi_half_px}")


@dataclass(frozen=True)
class Detection:
    """A ball in an image: centre (x, y) and radius in pixels, and the share of the circle that was seen."""

    centre_px: tuple[float, float]
    radius_px: float
    score: float


def detect(
    image: Image,
    config: DetectorConfig | None = None,
    near_px: tuple[float, float] | None = None,
    ignore: Image | None = None,
) -> Detection | None:
    """The most complete ball in an image, or None; the arguments of `candidates`."""
    return most_complete(candidates(image, config, near_px, ignore))


def most_complete(found: list[Detection]) -> Detection | None:
    """The one with the longest outline, or None if there is none."""
    return max(found, key=lambda d: d.score * d.radius_px, default=None)


def candidates(
    image: Image,
    config: DetectorConfig | None = None,
    near_px: tuple[float, float] | None = None,
    ignore: Image | None = None,
) -> list[Detection]:
    """Everything in an image that may be the ball.

    Args:
        image: 8-bit BGR [height, width, 3].
        config: Colour and gates.
        near_px: Search only around here, for speed; the whole image if None or not finite.
        ignore: Mask [height, width]; where it is not 0 nothing is the ball. See `ball_coloured`.

    Raises:
        ValueError: The image is not 8-bit BGR.
    """
    config = config or DetectorConfig()
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("expected an 8-bit BGR image of shape (height, width, 3)")
    left, top, right, bottom = _region(image.shape, near_px, config.roi_half_px)
    if right - left < 3 or bottom - top < 3:
        return []
    region, size = image[top:bottom, left:right], (right - left, bottom - top)
    opened = opened_mask(region, config.colour, None if ignore is None else ignore[top:bottom, left:right])
    if opened is None:
        return []
    mask, corner = opened
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE, offset=corner)
    # The largest few: whatever is smaller is clutter.
    outlines = sorted((o for o in outlines if len(o) >= 8), key=len, reverse=True)[:6]
    found = [d for d in (_fit(outline, size, config) for outline in outlines) if d is not None]
    return [Detection((d.centre_px[0] + left, d.centre_px[1] + top), d.radius_px, d.score) for d in found]


def ball_coloured(images: list[Image], config: DetectorConfig | None = None, margin_px: int = 3) -> Image:
    """Mask of what has the ball's colour in images of the empty scene: to be ignored later."""
    config = config or DetectorConfig()
    if not images:
        raise ValueError("need at least one image of the scene without the ball")
    union = np.bitwise_or.reduce([config.colour.mask(image) for image in images])
    kernel = np.ones((2 * margin_px + 1,) * 2, np.uint8)
    opened = cv2.morphologyEx(union, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    return cv2.dilate(opened, kernel)  # type: ignore[return-value]


def _region(
    shape: tuple[int, ...], near_px: tuple[float, float] | None, half: int
) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of what is searched."""
    height, width = shape[:2]
    if near_px is None or not np.isfinite(near_px).all():
        return 0, 0, width, height
    # A prediction outside the image leaves the strip of it that the ball could still touch.
    x, y = (round(min(max(value, -1e6), 1e6)) for value in near_px)
    return max(x - half, 0), max(y - half, 0), min(x + half, width), min(y + half, height)


def opened_mask(
    region: Image, colour: BallColour, ignore: Image | None = None
) -> tuple[Image, tuple[int, int]] | None:
    """A region's mask after opening, as far as anything is left of it: that part, and its left and top.

    Opening removes single pixels of noise, which would otherwise make hundreds of outlines. It keeps blocks
    of 3 x 3 pixels, of which those beyond the region's edge count as coloured. Every such block holds a pixel
    of every third row and column, the last ones included: a ninth of the pixels tells where to look, and
    nothing is missed.
    """
    across, down = -(-region.shape[1] // 3), -(-region.shape[0] // 3)
    few = np.empty((down + 1, across + 1, 3), np.uint8)
    few[:-1, :-1] = cv2.resize(region, (across, down), interpolation=cv2.INTER_NEAREST)
    few[-1, :-1] = cv2.resize(region[-1:], (across, 1), interpolation=cv2.INTER_NEAREST)[0]
    few[:-1, -1] = cv2.resize(region[:, -1:], (1, down), interpolation=cv2.INTER_NEAREST)[:, 0]
    few[-1, -1] = region[-1, -1]
    left, top, width, height = cv2.boundingRect(colour.mask(few))
    if not width:
        return None
    rows = _around(top, height, region.shape[0] / down)
    columns = _around(left, width, region.shape[1] / across)
    mask = colour.mask(region[rows, columns])
    if ignore is not None:
        mask[ignore[rows, columns] > 0] = 0
    mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, _BLOCK)  # type: ignore[assignment]
    # Where the part was cut from its region, what is beyond the edge does not count.
    if rows.start > 0:
        mask[:_AT_EDGE] = 0
    if rows.stop < region.shape[0]:
        mask[-_AT_EDGE:] = 0
    if columns.start > 0:
        mask[:, :_AT_EDGE] = 0
    if columns.stop < region.shape[1]:
        mask[:, -_AT_EDGE:] = 0
    return mask, (columns.start, rows.start)


def _around(first: int, count: int, spacing: float) -> slice:
    """Rows or columns around some of every third: blocks reach two further, rounding one, then an edge."""
    margin = 3 + _AT_EDGE
    return slice(max(int(first * spacing) - margin, 0), int((first + count - 1) * spacing) + margin + 1)


def _fit(outline: NDArray[Any], size: tuple[int, int], config: DetectorConfig) -> Detection | None:
    """The ball whose outline these pixels [n, 1, 2] are, in coordinates of the searched region."""
    points = outline[:, 0].astype(np.float64)
    # Pixels on the region's border are where the image was cut, not where the ball ends.
    left, top, width, height = cv2.boundingRect(outline)
    whole = left > 0 and top > 0 and left + width < size[0] and top + height < size[1]
    if not whole:
        points = points[((points > 0) & (points < np.array(size) - 1)).all(axis=1)]
    if len(points) < 8:
        return None
    fit = _ellipse(points, config) if whole else None
    centre, radius, used = fit if fit is not None else _largest_arc(points, config)
    # An outline runs through the outermost pixels' centres, half a pixel inside the ball's edge.
    radius += 0.5
    if not config.radius_px[0] <= radius <= config.radius_px[1]:
        return None
    angles = np.arctan2(used[:, 1] - centre[1], used[:, 0] - centre[0])
    bins = max(12, min(36, round(2 * np.pi * radius / 2)))
    seen = ((angles + np.pi) / (2 * np.pi) * bins).astype(np.intp)
    score = np.count_nonzero(np.bincount(np.minimum(seen, bins - 1))) / bins
    if score < config.score:
        return None
    return Detection((float(centre[0]), float(centre[1])), float(radius), float(score))


def _ellipse(points: Array, config: DetectorConfig) -> tuple[Array, float, Array] | None:
    """Centre, shorter half axis and the points, if an ellipse explains the whole outline."""
    (x, y), axes, degrees = cv2.fitEllipseDirect(points.astype(np.float32))
    short, long = sorted(axis / 2 for axis in axes)
    if not short > 1 or long / short > config.elongation:
        return None
    # As complex numbers, in the ellipse's frame and over its half axes: the outline is the unit circle.
    local = (points.view(np.complex128)[:, 0] - complex(x, y)) * cmath.rect(1.0, -math.radians(degrees))
    local.real *= 2.0 / axes[0]
    local.imag *= 2.0 / axes[1]
    radial = np.maximum(np.abs(local), 1e-9)
    error = (radial - 1.0) * short  # close to the distance for ellipses that are nearly round
    if math.sqrt(error @ error / len(error)) > config.tolerance_px:
        return None
    if max(error.max(), -error.min()) > 3 * config.tolerance_px:
        return None
    # Blur keeps the outline symmetric about its centre. A cut does not, and an ellipse, which can follow
    # the first two harmonics of its shape, leaves the third: error x exp(3i angle).
    unit = local / radial
    third = abs(error @ (unit * unit * unit)) / len(error)
    if 2 * third > config.asymmetry_px * min(long / short, 1.75):
        return None
    return np.array([x, y]), short, points


def _largest_arc(points: Array, config: DetectorConfig) -> tuple[Array, float, Array]:
    """Centre and radius of the circle that most points agree on, and these points.

    Circles through triples of points that lie a quarter to a half of the outline apart, evenly chosen and not
    at random: the same image always gives the same answer.
    """
    count = len(points)
    starts = np.arange(0, count, max(1, count // 24))
    spans = np.array([count // 8, count // 5, count // 3])[:, None]
    first = points[np.tile(starts, len(spans))]
    second = points[((starts + spans) % count).ravel()]
    third = points[((starts + 2 * spans) % count).ravel()]
    centres, radii = _through(first, second, third)
    good = np.isfinite(radii) & (radii >= config.radius_px[0] - 1) & (radii <= config.radius_px[1])
    if not good.any():
        return _kasa(points) + (points,)
    centres, radii = centres[good], radii[good]
    error = np.abs(_lengths(points[None] - centres[:, None]) - radii[:, None])
    votes = (error < config.tolerance_px).sum(axis=1)
    centre, radius = centres[votes.argmax()], radii[votes.argmax()]
    used = points
    for _ in range(3):
        agree = np.abs(_lengths(points - centre) - radius) < config.tolerance_px
        if agree.sum() < 6:
            break
        used = points[agree]
        centre, radius = _kasa(used)
    return centre, radius, used


def _through(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Centres [n, 2] and radii [n] of the circles through triples of points; NaN where they are in line."""
    u, v = b - a, c - a
    cross = 2 * (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])
    cross = np.where(np.abs(cross) > 1e-6, cross, np.nan)
    uu, vv = (u * u).sum(axis=1), (v * v).sum(axis=1)
    offset = np.stack((v[:, 1] * uu - u[:, 1] * vv, u[:, 0] * vv - v[:, 0] * uu), axis=1) / cross[:, None]
    return a + offset, _lengths(offset)


def _lengths(vectors: Array) -> Array:
    """Of vectors in a plane [..., 2]."""
    across, down = vectors[..., 0], vectors[..., 1]
    return np.sqrt(across * across + down * down)


def _kasa(points: Array) -> tuple[Array, float]:
    """Centre and radius by Kasa's linear least squares: x^2 + y^2 = 2 a x + 2 b y + c.

    About the points' middle the third column is orthogonal to the others: c is a mean, and (a, b) solves two
    equations.
    """
    middle = points.mean(axis=0)
    local = points - middle
    squares = (local * local).sum(axis=1)
    ((xx, xy), (_, yy)), (x, y) = (local.T @ local).tolist(), (squares @ local).tolist()
    area = xx * yy - xy * xy
    if area > 1e-9 * (xx + yy) ** 2:
        a, b = 0.5 * (yy * x - xy * y) / area, 0.5 * (xx * y - xy * x) / area
    else:  # points in a line: the least of all solutions
        a, b = np.linalg.lstsq(2 * local, squares, rcond=None)[0].tolist()
    return middle + (a, b), math.sqrt(float(squares.mean()) + a * a + b * b)
