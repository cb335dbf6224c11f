"""Statistics against values worked out by hand."""

import numpy as np
import pytest

from dris.evaluation.statistics import (
    bootstrap_interval,
    iqm,
    mann_whitney_p,
    probability_of_improvement,
)


def test_the_interquartile_mean_is_that_of_the_middle_half():
    assert iqm([[0.0, 1.0, 2.0, 100.0]]) == 1.5
    assert iqm([[0.0, 1.0], [2.0, 100.0]]) == 1.5
    assert iqm([[1.0, 2.0, 6.0]]) == 3.0  # a quarter of three is less than one: nothing is cut


def test_probability_of_improvement_counts_pairs():
    assert probability_of_improvement([[3.0, 4.0]], [[1.0, 2.0]]) == 1.0
    assert probability_of_improvement([[1.0, 3.0]], [[2.0, 3.0]]) == (0 + 0 + 1 + 0.5) / 4
    assert probability_of_improvement([[1.0], [0.0]], [[0.0], [1.0]]) == 0.5


def test_averages_and_comparisons_agree_with_scipy():
    from scipy.stats import mannwhitneyu, trim_mean

    generator = np.random.default_rng(0)
    for size in (3, 4, 5, 8, 13):
        a, b = generator.integers(0, 6, size) / 5, generator.integers(0, 6, size + 1) / 5
        assert iqm([a]) == pytest.approx(trim_mean(a, 0.25))
        assert probability_of_improvement([a], [b]) == pytest.approx(
            mannwhitneyu(a, b).statistic / (len(a) * len(b))
        )


def test_the_exact_p_by_hand_and_by_scipy():
    from scipy.stats import mannwhitneyu

    assert mann_whitney_p([3.0, 4.0, 5.0], [0.0, 1.0, 2.0]) == pytest.approx(2 / 20)
    assert mann_whitney_p([1.0], [0.0, 0.0, 2.0, 2.0]) == 1.0
    # One of two values is tied with the other group's: of six ways to deal 0, 1, 1, 2 four are as uneven.
    assert mann_whitney_p([1.0, 2.0], [0.0, 1.0]) == pytest.approx(4 / 6)
    generator = np.random.default_rng(1)
    for sizes in ((5, 5), (5, 3), (4, 4)):
        a, b = (generator.normal(k, 1.0, n) for k, n in enumerate(sizes))
        assert mann_whitney_p(a, b) == pytest.approx(mannwhitneyu(a, b, method="exact").pvalue)


def test_the_scores_of_a_seed_stay_together():
    # Two conditions in which the same two of three seeds win against rivals at 0.5. Drawn together, all
    # three draws lose with probability 1/27, so the interval reaches 0; apart it would be 1/27^2 and not.
    wins = [[1.0, 1.0, 0.0]] * 2
    rivals = [[0.5]] * 2
    assert bootstrap_interval(probability_of_improvement, wins, rivals) == (0.0, 1.0)


def test_the_bootstrap_draws_within_conditions():
    # One seed in each condition: nothing to draw, so the interval is the value.
    assert bootstrap_interval(iqm, [[0.2], [0.4]]) == pytest.approx((0.3, 0.3))
    low, high = bootstrap_interval(iqm, [[0.0, 1.0] * 50])
    # The interquartile mean of a hundred coins; wide, around a half, and the same every time.
    assert low < 0.5 < high and (low, high) == bootstrap_interval(iqm, [[0.0, 1.0] * 50])
    assert bootstrap_interval(probability_of_improvement, [[2.0, 3.0]], [[0.0, 1.0]]) == (1.0, 1.0)
