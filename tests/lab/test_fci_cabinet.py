"""The cabinet: motions, reflexes, recovery, user stop and settings, without a network."""

from dataclasses import replace

import numpy as np
import pytest
from fci import FRICTIONLESS, POSITIONS, VELOCITIES, collision, command, moving, plant, request

from dris.lab.fci.cabinet import Cabinet
from dris.lab.fci.protocol import ERRORS, ROBOT_STATE, Command, Controller, Generator, Mode
from dris.lab.fci.state_message import StateMessage

ZERO = np.zeros(7)
HOME = np.array(FRICTIONLESS.home)


def status(answer):
    return answer[12] if answer else None


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
    # The hand is turned by -45 degrees about the flange's axis; matrices stand column by column.
    half = 0.5**0.5
    expected = (half, -half, 0, 0, half, half, 0, 0, 0, 0, 1, 0, 0, 0, 0.1034, 1)
    np.testing.assert_allclose(state["F_T_NE"], expected, atol=1e-6)
    np.testing.assert_allclose(state["F_T_EE"], expected, atol=1e-6)


def test_outer_forces_are_told_in_the_base_and_in_the_stiffness_frame():
    """At the usual home the hand's x is the base's, its y and z are opposite."""
    robot = plant(FRICTIONLESS, joints=[0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    robot.twin.data.xfrc_applied[robot.twin.model.body("hand").id, :3] = (3.0, -4.0, -12.0)
    cabinet = Cabinet(robot)
    for _ in range(300):
        cabinet.tick(None)
    state = np.frombuffer(StateMessage(cabinet).encode(1), ROBOT_STATE)[0]
    np.testing.assert_allclose(state["O_F_ext_hat_K"][:3], (3, -4, -12), atol=0.15)
    np.testing.assert_allclose(state["K_F_ext_hat_K"][:3], (3, 4, 12), atol=0.15)


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


@pytest.mark.parametrize(
    ("q", "dq", "error"),
    [
        ([2.7438, *HOME[1:]], ZERO, "joint_position_limits_violation"),
        # Stretched out, all joints within their speeds.
        ([0, 1.2, 0, -0.6, 0, 1.8, 0.8], [2.5, 2.0, 0, -2.0, 0, -3.0, 0], "cartesian_velocity_violation"),
    ],
)
def test_a_state_beyond_a_limit_is_a_reflex(q, dq, error):
    robot = plant(FRICTIONLESS)
    cabinet, _ = moving(robot)
    cabinet.tick(command())
    robot.twin.data.qpos[:7], robot.twin.data.qvel[:7] = q, dq
    assert status(cabinet.tick(command())) == 8
    assert error in cabinet.errors


def test_too_much_power_is_a_reflex():
    robot = plant(FRICTIONLESS)
    robot.limits = replace(robot.limits, power=4.0)
    cabinet, _ = moving(robot)
    torque, power = 0.0, []
    while cabinet.mode is Mode.MOVE:
        torque = min(torque + 0.5, 10.0)
        cabinet.tick(command(tau_J_d=[torque] + [0] * 6))
        power.append(np.abs(robot.torque * robot.dq).sum())
    assert cabinet.errors == ("power_limit_violation",) and max(power[:-1]) <= 4.0 < power[-1]


def test_a_blow_is_a_collision():
    robot = plant(FRICTIONLESS)
    cabinet, _ = moving(robot)
    cabinet.tick(command())
    robot.twin.data.xfrc_applied[robot.twin.model.body("hand").id, 2] = -60.0
    while cabinet.mode is Mode.MOVE:
        state = np.frombuffer(StateMessage(cabinet).encode(1), ROBOT_STATE)[0]
        cabinet.tick(command())
    assert cabinet.errors == ("cartesian_reflex",)
    assert not state["cartesian_collision"].any()
    flags = np.frombuffer(StateMessage(cabinet).encode(1), ROBOT_STATE)[0]
    np.testing.assert_array_equal(flags["cartesian_collision"], (0, 0, 1, 0, 0, 0))


def test_a_touch_is_told_and_borne():
    """6 N on the hand: more than the lower threshold, less than the upper one."""
    robot = plant(FRICTIONLESS)
    cabinet = Cabinet(robot)
    cabinet.answer(request(Command.SET_COLLISION_BEHAVIOR, **collision(3.0, 30.0)))
    robot.twin.data.xfrc_applied[robot.twin.model.body("hand").id, 1] = 6.0
    for _ in range(200):
        cabinet.tick(None)
    state = np.frombuffer(StateMessage(cabinet).encode(1), ROBOT_STATE)[0]
    np.testing.assert_array_equal(state["cartesian_contact"], (0, 1, 0, 0, 0, 0))
    assert cabinet.mode is Mode.IDLE and not state["cartesian_collision"].any()


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
    assert status(cabinet.answer(request(Command.AUTOMATIC_ERROR_RECOVERY, 10))) == 1  # one at a time
    waited = 0
    while not (answer := cabinet.tick(None)):
        waited += 1
    assert 90 <= waited <= 160  # 1 rad/s at 10 rad/s2, and until it has settled
    assert (answer[4], status(answer)) == (9, 0)
    assert cabinet.mode is Mode.IDLE and cabinet.errors == () and cabinet.recoveries == 1
    assert cabinet.last_errors == ("power_limit_violation",)  # until the next motion
    assert said[-1] == "recovered from power_limit_violation"
    cabinet.answer(request(Command.MOVE, **POSITIONS))
    assert cabinet.last_errors == ()


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


def test_the_user_stop_does_not_wipe_out_a_reflex():
    cabinet, _ = moving(plant())
    cabinet.reflex(("joint_reflex",))
    cabinet.user_stop(True)
    cabinet.user_stop(False)
    assert cabinet.mode is Mode.REFLEX and cabinet.errors == ("joint_reflex",)


def test_the_user_stop_ends_a_recovery():
    robot = plant()
    cabinet, _ = moving(robot)
    robot.twin.data.qvel[0] = 1.0
    cabinet.tick(command())
    cabinet.reflex(("joint_reflex",))
    assert cabinet.answer(request(Command.AUTOMATIC_ERROR_RECOVERY, 9)) == b""
    answer = cabinet.user_stop(True)
    assert (answer[0], answer[4], status(answer)) == (10, 9, 5)
    for _ in range(300):
        assert cabinet.tick(None) == b""
    assert cabinet.mode is Mode.USER_STOPPED and cabinet.errors == ("joint_reflex",)


def test_a_recovery_whose_client_goes_is_undone():
    robot = plant()
    cabinet, _ = moving(robot)
    robot.twin.data.qvel[0] = 1.0
    cabinet.tick(command())
    cabinet.reflex(("joint_reflex",))
    cabinet.answer(request(Command.AUTOMATIC_ERROR_RECOVERY, 9))
    answer = cabinet.abort()
    assert (answer[0], answer[4], status(answer)) == (10, 9, 6)
    for _ in range(300):
        assert cabinet.tick(None) == b""
    assert cabinet.mode is Mode.REFLEX and cabinet.errors == ("joint_reflex",)


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


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_client_sends_the_arm_keeps_its_limits_or_stops(seed):
    """Torques that wander at random, with lost ones and now and then a jump; limits by their own formula."""
    generator = np.random.default_rng(seed)
    robot = plant()
    cabinet, _ = moving(robot)
    joints, torque = robot.limits.joints, np.zeros(7)
    push = generator.normal(0, 0.5, 7)
    for _ in range(400):
        torque = torque + np.clip(push + generator.normal(0, 0.2, 7), -1, 1)
        sent = torque if generator.random() > 0.002 else torque + generator.normal(0, 3, 7)
        cabinet.tick(None if generator.random() < 0.05 else command(tau_J_d=sent))
        if cabinet.motion is None:
            break
        torque = cabinet.motion.torque
        allowed = np.minimum(
            joints.speed,
            np.sqrt(
                2 * joints.deceleration * np.where(robot.dq > 0, joints.high - robot.q, robot.q - joints.low)
            )
            - joints.offset,
        )
        assert (np.abs(robot.dq) <= np.maximum(allowed, 0) + 0.001).all()
        assert (np.abs(robot.torque) <= robot.limits.torque).all()
        assert (robot.q >= joints.low).all() and (robot.q <= joints.high).all()
    assert cabinet.mode is Mode.REFLEX and set(cabinet.errors) <= set(ERRORS)
    for _ in range(500):
        cabinet.tick(None)
    assert np.abs(robot.dq).max() < 0.01
    assert (robot.q >= joints.low).all() and (robot.q <= joints.high).all()


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
