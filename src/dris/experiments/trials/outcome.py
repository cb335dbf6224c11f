"""What a recorded trial says about limits."""

from __future__ import annotations

from typing import Literal, TypedDict


class Outcome(TypedDict, total=False):
    """A recorded trial, as far as tables and pages read it."""

    caught: bool
    speed_share: float
    """Fastest joint over the speed at which an FR3 stops."""
    torque_share: float
    """Largest torque asked for, over a joint's; not in trials recorded before it was measured."""
    torque_rate_share: float
    """Largest change of torque asked for, over FCI's; likewise."""


LIMITED: tuple[Literal["speed_share", "torque_share", "torque_rate_share"], ...] = (
    "speed_share",
    "torque_share",
    "torque_rate_share",
)


def within_limits(outcome: Outcome) -> bool:
    """Whether no joint was faster, and no torque or change of torque asked for larger, than an FR3 accepts.

    A trial recorded before these were measured counts as not within.
    """
    return all(outcome.get(name, float("inf")) <= 1 for name in LIMITED)
