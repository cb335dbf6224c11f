"""Named ranges."""

import pytest
import torch

from dris import Domain, KeyedRng, Range


@pytest.fixture
def domain():
    return Domain({"radius": Range(0.02, 0.04, "m"), "bounce": Range(0.4, 0.7, "")})


def sample(domain, sets=5, instances=400):
    index = torch.arange(sets)
    return domain.sample(KeyedRng(0, index, index * 0, index * 0), instances)


def test_samples_fill_their_ranges(domain):
    parameters = sample(domain)
    assert parameters.shape == (5, 400, 2)
    bounce = domain.column(parameters, "bounce")
    assert 0.4 <= float(bounce.min()) < 0.405 and 0.695 < float(bounce.max()) < 0.7
    assert float(bounce.mean()) == pytest.approx(0.55, abs=0.005)
    correlation = torch.corrcoef(torch.stack([parameters[..., 0].flatten(), bounce.flatten()]))
    assert abs(float(correlation[0, 1])) < 0.06


def test_larger_sets_only_add_instances(domain):
    assert torch.equal(sample(domain, instances=3), sample(domain, instances=9)[:, :3])


def test_shifted_replaces_one_range_and_keeps_the_rest(domain):
    shifted = domain.shifted(bounce=(0.7, 0.8))
    assert (shifted["bounce"].low, shifted["bounce"].high) == (0.7, 0.8)
    assert shifted["radius"] == domain["radius"] and domain["bounce"].low == 0.4
    assert float(domain.column(sample(shifted), "bounce").min()) >= 0.7


def test_bad_ranges_name_what_is_allowed(domain):
    with pytest.raises(KeyError, match="unknown domain parameter 'mass'; known: radius, bounce"):
        domain.shifted(mass=(1, 2))
    with pytest.raises(ValueError, match=r"\[0.8, 0.7\] is reversed"):
        domain.shifted(bounce=(0.8, 0.7))
    with pytest.raises(ValueError, match="finite"):
        Range(0.0, float("inf"), "m")
    with pytest.raises(ValueError, match="at least one"):
        Domain({})
