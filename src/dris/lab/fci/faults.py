"""What can go wrong between robot and client: values, and the line that applies them, the same for a seed.

Times count robot milliseconds from the first command of the first motion. Datagrams are numbered by their
states' message_id, and what happens to one depends on the seed and on that number's place in the motion only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields

import numpy as np

_KINDS = ("lost", "late", "duplicated", "reordered")


@dataclass(frozen=True)
class Faults:
    """Shares are of datagrams; 0 and None are none."""

    seed: int = 0
    lost_states: float = 0.0
    late_states: float = 0.0
    """Arrive `late_ms` later, when newer ones have."""
    duplicated_states: float = 0.0
    reordered_states: float = 0.0
    """Arrive after the next one."""
    lost_commands: float = 0.0
    late_commands: float = 0.0
    """Arrive `late_ms` later, when the robot has gone on."""
    duplicated_commands: float = 0.0
    reordered_commands: float = 0.0
    """Arrive after the next one."""
    late_ms: int = 3
    """How late a late datagram is."""
    deaf_at_ms: int | None = None
    """When commands stop arriving."""
    deaf_ms: int | None = None
    """For how long; None: for ever."""
    silent_at_ms: int | None = None
    """When the robot stops sending states."""
    silent_ms: int | None = None
    """For how long; None: for ever."""
    garbage_at_ms: int | None = None
    """When a datagram that is no state goes out."""
    close_at_ms: int | None = None
    """When the robot closes the connection."""
    user_stop_at_ms: int | None = None
    """When somebody presses the user stop."""
    user_stop_ms: int | None = None
    """How long it stays pressed; None: for ever."""
    version: int | None = None
    """What the server says its version is; None: the truth."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type == "float" and not 0 <= value <= 1:
                raise ValueError(f"{item.name} is a share in [0, 1], got {value}")
            if item.name.endswith("_ms") and value is not None and value < 0:
                raise ValueError(f"{item.name} must be 0 or more, got {value}")
        for way in ("states", "commands"):
            total = sum(getattr(self, f"{kind}_{way}") for kind in _KINDS)
            if total > 1:
                raise ValueError(
                    f"the shares of {way} add up to {total:.3g}; a datagram has one fault at most"
                )


class Line:
    """The way of datagrams to the client (`"states"`) or from it (`"commands"`)."""

    def __init__(self, faults: Faults, way: str):
        """Nothing is on its way."""
        self._generator = np.random.default_rng((faults.seed, 0 if way == "states" else 1))
        self._shares = [getattr(faults, f"{kind}_{way}") for kind in _KINDS]
        self._late_ms = faults.late_ms
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._now = 0
        self.counts = dict.fromkeys(_KINDS, 0)
        """Faults so far."""

    def carry(self, datagram: bytes | None) -> list[bytes]:
        """What arrives in this millisecond, when a datagram, or none, is sent."""
        arriving = []
        kind = self._draw()
        if datagram is not None:
            if kind in ("late", "reordered"):
                self._waiting.append((self._now + (self._late_ms if kind == "late" else 1), datagram))
            elif kind != "lost":
                arriving.append(datagram)
            if kind == "duplicated":
                arriving.append(datagram)
            if kind is not None:
                self.counts[kind] += 1
        due = [item for item in self._waiting if item[0] <= self._now]
        self._waiting = deque(item for item in self._waiting if item[0] > self._now)
        self._now += 1
        return arriving + [old for _, old in due]

    def _draw(self) -> str | None:
        left = self._generator.random()
        for kind, share in zip(_KINDS, self._shares, strict=True):
            left -= share
            if left < 0:
                return kind
        return None


def within(now_ms: int | None, start_ms: int | None, length_ms: int | None) -> bool:
    """Whether a time lies in a fault that begins at `start_ms` and lasts `length_ms`, None for ever."""
    if now_ms is None or start_ms is None or now_ms < start_ms:
        return False
    return length_ms is None or now_ms < start_ms + length_ms
