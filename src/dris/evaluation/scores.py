"""Scores of a policy under conditions, as results have them."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from itertools import product
from typing import Any

from dris.belief.config import BeliefConfig
from dris.belief.env import belief_env
from dris.core.conditions import WORST_CASE, Condition, find_condition
from dris.core.constants import EVALUATION_SEED
from dris.core.rollout import Outcomes, Score, run_episodes, wilson
from dris.core.task import Task
from dris.evaluation.registry import PolicyHandle, find_policy, find_task


def check_conditions(task: type[Task], names: tuple[str, ...]) -> None:
    """Refuse names of conditions that a task does not have, before anything runs."""
    for name in names:
        if name != WORST_CASE:
            condition = find_condition(name, task.conditions())
            relied_on = {f.name for f in fields(task.Config) if f.metadata.get("policy")}
            if broken := sorted(relied_on & {key for key, _ in condition.task}):
                raise ValueError(
                    f"condition '{name}' changes {broken[0]}, which policies rely on: leave it out"
                )
            if condition.task or condition.domain:
                changed = task.build().with_config(**dict(condition.task)) if condition.task else task.build()
                changed.domain.shifted(**{n: (low, high) for n, low, high in condition.domain})


def one_condition(task: type[Task], name: str) -> Condition:
    """A condition of a task by its name, for one episode.

    Raises:
        ValueError: There is none of this name, policies rely on what it changes, or it is a whole grid.
    """
    if name == WORST_CASE:
        raise ValueError(f"'{WORST_CASE}' is a grid of conditions: name one, such as noise-2")
    check_conditions(task, (name,))
    return find_condition(name, task.conditions())


def evaluate(
    policy: str | PolicyHandle,
    condition: str | Condition = "clean",
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
    belief: BeliefConfig | None = None,
) -> Score:
    """Success and mean reward of a policy on single instances.

    Args:
        policy: A name (one that ships, a run folder, a file) or what `find_policy` gives.
        condition: What makes it harder, by name or by its values.
        episodes: How many.
        seed: Of the episodes; by default one that training never uses.
        belief: Stands between what is seen and the policy; None: what the policy was trained with, if any.
    """
    handle = find_policy(policy) if isinstance(policy, str) else policy
    if isinstance(condition, str):
        condition = find_condition(condition, handle.task.conditions())
    make_env = partial(belief_env, belief=handle.belief if belief is None else belief)
    return run_episodes(handle.make_task, handle.make_agent, condition, episodes, seed, make_env).score()


def worst_case(
    policy: PolicyHandle, episodes: int = 2000, seed: int = EVALUATION_SEED
) -> tuple[Score, dict[str, float]]:
    """The lowest success on a grid over the domain, and where it is.

    The grid holds the lowest, middle and highest value of every parameter in all combinations; the
    episodes are the same at each of its points.
    """
    domain = policy.make_task().domain
    values = [(r.low, 0.5 * (r.low + r.high), r.high) for r in domain.values()]
    found: list[tuple[Score, dict[str, float]]] = []
    for point in product(*values):
        exactly = tuple((name, value, value) for name, value in zip(domain, point, strict=True))
        score = evaluate(policy, Condition(domain=exactly), episodes, seed)
        found.append((score, dict(zip(domain, point, strict=True))))
    return min(found, key=lambda entry: entry[0].success)


def score(policy: PolicyHandle, condition: str, episodes: int, seed: int) -> dict[str, Any]:
    """Outcome of a policy under a condition by its name: episodes, success with interval, reward.

    The worst case adds where it is.
    """
    if condition == WORST_CASE:
        result, point = worst_case(policy, episodes, seed)
        return score_row(condition, seed, result) | {"where": point}
    return score_row(condition, seed, evaluate(policy, condition, episodes, seed))


def score_row(condition: str, seed: int, result: Score) -> dict[str, Any]:
    """A score as results have it: with Wilson's interval (95 %)."""
    low, high = result.interval
    row = {"condition": condition, "seed": seed, "episodes": result.episodes, "success": result.success}
    return row | {"low": low, "high": high, **result.other_successes, "reward": result.reward, **result.notes}


def score_beside(condition: str, seed: int, found: Outcomes, training: Outcomes) -> dict[str, Any]:
    """The score of another world, and what the training world makes of the same episodes."""
    caught, expected = found.success["success"], training.success["success"]
    return score_row(condition, seed, found.score()) | {
        "training_success": float(expected.float().mean()),
        "same_outcome": float((caught == expected).float().mean()),
    }


def in_words(row: dict[str, Any]) -> str:
    """A score in words."""
    others = (
        "reward",
        "within_speed_limits",
        "training_success",
        "same_outcome",
        "on_plate_within_speed_limits",
        "belief_restarts",
        "belief_surprise",
    )
    parts = [f"success {row['success']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"]
    for name in (name for name in row if name.startswith("success_")):
        low, high = wilson(round(row[name] * row["episodes"]), row["episodes"])
        parts.append(f"{name} {row[name]:.3f} [{low:.3f}, {high:.3f}]")
    parts += [f"{name.replace('_', ' ')} {row[name]:.3f}" for name in others if name in row]
    where = ", ".join(f"{key} {value:g}" for key, value in row.get("where", {}).items())
    return "  ".join((*parts, f"at {where}") if where else parts)


def glossary(task: str) -> dict[str, str]:
    """What success and the names of policies mean on a task by its name; nothing if it cannot be had here."""
    try:
        found = find_task(task)
    except ValueError:
        return {}

    def first_line(thing: object) -> str:
        return (thing.__doc__ or "").split("\n")[0].removesuffix(".").removesuffix(" [B, N]")

    meant = {name: first_line(getattr(found, name)) for name in ("success", "other_successes")}
    meant |= {name: first_line(agent) for name, agent in found.baselines().items()}
    meant |= dict.fromkeys(found.policies(), "ships with the package: docs/reports/policies.md")
    return {name: words for name, words in meant.items() if words}
