"""The safety filter: one pure function between whoever asks for a motion and the driver.

    wished joint reference -> finite? stale? -> speed, torque, position -> torque rate -> workspace, keep-out

The torque law tau = K (q~ - q) - D dq + C + g drives the arm to a reference q~; all that is limited here is
that reference, every millisecond. Nothing is changed silently: `Filtered.clauses` names what was cut, and
`Filtered.beyond` what could not be kept in this millisecond because the torque would have had to jump.

Two kinds of limits. *Hard* ones hold for every output, whatever came in, if they held for the reference sent
before: finite numbers, joint positions, the change of torque that the reference asks for, the workspace of
the plate and its distance to table and robot. *Soft* ones (speed, torque, speed of the plate) depend on where
the arm is now: they hold unless the torque rate forbids it, and then the reference goes there as fast as it
may. Acceleration and jerk bind motion generators, not torque control: `dris.catching.approach` plans inside
them.

This is no certified safety function. An FR3's enabling device and stop are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.core.validation import check_positive
from dris.robot.clearance import Clearance

Clause = Literal[
    "not finite",
    "stale",
    "speed",
    "too fast",
    "torque",
    "plate speed",
    "position",
    "torque rate",
    "workspace",
    "keep-out",
]
"""not finite: a number is none, the last reference stays. stale: what the reference rests on is too old; the
last one stays. speed: the reference led by more than drives a joint at its speed limit. too fast: a joint is
near its limit and was to be driven on. torque: the law would have asked for too much. plate speed: the plate
or the flange would have become too fast. position: too near to the end of a joint's range. torque rate: the
reference would have changed too much within a tick. workspace, keep-out: the plate would have left its box,
or come too near to table or robot."""
SOFT: tuple[Clause, ...] = ("speed", "too fast", "torque", "plate speed")
Verdict = Literal["go", "hold", "stop"]
"""hold: the last reference stays; stop: the arm must be stopped."""
LONGEST_TICK_S = 0.005
"""Of a loop that was slower, no more counts: the driver smooths what a tick asks for, not what ten do [s]."""
CLOCK_SLACK_S = 0.002
"""A sight may be stamped so far ahead of the robot's clock: two ticks [s]."""
BISECTIONS = 14
"""Of a way that is shortened: to 1e-4 of it."""
TAU_MAX = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
"""FCI's largest torques [Nm]."""


@dataclass(frozen=True)
class SafetyConfig:
    """Limits beyond those of the joints, which the robot itself tells. The base frame has z up."""

    stiffness: tuple[float, ...]
    """K of the law [Nm/rad]."""
    damping: tuple[float, ...]
    """D of the law [Nm s/rad]."""
    torque: tuple[float, ...] = TAU_MAX
    """[Nm]"""
    torque_share: float = 0.9
    """Of them, with gravity and Coriolis torques; what the model does not know needs the rest [design]."""
    torque_rate: float = 1000.0
    """FCI's [Nm/s],"""
    torque_rate_share: float = 0.95
    """and the share of it that a changing reference may use [design]."""
    speed_lead: float = 1.6
    """A reference may lead by this over what drives a joint at its limit: an arm under 20 Hz control catches
    up within a step (`CatchingConfig.reference_lead` is at most 1.5) [design]."""
    speed_share: float = 0.95
    """Of its limit beyond which a joint is driven no further [design]."""
    position_margin: float = 0.02
    """From the end of a joint's range [rad] [design]."""
    plate_speed: float = 2.5
    """Of plate and flange that a reference may drive them at [m/s]; FCI stops at 3 [design]."""
    workspace_low: tuple[float, float, float] = (-0.45, -0.45, -0.25)
    """Of the plate's centre over its home [m]: catching region, box and some more [design]."""
    workspace_high: tuple[float, float, float] = (0.45, 0.45, 0.30)
    table_height: float = 0.10
    """The plate's corners, hand, wrist and forearm stay above [m] [design]."""
    clearance: float = 0.02
    """Between the plate and the robot's base to forearm [m] [design]."""
    workspace_overshoot: float = 0.06
    """How far the arm itself may pass the workspace that references keep [m]: soft gains overshoot by 4 to
    5 cm; beyond, it is stopped [design]."""
    keep_out_overshoot: float = 0.01
    """The same towards table and robot: half of `clearance` [m] [design]."""
    hold_age_s: float = 0.075
    """Older than this, what a reference rests on counts no more [s]: six frames of 80 a second [design]."""
    stop_age_s: float = 0.25
    """Older than this, the arm stops [s] [design]."""

    def __post_init__(self) -> None:
        """Refuse limits that limit nothing."""
        names = ("torque_rate", "speed_lead", "plate_speed", "hold_age_s", "stop_age_s")
        check_positive(self, *names, "torque_share", "torque_rate_share", "speed_share")
        for name in ("torque_share", "torque_rate_share", "speed_share"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} must lie in (0, 1], got {getattr(self, name)}")
        for name in ("stiffness", "damping", "torque"):
            values = getattr(self, name)
            if not values or not np.isfinite(values).all() or min(values) <= 0:
                raise ValueError(f"{name} needs a positive number for every joint, got {values}")
        if not self.hold_age_s < self.stop_age_s:
            raise ValueError(f"hold_age_s must be below stop_age_s, got {self.hold_age_s}, {self.stop_age_s}")
        if not np.less(self.workspace_low, self.workspace_high).all():
            found = f"{self.workspace_low}, {self.workspace_high}"
            raise ValueError(f"workspace_low must lie below workspace_high, got {found}")
        for name in ("position_margin", "clearance", "workspace_overshoot", "keep_out_overshoot"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class Measured:
    """The arm now, and what it was told last."""

    q: np.ndarray
    """[M] [rad]"""
    dq: np.ndarray
    """[M] [rad/s]"""
    last: np.ndarray
    """Reference [M] that was sent last [rad]."""
    dt_s: float
    """Since then [s]."""
    bias: np.ndarray
    """C + g [M]: what controller and robot add to the law by themselves [Nm]."""
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
    K, D, tau = (np.asarray(values) for values in (config.stiffness, config.damping, config.torque))
    down, up = limits.speeds_at(q)
    lead = config.speed_lead * D / K
    # No net push towards a limit that is near: K e <= D dq.
    most_up = np.where(dq > config.speed_share * up, np.maximum(D * dq / K, 0.0), np.inf)
    most_down = np.where(-dq > config.speed_share * down, np.maximum(-D * dq / K, 0.0), np.inf)
    pull = D * dq - now.bias
    return {
        "speed": Bounds(q - lead * down, q + lead * up),
        "too fast": Bounds(q - most_down, q + most_up),
        "torque": Bounds(
            q + (pull - config.torque_share * tau) / K, q + (pull + config.torque_share * tau) / K
        ),
    }


def position_bounds(config: SafetyConfig, limits: JointLimits) -> Bounds:
    """Where references may lie at all [M]."""
    return Bounds(limits.low + config.position_margin, limits.high - config.position_margin)


def rate_bounds(config: SafetyConfig, last: np.ndarray, dt_s: float) -> Bounds:
    """References [..., M] whose step from the last asks for no more than a share of the torque rate."""
    most = config.torque_rate_share * config.torque_rate * dt_s / np.asarray(config.stiffness)
    return Bounds(last - most, last + most)


def within_soft(
    config: SafetyConfig, limits: JointLimits, wished: np.ndarray, now: Measured
) -> tuple[np.ndarray, dict[Clause, np.ndarray]]:
    """References [..., M] that drive no joint too fast or too hard, and which clauses changed them [...].

    Args:
        config: Limits.
        limits: Of the joints.
        wished: [..., M], finite.
        now: The arm; its arrays may have leading dimensions, too.
    """
    return _cut(wished, joint_bounds(config, limits, now))


def within_hard(
    config: SafetyConfig, limits: JointLimits, wished: np.ndarray, now: Measured
) -> tuple[np.ndarray, dict[Clause, np.ndarray]]:
    """References [..., M] inside the joints' ranges and no further from the last than its torque allows."""
    dt_s = min(now.dt_s, LONGEST_TICK_S)
    bounds = {"position": position_bounds(config, limits), "torque rate": rate_bounds(config, now.last, dt_s)}
    return _cut(wished, bounds)  # type: ignore[arg-type]


def _cut(reference: np.ndarray, every: dict[Clause, Bounds]) -> tuple[np.ndarray, dict[Clause, np.ndarray]]:
    fired: dict[Clause, np.ndarray] = {}
    for clause, bounds in every.items():
        cut = bounds.cut(reference)
        fired[clause] = (cut != reference).any(axis=-1)
        reference = cut
    return reference, fired


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
    if not (np.isfinite([now.q, now.dq, now.bias]).all() and now.dt_s > 0):
        return Filtered(last, "stop", ("not finite",))
    if not abs(now.age_s) <= config.stop_age_s:  # NaN too
        return Filtered(last, "stop", ("stale",))
    if not -CLOCK_SLACK_S <= now.age_s <= config.hold_age_s:
        return Filtered(last, "hold", ("stale",))
    if np.shape(wished) != np.shape(last) or not np.isfinite(wished).all():
        return Filtered(last, "hold", ("not finite",))
    bounds, driven = joint_bounds(config, limits, now), Driven(config, limits, clearance, now)
    reference, fired = _cut(np.asarray(wished, dtype=float), bounds)
    slowed = _slow_plate(config, driven, reference)
    fired["plate speed"] = (slowed != reference).any(axis=-1)
    reference, hard = within_hard(config, limits, slowed, now)
    reference, near = _keep_clear(config, clearance, reference, last)
    clauses = tuple(clause for clause, changed in {**fired, **hard, **near}.items() if changed)
    if not np.isfinite(reference).all():  # limits that are none
        return Filtered(last, "stop", ("not finite",))
    beyond = [clause for clause, allowed in bounds.items() if allowed.broken(reference)]
    if driven.fastest(reference) > config.plate_speed + 1e-9:
        beyond.append("plate speed")
    return Filtered(reference, "go", clauses, tuple(beyond))


class Driven:
    """How fast references drive plate and flange in the end, K e = D dq, from where the arm is now.

    No joint is taken to pass its own limit, which other clauses keep.
    """

    def __init__(self, config: SafetyConfig, limits: JointLimits, clearance: Clearance, now: Measured):
        """Look at the arm once."""
        self._per_error = np.asarray(config.stiffness) / np.asarray(config.damping)
        self.q = now.q
        self._down, self._up = limits.speeds_at(now.q)
        self._maps = clearance.velocity_maps(now.q)

    def fastest(self, reference: np.ndarray) -> float:
        """Of flange and the plate's corners under a reference [M] [m/s]."""
        speeds = self._per_error * (reference - self.q)
        velocities = self._maps @ np.minimum(np.maximum(speeds, -self._down), self._up)
        return math.sqrt((velocities * velocities).sum(axis=1).max())


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
    offset = clearance.plate(reference) - clearance.home_position
    box = np.concatenate((config.workspace_low - offset, offset - config.workspace_high))
    near = np.array([config.table_height - clearance.lowest(), config.clearance - clearance.to_robot()])
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
