"""What stops an FR3: checks of one millisecond, as pure functions that name the robot's errors.

In torque control FCI demands that torques change by no more than 1000 Nm/s; whatever moves the arm,
positions, speeds, power and outer forces stop it.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.lab.model import JOINTS
from dris.lab.twin import FCI_TORQUE_RATE, TICK_S

ROUNDING = 1e-9
"""Relative: numbers that are equal to a limit but for the last digits keep it."""
LARGEST_NUMBER = 1e6
SINGLE_PRECISION = 0.5
"""Tolerance of a motion generator's acceleration [rad/s2]. States tell joints to 1.2e-7 rad, and clients add
to that: twice that over (1 ms)^2 is 0.24, and as much again for what they filter."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Where the robot stops."""

    joints: JointLimits
    torque: np.ndarray
    """[7] that the joints can give, gravity included [Nm]."""
    torque_rate: float = FCI_TORQUE_RATE
    """[Nm/s]"""
    flange_speed: float = 3.0
    """[m/s]"""
    power: float = 600.0
    """Sum of |torque x speed| over the joints [W] [assumed: Franka publishes no figure]."""
    acceleration: float = 10.0
    """Of a motion generator's joints [rad/s2]."""
    jerk: float = 5000.0
    """[rad/s3]"""
    start_error: float = 0.01
    """How far from where it is a motion generator's joint may begin [rad] [assumed]."""
    speed_tolerance: float = 0.001
    """Over a joint's speed limit, which is 0 near the end of its range [rad/s] [assumed]."""

    @classmethod
    def of(cls, model: mujoco.MjModel) -> Limits:
        """Those of fr3.xml."""
        return cls(JointLimits.of(model), model.jnt_actfrcrange[:JOINTS, 1].copy())


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Outer forces that are told as a contact, and above which one is a collision and stops the robot.

    SetCollisionBehavior sets them.
    """

    contact_torque: np.ndarray
    """[7] [Nm]"""
    torque: np.ndarray
    """[7] that stop it [Nm]."""
    contact_force: np.ndarray
    """[6] at the end effector [N, Nm]."""
    force: np.ndarray
    """[6] that stop it [N, Nm]."""

    @classmethod
    def default(cls) -> Thresholds:
        """Until a client sets them [assumed: those of libfranka's examples]."""
        return cls(*(np.full(count, 20.0) for count in (JOINTS, JOINTS, 6, 6)))


@dataclass(frozen=True, eq=False)
class Moment:
    """What the robot measures in one millisecond."""

    q: np.ndarray
    """[7] [rad]"""
    dq: np.ndarray
    """[7] [rad/s]"""
    torque: np.ndarray
    """[7] of the motors, gravity included [Nm]."""
    flange_speed: float
    """[m/s]"""
    outer_torque: np.ndarray
    """[7] estimate of what others do to the joints, filtered [Nm]."""
    outer_force: np.ndarray
    """[6] the same at the end effector, base frame [N, Nm]."""


def sensible(values: np.ndarray) -> bool:
    """Whether numbers from outside can be computed with: finite, and of a size that something here has."""
    return bool(np.isfinite(values).all() and np.abs(values).max() <= LARGEST_NUMBER)


def torque_errors(
    torque: np.ndarray, last: np.ndarray, gravity: np.ndarray, limits: Limits
) -> tuple[str, ...]:
    """Errors of a torque command.

    Args:
        torque: [7] wished for, without gravity [Nm].
        last: [7] command of the millisecond before, as the robot reported it [Nm].
        gravity: [7] what the robot adds [Nm].
        limits: Where it stops.
    """
    found = []
    if np.abs(torque - last).max() > limits.torque_rate * TICK_S * (1 + ROUNDING):
        found.append("controller_torque_discontinuity")
    if (np.abs(torque + gravity) > limits.torque * (1 + ROUNDING)).any():
        found.append("tau_J_range_violation")
    return tuple(found)


def motion_errors(moment: Moment, limits: Limits, thresholds: Thresholds) -> tuple[str, ...]:
    """Errors of a moving robot."""
    found = []
    joints = limits.joints
    # As lists, in a fifth of the time: the robot looks a thousand times a second.
    if True in ((moment.q < joints.low) | (moment.q > joints.high)).tolist():
        found.append("joint_position_limits_violation")
    if _too_fast(moment.q, moment.dq, limits):
        found.append("joint_velocity_violation")
    if moment.flange_speed > limits.flange_speed:
        found.append("cartesian_velocity_violation")
    if True in (np.abs(moment.outer_torque) > thresholds.torque).tolist():
        found.append("joint_reflex")
    if True in (np.abs(moment.outer_force) > thresholds.force).tolist():
        found.append("cartesian_reflex")
    if np.abs(moment.torque * moment.dq).sum() > limits.power:
        found.append("power_limit_violation")
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Reference:
    """Where a motion generator has the joints, arrays [7]."""

    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray

    def then(self, q: np.ndarray) -> Reference:
        """The next one, a millisecond later, at joints q [7]."""
        dq = (q - self.q) / TICK_S
        return Reference(q, dq, (dq - self.dq) / TICK_S)

    def going_on(self) -> Reference:
        """The next one at the same acceleration: what the robot takes for a lost one.

        As libfranka's `rate_limiting.h` says of FCI (`kTolNumberPacketsLost`).
        """
        dq = self.dq + TICK_S * self.ddq
        return Reference(self.q + TICK_S * dq, dq, self.ddq)


def start_errors(reference: np.ndarray, q: np.ndarray, limits: Limits) -> tuple[str, ...]:
    """Errors of the first joints [7] of a motion generator for a robot at joints q [7]."""
    far = np.abs(reference - q).max() > limits.start_error
    return ("joint_position_motion_generator_start_pose_invalid",) if far else ()


def reference_errors(new: Reference, last: Reference, limits: Limits) -> tuple[str, ...]:
    """Errors of a motion generator's next reference."""
    found = []
    prefix = "joint_motion_generator_"
    if (new.q < limits.joints.low).any() or (new.q > limits.joints.high).any():
        found.append(prefix + "position_limits_violation")
    if _too_fast(new.q, new.dq, limits):
        found.append(prefix + "velocity_limits_violation")
    if np.abs(new.ddq).max() > limits.acceleration + SINGLE_PRECISION:
        found.append(prefix + "velocity_discontinuity")
    if np.abs(new.ddq - last.ddq).max() > limits.jerk * TICK_S + 2 * SINGLE_PRECISION:
        found.append(prefix + "acceleration_discontinuity")
    return tuple(found)


def _too_fast(q: np.ndarray, dq: np.ndarray, limits: Limits) -> bool:
    down, up = limits.joints.speeds_at(q)
    tolerance = limits.speed_tolerance
    return True in ((dq > up + tolerance) | (dq < -down - tolerance)).tolist()
