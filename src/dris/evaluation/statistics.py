"""How sure a figure is: averages over seeds with intervals, and comparisons of two methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

RESAMPLES = 2000


def iqm(scores: ArrayLike) -> Any:
    """Interquartile mean of scores [..., conditions, seeds], all in one pot: the mean of the middle half.

    SciPy's trim_mean is the same but for the order of its sum; sorted, the last bit does not depend on it.
    """
    every = np.asarray(scores, float)
    every = np.sort(every.reshape(*every.shape[:-2], -1))
    cut = every.shape[-1] // 4
    return every[..., cut : every.shape[-1] - cut].mean(axis=-1)


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> Any:
    """Probability that a run of the first method beats one of the second, averaged over conditions.

    Scores are [..., conditions, seeds]; ties count half (Mann and Whitney's U over the number of pairs).
    """
    ours, theirs = np.asarray(first, float)[..., :, None], np.asarray(second, float)[..., None, :]
    return ((ours > theirs) + 0.5 * (ours == theirs)).mean(axis=(-2, -1)).mean(axis=-1)


def mann_whitney_p(first: Sequence[float], second: Sequence[float]) -> float:
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


def bootstrap_interval(
    statistic: Callable[..., Any], *groups: ArrayLike, seed: int = 0
) -> tuple[float, float]:
    """95 % interval by stratified bootstrap: seeds are drawn again within each method.

    The scores of a seed under several conditions are those of one trained policy, so they stay together.
    With fewer than five seeds the interval of an average is their range.

    Args:
        statistic: A function of as many groups as are given, each with resamples as its first axis.
        groups: Scores [conditions, seeds] of one method each.
        seed: Of the draws.
    """
    generator = np.random.default_rng(seed)
    tables = [np.asarray(group, float) for group in groups]
    sizes = [table.shape[1] for table in tables]
    drawn = generator.integers(0, np.repeat(sizes, sizes), (RESAMPLES, sum(sizes)))
    chosen = np.split(drawn, np.cumsum(sizes)[:-1], axis=1)  # a group each: [resamples, seeds]
    samples = [np.moveaxis(table[:, rows], 1, 0) for table, rows in zip(tables, chosen, strict=True)]
    low, high = np.quantile(statistic(*samples), (0.025, 0.975))
    return float(low), float(high)
