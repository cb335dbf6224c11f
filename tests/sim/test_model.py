"""Reading an MJCF: the FR3's published figures, and every refusal."""

import mujoco
import numpy as np
import pytest
from arms import GANTRY_XML, fr3_down_model, fr3_model, gantry_model

from dris.catching.robot_model import robot_spec
from dris.sim.model import ModelError, load_arm


def test_fr3_flange_stands_where_franka_says():
    # Ready pose of libfranka's examples: flange at (0.307, 0, 0.590), pointing down.
    model = fr3_model()
    data = mujoco.MjData(model)
    data.qpos[:] = [0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4]
    mujoco.mj_kinematics(model, data)
    hand = model.body("hand").id
    np.testing.assert_allclose(data.xpos[hand], [0.307, 0, 0.590], atol=5e-4)
    np.testing.assert_allclose(data.xmat[hand].reshape(3, 3)[:, 2], [0, 0, -1], atol=1e-6)


def test_fr3_without_tool_has_the_published_gravity_and_inertia():
    spec = robot_spec("level")
    spec.delete(spec.body("hand"))
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = [0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4]
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qfrc_bias, [0, -1.71, -0.64, 18.96, 0.79, 1.59, 0], atol=0.01)
    mass = np.zeros((7, 7))
    mujoco.mj_fullM(model, data, mass)
    np.testing.assert_allclose(np.diag(mass), [0.694, 1.72, 1.118, 1.029, 0.102, 0.104, 0.074], atol=0.001)


def test_fr3_limits_are_the_stricter_published_set():
    arm = load_arm(fr3_model())
    np.testing.assert_allclose(arm.joint_range[3], [-3.0421, -0.1518])
    np.testing.assert_allclose(arm.joint_range[5], [0.5445, 4.5169])
    np.testing.assert_allclose(arm.torque_limit, [87, 87, 87, 87, 12, 12, 12])
    np.testing.assert_allclose(arm.velocity_limit, [2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])


def test_masses_are_all_there():
    for model in (fr3_model(), fr3_down_model(), gantry_model()):
        moving = sum(model.body_mass[b] for b in range(1, model.nbody) if model.body(b).name != "base")
        assert load_arm(model).mass.sum() == pytest.approx(moving)


def test_unlimited_joints_stay_unlimited():
    xml = GANTRY_XML.replace(' range="-0.5 0.5"', "").replace('actuatorfrcrange="-200 200"', "")
    arm = load_arm(mujoco.MjModel.from_xml_string(xml))
    assert np.isinf(arm.joint_range[0]).all() and np.isinf(arm.torque_limit[0])
    assert np.isinf(arm.velocity_limit).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<site name="plate" pos="0.1 0 0.004"/>', "", "no site named 'plate'"),
        ('geom name="plate"', "geom", "no box geom named 'plate'"),
        ('<site name="plate" pos="0.1 0 0.004"/>', '<site name="plate"/>', "centre of the top face"),
        ('type="box" pos="0.1 0 0" size="0.1 0.1 0.004"', 'type="cylinder" pos="0.1 0 0" size="0.1 0.004"', "must be a box"),
        ('<body name="side" pos="0.1 0.1 0">', '<body name="side" pos="0.1 0.1 0"><joint name="branch"/>', "'branch' on body 'side' is a branch"),
        ('armature="0.1" damping="2"', 'armature="0.1" frictionloss="1"', "joint friction"),
        ('armature="0.1" damping="2"', 'armature="0.1" stiffness="1"', "springs"),
        ('type="slide" axis="0 1 0" range="-0.5 0.5" armature="0.1" damping="2"\n        actuatorfrcrange="-200 200"', 'type="ball"', "neither hinge nor slide"),
        ('<joint name="turn"', '<joint name="extra"/><joint name="turn"', "several joints"),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_refused_by_name(old, new, message):
    assert old in GANTRY_XML
    model = mujoco.MjModel.from_xml_string(GANTRY_XML.replace(old, new))
    with pytest.raises(ModelError, match=message):
        load_arm(model)


def test_a_fixed_plate_and_a_broken_file_are_refused(tmp_path):
    fixed = """<mujoco><worldbody><body><joint/><geom size="0.1"/></body>
      <body><geom name="plate" type="box" size="0.1 0.1 0.01"/><site name="plate" pos="0 0 0.01"/></body>
      </worldbody></mujoco>"""
    with pytest.raises(ModelError, match="no joint moves the site"):
        load_arm(mujoco.MjModel.from_xml_string(fixed))
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody>")
    with pytest.raises(ModelError, match="broken.xml is not an MJCF"):
        load_arm(broken)
