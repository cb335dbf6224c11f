"""Tasks, policies, agents and conditions by the names that a person types.

The case study is imported on use: it brings MuJoCo along, which looks at MUJOCO_GL when it is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dris.core.conditions import CONDITIONS, Condition
from dris.core.rollout import Agent, Score
from dris.core.task import Task
from dris.evaluation.evaluate import evaluate, worst_case
from dris.evaluation.statistics import wilson
from dris.learning.checkpoint import load_checkpoint
from dris.learning.load import load_policy

CATCHING = "dris.catching.task:CatchingTask"


def load_task(name: str) -> type[Task]:
    """Find a task class by `package.module:Class` or `path/file.py:Class`.

    Raises:
        ValueError: The name has another form, or there is no such module, class or task.
    """
    module_name, colon, class_name = name.partition(":")
    if not colon or not class_name:
        raise ValueError(f"'{name}' is not a task: write package.module:Class or path/file.py:Class")
    if module_name.endswith(".py"):
        path = Path(module_name)
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None  # holds for any .py file
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        sys.path.insert(0, str(path.parent.resolve()))  # it may import its neighbours, as a script may
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # anything may stand in a user's file
            raise ValueError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    else:
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            hint = f"; for a file write {module_name}.py:{class_name}"
            raise ValueError(f"cannot import '{module_name}': {error}{hint}") from error
    task = getattr(module, class_name, None)
    if not (isinstance(task, type) and issubclass(task, Task)):
        found = [
            n for n, v in vars(module).items()
            if isinstance(v, type) and issubclass(v, Task) and v is not Task
        ]  # fmt: skip
        raise ValueError(f"{module_name} has no Task '{class_name}'; it has: {', '.join(found) or 'none'}")
    return task


def task_maker(name: str, preset: str) -> Callable[[], Task]:
    """A function that builds a task by name and preset; wrong names fail here."""
    cls = load_task(name)
    try:
        cls.from_preset(preset)
    except TypeError as error:
        raise ValueError(f"{name} cannot be built without arguments: {error}") from error
    return partial(cls.from_preset, preset)


def policy_file(name: str) -> Path:
    """The file of a policy: one that ships, a run folder's, or the file itself.

    Raises:
        ValueError: There is no such policy.
    """
    from dris.catching.baselines import AGENTS, SHIPPED

    file = SHIPPED.get(name, Path(name))
    if file.is_dir():
        if not (file / "config.json").exists():
            raise ValueError(f"{file} is a folder, but not of a run: it has no config.json")
        if not (file / "policy.safetensors").exists():
            raise ValueError(
                f"the run in {file} is not finished: repeat its `dris train` command to go on, or name its "
                "best.safetensors once it has been evaluated"
            )
        return file / "policy.safetensors"
    if not file.exists():
        known = ", ".join((*SHIPPED, *AGENTS))
        raise ValueError(f"'{name}' is neither a known name ({known}) nor a run or policy file that exists")
    return file


def agent_maker(name: str) -> tuple[Callable[[], Task], Callable[..., Agent]]:
    """How to build the task that an agent was made for, and the agent itself, by its name.

    Raises:
        ValueError: There is no such agent, run or file.
    """
    from dris.catching.baselines import AGENTS

    if name in AGENTS:
        return task_maker(CATCHING, "released"), AGENTS[name]
    file = policy_file(name)
    config = load_checkpoint(file, "policy").config
    try:
        make_task = task_maker(config["task"], config["preset"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file} asks for a task that cannot be had: {error}") from error
    policy = load_policy(file, make_task)
    return make_task, lambda task, sets: policy


def glossary(task: str) -> dict[str, str]:
    """What success and the names of policies mean on a task; empty but for the catching task."""
    if task != CATCHING:
        return {}
    from dris.catching.baselines import AGENTS, SHIPPED
    from dris.catching.task import CatchingTask

    def first_line(thing: object) -> str:
        return (thing.__doc__ or "").split("\n")[0].removesuffix(".").removesuffix(" [B, N]")

    meant = {"success": first_line(CatchingTask.success)}
    meant |= {name: first_line(agent) for name, agent in AGENTS.items()}
    return meant | dict.fromkeys(SHIPPED, "ships with the package, trained as docs/policies.md says")


WORST_CASE = "worst-case"
"""Name of the grid over the domain, which is no single condition."""


def conditions() -> dict[str, Condition]:
    """All conditions that have a name, those of the case study included."""
    from dris.catching.conditions import CONDITIONS as CATCHING_CONDITIONS

    return CONDITIONS | CATCHING_CONDITIONS


def check_conditions(names: tuple[str, ...]) -> None:
    """Refuse names of conditions that are none."""
    known = (*conditions(), WORST_CASE)
    for name in names:
        if name not in known:
            raise ValueError(f"unknown condition '{name}'; known: {', '.join(known)}")


def score(
    make_task: Callable[[], Task], make_agent: Callable[..., Agent], condition: str, episodes: int, seed: int
) -> dict[str, Any]:
    """Outcome of an agent under a condition by its name: episodes, success with interval, reward.

    The worst case adds where it is.
    """
    check_conditions((condition,))
    where: dict[str, Any] = {}
    if condition == WORST_CASE:
        result, point = worst_case(make_task, make_agent, episodes, seed)
        where = {"where": point}
    else:
        result = evaluate(make_task, make_agent, conditions()[condition], episodes, seed)
    return score_row(condition, seed, result) | where


def score_row(condition: str, seed: int, result: Score) -> dict[str, Any]:
    """A score as results have it: with Wilson's interval (95 %)."""
    low, high = wilson(round(result.success * result.episodes), result.episodes)
    row = {"condition": condition, "seed": seed, "episodes": result.episodes, "success": result.success}
    return row | {"low": low, "high": high, **result.other_successes, "reward": result.reward}


def in_words(row: dict[str, Any]) -> str:
    """A score in words."""
    others = ("reward", "training_success", "same_outcome", "on_plate_within_speed_limits")
    parts = [f"success {row['success']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"]
    parts += [f"at {name[8:]} m/s {row[name]:.3f}" for name in row if name.startswith("success_")]
    parts += [f"{name.replace('_', ' ')} {row[name]:.3f}" for name in others if name in row]
    where = ", ".join(f"{key} {value:g}" for key, value in row.get("where", {}).items())
    return "  ".join((*parts, f"at {where}") if where else parts)
