"""What a study is asked: which method beats which, the paper's claims first, and what the runs answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dris.stats import exact_p
from dris.study.results import FIVE, NOISE, Results, estimate

SURE = 0.05
"""A difference is seen if runs that differ by luck alone would differ as much less often than this."""

Pairs = tuple[tuple[str, str], ...]


def _over(rival: str, methods: tuple[str, ...]) -> Pairs:
    return tuple((method, rival) for method in methods)


def _chain(methods: tuple[str, ...]) -> Pairs:
    """Each method over the one before it."""
    return tuple(zip(methods[1:], methods[:-1], strict=True))


@dataclass(frozen=True)
class Claim:
    """The first method of each pair beats the second under the conditions."""

    text: str
    pairs: Pairs
    conditions: tuple[str, ...] = NOISE[1:]
    shown: str = "noise-2"
    """The condition whose success rates are shown."""
    preset: str = "paper"


DRIS, SETS = FIVE[1:], FIVE[2:]
NOISY_RAMPS, DELAYS = ("ramp-1.3-noise-2", "ramp-2.0-noise-2"), ("delay-20", "delay-40", "delay-60")


def _only(condition: str) -> dict[str, Any]:
    return {"conditions": (condition,), "shown": condition}


CLAIMS = (
    # [paper] "Evaluation against Uncertainties", "Scalability and Computational Efficiency".
    Claim("The paper: sets beat E2E under observation noise", _over("e2e", SETS)),
    Claim("The paper: sets beat a single instance under observation noise", _over("dris-1", SETS)),
    Claim("The paper's figures: the larger the set, the better under noise", _chain(SETS)),
    Claim("The paper: DRIS beats E2E under execution error", _over("e2e", DRIS), **_only("execution")),
    Claim("The paper: sets beat E2E at unseen restitution", _over("e2e", SETS), **_only("restitution")),
    Claim("The paper: sets beat a single instance there", _over("dris-1", SETS), **_only("restitution")),
    Claim(
        "The paper: at 2 sigma a set beats as many balls in environments of their own",
        (("dris-50", "e2e-x50"), ("e2e-x50", "e2e")), **_only("noise-2"),
    ),
    # What the paper does not ask.
    Claim("The pre-trained encoder alone beats E2E under noise (the paper: alike)", (("dris-1", "e2e"),)),
    Claim("Sets beat E2E under noise even if its encoder's weights decay, too", _over("e2e-decay", SETS)),
    Claim("From ramps, seen with 2 sigma, DRIS beats E2E", _over("e2e", DRIS), NOISY_RAMPS, NOISY_RAMPS[0]),
    Claim("There, the larger the set, the better", _chain(DRIS), NOISY_RAMPS, NOISY_RAMPS[0]),
    Claim("With delay, DRIS beats E2E", _over("e2e", DRIS), DELAYS, "delay-40"),
    Claim("DRIS, trained without noise, beats E2E trained with it", (("dris-50", "e2e-noise"),)),
    Claim("Both trained with noise, DRIS beats E2E", (("dris-50-noise", "e2e-noise"),)),
    Claim("DRIS gains from noise in training, too", (("dris-50-noise", "dris-50"),)),
    Claim("A set's mean reward is worth having without seeing the set", (("mean-reward-50", "dris-1"),)),
    Claim("It takes the set as input, not its mean reward alone", (("dris-50", "mean-reward-50"),)),
    Claim("It takes the learned code, not mean and spread", (("dris-50", "dris-50-moments"),)),
    Claim("It takes FiLM, not concatenation", (("dris-50", "dris-50-concat"),)),
    Claim("In exact contact, DRIS beats E2E under noise", _over("e2e", DRIS[:3]), preset="exact"),
    Claim(
        "In exact contact, DRIS beats E2E without noise", _over("e2e", DRIS[:3]), preset="exact",
        **_only("clean"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """One pair's: success rates at the shown condition, runs, probability of improvement, and p."""

    first: str
    second: str
    rates: tuple[float, float]
    runs: tuple[int, int]
    chance: tuple[float, float, float]
    """That a run of the first beats one of the second, averaged over the conditions; with its interval."""
    p: float
    """Of runs' means over the conditions, two-sided, exact."""

    @property
    def verdict(self) -> str:
        """What p says, if there are runs enough for it to be small."""
        if 2 / math.comb(sum(self.runs), self.runs[0]) > SURE:
            return "too few runs to say"
        if self.p > SURE:
            return "not seen"
        return "seen" if self.chance[0] > 0.5 else "the reverse is seen"


def answers(results: Results, claim: Claim) -> list[Answer]:
    """What the runs say of each pair that has any."""
    found = []
    for pair in claim.pairs:
        chance = results.better(claim.preset, *pair, list(claim.conditions))
        rates = [estimate(results.scores(claim.preset, method, claim.shown)) for method in pair]
        if chance is None or rates[0] is None or rates[1] is None:
            continue
        means = [results.run_means(claim.preset, method, claim.conditions) for method in pair]
        shown, runs = (rates[0].value, rates[1].value), (rates[0].seeds, rates[1].seeds)
        found.append(Answer(*pair, shown, runs, chance, exact_p(*means)))
    return found


def summary(found: list[Answer]) -> str:
    """The pairs by verdict, in a line."""
    by_verdict: dict[str, list[str]] = {}
    for answer in found:
        by_verdict.setdefault(answer.verdict, []).append(f"{answer.first} over {answer.second}")
    return (
        "; ".join(f"<b>{verdict}</b>: {', '.join(pairs)}" for verdict, pairs in by_verdict.items())
        or "missing"
    )
