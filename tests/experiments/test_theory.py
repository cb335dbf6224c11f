"""The theory's measurements: the tools on cases worked out by hand, the page on made-up figures."""

import json

import pytest
import torch

from dris.catching.task import CatchingTask
from dris.evaluation.registry import find_policy
from dris.experiments.study.theory import (
    SIZES,
    TheoryConfig,
    _expand,
    _gradients,
    fit_floor,
    local_cost,
    propagation,
)
from dris.report.theory_page import report_theory

SMALL = TheoryConfig(sets=6)


def test_an_instance_in_a_set_takes_the_path_it_takes_alone():
    assert propagation(CatchingTask, SMALL, instances=3) == 0.0


def test_the_expansion_of_a_quadratic_is_the_quadratic():
    a = torch.tensor([[2.0, 1.0], [1.0, 4.0]], dtype=torch.float64)
    cost = lambda s: 0.5 * torch.einsum("bns,st,bnt->bn", s, a, s) + 3 * s[..., 0]  # noqa: E731
    gradient, hessian = _expand(cost, torch.tensor([[[1.0, -1.0]]]))
    torch.testing.assert_close(gradient, torch.tensor([[2.0 - 1.0 + 3.0, 1.0 - 4.0]]))
    torch.testing.assert_close(hessian[0], a.float(), rtol=1e-4, atol=1e-4)


def test_gradients_follow_the_reward():
    """Weights that vanish leave nothing, and what is rewarded matters."""
    handle = find_policy("dris-robot")
    make_task, make_agent = handle.make_task, handle.make_agent
    policy = make_agent(make_task(), 1)
    single = _gradients(make_task(), policy, TheoryConfig(sets=1), 2, 2)
    # One set: its return less the average over sets is zero, and so is its gradient.
    assert float(single[0].abs().max()) == 0.0
    several = _gradients(make_task(), policy, TheoryConfig(sets=3), 2, 2)
    assert len(several) == 3 and all(float(g.norm()) > 0 for g in several)
    # The policy sees the same two balls, but is rewarded for one: other gradients.
    first = _gradients(make_task(), policy, TheoryConfig(sets=3), 2, 1)
    assert all(not torch.equal(one, both) for one, both in zip(first, several, strict=True))


def test_the_floor_is_found_in_gradients_that_have_one():
    """g_i = shared + own, variances 3 and 1: sigma^2 = 4, rho = 3/4."""
    generator = torch.Generator().manual_seed(0)
    own = torch.randn(4000, SIZES[-1], generator=generator)
    shared = 3**0.5 * torch.randn(4000, 1, generator=generator)
    means = [(shared + own)[:, :n].mean(dim=1) for n in SIZES]
    falling = [float((part - means[-1]).square().mean()) for part in means[:-1]]
    found = fit_floor(falling, float(means[-1].var()))
    assert found["rho"] == pytest.approx(0.75, abs=0.01) and found["power"] == pytest.approx(1.0, abs=0.02)


def test_linear_noise_falls_with_the_square_root():
    handle = find_policy("dris-robot")
    make_task, make_agent = handle.make_task, handle.make_agent
    found = local_cost(make_task, make_agent(make_task(), 1), SMALL)
    assert found["power"] == pytest.approx(-0.5, abs=0.1)
    assert len(found["noise"]) == len(SIZES) and 0 <= found["convex"] <= 1


def made_up() -> dict:
    falling = [1.0 / n for n in SIZES]
    return {
        "config": {"policy": "dris-50", "sets": 8, "seed": 1, "std": 0.1},
        "propagation": {"largest_difference": 0.0, "instances": 20},
        "gradient": {"sizes": SIZES, "variance": falling, "seen": list(falling), "rho": 0.25, "power": 1.0, "falling": falling[:-1], "fitted": falling[:-1]},
        "local_cost": {
            "sizes": SIZES, "noise": falling, "signal": [0.5] * 8, "signal_spread": [0.1] * 8, "power": -0.5,
            "convex": 1.0, "step": 8, "true": 0.5,
        },
        "estimation": {"sizes": SIZES, "error": falling, "power": -1.0},
    }  # fmt: skip


def test_the_page_says_what_was_found(tmp_path):
    file = tmp_path / "theory.json"
    file.write_text(json.dumps(made_up()))
    page = report_theory(tmp_path, tmp_path / "out").read_text()
    assert "rho = 0.25" in page and "As predicted." in page
    assert (tmp_path / "out" / "theory-gradient.png").stat().st_size > 5000
    other = made_up()
    other["propagation"]["largest_difference"] = 1e-3
    file.write_text(json.dumps(other))
    assert "Seen: 0.001 in every state" in report_theory(tmp_path, tmp_path / "out").read_text()
    assert "Not as predicted." in (tmp_path / "out" / "index.html").read_text()


def test_lists_of_unequal_length_are_refused_by_name(tmp_path):
    other = made_up()
    other["gradient"]["seen"].pop()
    (tmp_path / "theory.json").write_text(json.dumps(other))
    with pytest.raises(ValueError, match="theory.json: gradient: seen: 7 values for 8 sizes"):
        report_theory(tmp_path, tmp_path / "out")
