"""A policy's score in a world by its name: training world, twin or PhysX.

Worlds are imported on use: the first two bring MuJoCo along, the last SAPIEN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from dris.core.rollout import Agent
from dris.core.task import Task
from dris.core.validation import check_extra
from dris.evaluation.registry import check_conditions, score
from dris.lab import Drive

World = Literal["training", "twin", "physx"]


def check_world(world: World, conditions: tuple[str, ...], drive: Drive = "ideal") -> None:
    """Refuse what a world cannot do, before any work is done."""
    check_conditions(conditions)
    if drive != "ideal" and world != "twin":
        raise ValueError("--drive is the twin's: add --world twin")
    if world == "twin":
        from dris.experiments.twin_episodes import twin_condition

        for condition in conditions:
            twin_condition(condition)
    if world == "physx":
        from dris.experiments.physx_episodes import check_physx_conditions

        check_extra("sapien", "physx")
        check_physx_conditions(conditions)


def score_in(
    world: World,
    make_task: Callable[[], Task],
    make_agent: Callable[..., Agent],
    condition: str,
    episodes: int,
    seed: int,
    drive: Drive = "ideal",
) -> dict[str, Any]:
    """Outcome of an agent in a world under a condition by its name; see `dris.evaluation.registry.score`."""
    if world == "twin":
        from dris.experiments.twin_episodes import score_in_twin

        return score_in_twin(make_task, make_agent, condition, episodes, seed, drive)
    if world == "physx":
        from dris.experiments.physx_episodes import score_in_physx

        return score_in_physx(make_task, make_agent, condition, episodes, seed)
    return score(make_task, make_agent, condition, episodes, seed)
