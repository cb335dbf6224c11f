"""How long the session's own ticks take: a computer that is too slow for them does not arm."""

from __future__ import annotations

from collections import deque

MOST_MEDIAN_S = 0.005
"""A session whose ticks take longer in the median does not arm [s]: in the twin ticks of 3 ms do [design]."""
OVERRUN_S = 0.02
"""A tick that takes longer is counted: the driver then holds its last reference [s]."""
WINDOW, FEWEST = 500, 100
"""Ticks that are remembered, and without which nothing is known."""


class TickTimes:
    """Durations of the last ticks, without the wait for the next."""

    def __init__(self) -> None:
        """None yet."""
        self._last_s: deque[float] = deque(maxlen=WINDOW)
        self.overruns = 0
        """Of all ticks."""

    def add(self, duration_s: float) -> None:
        """One more."""
        self._last_s.append(duration_s)
        self.overruns += duration_s > OVERRUN_S

    @property
    def known(self) -> bool:
        """Whether there were enough to judge by."""
        return len(self._last_s) >= FEWEST

    def quantiles_s(self) -> tuple[float, float]:
        """Median and 99th percentile; of no ticks 0."""
        ordered = sorted(self._last_s) or [0.0]
        return ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]

    def too_slow(self) -> str:
        """Why the session must not arm; nothing, if it may."""
        median_s, _ = self.quantiles_s()
        if median_s <= MOST_MEDIAN_S:
            return ""
        return (
            f"not armed: a tick takes {1e3 * median_s:.1f} ms in the median, at most "
            f"{1e3 * MOST_MEDIAN_S:g}: close what else runs on this machine, and try `dris bench robot`"
        )

    def __str__(self) -> str:
        """For a person."""
        median_s, slow_s = self.quantiles_s()
        late = f"{self.overruns} over {1e3 * OVERRUN_S:.0f} ms so far"
        return f"{1e3 * median_s:.2f} ms, {1e3 * slow_s:.2f} ms at the 99th percentile; {late}"
