"""What a recorded trial says about limits."""

from __future__ import annotations

from typing import Any

LIMITED = ("speed_share", "torque_share", "torque_rate_share")


def within_limits(outcome: dict[str, Any]) -> bool:
    """Whether no joint was faster, and no torque or change of torque asked for larger, than an FR3 accepts.

    A trial recorded before these were measured counts as not within.
    """
    return all(outcome.get(name, float("inf")) <= 1 for name in LIMITED)
