"""The safety filter: one pure function between whoever asks for a motion and the driver.

    wished reference -> finite? stale? -> speed, torque, torque rate -> position, jump -> workspace, keep-out

The torque law tau = K (q~ - q) - D dq + C + g drives the arm to a reference q~; all that is limited here is
that reference, every millisecond. Nothing is changed silently: `Filtered.clauses` names what was cut, and
`Filtered.beyond` what could not be kept in this millisecond because a later clause forbade it.

Two kinds of limits. *Hard* ones hold for every output, whatever came in, if they held for the reference sent
before: finite numbers, joint positions, how far a reference may jump, the workspace of the plate and its
distance to table and robot. *Soft* ones (speed, torque, speed of the plate, change of torque) depend on where
the arm is now: they hold unless a later one forbids it. What then remains of a torque that changes too fast,
libfranka takes away: its own limiter stays on. Acceleration and jerk bind motion generators, not torque
control: `dris.catching.approach` plans inside them.

This is no certified safety function. An FR3's enabling device and stop are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.catching.law import REACTION_S
from dris.robot.clearance import Clearance
from dris.robot.safety_config import Clause, SafetyConfig

Verdict = Literal["go", "hold", "stop"]
"""hold: the last reference stays; stop: the arm must be stopped."""
LONGEST_TICK_S = 0.005
"""Of a loop that was slower, no more counts: the driver smooths what a tick asks for, not what ten do [s]."""
CLOCK_SLACK_S = 0.002
"""A sight may be stamped so far ahead of the robot's clock: two ticks [s]."""
SPEEDS: tuple[Clause, ...] = ("coupling", "speed")
TORQUES: tuple[Clause, ...] = ("torque", "torque rate")
TAKE_BACK_SHARE = 0.7
"""Of the torque rate that is counted on to take back a torque: Coriolis torques of a fast arm need the rest."""
LEAST_COUPLING = 0.05
"""A joint's torque that moves another by less than this share of what that one's own does is left alone."""
BISECTIONS = 14
"""Of a way that is shortened: to 1e-4 of it."""


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
class Filtered:
    """What may be sent."""

    reference: np.ndarray
    """[M] [rad]"""
    verdict: Verdict
    clauses: tuple[Clause, ...]
    """That changed what was wished, in their order."""
    beyond: tuple[Clause, ...] = ()
    """Soft ones that the reference cannot keep in this tick."""


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
    """What the soft limits allow where the arm, or arms [..., M], are now: by clause, in their order."""
    q, dq = now.q, now.dq
    K, D, tau = config.arrays[:3]
    inverse = np.linalg.inv(now.inertia)
    speed = dq + speed_to_come(config, now, inverse)
    down, up = (config.speed_share * most for most in limits.speeds_at(q + REACTION_S * speed))
    rests = q + D * dq / K  # S = K e - D dq = 0
    no_more = _drives_on(inverse, speed, down, up)
    pull, most = D * dq - now.bias, config.torque_share * tau
    return {
        "coupling": Bounds(np.where(no_more.low, rests, -np.inf), np.where(no_more.high, rests, np.inf)),
        "speed": Bounds(rests - D * (down + speed) / K, rests + D * (up - speed) / K),
        "torque": Bounds(q + (pull - most) / K, q + (pull + most) / K),
    }


def _drives_on(inverse: np.ndarray, speed: np.ndarray, down: np.ndarray, up: np.ndarray) -> Bounds:
    """Which joints may have no torque S [..., M] down or up, because it would drive one that is too fast.

    Joints 1 and 3 of an FR3 have nearly the same axis: where one is slowed, it drives the other on.
    """
    own = np.diagonal(inverse, axis1=-2, axis2=-1)[..., None]
    much = np.where(np.abs(inverse) > LEAST_COUPLING * own, inverse, 0.0)  # [j, k]: S of k moves j
    too_fast = np.where(speed > up, 1.0, np.where(-speed > down, -1.0, 0.0))[..., None]
    drives_on = too_fast * much
    return Bounds((drives_on < 0).any(axis=-2), (drives_on > 0).any(axis=-2))


def speed_to_come(config: SafetyConfig, now: Measured, inverse: np.ndarray) -> np.ndarray:
    """What joint speeds [..., M] still gain while the law's torques S are taken back: M^-1 S |S| / (2 rate)."""
    servo = now.torque - now.bias
    impulse = servo * np.abs(servo) / (2 * TAKE_BACK_SHARE * config.torque_rate)
    return (inverse @ impulse[..., None])[..., 0]


def position_bounds(config: SafetyConfig, limits: JointLimits, now: Measured) -> Bounds:
    """Where references may lie at all [..., M]; from outside they come in at the torque rate."""
    step = _torque_step(config, now) / config.arrays.stiffness
    low, high = limits.low + config.position_margin, limits.high - config.position_margin
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
    return _cut(wished, bounds)  # type: ignore[arg-type]


def _cut(reference: np.ndarray, every: dict[Clause, Bounds]) -> tuple[np.ndarray, dict[Clause, np.ndarray]]:
    fired: dict[Clause, np.ndarray] = {}
    for clause, bounds in every.items():
        cut = bounds.cut(reference)
        fired[clause] = _differ(cut, reference)
        reference = cut
    return reference, fired


def _differ(one: np.ndarray, other: np.ndarray) -> Any:
    """Whether [...] any joint differs; what is not a number always does."""
    # For one arm as lists, in a tenth of the time.
    return one.tolist() != other.tolist() if one.ndim == 1 else (one != other).any(axis=-1)


def filter_reference(
    config: SafetyConfig, limits: JointLimits, clearance: Clearance, wished: np.ndarray, now: Measured
) -> Filtered:
    """What may be sent in place of a wished joint reference [M].

    The same arguments give the same answer; what comes out inside all limits went in so.

    Args:
        config: Limits.
        limits: Of the joints, as the connected robot tells them.
        clearance: Of the plate.
        wished: [M] [rad]; anything, also what is not finite.
        now: The arm, and the reference that was sent last.
    """
    last = np.array(now.last, dtype=float)
    if not (np.isfinite(np.concatenate((now.q, now.dq, now.torque, now.bias))).all() and now.dt_s > 0):
        return Filtered(last, "stop", ("not finite",))
    if not abs(now.age_s) <= config.stop_age_s:  # NaN too
        return Filtered(last, "stop", ("stale",))
    verdict, held = _held(config, wished, now)
    goal, walls = (
        (last, {}) if held else _keep_clear(config, clearance, np.asarray(wished, dtype=float), last)
    )
    bounds, driven = joint_bounds(config, limits, now), Driven(config, limits, clearance, now)
    reference, fired = _cut(goal, {clause: bounds[clause] for clause in SPEEDS})
    slowed = _slow_plate(config, driven, reference)
    fired["plate speed"] = _differ(slowed, reference)
    bounds["torque rate"] = rate_bounds(config, now)
    reference, torques = _cut(slowed, {clause: bounds[clause] for clause in TORQUES})
    reference, hard = within_hard(config, limits, reference, now)
    near: dict[Clause, bool] = {}
    if held or any((fired | torques | hard).values()):  # otherwise it is the goal, which is clear
        reference, near = _keep_clear(config, clearance, reference, last)
    near = {clause: near.get(clause, False) or walls.get(clause, False) for clause in {**walls, **near}}
    clauses = held + tuple(
        clause for clause, changed in {**fired, **torques, **hard, **near}.items() if changed
    )
    if not np.isfinite(reference).all():  # limits that are none
        return Filtered(last, "stop", ("not finite",))
    if not clauses:  # inside all limits, and unchanged
        return Filtered(reference, "go", ())
    beyond = [clause for clause, allowed in bounds.items() if allowed.broken(reference)]
    if driven.fastest(reference) > config.plate_speed + 1e-9:
        beyond.append("plate speed")
    return Filtered(reference, verdict, clauses, tuple(beyond))


def _held(config: SafetyConfig, wished: np.ndarray, now: Measured) -> tuple[Verdict, tuple[Clause, ...]]:
    """Whether the last reference counts in place of the wish, and why."""
    if not -CLOCK_SLACK_S <= now.age_s <= config.hold_age_s:
        return "hold", ("stale",)
    if np.shape(wished) != np.shape(now.last) or not np.isfinite(wished).all():
        return "hold", ("not finite",)
    return "go", ()


class Driven:
    """How fast references drive plate and flange in the end, K e = D dq, from where the arm is now.

    No joint is taken to pass its own limit, which other clauses keep.
    """

    def __init__(self, config: SafetyConfig, limits: JointLimits, clearance: Clearance, now: Measured):
        """Look at the arm once."""
        self._per_error = config.arrays.stiffness / config.arrays.damping
        self.q = now.q
        self._down, self._up = limits.speeds_at(now.q)
        self._maps = clearance.velocity_maps(now.q)

    def fastest(self, reference: np.ndarray) -> float:
        """Of flange and the plate's corners under a reference [M] [m/s]."""
        speeds = self._per_error * (reference - self.q)
        return self._maps.fastest(np.minimum(np.maximum(speeds, -self._down), self._up))


def _slow_plate(config: SafetyConfig, driven: Driven, reference: np.ndarray) -> np.ndarray:
    """The reference, or one nearer to the arm by which plate and flange stay slow enough."""
    if driven.fastest(reference) <= config.plate_speed:
        return reference
    q, low, high = driven.q, 0.0, 1.0  # speeds are not proportional to the way where a joint is at its limit
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        slow = driven.fastest(q + middle * (reference - q)) <= config.plate_speed
        low, high = (middle, high) if slow else (low, middle)
    return q + low * (reference - q)


def outside(config: SafetyConfig, clearance: Clearance, reference: np.ndarray) -> dict[Clause, np.ndarray]:
    """How far the plate is outside its workspace, and plate or wrist too near to table or robot.

    Returns:
        [m], 0 where it is not: workspace [6], one a face of the box; keep-out [2], table and robot.
    """
    arrays, offset = config.arrays, clearance.plate(reference) - clearance.home_position
    box = np.concatenate((arrays.workspace_low - offset, offset - arrays.workspace_high))
    to_robot = clearance.to_robot(config.clearance)
    near = np.array([config.table_height - clearance.lowest(), config.clearance - to_robot])
    return {"workspace": np.maximum(box, 0.0), "keep-out": np.maximum(near, 0.0)}


def _keep_clear(
    config: SafetyConfig, clearance: Clearance, reference: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, dict[Clause, bool]]:
    """As far from the last reference to a new one as the plate stays clear.

    An arm that begins outside may come in, and go no further out through any face, nor nearer to anything.
    """
    wrong = outside(config, clearance, reference)
    if not any(found.any() for found in wrong.values()):
        return reference, {}
    allowed = outside(config, clearance, last)

    def clear(candidate: np.ndarray) -> bool:
        found = outside(config, clearance, candidate)
        return all((found[clause] <= allowed[clause]).all() for clause in found)

    if clear(reference):
        return reference, {}
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if clear(last + middle * (reference - last)) else (low, middle)
    return last + low * (reference - last), {c: bool((wrong[c] > allowed[c]).any()) for c in wrong}
