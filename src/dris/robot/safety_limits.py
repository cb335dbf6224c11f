"""Intervals of joint references that the safety filter's limits allow where the arm is now.

One robot, or many at once in arrays [..., M]. `dris.robot.safety` puts them into their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.catching.law import REACTION_S
from dris.robot.safety_config import Clause, SafetyConfig

LONGEST_TICK_S = 0.005
"""Of a loop that was slower, no more counts: the driver smooths what a tick asks for, not what ten do [s]."""
TAKE_BACK_SHARE = 0.7
"""Of the torque rate that is counted on where a torque is taken back: a fast arm's Coriolis torques need the
rest [design]."""
REACTION_SHARE = 1.2
"""How fast a joint may be is asked for where it will be after this many times M / D: a law that brakes by
D times what is too much lags behind a falling limit by M / D [design]."""
LEAST_COUPLING = 0.05
"""A joint whose full torque moves another by less than this share of what that one's own does is left alone.
Full torques count, as a wrist has 12 Nm and a shoulder 87."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The arm now, and what it was told last."""

    q: np.ndarray
    """[M] [rad]"""
    dq: np.ndarray
    """[M] [rad/s]"""
    last: np.ndarray
    """Reference [M] that was sent last [rad]."""
    torque: np.ndarray
    """K (q~ - q) - D dq + C + g [M] that the law asked for with it then [Nm]."""
    dt_s: float
    """Since then [s]."""
    bias: np.ndarray
    """C + g [M]: what controller and robot add to the law by themselves [Nm]."""
    inertia: np.ndarray
    """M(q) [M, M], rotors included [kg m2]."""
    age_s: float = 0.0
    """Of what the wish rests on [s]; 0 where it rests on nothing seen, as on the way home."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Interval of references [..., M] that a limit allows."""

    low: np.ndarray
    high: np.ndarray

    def cut(self, values: np.ndarray) -> np.ndarray:
        """The nearest values inside."""
        return np.minimum(np.maximum(values, self.low), self.high)

    def broken(self, values: np.ndarray) -> np.ndarray | np.bool:
        """Whether [...] any joint lies outside."""
        slack = 1e-12
        return np.any((values < self.low - slack) | (values > self.high + slack), axis=-1)


def joint_bounds(config: SafetyConfig, limits: JointLimits, now: Measured) -> dict[Clause, Bounds]:
    """What the soft limits allow where the arm, or arms [..., M], are now: by clause, in their order.

    Raises:
        LinAlgError: The inertia is none.
    """
    q, dq = now.q, now.dq
    K, D, tau = config.arrays[:3]
    inverse = np.linalg.inv(now.inertia)
    # Between now and the end of the take-back a joint is as fast as at either, or between them.
    in_the_end = dq + speed_to_come(config, now, inverse)
    most_up, most_down = np.maximum(dq, in_the_end), np.minimum(dq, in_the_end)
    reaction_s = np.maximum(REACTION_S, REACTION_SHARE * np.diagonal(now.inertia, axis1=-2, axis2=-1) / D)
    up = config.speed_share * limits.speeds_at(q + reaction_s * most_up)[1]
    down = config.speed_share * limits.speeds_at(q + reaction_s * most_down)[0]
    rests = q + D * dq / K  # S = K e - D dq = 0
    too_fast = np.where(most_up > up, 1.0, np.where(-most_down > down, -1.0, 0.0))
    not_down, not_up = _drives_on(inverse, too_fast, tau)
    pull, most = D * dq - now.bias, config.torque_share * tau
    return {
        "coupling": Bounds(np.where(not_down, rests, -np.inf), np.where(not_up, rests, np.inf)),
        "speed": Bounds(rests - D * (down + most_down) / K, rests + D * (up - most_up) / K),
        "torque": Bounds(q + (pull - most) / K, q + (pull + most) / K),
    }


def _drives_on(inverse: np.ndarray, too_fast: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which joints [..., M] may have no torque S down, and up: it would drive one on that is `too_fast`.

    Joints 1 and 3 of an FR3 have nearly the same axis: where one is slowed, it drives the other on.
    """
    own = np.diagonal(inverse, axis1=-2, axis2=-1) * tau
    much = np.where(
        np.abs(inverse) * tau > LEAST_COUPLING * own[..., None], inverse, 0.0
    )  # [j, k]: S of k moves j
    drives_on = too_fast[..., None] * much
    return np.asarray((drives_on < 0).any(axis=-2)), np.asarray((drives_on > 0).any(axis=-2))


def speed_to_come(config: SafetyConfig, now: Measured, inverse: np.ndarray) -> np.ndarray:
    """What joint speeds [..., M] still gain while torques S are taken back: M^-1 S |S| / (2 rate)."""
    servo = now.torque - now.bias
    impulse = servo * np.abs(servo) / (2 * TAKE_BACK_SHARE * config.torque_rate)
    return (inverse @ impulse[..., None])[..., 0]


def position_bounds(config: SafetyConfig, limits: JointLimits, now: Measured) -> Bounds:
    """Where references may lie at all [..., M]; from outside they come in at the torque rate."""
    step = _torque_step(config, now) / config.arrays.stiffness
    margin = limits.margin(0.0) + config.position_margin  # nearer to the end no speed is allowed
    low, high = limits.low + margin, limits.high - margin
    return Bounds(np.minimum(low, now.last + step), np.maximum(high, now.last - step))


def _torque_step(config: SafetyConfig, now: Measured) -> float:
    """How much the law may change its torque in this tick [Nm]."""
    return config.torque_rate_share * config.torque_rate * min(now.dt_s, LONGEST_TICK_S)


def asked_torque(
    config: SafetyConfig, reference: np.ndarray, q: np.ndarray, dq: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """Torques [M] that the law asks for with a reference: K (q~ - q) - D dq + C + g [Nm]."""
    return config.arrays.stiffness * (reference - q) - config.arrays.damping * dq + bias


def rate_bounds(config: SafetyConfig, now: Measured) -> Bounds:
    """References [..., M] that change the law's torque by no more than a share of the torque rate."""
    K, D, _ = config.arrays[:3]
    most = _torque_step(config, now) / K
    same = now.q + (D * now.dq + now.torque - now.bias) / K  # asks for what was asked for before
    return Bounds(same - most, same + most)


def jump_bounds(config: SafetyConfig, limits: JointLimits, now: Measured) -> Bounds:
    """References [..., M] no further from the last than the torque rate, speeds and accelerations ask for.

    K dq~ = dS + K dq + D ddq for a tick: whatever the arm is said to measure, a reference goes no faster.
    """
    K, D, dt_s = config.arrays.stiffness, config.arrays.damping, min(now.dt_s, LONGEST_TICK_S)
    most = (_torque_step(config, now) + D * config.acceleration * dt_s) / K + limits.speed * dt_s
    return Bounds(now.last - most, now.last + most)


def within_hard(
    config: SafetyConfig, limits: JointLimits, wished: np.ndarray, now: Measured
) -> tuple[np.ndarray, dict[Clause, np.ndarray]]:
    """References [..., M] in the joints' ranges that do not jump, and which clauses changed them [...]."""
    bounds = {"position": position_bounds(config, limits, now), "jump": jump_bounds(config, limits, now)}
    return cut(wished, bounds)  # type: ignore[arg-type]


def cut(reference: np.ndarray, every: dict[Clause, Bounds]) -> tuple[np.ndarray, dict[Clause, np.ndarray]]:
    """References [..., M] after one clause's bounds after the other, and which changed them [...]."""
    fired: dict[Clause, np.ndarray] = {}
    for clause, bounds in every.items():
        cut = bounds.cut(reference)
        fired[clause] = differ(cut, reference)
        reference = cut
    return reference, fired


def differ(one: np.ndarray, other: np.ndarray) -> Any:
    """Whether [...] any joint differs; what is not a number always does."""
    # For one arm as lists, in a tenth of the time.
    return one.tolist() != other.tolist() if one.ndim == 1 else (one != other).any(axis=-1)
