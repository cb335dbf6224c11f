"""The Kalman filter's two steps against numbers worked out by hand."""

import math

import pytest
import torch

from dris.belief.kalman import Gaussian, kalman_predict, kalman_update


def test_one_dimension_by_hand():
    prior = Gaussian(torch.tensor([[1.0]]).double(), torch.tensor([[[4.0]]]).double())
    # Seen 4 with deviation 2: gain 4 / (4 + 4), mean 1 + 3 / 2, variance 4 (1 - 1 / 2), surprise 9 / 8.
    after, surprise, likelihood = kalman_update(prior, torch.tensor([[4.0]]), torch.tensor([[2.0]]))
    assert after.mean.item() == 2.5 and after.covariance.item() == 2.0 and surprise.item() == 9 / 8
    # The density of 4 under N(1, 4 + 4).
    assert likelihood.item() == pytest.approx(-0.5 * (9 / 8 + math.log(2 * math.pi * 8)))
    # Twice as far, with a process deviation of 3: variance 4 * 2 + 9.
    moved = kalman_predict(after, 2 * after.mean, torch.tensor([[2.0]]).double(), torch.tensor([3.0]))
    assert moved.mean.item() == 5.0 and moved.covariance.item() == 17.0


def test_a_correlated_prior_carries_what_is_seen_over():
    covariance = torch.tensor([[[2.0, 1.0], [1.0, 1.0]]]).double()
    prior = Gaussian(torch.zeros(1, 2).double(), covariance)
    deviation = torch.tensor([[1.0, 1e6]])  # the second component is as good as not seen
    after, _, _ = kalman_update(prior, torch.tensor([[3.0, 0.0]]), deviation)
    # Gains of the first observation: 2 / 3 and 1 / 3.
    torch.testing.assert_close(after.mean, torch.tensor([[2.0, 1.0]]).double(), atol=1e-9, rtol=0)
    expected = torch.tensor([[[2 / 3, 1 / 3], [1 / 3, 2 / 3]]], dtype=torch.float64)
    torch.testing.assert_close(after.covariance, expected, atol=1e-9, rtol=0)


def test_one_is_chosen_set_by_set():
    low, high = (Gaussian(torch.full((2, 1), v), torch.full((2, 1, 1), v)) for v in (0.0, 1.0))
    found = high.where(torch.tensor([True, False]), low)
    assert found.mean.tolist() == [[1.0], [0.0]] and found.covariance.tolist() == [[[1.0]], [[0.0]]]


def test_what_is_no_observation_is_refused():
    prior = Gaussian(torch.zeros(1, 2).double(), torch.eye(2).double()[None])
    for seen, deviation, message in (
        (torch.tensor([[float("nan"), 0.0]]), torch.ones(1, 2), "an observation is not finite"),
        (torch.zeros(1, 2), torch.tensor([[1.0, -1.0]]), "deviations must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            kalman_update(prior, seen, deviation)
