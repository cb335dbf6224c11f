"""What is measured of filters, against answers worked out by hand."""

import math

import numpy as np
import pytest

from dris.belief.config import BeliefConfig
from dris.evaluation.registry import find_policy
from dris.experiments.study.filters import FiltersConfig, bounce, bounce_case, linear_case, quality


def test_a_linear_filter_comes_to_kalman_s_as_one_over_the_root_of_n():
    (few, wide), (many, exact) = linear_case(30, repeats=400, seed=3), linear_case(3000, repeats=100, seed=3)
    assert few / many == pytest.approx(10.0, rel=0.3)
    assert exact == pytest.approx(1.0, abs=0.01) and 0.9 < wide < 1.0  # few instances are a little too sure


def test_a_ball_bounces_at_the_moment_it_meets_the_ground():
    """Dropped from 1 m it lands after 0.4515 s at 4.429 m/s, and rises to e^2 = 0.25 of that height."""
    lands = math.sqrt(2 / 9.81)
    z, v = bounce(np.array([1.0]), np.array([0.0]), np.array([0.5]), lands + 0.1)
    up = 0.5 * 9.81 * lands
    assert z[0] == pytest.approx(up * 0.1 - 0.5 * 9.81 * 0.01) and v[0] == pytest.approx(up - 0.981)
    assert z[0] + v[0] ** 2 / (2 * 9.81) == pytest.approx(0.25)
    z, v = bounce(np.array([1.0]), np.array([0.0]), np.array([0.5]), 0.1)  # still in the air
    assert (z[0], v[0]) == (pytest.approx(1 - 0.04905), pytest.approx(-0.981))


def test_an_ensemble_is_near_a_hundred_thousand_particles_around_a_bounce():
    (few, _), (many, spread) = bounce_case((5, 200), repeats=12, seed=1)
    assert many < 0.6 * few and many < 1.0  # standard deviation of the posterior
    assert 0.9 < spread < 1.3


def test_a_belief_is_as_sure_as_it_should_be_when_it_is_told_the_noise():
    policy, config = find_policy("e2e"), FiltersConfig(episodes=200)
    right = quality(policy, BeliefConfig(instances=50), config)
    assert right["inside"] == pytest.approx(0.9 * 49 / 51, abs=0.03)
    assert right["error"] < 1.2  # of a sensor with 2
    assert quality(policy, BeliefConfig(instances=50, told_noise=0.5), config)["inside"] < 0.5
