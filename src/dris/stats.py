"""How sure a figure is."""

from __future__ import annotations


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a success rate (Wilson's score interval)."""
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)
