"""The safety filter: one pure function between whoever asks for a motion and the driver.

    wished reference -> finite? stale? -> inside workspace and keep-out
        -> speed -> plate speed -> torque -> torque rate -> position, jump -> workspace, keep-out

The torque law tau = K (q~ - q) - D dq + C + g drives the arm to a reference q~; all that is limited here is
that reference, every millisecond. Nothing is changed silently: `Filtered.clauses` names what was cut, and
`Filtered.beyond` what could not be kept in this millisecond because a later clause forbade it.

Two kinds of limits. *Hard* ones hold for every output, whatever came in, if they held for the reference sent
before: finite numbers, joint positions, how far a reference may jump, the workspace of the plate and its
distance to table and robot. *Soft* ones (speed, speed of the plate, torque, change of torque) depend on where
the arm is now: they hold unless a later one forbids it. What then remains of a torque that changes too fast,
libfranka takes away: its own limiter stays on. Acceleration and jerk bind motion generators, not torque
control: `dris.catching.approach` plans inside them.

The speed that counts is the one that a joint will have once its torque has been taken back at FCI's rate, all
joints together; so the filter brakes in time by itself, whoever asks (`dris soak --wishes wild`).

This is no certified safety function. An FR3's enabling device and stop are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
BISECTIONS = 14
"""Of a way that is shortened: to 1e-4 of it."""


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
    if not (np.isfinite(np.concatenate((now.q, now.dq, now.torque, now.bias))).all() and now.dt_s > 0):
        return Filtered(last, "stop", ("not finite",))
    if not abs(now.age_s) <= config.stop_age_s:  # NaN too
        return Filtered(last, "stop", ("stale",))
    verdict, held = _held(config, wished, now)
    goal, walls = (
        (last, {}) if held else _keep_clear(config, clearance, np.asarray(wished, dtype=float), last)
    )
    bounds, driven = joint_bounds(config, limits, now), Driven(config, limits, clearance, now)
    reference, fired = cut(goal, {clause: bounds[clause] for clause in SPEEDS})
    slowed = _slow_plate(config, driven, reference)
    fired["plate speed"] = differ(slowed, reference)
    bounds["torque rate"] = rate_bounds(config, now)
    reference, torques = cut(slowed, {clause: bounds[clause] for clause in TORQUES})
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
