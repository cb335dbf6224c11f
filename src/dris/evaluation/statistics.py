"""How sure a figure is: intervals for rates, averages over seeds, and comparisons of two methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

RESAMPLES = 2000


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a success rate (Wilson's score interval)."""
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def iqm(scores: Sequence[Sequence[float]]) -> float:
    """Interquartile mean of scores [conditions][seeds], all in one pot: the average of the middle half."""
    every = np.sort(np.concatenate([np.asarray(row, float) for row in scores]))
    cut = len(every) // 4
    return float(every[cut : len(every) - cut].mean())


def better(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> float:
    """Probability that a run of the first method beats one of the second, averaged over conditions.

    Scores are [conditions][seeds]; ties count half (Mann and Whitney's U over the number of pairs).
    """
    shares = []
    for a, b in zip(first, second, strict=True):
        ours, theirs = np.asarray(a)[:, None], np.asarray(b)[None]
        shares.append(np.mean((ours > theirs) + 0.5 * (ours == theirs)))
    return float(np.mean(shares))


def exact_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p of Mann and Whitney's test, by all ways to deal the values to two groups of these sizes.

    SciPy's exact method is wrong with ties, and its permutations refuse a group of one run.
    """
    values = np.concatenate((np.asarray(first, float), np.asarray(second, float)))
    wins = (values[:, None] > values) + 0.5 * (values[:, None] == values)
    everyone = range(len(values))

    def excess(group: tuple[int, ...]) -> float:
        others = [k for k in everyone if k not in group]
        return abs(wins[np.ix_(group, others)].mean() - 0.5)

    seen = excess(tuple(everyone[: len(first)]))
    return float(np.mean([excess(g) >= seen - 1e-9 for g in combinations(everyone, len(first))]))


def interval(
    statistic: Callable[..., float], *groups: Sequence[Sequence[float]], seed: int = 0
) -> tuple[float, float]:
    """95 % interval by stratified bootstrap: seeds are drawn again within each method.

    The scores of a seed under several conditions are those of one trained policy, so they stay together.
    With fewer than five seeds the interval of an average is their range.

    Args:
        statistic: A function of as many groups as are given.
        groups: Scores [conditions][seeds] of one method each.
        seed: Of the rng.
    """
    generator = np.random.default_rng(seed)
    tables = [np.asarray(group, float) for group in groups]
    values = []
    for _ in range(RESAMPLES):
        drawn = (generator.integers(0, table.shape[1], table.shape[1]) for table in tables)
        values.append(statistic(*(table[:, d] for table, d in zip(tables, drawn, strict=True))))
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)
