"""Evaluation: conditions do what they say, and the worst case is the worst."""

import pytest
import torch

from dris.evaluate import CONDITIONS, Condition, evaluate, worst_case
from fakes import LineTask


def test_conditions_do_what_they_say():
    zero = lambda task, sets: lambda observation: torch.zeros(sets, 1)  # noqa: E731
    clean = evaluate(LineTask, zero, CONDITIONS["clean"], 500)
    assert clean.episodes == 500
    again = evaluate(LineTask, zero, CONDITIONS["clean"], 500)
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
        evaluate(LineTask, zero, CONDITIONS["restitution"], 5)


def test_the_worst_case_is_found_on_the_grid():
    # A velocity of 0.5 for 0.4 s moves x, uniform in [-1, 1], by 0.4 times the gain: |x| < 0.5 in the end
    # for x in (-0.5 - 0.4 g, 0.5 - 0.4 g), cut at -1: 1/2 of them for g = 1, less for more.
    push = lambda task, sets: lambda observation: torch.full((sets, 1), 0.5)  # noqa: E731
    score, point = worst_case(LineTask, push, 2000)
    assert point == {"gain": 2.0}
    assert score.success == pytest.approx((0.5 - 0.8 + 1.0) / 2, abs=0.04)
    with pytest.raises(ValueError, match="LineTask has no values to change, asked for speed"):
        evaluate(LineTask, push, Condition(task=(("speed", 1.0),)), 5)
