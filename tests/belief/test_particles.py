"""Resampling: counts by hand, and a posterior against its closed form."""

import math

import pytest
import torch

from dris.belief.particles import log_likelihood, systematic_resample


def test_instances_survive_their_share_rounded_up_or_down():
    weights = torch.tensor([[0.5, 0.25, 0.2, 0.05]]).log()
    # Four marks at (k + 0.5) / 4: 0.125, 0.375 below 0.5; 0.625 below 0.75; 0.875 below 0.95.
    assert systematic_resample(weights, torch.tensor([0.5])).tolist() == [[0, 0, 1, 2]]
    # At (k + 0.9) / 4: 0.225, 0.475, 0.725, 0.975.
    assert systematic_resample(weights + 7.0, torch.tensor([0.9])).tolist() == [[0, 0, 1, 3]]
    even = systematic_resample(torch.zeros(3, 50), torch.rand(3, generator=torch.Generator().manual_seed(0)))
    assert torch.equal(even, torch.arange(50).expand(3, 50))


def test_one_sure_instance_takes_all():
    weights = torch.full((1, 10), -1e6)
    weights[0, 4] = 0.0
    assert systematic_resample(weights, torch.tensor([0.99])).tolist() == [[4] * 10]


def test_the_posterior_of_a_gaussian():
    """Prior N(0, 1), seen 1.0 with deviation 0.5: N(0.8, 0.2)."""
    x = torch.randn(1, 200_000, 1, generator=torch.Generator().manual_seed(1))
    weights = log_likelihood(x, torch.tensor([[1.0]]), torch.tensor([0.5]))
    # The mean of the weights is the density of 1.0 under N(0, 1 + 0.25).
    evidence = float(weights.exp().mean())
    assert evidence == pytest.approx(math.exp(-0.5 / 1.25) / math.sqrt(2 * math.pi * 1.25), rel=0.01)
    kept = x[0, systematic_resample(weights, torch.tensor([0.3]))[0], 0]
    assert float(kept.mean()) == pytest.approx(0.8, abs=0.01)
    assert float(kept.var()) == pytest.approx(0.2, abs=0.01)


def test_weights_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="a weight is not a number"):
        systematic_resample(torch.tensor([[0.0, float("nan")]]), torch.tensor([0.5]))
    with pytest.raises(ValueError, match="an observation is not finite"):
        log_likelihood(torch.zeros(1, 3, 1), torch.tensor([[float("nan")]]), torch.tensor([1.0]))
