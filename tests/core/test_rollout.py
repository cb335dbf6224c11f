"""Evaluation: conditions do what they say, and the worst case is the worst."""

import pytest
import torch
from fakes import LineTask

from dris.core.conditions import Condition, find_condition
from dris.core.rollout import Score, run_episodes
from dris.core.task import NoConfig
from dris.evaluation.registry import PolicyHandle
from dris.evaluation.scores import in_words, score_row, worst_case


def evaluate(task, make_agent, condition, episodes):
    return run_episodes(task, make_agent, condition, episodes).score()


def test_a_score_has_its_interval_by_hand():
    """Wilson: (p + z2 / 2n +- z sqrt(p q / n + z2 / 4n2)) / (1 + z2 / n); the command prints the same."""
    score, z = Score(100, 0.8, 0.1, {"success_0.2": 0.5}), 1.959964
    for p, found in ((0.8, score.interval), (0.5, score.other_intervals["success_0.2"])):
        half = z * (p * (1 - p) / 100 + z * z / 4e4) ** 0.5
        middle, whole = p + z * z / 200, 1 + z * z / 100
        assert found == pytest.approx(((middle - half) / whole, (middle + half) / whole), abs=1e-6)
    low, high = score.interval
    printed = in_words(score_row("clean", 0, score))
    assert f"success 0.800 [{low:.3f}, {high:.3f}]  success_0.2 0.500 [0.404, 0.596]" in printed


def test_conditions_do_what_they_say():
    zero = lambda task, sets: lambda observation: torch.zeros(sets, 1)  # noqa: E731
    clean = evaluate(LineTask, zero, find_condition("clean", {}), 500)
    assert clean.episodes == 500
    again = evaluate(LineTask, zero, find_condition("clean", {}), 500)
    assert clean == again
    # Standing still, x is uniform in [-1, 1]: half of them within 0.5, mean reward 0.25 - 0.5.
    assert clean.success == pytest.approx(0.5, abs=0.07) and clean.reward == pytest.approx(-0.25, abs=0.04)
    seen = []
    evaluate(
        LineTask, lambda t, n: lambda o: seen.append(o.states) or torch.zeros(n, 1), Condition(noise=3.0), 500
    )
    drift = torch.stack(seen)[..., 0].std(dim=0).mean()
    assert float(drift) == pytest.approx(0.3, rel=0.15)
    with pytest.raises(KeyError, match="restitution"):
        evaluate(LineTask, zero, Condition(domain=(("restitution", 0.7, 0.8),)), 5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clean", Condition()),
        ("noise-2.5", Condition(noise=2.5)),
        ("delay-35", Condition(delay_s=0.035)),
        ("correlated-3", Condition(noise=3, noise_correlation=0.8)),
        ("bias-2", Condition(noise=2, noise_correlation=1.0)),
        ("dropout-30", Condition(dropout=0.3)),
        ("execution-0.1", Condition(execution_error=0.1)),
        ("windy", Condition(noise=9.0)),
    ],
)
def test_conditions_are_read_for_any_value(name, expected):
    assert find_condition(name, {"windy": Condition(noise=9.0)}) == expected


@pytest.mark.parametrize(
    "name", ["noise", "noise-", "noise--1", "noise-x", "dropout-100", "delay-1e9", "gusty"]
)
def test_conditions_that_are_none_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"condition '{name}'"):
        find_condition(name, {})


def test_the_worst_case_is_found_on_the_grid():
    # A velocity of 0.5 for 0.4 s moves x, uniform in [-1, 1], by 0.4 times the gain: |x| < 0.5 in the end
    # for x in (-0.5 - 0.4 g, 0.5 - 0.4 g), cut at -1: 1/2 of them for g = 1, less for more.
    push = lambda task, sets: lambda observation: torch.full((sets, 1), 0.5)  # noqa: E731
    score, point = worst_case(PolicyHandle("push", LineTask, NoConfig(), push), 2000)
    assert point == {"gain": 2.0}
    assert score.success == pytest.approx((0.5 - 0.8 + 1.0) / 2, abs=0.04)
    with pytest.raises(ValueError, match="configuration of LineTask has no speed"):
        evaluate(LineTask, push, Condition(task=(("speed", 1.0),)), 5)


def watch(condition, episodes=4000):
    """Observations [T, E] of x by an agent that stands still, and the score."""
    seen = []
    score = evaluate(
        LineTask, lambda t, n: lambda o: seen.append(o.states) or torch.zeros(n, 1), condition, episodes
    )
    return torch.stack(seen)[..., 0, 0], score


def test_correlated_conditions_have_the_noise_of_theirs_and_keep_it():
    true, _ = watch(find_condition("clean", {}))
    for k in (1, 2, 3, 4):
        seen, _ = watch(find_condition(f"correlated-{k}", {}))
        error = seen - true
        assert float(error.std()) == pytest.approx(0.1 * k, rel=0.03)
        assert float(torch.corrcoef(error[:2])[0, 1]) == pytest.approx(0.8, abs=4 * 0.36 / 4000**0.5)
        white, _ = watch(find_condition(f"noise-{k}", {}))
        assert torch.equal(seen[0], white[0]) and not torch.equal(seen[1], white[1])


@pytest.mark.parametrize("percent", [20, 40])
def test_dropout_conditions_miss_what_they_say(percent):
    """Half of the way to the left at each step: an x that did not change was not seen."""
    seen = []
    evaluate(
        LineTask,
        lambda t, n: lambda o: seen.append(o.states[:, 0, 0]) or torch.full((n, 1), -0.5),
        find_condition(f"dropout-{percent}", {}),
        4000,
    )
    missed = torch.stack([a == b for a, b in zip(seen, seen[1:], strict=False)]).float().mean()
    share = percent / 100
    assert float(missed) == pytest.approx(share, abs=4 * (share * (1 - share) / 12_000) ** 0.5)


def test_a_task_s_other_successes_are_told_beside_its_own():
    class Graded(LineTask):
        def other_successes(self):
            return {"success_wide": self.x.abs() < 0.75, "success_none": self.x.abs() < 0.0}

    _, plain = watch(find_condition("clean", {}))
    assert plain.other_successes == {}
    score = evaluate(Graded, lambda t, n: lambda o: torch.zeros(n, 1), find_condition("clean", {}), 4000)
    assert (score.success, score.reward) == (plain.success, plain.reward)
    # Standing still, x is uniform in [-1, 1]: three quarters lie within 0.75.
    assert score.other_successes["success_wide"] == pytest.approx(0.75, abs=4 * (0.1875 / 4000) ** 0.5)
    assert score.other_successes["success_none"] == 0.0
