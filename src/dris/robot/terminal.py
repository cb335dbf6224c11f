"""A session in a terminal, redrawn ten times a second; nothing where the output is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

import numpy as np

from dris.robot.arm import ArmState
from dris.robot.session import Session
from dris.robot.tick_times import TickTimes

PERIOD_S = 0.1
"""Between two pictures [s]: a tick in between costs a look at the clock."""


class LiveView:
    """State, ball, plate, filter and ticks in lines that stay where they are."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.perf_counter):
        """Show nothing yet.

        Args:
            stream: Where to; by default the standard output.
            clock: That pictures are counted by [s].
        """
        self._stream, self._clock = stream or sys.stdout, clock
        self.on = self._stream.isatty()
        self._due_s = -np.inf
        self._lines = 0

    def show(self, session: Session, ticks: TickTimes | None = None) -> None:
        """Draw the session as it is, if it is time to; with how long its ticks take, in real time."""
        if not self.on or (now_s := self._clock()) < self._due_s:
            return
        self._due_s = now_s + PERIOD_S
        lines = picture(session) + ([] if ticks is None else [f"ticks   {ticks}"])
        self._stream.write(self._back() + "".join(f"\x1b[K{line}\n" for line in lines))
        self._stream.flush()
        self._lines = len(lines)

    def clear(self) -> None:
        """Take the picture away, for lines that stay."""
        if self._lines:
            self._stream.write(self._back() + "\x1b[J")
            self._stream.flush()
        self._lines, self._due_s = 0, -np.inf

    def _back(self) -> str:
        return f"\x1b[{self._lines}A\r" if self._lines else ""


def picture(session: Session) -> list[str]:
    """A session in four lines."""
    now_s, measured = session.clock(), session.measured
    since_s = session.changes[-1][0] if session.changes else now_s
    why = f": {session.reason}" if session.reason else ""
    lines = [f"state   {session.state}{why}, for {now_s - since_s:.1f} s; time {now_s:.2f} s"]
    seen = session.seen
    if seen is None:
        lines.append("ball    none seen yet")
    else:
        speed, age_ms = float(np.linalg.norm(seen.velocity)), 1e3 * session.sight_age_s
        sure = "" if seen.deviation is None else _give_or_take(seen.deviation)
        lines.append(
            f"ball    {_place(seen.position)} at {speed:.2f} m/s{sure}; last seen {age_ms:.0f} ms ago"
        )
    if measured is None:
        lines.append("plate   the arm has told nothing yet")
    else:
        place, tilt, share = _arm(session, measured)
        lines.append(
            f"plate   {_place(place)}, tilted by {np.degrees(tilt):.1f} deg; "
            f"fastest joint {share:.2f} of its limit"
        )
    counts = ", ".join(f"{clause} {ticks}" for clause, ticks in session.clauses.most_common())
    lines.append(f"filter  now {', '.join(session.fired) or 'nothing'}; so far {counts or 'nothing'}")
    return lines


def _place(position: np.ndarray) -> str:
    return " ".join(f"{value:+.3f}" for value in position) + " m"


def _give_or_take(deviation: np.ndarray) -> str:
    """How far off a place and a velocity [6] may be, in space."""
    place, velocity = np.linalg.norm(deviation[:3]), np.linalg.norm(deviation[3:])
    return f", give or take {1e3 * place:.0f} mm and {velocity:.2f} m/s"


def _arm(session: Session, measured: ArmState) -> tuple[np.ndarray, float, float]:
    """Where the plate is [3], its tilt from home [rad], and the fastest joint's share of its speed limit."""
    kinematics, dq = session.kinematics, measured.dq
    place, rotation = kinematics.plate(measured.q)
    cosine = float(rotation[:, 2] @ kinematics.home_rotation[:, 2])
    down, up = session.limits.speeds_at(measured.q)
    share = np.abs(dq) / np.maximum(np.where(dq > 0, up, down), 1e-9)
    return place, float(np.arccos(np.clip(cosine, -1.0, 1.0))), float(share.max())
