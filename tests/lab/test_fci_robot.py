"""What stands behind the protocol: the plant under torques, and the model of it that clients download."""

from dataclasses import replace
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from fci import AWAY, FRICTIONLESS, plant

from dris.lab.fci.plant import FLANGE, Plant
from dris.lab.fci.urdf import arm_urdf
from dris.lab.objects import BALLS
from dris.lab.twin import Twin

ZERO = np.zeros(7)
HOME = np.array(FRICTIONLESS.home)
STIFFNESS, DAMPING = np.array(FRICTIONLESS.stiffness), np.array(FRICTIONLESS.damping)


def coriolis(robot):
    """C(q, dq) dq by MuJoCo, on a model and data of the test's own."""
    data = mujoco.MjData(robot.model)
    data.qpos[:], data.qvel[:] = robot.q, robot.dq
    mujoco.mj_forward(robot.model, data)
    both = data.qfrc_bias.copy()
    data.qvel[:] = 0
    mujoco.mj_forward(robot.model, data)
    return both - data.qfrc_bias


def test_a_plant_needs_a_twin_that_has_started():
    with pytest.raises(RuntimeError, match="call reset"):
        Plant(Twin())


def test_without_torques_the_robot_floats():
    robot = plant(FRICTIONLESS)
    for _ in range(200):
        robot.advance_with(ZERO)
    np.testing.assert_allclose(robot.q, HOME, atol=1e-9)


def test_a_clients_law_moves_the_arm_as_the_twins_own():
    """The paper's law, once inside the twin and once from outside without gravity."""
    config = replace(FRICTIONLESS, torque_rate=None, latency_s=0.0)
    goal = HOME + np.array([0.2, -0.1, 0.15, 0.1, -0.2, 0.1, 0.3])
    robot, twin = plant(config), Twin(config)
    twin.reset(BALLS["foam"], AWAY, 0)
    twin.set_reference(goal)
    for _ in range(500):
        robot.advance_with(STIFFNESS * (goal - robot.q) - DAMPING * robot.dq + coriolis(robot))
        twin.advance(1)
    np.testing.assert_allclose(robot.q, twin.joints(), atol=1e-9)
    assert np.abs(robot.q - HOME).max() > 0.2  # it did move


def test_a_declared_load_is_carried_whether_it_is_there_or_not():
    """g of a point mass is the slope of its potential energy m g z(q)."""
    robot = plant(FRICTIONLESS)
    without = robot.gravity.copy()
    robot.load_mass, robot.load_centre = 1.5, np.array([0.02, -0.01, 0.1])

    def height(q):
        data = mujoco.MjData(robot.model)
        data.qpos[:] = q
        mujoco.mj_kinematics(robot.model, data)
        link = data.body("link7")
        return link.xpos[2] + (link.xmat.reshape(3, 3) @ (FLANGE + robot.load_centre))[2]

    slope = [(height(HOME + step) - height(HOME - step)) / 2e-6 for step in 1e-6 * np.eye(7)]
    robot.advance_with(ZERO)
    np.testing.assert_allclose(robot.gravity - without, 1.5 * 9.81 * np.array(slope), atol=2e-3)
    for _ in range(100):
        robot.advance_with(ZERO)
    assert robot.flange_pose()[2, 3] > plant().flange_pose()[2, 3] + 0.005  # nothing is there: it rises


def test_an_outer_force_is_found():
    robot = plant(FRICTIONLESS)
    hand = robot.twin.model.body("hand").id
    robot.twin.data.xfrc_applied[hand, :3] = (3.0, -4.0, -12.0)  # at the hand's centre of mass
    for _ in range(400):
        robot.advance_held()
    robot.force_point = np.array([-0.01 / 2**0.5, 0.01 / 2**0.5, 0.03])  # hand's centre, in the flange's axes
    robot.advance_held()
    np.testing.assert_allclose(robot.moment.outer_force[:3], (3.0, -4.0, -12.0), atol=0.15)
    assert np.abs(robot.q - HOME).max() < 0.01  # its own controller holds it


def test_its_own_acceleration_is_no_outer_force():
    """That of the rotors, too."""
    robot = plant(FRICTIONLESS)
    for torque in np.linspace(0, 4, 150):
        robot.advance_with(torque * np.array([5, 2, -3, 2, 1, -1, 1]))
    assert np.abs(robot.dq).min() > 0.1
    np.testing.assert_allclose(robot.moment.outer_torque, 0, atol=0.1)


def test_the_own_controller_brakes_at_ten_radians_per_second_squared():
    robot = plant(FRICTIONLESS)
    robot.twin.data.qvel[0] = 1.0
    robot.advance_with(ZERO)  # notices the speed
    start = robot.q[0]
    robot.hold()
    speeds = []
    for _ in range(150):
        robot.advance_held()
        speeds.append(robot.dq[0])
    assert abs(speeds[49] - 0.5) < 0.03 and abs(speeds[140]) < 0.01
    assert abs(robot.q[0] - start - 1.0**2 / (2 * 10)) < 0.003


def test_a_trial_starts_without_a_jump_of_the_arm():
    robot = plant()
    for _ in range(30):
        robot.advance_with(np.array([8.0, 0, 0, 0, 2, 0, 0]))
    q, dq = robot.q.copy(), robot.dq.copy()
    robot.start_trial(BALLS["ping-pong"], replace(AWAY, position=(0.5, 0, 1.5)), 3)
    np.testing.assert_array_equal(robot.twin.joints(), q)
    robot.advance_with(ZERO)
    np.testing.assert_allclose(robot.q, q + 0.001 * dq, atol=1e-4)
    assert robot.twin.time_s == 0.001 and abs(robot.twin.state().thing_position[2] - 1.5) < 1e-3


def test_the_stiffest_own_controller_is_stable():
    robot = plant()
    robot.stiffness = np.full(7, 14250.0)
    robot.twin.data.qvel[:7] = 0.3
    for _ in range(300):
        robot.advance_held()
    assert np.abs(robot.dq).max() < 1e-3


# The model that clients download


def test_the_urdf_has_the_dynamics_of_the_arm():
    """MuJoCo reads the URDF; hand and plate are without mass in the other model."""
    robot = plant()
    robot.model.body("link3").quat[:] = (
        np.array([4, -2, 5, 2]) / 7
    )  # as no FR3 has it: all three angles count
    urdf = arm_urdf(robot.model, robot.limits, FLANGE)
    read = mujoco.MjModel.from_xml_string(urdf)
    read.dof_armature[:] = robot.model.dof_armature
    bare = robot.model
    for name in ("hand", "plate"):
        bare.body(name).mass[:] = bare.body(name).inertia[:] = 0
    generator = np.random.default_rng(3)
    for _ in range(5):
        q, dq = (
            generator.uniform(robot.limits.joints.low, robot.limits.joints.high),
            generator.normal(0, 1, 7),
        )
        found = []
        for model in (read, bare):
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:] = q, dq
            mujoco.mj_forward(model, data)
            inertia = np.zeros((7, 7))
            for column, unit in zip(inertia, np.eye(7), strict=True):
                mujoco.mj_mulM(model, data, column, unit)
            found.append((data.qfrc_bias.copy(), inertia, data.body("link7").xpos.copy()))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_the_urdf_names_the_speed_limits():
    robot = plant()
    root = ElementTree.fromstring(arm_urdf(robot.model, robot.limits, FLANGE))
    joint = {one.get("name"): one for one in root.iter("joint")}["joint6"]
    limit, near = joint.find("limit"), joint.find("position_based_velocity_limits")
    assert [float(limit.get(key)) for key in ("lower", "upper", "velocity", "effort")] == (
        [0.5445, 4.5169, 4.18, 12.0]
    )
    assert (float(near.get("velocity_offset")), float(near.get("deceleration_limit"))) == (0.4878, 5.5)


def test_hand_and_plate_are_told_as_the_end_effector():
    """0.73 kg at (-0.01, 0, 0.03) and 0.35 kg at the mount, turned by -45 degrees on the flange."""
    mass, centre, inertia = plant().end_effector()
    hand, plate = np.array([-0.01, 0, 0.03]), np.array([0.13, 0, 0.1034])
    assert mass == pytest.approx(1.08)
    turn = np.array([[1, 1, 0], [-1, 1, 0], [0, 0, 2**0.5]]) / 2**0.5
    np.testing.assert_allclose(centre, turn @ (0.73 * hand + 0.35 * plate) / 1.08, atol=1e-6)
    # Its trace is the parts' own and twice the reduced mass times their distance squared.
    own = 0.001 + 0.0025 + 0.0017 + 2 * 0.35 / 3 * (0.12**2 + 0.12**2 + 0.005**2)
    apart = 2 * (0.73 * 0.35 / 1.08) * np.sum((hand - plate) ** 2)
    assert np.trace(inertia) == pytest.approx(own + apart, rel=1e-4)
