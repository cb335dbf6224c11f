"""States of a session, by name."""

from __future__ import annotations

from typing import Literal

State = Literal[
    "disconnected", "connected", "homing", "homed", "following", "armed", "approaching", "catching", "hold",
    "returning", "stopped", "fault",
]  # fmt: skip
"""hold: the policy has taken over, but was told of no ball at its last step; its reference stays. Or the eyes
doubt themselves while the arm approaches: it brakes."""
CATCHING: frozenset[State] = frozenset({"catching", "hold"})
"""The policy has taken over, or may go on."""
OF_APPROACH: dict[str, State] = {"going": "approaching", "late": "approaching", "halted": "hold"}
"""What the session is by what has become of the approach; armed otherwise."""
WITH_LOOP: frozenset[State] = frozenset({"armed", "approaching", *CATCHING})
"""The catch loop runs."""
MOVING: frozenset[State] = frozenset({"homing", "following", "returning", *WITH_LOOP})
STOPPED: frozenset[State] = frozenset({"stopped", "fault"})
"""Nothing moves until a person connects again."""
