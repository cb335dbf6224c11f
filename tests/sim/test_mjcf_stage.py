"""Any MJCF in 3-D."""

import mujoco
import numpy as np
import pytest

from dris.sim.mjcf_stage import MjcfStage, shapes_of
from dris.view.meshes import by_body_and_colour, mesh_of

ARM = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="upper" pos="0 0 1">
      <joint type="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/>
      <geom type="sphere" size="0.1" rgba="0 0 0 0"/>
      <geom type="sphere" size="0.3" group="3"/>
      <body name="lower" pos="0 0 -0.5">
        <joint type="hinge" axis="0 1 0"/>
        <geom type="box" size="0.1 0.2 0.3" pos="0 0 -0.3" rgba="1 0 0 1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def model():
    return mujoco.MjModel.from_xml_string(ARM)


def test_visible_geoms_become_shapes_on_their_bodies(model):
    capsule, box = shapes_of(model)  # neither the plane nor what cannot be seen
    assert (capsule.kind, capsule.body, box.kind, box.body) == ("capsule", 1, "box", 2)
    assert capsule.size == pytest.approx((0.05, 0.25)) and capsule.position == pytest.approx((0, 0, -0.25))
    assert box.size == (0.1, 0.2, 0.3) and box.colour == (1.0, 0.0, 0.0)
    low, high = mesh_of(capsule).bounds
    assert low == pytest.approx([-0.05, -0.05, -0.55], abs=3e-3) and high == pytest.approx(
        [0.05, 0.05, 0.05], abs=3e-3
    )
    low, high = mesh_of(box).bounds
    assert low == pytest.approx([-0.1, -0.2, -0.6]) and high == pytest.approx([0.1, 0.2, 0.0])
    assert [key[0] for key in by_body_and_colour((capsule, box, box))] == [1, 2]


def test_every_instance_has_a_ball_where_its_body_is(model):
    """Upper arm level, lower arm hanging: the elbow is half a metre aside at the height of the shoulder."""
    qpos = np.array([[0.0, 0.0], [np.pi / 2, 0.0], [-np.pi / 2, 0.0]])
    scene = MjcfStage(model, lambda which: qpos, "lower", 0.03).scene(0)
    assert scene.points == pytest.approx(np.array([[0, 0, 0.5], [-0.5, 0, 1.0], [0.5, 0, 1.0]]), abs=1e-9)
    assert scene.positions[2] == pytest.approx([0, 0, 0.5]) and scene.radii.tolist() == [0.03] * 3
