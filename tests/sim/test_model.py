"""Reading an MJCF: the FR3's published figures, and every refusal."""

import mujoco
import numpy as np
import pytest
from arms import GANTRY_XML, SERVO_XML, fr3_down_model, fr3_model, gantry_model, servo_model

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
    limit = np.array([87, 87, 87, 87, 12, 12, 12])
    np.testing.assert_allclose(arm.torque_range, np.c_[-limit, limit])
    np.testing.assert_allclose(arm.velocity_limit, [2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
    assert (arm.velocity_offset[3], arm.deceleration_limit[3]) == (0.3533, 4.0)
    silent = load_arm(gantry_model())  # names no limits
    assert np.isinf(silent.deceleration_limit).all() and not silent.velocity_offset.any()


def test_masses_are_all_there():
    for model in (fr3_model(), fr3_down_model(), gantry_model()):
        moving = sum(model.body_mass[b] for b in range(1, model.nbody) if model.body(b).name != "base")
        assert load_arm(model).mass.sum() == pytest.approx(moving)


def test_unlimited_joints_stay_unlimited():
    xml = GANTRY_XML.replace(' range="-0.5 0.5"', "").replace('actuatorfrcrange="-200 200"', "")
    arm = load_arm(mujoco.MjModel.from_xml_string(xml))
    assert np.isinf(arm.joint_range[0]).all() and np.isinf(arm.torque_range[0]).all()
    assert np.isinf(arm.velocity_limit).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<site name="plate" pos="0.1 0 0.004"/>', "", "no site named 'plate'"),
        ('geom name="plate"', "geom", "no box geom named 'plate'"),
        ('<site name="plate" pos="0.1 0 0.004"/>', '<site name="plate"/>', "centre of the top face"),
        ('type="box" pos="0.1 0 0" size="0.1 0.1 0.004"', 'type="cylinder" pos="0.1 0 0" size="0.1 0.004"', "must be a box"),
        ('<body name="side" pos="0.1 0.1 0">', '<body name="side" pos="0.1 0.1 0"><joint name="branch"/>', "'branch' on body 'side' is a branch"),
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


def servo_with(old, new):
    assert old in SERVO_XML
    return mujoco.MjModel.from_xml_string(SERVO_XML.replace(old, new))


def test_torque_limits_are_the_actuators_own():
    by_hand = [[-40, 40], [-60, 30], [-30, 30], [-8, 8]]  # forcerange times gear, also if it differs by side
    np.testing.assert_allclose(load_arm(servo_model()).torque_range, by_hand)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('forcerange="-60 30"', 'forcerange="-60 30" gear="-1"', [-30, 60]),
        ('forcerange="-60 30"', "", [-np.inf, np.inf]),  # a servo's ctrlrange limits a position, no torque
        ('<position name="shoulder" joint="shoulder" forcerange="-60 30"', '<motor name="s" joint="shoulder" ctrlrange="-2 1" gear="10"', [-20, 10]),
        ('<position name="shoulder"', '<motor joint="shoulder" forcerange="-5 5" ctrlrange="-9 9"/><position name="shoulder"', [-65, 35]),
        ('name="shoulder" axis="0 1 0"', 'name="shoulder" axis="0 1 0" actuatorfrcrange="-10 80"', [-10, 30]),
    ],
)  # fmt: skip
def test_torque_limits_of_joint_and_actuators_come_together(old, new, expected):
    np.testing.assert_allclose(load_arm(servo_with(old, new)).torque_range[1], expected)


def test_gravity_can_be_switched_off():
    off = servo_with("<worldbody>", '<option><flag gravity="disable"/></option><worldbody>')
    assert (load_arm(off).gravity == 0).all() and load_arm(servo_model()).gravity[2] == -9.81


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<position name="wrist" joint="wrist" kp="100" kv="5" forcerange="-8 8"/>', "", "joint 'wrist' has no actuator"),
        ('<position name="wrist" joint="wrist" kp="100" kv="5"', '<general name="wrist" joint="wrist" dyntype="filter" dynprm="0.1"', "actuator 'wrist' is not a motor"),
        ('<position name="wrist" joint="wrist" kp="100" kv="5"', '<motor name="wrist" site="plate"', "actuator 'wrist' is not a motor"),
        ('forcerange="-8 8"', 'forcerange="-8 8" gear="0"', "with a gear"),
        ('name="wrist" axis="0 1 0"', 'name="wrist" axis="0 1 0" actuatorfrcrange="9 10"', "left no torque"),
        ("<worldbody>", '<option><flag frictionloss="disable"/></option><worldbody>', 'flag frictionloss="disable"'),
        ("<worldbody>", '<option><flag actuation="disable"/></option><worldbody>', 'flag actuation="disable"'),
    ],
)  # fmt: skip
def test_drives_that_are_not_modelled_are_refused_by_name(old, new, message):
    with pytest.raises(ModelError, match=message):
        load_arm(servo_with(old, new))


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
