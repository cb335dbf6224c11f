"""The plate to print: a closed surface around a volume that is worked out by hand."""

from collections import Counter

import mujoco
import numpy as np
import pytest

from dris.catching.robot_model import robot_model
from dris.cli.robot import plate
from dris.robot.plate_print import Box, plate_parts, surface, volume


def edges(triangles):
    """How often each directed edge occurs."""
    corners = [tuple(map(tuple, np.round(triangle, 7))) for triangle in triangles]
    return Counter((t[k], t[(k + 1) % 3]) for t in corners for k in range(3))


@pytest.mark.parametrize("mount", ["down", "level"])
def test_the_surface_is_closed(mount):
    """Every edge is in two triangles, once in each direction: no hole, no face turned over."""
    found = edges(plate_parts(mount).surface())
    assert set(found.values()) == {1} and all((end, begin) in found for begin, end in found)


@pytest.mark.parametrize(
    ("mount", "low_mm", "high_mm", "volume_mm3"),
    [
        # Plate 240 x 240 x 10. The grip reaches from the hand's back, 20 mm behind its axis, to the plate's
        # edge, 10 mm before it; from the hand's underside at 66 mm to the plate's at 103.4 + 5; 20 mm wide.
        # Two notches of 25 x 10 mm reach 2 mm beyond fingers that reach 2 mm over the edge.
        ("down", (-150, -120, -10), (120, 120, 32.4), 240 * 240 * 10 + 30 * 20 * 42.4 - 2 * 25 * 10 * 4),
        # The plate begins at 220 - 120 = 100 mm; the grip, 40 x 20 mm, from 66 mm to there. The fingers reach
        # to 108 mm, the notches 2 mm further.
        ("level", (-154, -120, -25), (120, 120, 15), 240 * 240 * 10 + 40 * 20 * 34 - 2 * 25 * 10 * 10),
    ],
)
def test_sizes_and_volume_are_those_by_hand(mount, low_mm, high_mm, volume_mm3):
    triangles = plate_parts(mount).surface()
    np.testing.assert_allclose(1e3 * triangles.min(axis=(0, 1)), low_mm, atol=1e-6)
    np.testing.assert_allclose(1e3 * triangles.max(axis=(0, 1)), high_mm, atol=1e-6)
    assert 1e9 * volume(triangles) == pytest.approx(volume_mm3, rel=1e-9)


def test_the_plate_is_where_the_model_has_it():
    """Half sizes of the model's own box; its top face is at zero."""
    half = robot_model("down").geom("plate").size
    box = plate_parts("down").plate
    np.testing.assert_allclose(box.high, (half[0], half[1], 0.0))
    np.testing.assert_allclose(box.low, (-half[0], -half[1], -2 * half[2]))


def test_what_is_glued_on_top_is_left_out_of_the_print():
    """3 mm of 240 x 240 less, without what the notches take of it; everything below stays."""
    bare, covered = plate_parts("down").surface(), plate_parts("down", 0.003).surface()
    less_mm3 = 240 * 240 * 3 - 2 * 25 * 3 * 4
    assert 1e9 * (volume(bare) - volume(covered)) == pytest.approx(less_mm3, rel=1e-9)
    np.testing.assert_allclose(bare.min(axis=(0, 1)), covered.min(axis=(0, 1)))
    with pytest.raises(ValueError, match="thinner than the plate's 0.01 m, got 0.01"):
        plate_parts("down", 0.01)


def test_boxes_are_joined_and_taken_away():
    unit = Box(np.zeros(3), np.ones(3))
    assert volume(surface([unit])) == pytest.approx(1.0) and len(surface([unit])) == 12
    shifted = Box(np.full(3, 0.5), np.full(3, 1.5))
    assert volume(surface([unit, shifted])) == pytest.approx(2 - 0.125)
    assert volume(surface([unit], [shifted])) == pytest.approx(1 - 0.125)


def test_mujoco_reads_the_file_and_finds_the_same(tmp_path):
    """An independent reader: its mesh's mass at 1000 kg/m3, in metres."""
    file = tmp_path / "plate.stl"
    assert plate("down", file, tmp_path / "plate.png") == 0
    assert (tmp_path / "plate.png").stat().st_size > 10_000
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="p" file="{file}" scale="0.001 0.001 0.001" inertia="exact"/></asset>'
        '<worldbody><body><freejoint/><geom type="mesh" mesh="p" density="1000"/></body></worldbody></mujoco>'
    )
    assert model.body_mass[1] == pytest.approx(0.59944, rel=1e-5)


def test_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.stl"):
        plate(out=tmp_path / "plate.obj")
    with pytest.raises(ValueError, match=r"\.png or \.pdf"):
        plate(out=tmp_path / "plate.stl", drawing=tmp_path / "plate.txt")
    with pytest.raises(ValueError, match="no folder"):
        plate(out=tmp_path / "gone" / "plate.stl")
    assert list(tmp_path.iterdir()) == []
