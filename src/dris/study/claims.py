"""What a study is asked: which method beats which, the paper's claims first, and what the runs answer."""

from __future__ import annotations

from dataclasses import dataclass

from dris.study.results import FIVE, NOISE, Results, estimate

NOISY = NOISE[1:]

FEWEST_RUNS = 3
"""Of each method, for a verdict: below, all pairs of runs can agree by mere luck one time in ten or more."""


@dataclass(frozen=True)
class Claim:
    """The first method of each pair beats the second under the conditions."""

    text: str
    pairs: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...] = NOISY
    preset: str = "paper"

    @property
    def shown(self) -> str:
        """The condition whose success rates stand for all."""
        return "noise-2" if "noise-2" in self.conditions else self.conditions[0]


def _over(rival: str, methods: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((method, rival) for method in methods)


def _chain(methods: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each method over the one before it."""
    return tuple(zip(methods[1:], methods[:-1], strict=True))


CLAIMS = (
    Claim("The paper: DRIS beats E2E under observation noise", _over("e2e", FIVE[1:])),
    Claim("The paper: more so with larger sets", _chain(FIVE[1:])),
    Claim("The paper: DRIS beats E2E under execution error", _over("e2e", FIVE[1:]), ("execution",)),
    Claim("The paper: DRIS beats E2E at unseen restitution", _over("e2e", FIVE[1:]), ("restitution",)),
    Claim(
        "The paper: sets beat as many balls in environments of their own",
        (("dris-50", "e2e-x50"), ("e2e-x50", "e2e")),
    ),
    Claim("DRIS, trained without noise, beats E2E trained with it", (("dris-50", "e2e-noise"),)),
    Claim("Both trained with noise, DRIS beats E2E", (("dris-50-noise", "e2e-noise"),)),
    Claim("DRIS gains from noise in training, too", (("dris-50-noise", "dris-50"),)),
    Claim("It takes the set as input, not its mean reward alone", (("dris-50", "mean-reward-50"),)),
    Claim("It takes the learned code, not mean and spread", (("dris-50", "dris-50-moments"),)),
    Claim("It takes FiLM, not concatenation", (("dris-50", "dris-50-concat"),)),
    Claim(
        "In exact contact, too: DRIS beats E2E under observation noise", _over("e2e", FIVE[1:4]),
        preset="exact",
    ),
    Claim("In exact contact, too: more so with larger sets", _chain(FIVE[1:4]), preset="exact"),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """One pair's: success rates at the shown condition, runs, and the probability of improvement."""

    first: str
    second: str
    rates: tuple[float, float]
    runs: tuple[int, int]
    chance: tuple[float, float, float]
    """That a run of the first beats one of the second, averaged over the conditions; with its interval."""

    @property
    def verdict(self) -> str:
        """What the interval says, if there are runs enough to have one."""
        if min(self.runs) < FEWEST_RUNS:
            return "too few runs to say"
        _, low, high = self.chance
        return "seen" if low > 0.5 else "the reverse is seen" if high < 0.5 else "not seen"


def answers(results: Results, claim: Claim) -> list[Answer]:
    """What the runs say of each pair that has any."""
    found = []
    for first, second in claim.pairs:
        chance = results.better(claim.preset, first, second, list(claim.conditions))
        scores = [results.scores(claim.preset, method, claim.shown) for method in (first, second)]
        rates = [estimate(values) for values in scores]
        if chance is None or rates[0] is None or rates[1] is None:
            continue
        found.append(
            Answer(first, second, (rates[0].value, rates[1].value), (rates[0].seeds, rates[1].seeds), chance)
        )
    return found
