"""The same episodes in PhysX and in the training world: throws, balls, noise and policy alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dris.catching.task import CatchingTask
from dris.core.rollout import Agent, run_episodes
from dris.core.task import Task
from dris.evaluation.registry import WORST_CASE, check_conditions, conditions, score_row
from dris.physx.task import PhysxTask


def check_physx_conditions(names: tuple[str, ...]) -> None:
    """Refuse conditions that PhysX is not for."""
    check_conditions(names)
    if WORST_CASE in names:
        raise ValueError(f"'{WORST_CASE}' runs 81 conditions: take --world training, or leave it out")


def score_in_physx(
    make_task: Callable[[], Task], make_agent: Callable[..., Agent], condition: str, episodes: int, seed: int
) -> dict[str, Any]:
    """Outcome of an agent in PhysX under a condition by its name, beside the training world's.

    Raises:
        ValueError: The condition is the worst case, or the agent was not made to catch.
    """
    check_physx_conditions((condition,))

    def in_physx() -> Task:
        task = make_task()
        if not isinstance(task, CatchingTask):
            raise ValueError(f"{type(task).__name__} is no catching task: PhysX knows that alone")
        return PhysxTask(task.config)

    found = run_episodes(in_physx, make_agent, conditions()[condition], episodes, seed)
    training = run_episodes(make_task, make_agent, conditions()[condition], episodes, seed)
    caught, expected = found.success["success"], training.success["success"]
    return score_row(condition, seed, found.score()) | {
        "world": "physx",
        "training_success": float(expected.float().mean()),
        "same_outcome": float((caught == expected).float().mean()),
    }
