"""A policy's score in a world by its name: training world, twin or PhysX.

Worlds are imported on use: the first two bring MuJoCo along, the last SAPIEN.
"""

from __future__ import annotations

from typing import Any

from dris.catching.settings import CatchingConfig
from dris.core.conditions import WORST_CASE, find_condition
from dris.core.rollout import run_episodes
from dris.core.validation import check_extra
from dris.evaluation.registry import PolicyHandle
from dris.evaluation.scores import check_conditions, score, score_beside
from dris.experiments import World
from dris.lab import Drive


def check_world(
    world: World, policies: list[PolicyHandle], conditions: tuple[str, ...], drive: Drive = "ideal"
) -> None:
    """Refuse what a world cannot do, before any work is done."""
    for policy in policies:
        check_conditions(policy.task, conditions)
        if world != "training" and not isinstance(policy.task_config, CatchingConfig):
            raise ValueError(
                f"{policy.task.__name__} is no catching task: the {world} world knows that alone"
            )
        if world == "physx" and policy.belief.update != "none":
            raise ValueError(
                f"PhysX has no belief, and {policy.name} has one: add --belief none, or leave out "
                "--world physx"
            )
        if world == "twin":
            from dris.catching.belief_observer import beside_one_robot

            beside_one_robot(policy.belief)
    if drive != "ideal" and world != "twin":
        raise ValueError("--drive is the twin's: add --world twin")
    if world == "twin":
        from dris.experiments.twin_episodes import twin_condition

        for condition in conditions:
            twin_condition(condition)
    if world == "physx":
        check_extra("sapien", "physx")
        if WORST_CASE in conditions:
            raise ValueError(f"'{WORST_CASE}' runs 81 conditions: take --world training, or leave it out")


def score_in(
    world: World, policy: PolicyHandle, condition: str, episodes: int, seed: int, drive: Drive = "ideal"
) -> dict[str, Any]:
    """Outcome of a policy in a world under a condition by its name; see `dris.evaluation.scores.score`."""
    if world == "twin":
        from dris.experiments.twin_episodes import score_in_twin

        return score_in_twin(policy, condition, episodes, seed, drive)
    if world == "physx":
        return score_in_physx(policy, condition, episodes, seed)
    return score(policy, condition, episodes, seed)


def score_in_physx(policy: PolicyHandle, condition: str, episodes: int, seed: int) -> dict[str, Any]:
    """Outcome of a policy in PhysX under a condition by its name, beside the training world's."""
    from dris.physx.task import PhysxTask

    asked = find_condition(condition, policy.task.conditions())
    there = run_episodes(lambda: PhysxTask(policy.task_config), policy.make_agent, asked, episodes, seed)
    here = run_episodes(policy.make_task, policy.make_agent, asked, episodes, seed)
    return score_beside(condition, seed, there, here) | {"world": "physx"}
