"""What is left out of a window of a picture is nowhere in it."""

import numpy as np

from dris.experiments.trials.cells import cells_of
from dris.lab import twin as lab_twin
from dris.lab.objects import THINGS
from dris.lab.twin import Twin
from dris.lab.window import outside


def test_a_window_shows_the_same_with_what_it_cannot_show(monkeypatch):
    draw, left_out, same, shown = np.random.default_rng(0), [], [], []
    what, _, launch = cells_of("ramps")[5]
    twin = Twin()
    twin.reset(THINGS[what], launch, 3)
    groups = twin.model.geom_group.copy()
    for _ in range(12):
        twin.advance(20)
        for camera in twin.config.lab.cameras:
            window = (int(draw.integers(-80, 560)), int(draw.integers(-80, 400)))
            left_out.append(outside(twin.model, twin.data, camera, window).mean())
            drawn = twin.render(camera.name, window).copy()
            with monkeypatch.context() as patched:
                patched.setattr(lab_twin, "outside", lambda *_: np.zeros(len(groups), dtype=bool))
                same.append((drawn == twin.render(camera.name, window)).all())
            shown.append(drawn.any())
    twin.close()
    assert (
        all(same) and np.mean(shown) > 0.5 and min(left_out) > 0.2 and (twin.model.geom_group == groups).all()
    )


def test_by_hand_what_lies_beside_a_window_is_outside():
    """A thing at the middle of the picture: windows to its left, right, above and below cannot show it."""
    what, _, launch = cells_of("ramps")[0]
    twin = Twin()
    twin.reset(THINGS[what], launch, 0)
    camera = twin.config.lab.cameras[0]
    shape = next(
        g for g in range(twin.model.ngeom) if twin.model.geom_bodyid[g] == twin.model.body("thing").id
    )
    twin.data.geom_xpos[shape] = camera.target
    radius = 520 * twin.model.geom_rbound[shape] / np.linalg.norm(np.subtract(camera.position, camera.target))
    gap = round(1.1 * radius) + 6
    middle = (320 - 88, 240 - 88)
    assert not outside(twin.model, twin.data, camera, middle)[shape]
    for way in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        beside = tuple(int(m + w * (88 + gap)) for m, w in zip(middle, way, strict=True))
        touching = tuple(int(m + w * 88) for m, w in zip(middle, way, strict=True))
        assert outside(twin.model, twin.data, camera, beside)[shape]
        assert not outside(twin.model, twin.data, camera, touching)[shape]
