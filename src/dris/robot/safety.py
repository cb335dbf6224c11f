"""The safety filter: one pure function between whoever asks for a motion and the driver.

    wished reference -> finite? stale? -> inside workspace and keep-out
        -> speed -> plate speed -> torque -> torque rate -> position, jump -> workspace, keep-out

The torque law tau = K (q~ - q) - D dq + C + g drives the arm to a reference q~; all that is limited here is
that reference, every millisecond. Nothing is changed silently: `Filtered.clauses` names what was cut, and
`Filtered.beyond` what could not be kept in this millisecond because a later clause forbade it.

Two kinds of limits. *Hard* ones hold for every output, whatever came in, if they held for the reference sent
before: finite numbers, joint positions, how far a reference may jump. *Soft* ones (speed, speed of the plate,
torque, change of torque) depend on where the arm is now: they hold unless a later one forbids it. No wish
leads out of the workspace of the plate or too near to table or robot; where the arm's own motion does, it is
braked as fast as the soft limits allow, and that is told. Measured joints are held to the same walls by
`dris.robot.boundary`. What then remains of a torque that changes too fast, libfranka takes away: its own
limiter stays on. Acceleration and jerk bind motion generators, not torque control: `dris.catching.approach`
plans inside them.

The speed that counts is the one that a joint will have once its torque has been taken back at FCI's rate, all
joints together; so the filter brakes in time by itself, whoever asks (`dris soak --wishes wild`).

This is no certified safety function. An FR3's enabling device and stop are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.robot.clearance import Clearance
from dris.robot.safety_config import Clause, SafetyConfig
from dris.robot.safety_limits import Measured, cut, differ, joint_bounds, rate_bounds, within_hard

Verdict = Literal["go", "hold", "stop"]
"""hold: the last reference counts in place of the wish; stop: the arm must be stopped."""
CLOCK_SLACK_S = 0.002
"""A sight may be stamped so far ahead of the robot's clock: two ticks [s]."""
SPEEDS: tuple[Clause, ...] = ("coupling", "speed")
TORQUES: tuple[Clause, ...] = ("torque", "torque rate")
BISECTIONS = 10
"""Of a way that is shortened: to a thousandth of it."""


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
    told = np.concatenate((now.q, now.dq, now.torque, now.bias, last, now.inertia.ravel()))
    if not (np.isfinite(told).all() and 0 < now.dt_s < math.inf):
        return Filtered(last, "stop", ("not finite",))
    if not abs(now.age_s) <= config.stop_age_s:  # NaN too
        return Filtered(last, "stop", ("stale",))
    try:
        np.linalg.cholesky(now.inertia)  # of no arm, if it is not positive definite
        soft = _Soft(config, limits, clearance, now)
    except np.linalg.LinAlgError:
        return Filtered(last, "stop", ("not finite",))
    goal, verdict, held = _held(config, wished, now)
    walls = _Walls(config, clearance, last)
    goal, fired = (goal, {}) if held else walls.shorten(goal)
    reference, cut_by = soft.applied(goal)
    fired |= cut_by
    if (held or any(cut_by.values())) and (near := walls.passed(reference)):
        # Not the wish but the arm's own motion leads there: brake as fast as all else allows.
        reference, cut_by = soft.applied(walls.nearest_inside())
        fired |= dict.fromkeys((*near, *(clause for clause, cuts in cut_by.items() if cuts)), True)
    clauses = held + tuple(clause for clause in get_args(Clause) if fired.get(clause))
    if not np.isfinite(reference).all():  # limits that are none
        return Filtered(last, "stop", ("not finite",))
    if not clauses:  # inside all limits, and unchanged
        return Filtered(reference, "go", ())
    return Filtered(reference, verdict, clauses, (*soft.beyond(reference), *walls.passed(reference)))


def _held(config: SafetyConfig, wished: Any, now: Measured) -> tuple[np.ndarray, Verdict, tuple[Clause, ...]]:
    """The wish [M], or the last reference that counts in its place, and why."""
    last = np.array(now.last, dtype=float)
    if not -CLOCK_SLACK_S <= now.age_s <= config.hold_age_s:
        return last, "hold", ("stale",)
    try:
        goal = np.asarray(wished, dtype=float)
    except (TypeError, ValueError, OverflowError):  # words, things of other kinds, rows of other lengths
        return last, "hold", ("not finite",)
    if goal.shape != last.shape or not np.isfinite(goal).all():
        return last, "hold", ("not finite",)
    return goal, "go", ()


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
    q, way = driven.q, reference - driven.q
    # Speeds are not proportional to the way where a joint is at its limit.
    return q + _largest(lambda share: driven.fastest(q + share * way) <= config.plate_speed) * way


def outside(config: SafetyConfig, clearance: Clearance, reference: np.ndarray) -> dict[Clause, np.ndarray]:
    """How far the plate is outside its workspace, and plate, hand or wrist too near to table or robot.

    Returns:
        [m], 0 where it is not: workspace [6], one a face of the box; keep-out [2], table and robot.
    """
    arrays, offset = config.arrays, clearance.plate(reference) - clearance.home_position
    beyond = np.empty(8)
    beyond[:3], beyond[3:6] = arrays.workspace_low - offset, offset - arrays.workspace_high
    beyond[6] = config.table_height - clearance.lowest()
    beyond[7] = config.clearance - clearance.to_robot(config.clearance)
    np.maximum(beyond, 0.0, out=beyond)
    return {"workspace": beyond[:6], "keep-out": beyond[6:]}


class _Soft:
    """Limits that depend on where the arm is now, in their order, and those of position and jumps."""

    def __init__(self, config: SafetyConfig, limits: JointLimits, clearance: Clearance, now: Measured):
        """Look at the arm once.

        Raises:
            LinAlgError: Its inertia is none.
        """
        self._config, self._limits, self._now = config, limits, now
        self._bounds = joint_bounds(config, limits, now) | {"torque rate": rate_bounds(config, now)}
        self._driven = Driven(config, limits, clearance, now)

    def applied(self, goal: np.ndarray) -> tuple[np.ndarray, dict[Clause, Any]]:
        """The reference [M] that may be sent on the way to a goal, and which clauses changed it."""
        reference, fired = cut(goal, {clause: self._bounds[clause] for clause in SPEEDS})
        slowed = _slow_plate(self._config, self._driven, reference)
        fired["plate speed"] = differ(slowed, reference)
        reference, torques = cut(slowed, {clause: self._bounds[clause] for clause in TORQUES})
        reference, hard = within_hard(self._config, self._limits, reference, self._now)
        return reference, fired | torques | hard

    def beyond(self, reference: np.ndarray) -> list[Clause]:
        """Soft limits that a reference does not keep."""
        found = [clause for clause, allowed in self._bounds.items() if allowed.broken(reference)]
        if self._driven.fastest(reference) > self._config.plate_speed + 1e-9:
            found.append("plate speed")
        return found


class _Walls:
    """Workspace and keep-out, from the last reference.

    An arm that begins outside may come in, and go no further out through any face, nor nearer to anything.
    """

    def __init__(self, config: SafetyConfig, clearance: Clearance, last: np.ndarray):
        self._config, self._clearance, self._last = config, clearance, last
        self._allowed: dict[Clause, np.ndarray] | None = None  # computed where it is needed

    def passed(self, reference: np.ndarray) -> list[Clause]:
        """What a reference [M] passes further than the last one did."""
        found = outside(self._config, self._clearance, reference)
        if not any(beyond.any() for beyond in found.values()):
            return []
        if self._allowed is None:
            self._allowed = outside(self._config, self._clearance, self._last)
        return [clause for clause, beyond in found.items() if (beyond > self._allowed[clause] + 1e-12).any()]

    def shorten(self, wished: np.ndarray) -> tuple[np.ndarray, dict[Clause, bool]]:
        """As far from the last reference to a wished one [M] as the plate stays clear, and what it met."""
        if not (met := self.passed(wished)):
            return wished, {}
        share = _largest(lambda share: not self.passed(self._last + share * (wished - self._last)))
        return self._last + share * (wished - self._last), dict.fromkeys(met, True)

    def nearest_inside(self) -> np.ndarray:
        """The last reference [M], or, if it is outside, one inside on the way home from there."""
        home = self._clearance.home

        def inside(share: float) -> bool:
            found = outside(self._config, self._clearance, home + share * (self._last - home))
            return not any(beyond.any() for beyond in found.values())

        return self._last if inside(1.0) else home + _largest(inside) * (self._last - home)


def _largest(fits: Callable[[float], bool]) -> float:
    """The largest share of a way that fits, by bisection; its beginning does."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
