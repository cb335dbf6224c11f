"""Tasks and policies by the names that a person types.

Tasks are imported on use: the case study brings MuJoCo along, which looks at MUJOCO_GL when it is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dris.belief.config import BeliefConfig
from dris.core.named import find_module
from dris.core.rollout import MakeAgent
from dris.core.task import NoConfig, Task
from dris.core.typed import from_plain
from dris.learning.checkpoint import CheckpointError, load_checkpoint
from dris.learning.load import load_policy_for
from dris.learning.policy import Policy

TASKS = {"catching": "dris.catching.task:CatchingTask"}
"""Tasks that come with the package."""


@dataclass(frozen=True)
class PolicyHandle:
    """Somebody who acts, and the task that they were made for."""

    name: str
    task: type[Task]
    task_config: Any
    make_agent: MakeAgent
    """Function of a task and a number of sets; the agent serves one episode."""
    belief: BeliefConfig = BeliefConfig("none")
    """What stands between what is seen and it."""

    def make_task(self) -> Task:
        """A fresh task."""
        return self.task.build(self.task_config)


def full_name(name: str) -> str:
    """A task's name as it is stored: where it is found again from anywhere."""
    name = TASKS.get(name, name)
    module, colon, task = name.rpartition(":")
    return f"{Path(module).resolve()}:{task}" if colon and module.endswith(".py") else name


def find_task(name: str) -> type[Task]:
    """A task class by `catching`, `package.module:Class` or `path/file.py:Class`.

    Raises:
        ValueError: The name has another form, or there is no such module, class or task.
    """
    module_name, colon, class_name = full_name(name).rpartition(":")
    if not colon or not class_name:
        known = ", ".join(TASKS)
        raise ValueError(f"'{name}' is not a task: write {known}, package.module:Class or path/file.py:Class")
    module = find_module(module_name)
    task = getattr(module, class_name, None)
    if not (isinstance(task, type) and issubclass(task, Task)):
        found = [
            n for n, v in vars(module).items()
            if isinstance(v, type) and issubclass(v, Task) and v is not Task
        ]  # fmt: skip
        raise ValueError(f"{module_name} has no Task '{class_name}'; it has: {', '.join(found) or 'none'}")
    return task


def policy_file(name: str) -> Path:
    """The file of a policy: one that ships, a run folder's, or the file itself.

    Raises:
        ValueError: There is no such policy.
    """
    tasks = [find_task(task) for task in TASKS]
    shipped = {policy: file for task in tasks for policy, file in task.policies().items()}
    file = shipped.get(name, Path(name))
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
        known = ", ".join((*shipped, *(agent for task in tasks for agent in task.baselines())))
        raise ValueError(
            f"'{name}' is neither a known name ({known}) nor a run or policy "
            "file that exists; for a baseline of your own task add --task path/file.py:Class"
        )
    return file


def find_policy(name: str, task: str | None = None) -> PolicyHandle:
    """A policy by its name: one that ships, a baseline, a run folder or a file.

    Args:
        name: Of the policy.
        task: Where its task is now, if not where the file says; whose baselines, too.

    Raises:
        ValueError: There is no such policy, or its task cannot be had.
    """
    return find_policies((name,), task)[0]


def find_policies(names: tuple[str, ...], task: str | None = None) -> list[PolicyHandle]:
    """Policies by their names, to be compared.

    A baseline takes the task and the configuration of the first trained policy beside it that has it, so that
    both act in one world; alone, its task's default.

    Args:
        names: As `find_policy` takes them.
        task: As there.

    Raises:
        ValueError: There is no such policy, or its task cannot be had.
    """
    known = [find_task(one) for one in (TASKS if task is None else (task,))]
    shipped = {policy for found in known for policy in found.policies()}
    trained = {name: _trained(name, task) for name in names if name in shipped or Path(name).exists()}
    worlds = [(handle.task, handle.task_config) for handle in trained.values()]
    worlds += [(found, found.Config()) for found in known]
    handles = []
    for name in names:
        world = next((world for world in worlds if name in world[0].baselines()), None)
        if name in trained:
            handles.append(trained[name])
        elif world is not None:
            handles.append(PolicyHandle(name, *world, world[0].baselines()[name]))
        else:
            handles.append(_trained(name, task))  # says what is wrong
    return handles


def _trained(name: str, task: str | None) -> PolicyHandle:
    file = policy_file(name)
    config = load_checkpoint(file, "policy").config
    try:
        found = find_task(task or _text(config, "task"))
        task_config = _task_config(found, config)
        belief = from_plain(BeliefConfig, config.get("belief", {"update": "none"}), "belief")
    except ValueError as error:
        way_out = f"; leave --task out or name a policy of {task}" if task else ""
        raise CheckpointError(f"{file} asks for a task that cannot be had: {error}{way_out}") from error
    policy = load_policy_for(file, found.build(task_config))
    return PolicyHandle(name, found, task_config, lambda task, sets: policy, belief)


def load_policy(name: str | Path, task: str | None = None) -> Policy:
    """A trained policy, ready to act: one that ships, a run folder's, or a file's.

    Its `task` is the one that it was trained on, whose `config` says what its actions mean; its `belief` is
    what it was trained behind, which `belief_env` puts before it.
    """
    return trained_policy(find_policy(str(name), task))


def trained_policy(handle: PolicyHandle) -> Policy:
    """The network behind a handle.

    Raises:
        ValueError: It is a baseline, which has none.
    """
    policy = handle.make_agent(handle.make_task(), 1)
    if not isinstance(policy, Policy):
        raise ValueError(
            f"'{handle.name}' is a baseline, made by hand: name a trained policy (one that ships, such as "
            "dris-200, a run folder or a file); `dris evaluate` and `dris.find_policy` take baselines, too"
        )
    policy.belief = handle.belief
    return policy


def _text(config: dict[str, Any], key: str) -> str:
    if not isinstance(config.get(key), str):
        raise ValueError(f"its '{key}' is {config.get(key)!r}, not a name")
    return config[key]


def _task_config(task: type[Task], config: dict[str, Any]) -> Any:
    """The task's configuration that a policy carries; files of schema 2 only name a preset."""
    if task.Config is NoConfig:
        return NoConfig()
    if "preset" in config:
        return task.preset(_text(config, "preset"))
    return from_plain(task.Config, config.get("task_config"), "task_config")
