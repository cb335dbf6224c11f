"""Every limit stops the robot where the FR3's published figures say so, and not before."""

import math
from dataclasses import replace

import numpy as np
import pytest
from fci import plant

from dris.lab.fci.limits import (
    Limits,
    Moment,
    Reference,
    Thresholds,
    motion_errors,
    reference_errors,
    start_errors,
    torque_errors,
)

ZERO = np.zeros(7)
HOME = np.array([0, -math.pi / 4, 0, -3 * math.pi / 4, 0, math.pi / 2, math.pi / 4])
LOW = (-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159)
HIGH = (2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159)
SPEED = (2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26)
TORQUE = (87, 87, 87, 87, 12, 12, 12)
MIDDLE = 0.5 * (np.array(LOW) + HIGH)
"""Far enough from the ends for the largest speeds."""
joints = pytest.mark.parametrize("joint", range(7))


@pytest.fixture(scope="module")
def limits():
    return Limits.of(plant().model)


def one(joint, value, base=ZERO):
    return np.where(np.arange(7) == joint, value, base)


def found(limits, thresholds=None, **values):
    still = Moment(HOME, ZERO, ZERO, 0.0, ZERO, np.zeros(6))
    return motion_errors(replace(still, **values), limits, thresholds or Thresholds.default())


@joints
@pytest.mark.parametrize("sign", [1, -1])
def test_torques_change_by_one_newton_metre_a_millisecond(limits, joint, sign):
    last = np.full(7, 3.0)
    at, over = (one(joint, 3.0 + sign * change, last) for change in (1.0, 1.0001))
    assert torque_errors(at, last, ZERO, limits) == ()
    assert torque_errors(over, last, ZERO, limits) == ("controller_torque_discontinuity",)


@joints
def test_torques_have_a_range_and_gravity_counts(limits, joint):
    gravity = one(joint, 5.0)
    for torque, errors in ((TORQUE[joint] - 5.0, ()), (TORQUE[joint] - 4.999, ("tau_J_range_violation",))):
        wished = one(joint, torque)
        assert torque_errors(wished, wished, gravity, limits) == errors
    below = one(joint, -TORQUE[joint] - 0.001)
    assert torque_errors(below, below, ZERO, limits) == ("tau_J_range_violation",)


def test_a_torque_can_break_both_rules(limits):
    errors = torque_errors(one(6, 12.5), ZERO, ZERO, limits)
    assert errors == ("controller_torque_discontinuity", "tau_J_range_violation")


@joints
@pytest.mark.parametrize("end", [LOW, HIGH])
def test_joints_have_a_range(limits, joint, end):
    inwards = -1e-6 if end is HIGH else 1e-6
    assert found(limits, q=one(joint, end[joint] + inwards, HOME)) == ()
    assert found(limits, q=one(joint, end[joint] - inwards, HOME)) == ("joint_position_limits_violation",)


@joints
@pytest.mark.parametrize("sign", [1, -1])
def test_joints_have_a_speed_with_a_thousandth_to_spare(limits, joint, sign):

    for over, errors in ((0.0009, ()), (0.0011, ("joint_velocity_violation",))):
        assert found(limits, q=MIDDLE, dq=one(joint, sign * (SPEED[joint] + over))) == errors


def test_near_the_end_of_a_range_less_is_allowed(limits):
    """Joint 2, 0.2 rad from its upper end: -0.2517 + sqrt(2 x 2.585 x 0.2) = 0.7652 rad/s."""
    q = one(1, 1.7837 - 0.2, HOME)
    for speed, errors in ((0.7660, ()), (0.7664, ("joint_velocity_violation",)), (-2.62, ())):
        assert found(limits, q=q, dq=one(1, speed)) == errors
    # Joint 6, 0.02 rad from its lower end: sqrt(2 x 5.5 x 0.02) = 0.469 < 0.4878, so nothing downwards.
    q = one(5, 0.5645, HOME)
    assert found(limits, q=q, dq=one(5, -0.002)) == ("joint_velocity_violation",)
    assert found(limits, q=q, dq=one(5, 1.0)) == ()


def test_the_flange_has_a_speed(limits):
    assert found(limits, flange_speed=3.0) == ()
    assert found(limits, flange_speed=3.0001) == ("cartesian_velocity_violation",)


def test_power_is_the_sum_over_the_joints(limits):
    """80 Nm at 2.5 rad/s are 200 W a joint; braking counts, too."""
    torque, dq = np.array([80.0, 80, -80, 0, 0, 0, 0]), np.array([2.5, -2.5, 2.5, 2.5, 0, 0, 0])
    assert found(limits, q=MIDDLE, torque=torque, dq=dq) == ()
    more = torque + one(3, 0.1)
    assert found(limits, q=MIDDLE, torque=more, dq=dq) == ("power_limit_violation",)
    assert found(replace(limits, power=601.0), q=MIDDLE, torque=more, dq=dq) == ()


def test_outer_forces_stop_it_above_their_thresholds(limits):
    thresholds = Thresholds(np.zeros(7), np.arange(1.0, 8.0), np.zeros(6), np.arange(1.0, 7.0))
    for k in range(7):
        for over, errors in ((0.0, ()), (0.01, ("joint_reflex",))):
            assert found(limits, thresholds, outer_torque=one(k, -(k + 1 + over))) == errors
    force = np.zeros(6)
    force[4] = 5.01
    assert found(limits, thresholds, outer_force=force) == ("cartesian_reflex",)


def test_several_at_once_are_all_named(limits):
    q = one(0, 2.75, HOME)
    errors = found(limits, q=q, dq=one(0, 0.5), flange_speed=3.1)
    assert errors == (
        "joint_position_limits_violation",
        "joint_velocity_violation",
        "cartesian_velocity_violation",
    )


# Motion generators


def reference(q=HOME, dq=ZERO, ddq=ZERO):
    return Reference(np.array(q), np.array(dq), np.array(ddq))


def test_a_reference_is_differenced():
    first = reference(dq=np.full(7, 0.1)).then(HOME + 0.0002)
    np.testing.assert_allclose(first.dq, 0.2)
    np.testing.assert_allclose(first.ddq, 100.0)
    lost = first.going_on()
    np.testing.assert_allclose(lost.q, HOME + 0.0002 + 0.0003)
    np.testing.assert_allclose(lost.dq, 0.3)
    np.testing.assert_allclose(lost.ddq, 100.0)


def test_whoever_speeds_up_evenly_may_lose_ten_packets_and_go_on(limits):
    """9 rad/s2 from 0.255 rad/s: at the same speed it was a discontinuity for a client that kept its plan."""
    plan = [HOME + 0.255 * (1e-3 * k) + 4.5 * (1e-3 * k) ** 2 for k in range(16)]
    now = reference(plan[0]).then(plan[1])
    now = Reference(now.q, now.dq, np.full(7, 9.0)).then(plan[2])
    for _ in range(10):
        now = now.going_on()
    np.testing.assert_allclose(now.q, plan[12], atol=1e-9)
    assert reference_errors(now.then(plan[13]), now, limits) == ()


def test_motion_generators_have_limits_of_their_own(limits):
    """10 rad/s2 and 5000 rad/s3, and half a rad/s2 for single precision."""
    prefix = "joint_motion_generator_"
    last = reference()
    assert reference_errors(reference(ddq=one(2, 5.9)), last, limits) == ()
    assert reference_errors(reference(ddq=one(2, 6.1)), last, limits) == (
        prefix + "acceleration_discontinuity",
    )
    fast = reference(ddq=one(2, 8.0))
    assert reference_errors(reference(ddq=one(2, 10.4)), fast, limits) == ()
    assert reference_errors(reference(ddq=one(2, 10.6)), fast, limits) == (prefix + "velocity_discontinuity",)
    assert reference_errors(reference(dq=one(2, 2.63)), last, limits) == (
        prefix + "velocity_limits_violation",
    )
    assert reference_errors(reference(q=one(4, 2.81)), last, limits)[0] == (
        prefix + "position_limits_violation"
    )


def test_a_motion_generator_begins_where_the_robot_is(limits):
    assert start_errors(one(3, HOME[3] + 0.0099, HOME), HOME, limits) == ()
    assert start_errors(one(3, HOME[3] - 0.0101, HOME), HOME, limits) == (
        "joint_position_motion_generator_start_pose_invalid",
    )
