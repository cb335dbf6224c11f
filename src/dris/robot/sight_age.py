"""How old the sight is that a wish rests on."""

from __future__ import annotations

import math


class SightAge:
    """Of the last sight that a policy acted on, in the clock of its session [s]."""

    def __init__(self, step_s: float, longest_s: float):
        """Nothing is seen yet.

        Args:
            step_s: Between decisions: a wish may be so much older than its sight was.
            longest_s: Beyond that a ball out of sight is told no older; for how long it is, others decide.
        """
        self._step_s, self._longest_s = step_s, longest_s
        self.forget()

    def forget(self) -> None:
        """A new ball may come with a clock of its own."""
        self._rests_on_s = self._decided_s = -math.inf
        self._age_s = 0.0

    def begin(self, now_s: float) -> None:
        """The policy takes over."""
        self._rests_on_s = now_s

    def decided(self, now_s: float, age_s: float) -> None:
        """It acts on a sight of this age."""
        self._rests_on_s, self._decided_s, self._age_s = now_s - age_s, now_s, age_s

    def since(self, now_s: float) -> float:
        """From that sight until now."""
        return now_s - self._rests_on_s

    def at(self, now_s: float) -> float:
        """As the filter counts it: for a step, as old as it was when it was decided on; then it grows."""
        if now_s - self._decided_s < self._step_s:
            return self._age_s
        return min(max(self.since(now_s) - self._step_s, 0.0), self._longest_s)
