"""The command `dris`: check a task, train on it, evaluate, watch, measure."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dris.cli.experiments import bench, report, study, trials
from dris.core import validation
from dris.core.env import DivergedError
from dris.core.files import to_json, write_atomically
from dris.core.process import draw_without_screen
from dris.core.rollout import EVALUATION_SEED
from dris.evaluation.registry import (
    CATCHING,
    agent_maker,
    in_words,
    load_task,
    policy_file,
    task_maker,
)
from dris.experiments.released import released
from dris.experiments.worlds import World, check_world, score_in
from dris.lab import Drive
from dris.learning.checkpoint import load_checkpoint
from dris.learning.config import TrainConfig

PAPER_RECIPE = TrainConfig(task=CATCHING, preset="released")
_SHOWN = ("chamfer", "reward", "set_success")


def check(task: tyro.conf.Positional[str] = CATCHING) -> int:
    """Ask whether a task keeps the promises DRIS rests on.

    Args:
        task: package.module:Class or path/file.py:Class, built without arguments.
    """
    from dris.core.check import check_task

    verdicts = check_task(load_task(task))
    for verdict in verdicts:
        print(f"{'FAILED' if verdict.problem else 'ok':>6}  {verdict.promise}")
        if verdict.problem or verdict.detail:
            print(f"        {verdict.problem or verdict.detail}")
    failed = sum(bool(verdict.problem) for verdict in verdicts)
    print(f"{len(verdicts) - failed} of {len(verdicts)} promises kept")
    return 1 if failed else 0


def train(
    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = PAPER_RECIPE,
    out: Path = Path("runs/train"),
) -> int:
    """Train a policy: encoder, then PPO. Interrupt at will; the same command goes on where it stopped.

    Args:
        config: The run; defaults are the paper's recipe with 200 balls. E2E: --instances 1
            --policy.encoder learned.
        out: Run folder.
    """
    from dris.learning.trainer import Trainer

    make = task_maker(config.task, config.preset)
    started, first = time.perf_counter(), os.environ.get("RANK", "0") == "0"  # of torchrun's processes
    for progress in Trainer(make, config, out).run():
        shown = {n: v for n, v in progress.figures.items() if n in _SHOWN or n.endswith("/success")}
        figures = "  ".join(f"{name} {value:.3f}" for name, value in shown.items())
        filled = round(24 * progress.done / progress.total)
        bar = "#" * filled + "." * (24 - filled)
        line = f"{progress.stage:>7} [{bar}] {progress.done}/{progress.total}  {figures}"
        evaluated = any(name.endswith("/success") for name in progress.figures)
        end = "\n" if evaluated or progress.done == progress.total or not sys.stdout.isatty() else "\r"
        if first and (end == "\r" or evaluated or progress.done % 50 == 0 or progress.done == progress.total):
            print(line, end=end, flush=True)
    if first:
        print(f"{out} is trained ({time.perf_counter() - started:.0f} s): try `dris evaluate {out}`")
    return 0


def evaluate(
    policies: tyro.conf.Positional[tuple[str, ...]],
    conditions: tuple[str, ...] = ("clean", "noise-2", "noise-4"),
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
    world: World = "training",
    drive: Drive = "ideal",
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Success and mean reward of policies on a single object, with Wilson intervals (95 %).

    Args:
        policies: Run folders, policy files, policies that ship (e2e, dris-10, dris-50, dris-200, dris-robot),
            or agents of the catching task (still, random, veltrack).
        conditions: clean, noise-1 to noise-4, execution, restitution, delay-20, delay-40, delay-60 (ms),
            correlated-1 to correlated-4, dropout-20, dropout-40 (%), ramp-1.3, ramp-2.0 (m/s; also with
            -noise-2), worst-case (a grid over the domain).
        episodes: Episodes per policy and condition.
        seed: Seed of the episodes; by default one that training never uses.
        world: twin or physx (needs the extra physx): the same throws there and in training, with perfect
            sight; some 5 and 50 episodes a second, so ask for fewer.
        drive: What stands between reference and torque in the twin: ideal: as in training; jumping: with
            friction and latency; fci: and 1000 Nm/s; identified: and gains fitted to that.
        json_file: Also write the scores to this file.
    """
    validation.check_at_least_one(episodes=episodes)
    validation.check_named(policies=policies, conditions=conditions)
    validation.check_seed(seed)
    validation.check_json(json_file)
    check_world(world, conditions, drive)
    agents = {name: agent_maker(name) for name in policies}
    rows = []
    for name, (make_task, make_agent) in agents.items():
        for condition in conditions:
            row = score_in(world, make_task, make_agent, condition, episodes, seed, drive)
            rows.append({"policy": name, **row})
            print(f"{name:<28} {condition:<16} {in_words(row)}", flush=True)
    if json_file is not None:
        write_atomically(json_file, to_json(rows))
    return 0


def play(
    policy: str = "veltrack",
    preset: Literal["", "released", "paper", "exact", "robot"] = "",
    instances: int = 50,
    seed: int = 3,
    noise: float = 0.0,
    out: Path = Path("runs/play"),
) -> int:
    """Watch an attempt to catch: writes a slow-motion video and a picture of one set.

    Args:
        policy: Who acts: still, random, veltrack, a policy that ships (dris-200), a run folder or a file.
        preset: Variant of the task; by default the one that the policy was trained on, or released.
        instances: Balls in the set, all visible.
        seed: Which throw.
        noise: Observation noise in multiples of the paper's sigma.
        out: Folder for the files.
    """
    validation.check_seed(seed)
    validation.check_at_least_one(instances=instances)
    validation.check_out(out)
    draw_without_screen()
    from dris.catching.baselines import AGENTS
    from dris.catching.task import CatchingTask
    from dris.core.env import EnvConfig
    from dris.learning.load import load_policy
    from dris.view.play import record, save

    file = None if policy in AGENTS else policy_file(policy)
    preset = preset or (load_checkpoint(file, "policy").config["preset"] if file else "released")
    task = CatchingTask.from_preset(preset)
    trained = load_policy(file, lambda: task) if file else None
    make_agent = (lambda task, sets: trained) if trained else AGENTS[policy]
    attempt = record(task, make_agent, EnvConfig(sets=1, instances=instances, seed=seed, noise=noise))
    name = Path(policy).name.removesuffix(".safetensors")
    title = f"{name}, preset '{preset}', N = {instances}, seed {seed}"
    video, picture = save(attempt, title, out, f"{name}-{preset}-n{instances}-{seed}")
    caught = f"{attempt.success:.0%} of the set caught (on the plate and slower than 0.1 m/s at the end)"
    print(f"{title}: {caught}, mean reward {attempt.reward:.2f} a step")
    print(f"video    {video}\npicture  {picture}")
    return 0


def main() -> None:
    """Entry point of the command."""
    verbs: dict[str, Callable[..., int]] = {
        "check": check,
        "train": train,
        "evaluate": evaluate,
        "play": play,
        "bench": bench,
        "study": study,
        "trials": trials,
        "released": released,
        "report": report,
    }
    try:
        code = tyro.extras.subcommand_cli_from_dict(
            verbs, description="Domain-Randomized Instance Sets: N worlds at once under one shared action."
        )
    except KeyboardInterrupt:
        print("dris: interrupted; where a command says that it goes on, repeat it", file=sys.stderr)
        code = 130
    except (ValueError, KeyError, ImportError, OSError, DivergedError) as error:
        words = error.args[0] if isinstance(error, KeyError) else error  # str() would quote a KeyError
        print(f"dris: {words}", file=sys.stderr)
        code = 2
    sys.exit(code)
