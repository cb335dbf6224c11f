"""What stands behind the protocol: the plant under torques, and the cabinet's modes, reflexes and settings."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from fci import AWAY, FRICTIONLESS, POSITIONS, VELOCITIES, command, moving, plant, request

from dris.lab.fci.cabinet import Cabinet
from dris.lab.fci.plant import FLANGE
from dris.lab.fci.protocol import ERRORS, ROBOT_STATE, Command, Controller, Generator, Mode
from dris.lab.fci.state_message import StateMessage
from dris.lab.fci.urdf import arm_urdf
from dris.lab.objects import BALLS
from dris.lab.twin import Twin

ZERO = np.zeros(7)
HOME = np.array(FRICTIONLESS.home)
STIFFNESS, DAMPING = np.array(FRICTIONLESS.stiffness), np.array(FRICTIONLESS.damping)


def status(answer):
    return answer[12] if answer else None


def coriolis(robot):
    """C(q, dq) dq by MuJoCo, on a model and data of the test's own."""
    data = mujoco.MjData(robot.model)
    data.qpos[:], data.qvel[:] = robot.q, robot.dq
    mujoco.mj_forward(robot.model, data)
    both = data.qfrc_bias.copy()
    data.qvel[:] = 0
    mujoco.mj_forward(robot.model, data)
    return both - data.qfrc_bias


# The plant


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


# Motions


def test_a_torque_motion_begins_runs_and_ends():
    cabinet, said = moving(plant())
    encoded = StateMessage(cabinet)
    state = np.frombuffer(encoded.encode(5), ROBOT_STATE)[0]
    assert state["robot_mode"] == Mode.MOVE and state["controller_mode"] == Controller.EXTERNAL
    assert state["motion_generator_mode"] == Generator.NONE and state["message_id"] == 5
    assert cabinet.tick(command(tau_J_d=np.full(7, 0.75))) == b""
    state = np.frombuffer(encoded.encode(6), ROBOT_STATE)[0]
    np.testing.assert_array_equal(state["tau_J_d"], np.float32(0.75))
    assert state["control_command_success_rate"] == 1
    assert status(cabinet.tick(command(torque_finished=True))) == 0
    state = np.frombuffer(encoded.encode(7), ROBOT_STATE)[0]
    assert state["robot_mode"] == Mode.IDLE and state["controller_mode"] == Controller.OTHER
    assert state["motion_generator_mode"] == Generator.IDLE
    assert said == ["motion: external, none", "motion ended: success"]


def test_a_state_tells_where_the_end_effector_is():
    """At the usual home the flange is at (0.307, 0, 0.590), pointing down."""
    robot = plant(joints=[0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    state = np.frombuffer(StateMessage(Cabinet(robot)).encode(1), ROBOT_STATE)[0]
    pose = state["O_T_EE"].reshape(4, 4).T
    np.testing.assert_allclose(pose[:3, 3], (0.307, 0, 0.590 - 0.1034), atol=5e-4)
    np.testing.assert_allclose(pose[:3, 2], (0, 0, -1), atol=1e-6)
    np.testing.assert_allclose(state["O_ddP_O"], (0, 0, -9.81), rtol=1e-6)
    np.testing.assert_allclose(state["elbow"], (0, -1))


def test_nineteen_lost_commands_are_borne_and_twenty_are_not():
    cabinet, _ = moving(plant())
    cabinet.tick(command(tau_J_d=np.full(7, 0.5)))
    for _ in range(19):
        assert cabinet.tick(None) == b""
    np.testing.assert_array_equal(cabinet.motion.torque, 0.5)  # the last is used again
    assert cabinet.success_rate == 1 / 20
    cabinet.tick(command(tau_J_d=np.full(7, 0.5)))
    for _ in range(19):
        assert cabinet.tick(None) == b""
    assert status(cabinet.tick(None)) == 8
    assert cabinet.mode is Mode.REFLEX and cabinet.errors == ("communication_constraints_violation",)


def test_a_motion_waits_a_second_for_its_first_command():
    cabinet, _ = moving(plant())
    for _ in range(999):
        assert cabinet.tick(None) == b""
    assert status(cabinet.tick(None)) == 8 and cabinet.errors == ("communication_constraints_violation",)


def test_a_jump_of_the_torque_is_a_reflex_and_never_reaches_the_motors():
    robot = plant(FRICTIONLESS)
    cabinet, _ = moving(robot)
    for torque in (1.0, 2.0):
        assert cabinet.tick(command(tau_J_d=[torque] + [0] * 6)) == b""
    speed = robot.dq[0]
    assert status(cabinet.tick(command(tau_J_d=[3.01] + [0] * 6))) == 8
    assert robot.dq[0] < speed  # it brakes
    flags = np.frombuffer(StateMessage(cabinet).encode(1), ROBOT_STATE)[0]
    for field in ("errors", "reflex_reason"):
        assert [ERRORS[k] for k in np.flatnonzero(flags[field])] == ["controller_torque_discontinuity"]


def test_a_joint_stops_when_it_is_faster_than_allowed_and_not_before():
    robot = plant(FRICTIONLESS)
    cabinet, _ = moving(robot)
    torque, before = 0.0, []
    while cabinet.mode is Mode.MOVE:
        torque = min(torque + 1.0, 30.0)
        before.append(robot.dq[0])
        answer = cabinet.tick(command(tau_J_d=[torque] + [0] * 6))
    assert status(answer) == 8 and cabinet.errors == ("joint_velocity_violation",)
    assert max(before) <= 2.621 < robot.dq[0]


def test_a_blow_is_a_collision():
    robot = plant(FRICTIONLESS)
    cabinet, _ = moving(robot)
    cabinet.tick(command())
    robot.twin.data.xfrc_applied[robot.twin.model.body("hand").id, 2] = -60.0
    for _ in range(100):
        cabinet.tick(command())
    assert "cartesian_reflex" in cabinet.errors


@pytest.mark.parametrize("number", [np.nan, -np.inf, 1e300])
def test_numbers_that_are_none_abort_the_motion(number):
    for modes, name in (({}, "tau_J_d"), (POSITIONS, "q_c"), (VELOCITIES, "dq_c")):
        cabinet, _ = moving(plant(), **modes)
        assert status(cabinet.tick(command(**{name: [number] * 7}))) == 10
        assert cabinet.mode is Mode.IDLE and cabinet.motion is None


def test_recovery_waits_until_the_arm_stands():
    robot = plant(FRICTIONLESS)
    cabinet, said = moving(robot)
    cabinet.tick(command())
    robot.twin.data.qvel[0] = 1.0
    robot.advance_with(ZERO)
    cabinet.reflex(("power_limit_violation",))
    assert status(cabinet.answer(request(Command.MOVE, **POSITIONS))) == 5  # not possible
    assert cabinet.answer(request(Command.AUTOMATIC_ERROR_RECOVERY, 9)) == b""
    assert cabinet.mode is Mode.RECOVERY
    waited = 0
    while not (answer := cabinet.tick(None)):
        waited += 1
    assert 90 <= waited <= 160  # 1 rad/s at 10 rad/s2, and until it has settled
    assert (answer[4], status(answer)) == (9, 0)
    assert cabinet.mode is Mode.IDLE and cabinet.errors == () and cabinet.recoveries == 1
    assert cabinet.last_errors == ("power_limit_violation",)  # until the next motion
    assert said[-1] == "recovered from power_limit_violation"


def test_a_joint_outside_its_range_is_led_back_by_hand():
    robot = plant(joints=[2.7436, *HOME[1:]])
    cabinet = Cabinet(robot)
    robot.twin.data.qpos[0] = 2.75
    robot.advance_held()
    assert status(cabinet.answer(request(Command.AUTOMATIC_ERROR_RECOVERY))) == 3


def test_the_user_stop_aborts_and_forbids_until_it_is_released():
    cabinet, said = moving(plant())
    cabinet.tick(command())
    assert status(cabinet.user_stop(True)) == 9
    assert cabinet.user_stop(True) == b""  # still pressed
    assert cabinet.mode is Mode.USER_STOPPED
    assert status(cabinet.answer(request(Command.MOVE, **POSITIONS))) == 5
    assert status(cabinet.answer(request(Command.AUTOMATIC_ERROR_RECOVERY))) == 5
    cabinet.user_stop(False)
    assert cabinet.mode is Mode.IDLE
    assert status(cabinet.answer(request(Command.MOVE, **POSITIONS))) == 1
    assert said.count("user stop pressed") == said.count("user stop released") == 1


def test_stop_move_preempts():
    cabinet, _ = moving(plant())
    cabinet.tick(command())
    answer = cabinet.answer(request(Command.STOP_MOVE, 8))
    assert answer == bytes([2, 0, 0, 0, 8, 0, 0, 0, 13, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 13, 0, 0, 0, 2])
    assert status(cabinet.answer(request(Command.STOP_MOVE))) == 0  # nothing to stop is no error


@pytest.mark.parametrize(
    "modes",
    [
        {"controller": 0, "generator": 2},
        {"controller": 2, "generator": 0},
        {"controller": 77, "generator": 4},
        {"controller": 2, "generator": 4, "asynchronous": True},
    ],
)
def test_motions_that_are_not_there_are_refused(modes):
    said = []
    cabinet = Cabinet(plant(), said.append)
    assert status(cabinet.answer(request(Command.MOVE, **modes))) == 5
    assert cabinet.mode is Mode.IDLE and "known: torques" in said[0]


# Motion generators


@pytest.mark.parametrize("modes", [POSITIONS, VELOCITIES], ids=["positions", "velocities"])
def test_joint_motions_are_followed(modes):
    """0.2 rad in half a second along 10 s^3 - 15 s^4 + 6 s^5: at most 4.6 rad/s2 and 96 rad/s3."""
    robot = plant()
    cabinet, _ = moving(robot, **modes)
    start, way = robot.q.copy(), np.array([0.2, -0.2, 0.2, 0.2, -0.2, 0.2, 0.2])
    for k in range(500):
        s = (k + 1) / 500
        path, slope = 10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / 0.5
        wished = {"q_c": start + path * way} if modes is POSITIONS else {"dq_c": slope * way}
        assert cabinet.tick(command(**wished)) == b"", cabinet.errors
        if modes is POSITIONS:
            np.testing.assert_allclose(robot.q, start + path * way, atol=2e-3)
    assert status(cabinet.tick(command(motion_finished=True))) == 0
    np.testing.assert_allclose(robot.q, start + way, atol=2e-3)


def test_a_jump_of_a_joint_motion_is_a_reflex():
    robot = plant()
    cabinet, _ = moving(robot, **POSITIONS)
    cabinet.tick(command(q_c=robot.q))
    assert status(cabinet.tick(command(q_c=robot.q + 0.001))) == 8
    prefix = "joint_motion_generator_"  # 1 rad/s within a millisecond
    assert cabinet.errors == (prefix + "velocity_discontinuity", prefix + "acceleration_discontinuity")
    cabinet, _ = moving(plant(), **POSITIONS)
    cabinet.tick(command(q_c=HOME + 0.02))
    assert cabinet.errors == ("joint_position_motion_generator_start_pose_invalid",)


# Settings


def collision(lower=10.0, upper=20.0):
    names = ("torque_acceleration", "torque_nominal", "force_acceleration", "force_nominal")
    return {name: [[lower], [upper]] for name in names}


POSE = np.eye(4).T.ravel()
SKEW = POSE + np.eye(16)[1]


@pytest.mark.parametrize(
    ("what", "good", "bad", "words"),
    [
        ("SET_COLLISION_BEHAVIOR", collision(), collision(30.0), "lower <= upper"),
        ("SET_COLLISION_BEHAVIOR", collision(), collision(0.0), "positive"),
        ("SET_JOINT_IMPEDANCE", {"stiffness": 14250}, {"stiffness": 14251}, r"\[0, 14250\]"),
        ("SET_JOINT_IMPEDANCE", {"stiffness": 0}, {"stiffness": np.nan}, "finite"),
        ("SET_CARTESIAN_IMPEDANCE", {"stiffness": 100}, {"stiffness": 1000}, r"\[1, 300\]"),
        ("SET_EE_TO_K", {"pose": POSE}, {"pose": SKEW}, "rotation"),
        ("SET_NE_TO_EE", {"pose": POSE}, {"pose": 0}, "rotation"),
        ("SET_LOAD", {"mass": 3.0}, {"mass": -0.1}, "0 to 5 kg"),
        ("SET_LOAD", {"mass": 1, "inertia": np.eye(3).ravel()}, {"inertia": -np.eye(3).ravel()}, "inertia"),
        ("SET_GUIDING_MODE", {"axes": True}, None, ""),
    ],
)
def test_settings_are_checked(what, good, bad, words):
    said = []
    cabinet = Cabinet(plant(), said.append)
    assert status(cabinet.answer(request(Command[what], **good))) == 0 and said == []
    kept = cabinet.settings
    if bad is not None:
        assert status(cabinet.answer(request(Command[what], **bad))) == 2
        assert cabinet.settings is kept
        assert re.search(words, said[-1])
    cabinet.answer(request(Command.MOVE, **POSITIONS))
    assert status(cabinet.answer(request(Command[what], **good))) == 1  # not while it moves


def test_settings_reach_the_robot():
    robot = plant()
    cabinet = Cabinet(robot)
    pose = np.eye(4)
    pose[:3, 3] = (0, 0, 0.05)
    cabinet.answer(request(Command.SET_NE_TO_EE, pose=pose.T.ravel()))
    cabinet.answer(request(Command.SET_LOAD, mass=0.5, centre=(0, 0, 0.02)))
    cabinet.answer(request(Command.SET_COLLISION_BEHAVIOR, **collision(1.0, 77.0)))
    state = np.frombuffer(StateMessage(cabinet).encode(1), ROBOT_STATE)[0]
    assert state["m_load"] == 0.5 and state["F_T_EE"][14] == pytest.approx(0.1534)
    assert robot.load_mass == 0.5 and (cabinet.settings.thresholds.torque == 77).all()
    np.testing.assert_allclose(robot.force_point, (0, 0, 0.1534))
