"""How good a policy is: success and reward on a single instance, and where it is worst."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from dris.core.conditions import Condition
from dris.core.rollout import EVALUATION_SEED, Agent, Score, run_episodes
from dris.core.task import Task


def evaluate(
    make_task: Callable[[], Task],
    make_agent: Callable[[Task, int], Agent],
    condition: Condition,
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
) -> Score:
    """Rates and mean reward of single-instance episodes: see `run_episodes`."""
    return run_episodes(make_task, make_agent, condition, episodes, seed).score()


def worst_case(
    make_task: Callable[[], Task],
    make_agent: Callable[[Task, int], Agent],
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
) -> tuple[Score, dict[str, float]]:
    """The lowest success on a grid over the domain, and where it is.

    The grid holds the lowest, middle and highest value of every parameter in all combinations; the
    episodes are the same at each of its points.
    """
    domain = make_task().domain
    values = [(r.low, 0.5 * (r.low + r.high), r.high) for r in domain.values()]
    found: list[tuple[Score, dict[str, float]]] = []
    for point in product(*values):
        exactly = tuple((name, value, value) for name, value in zip(domain, point, strict=True))
        score = evaluate(make_task, make_agent, Condition(domain=exactly), episodes, seed)
        found.append((score, dict(zip(domain, point, strict=True))))
    return min(found, key=lambda entry: entry[0].success)
