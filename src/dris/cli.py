"""The command `dris`: check a task, watch it, measure the world."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dris.task import Task

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
        spec.loader.exec_module(module)
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


def check(task: tyro.conf.Positional[str] = CATCHING) -> int:
    """Ask whether a task keeps the promises DRIS rests on.

    Args:
        task: package.module:Class or path/file.py:Class, built without arguments.
    """
    from dris.check import check_task

    verdicts = check_task(load_task(task))
    for verdict in verdicts:
        print(f"{'FAILED' if verdict.problem else 'ok':>6}  {verdict.promise}")
        if verdict.problem or verdict.detail:
            print(f"        {verdict.problem or verdict.detail}")
    failed = sum(bool(verdict.problem) for verdict in verdicts)
    print(f"{len(verdicts) - failed} of {len(verdicts)} promises kept")
    return 1 if failed else 0


def play(
    agent: Literal["still", "random", "veltrack"] = "veltrack",
    contact: Literal["paper", "exact"] = "paper",
    instances: int = 50,
    seed: int = 3,
    noise: float = 0.0,
    out: Path = Path("runs/play"),
) -> int:
    """Watch an agent try to catch: writes a slow-motion video and a picture of one set.

    Args:
        agent: Who acts.
        contact: Contact preset.
        instances: Balls in the set, all visible.
        seed: Which throw.
        noise: Observation noise in multiples of the paper's sigma.
        out: Folder for the files.
    """
    # MuJoCo chooses how to render when it is imported; without a screen only EGL or OSMesa work.
    if "DISPLAY" not in os.environ:
        os.environ.setdefault("MUJOCO_GL", "egl")
    from dris.catching.agents import AGENTS
    from dris.catching.play import record, save
    from dris.catching.settings import CatchingConfig
    from dris.catching.task import CatchingTask
    from dris.env import EnvConfig

    task = CatchingTask(CatchingConfig(contact=contact))
    config = EnvConfig(sets=1, instances=instances, seed=seed, noise=noise)
    attempt = record(task, AGENTS[agent], config)
    title = f"{agent}, contact '{contact}', N = {instances}, seed {seed}"
    video, picture = save(attempt, title, out, f"{agent}-{contact}-{seed}")
    caught = f"{attempt.success:.0%} of the set caught (on the plate and slower than 0.1 m/s at the end)"
    print(f"{title}: {caught}, mean reward {attempt.reward:.2f} a step")
    print(f"video    {video}\npicture  {picture}")
    return 0


def bench(
    what: tyro.conf.Positional[Literal["world", "physics"]],
    sets: int | None = None,
    instances: tuple[int, ...] = (1, 10, 50, 200),
    repeats: int = 5,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Measure speed beside peers, or accuracy, in one run on this machine.

    Args:
        what: world: speed of this world, MuJoCo and (if installed) SAPIEN; physics: errors of this world
            against its own substep and against MuJoCo.
        sets: Sets that evolve side by side in this world.
        instances: Set sizes to measure (world).
        repeats: Throws per world and size (world).
        json_file: Also write the result to this file.
    """
    if repeats < 1 or not instances:
        raise ValueError("bench needs at least one repeat and one set size")
    if json_file is not None and not json_file.parent.is_dir():
        raise ValueError(f"there is no folder {json_file.parent} to write {json_file.name} to")
    if what == "world":
        from dris.bench.world import bench_world, table

        result = bench_world(instances, 128 if sets is None else sets, repeats)
    else:
        from dris.bench.physics import bench_physics, table

        result = bench_physics(64 if sets is None else sets)
    print(table(result))
    if json_file is not None:
        json_file.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def main() -> None:
    """Entry point of the command."""
    verbs: dict[str, Callable[..., int]] = {"check": check, "play": play, "bench": bench}
    try:
        code = tyro.extras.subcommand_cli_from_dict(
            verbs, description="Domain-Randomized Instance Sets: N worlds at once under one shared action."
        )
    except (ValueError, KeyError, ImportError, OSError) as error:
        words = error.args[0] if isinstance(error, KeyError) else error  # str() would quote a KeyError
        print(f"dris: {words}", file=sys.stderr)
        code = 2
    sys.exit(code)
