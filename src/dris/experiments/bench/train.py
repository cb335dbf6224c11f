"""Where an iteration's time goes, and how long the paper's recipe takes: `dris bench train`."""

from __future__ import annotations

import cProfile
import pstats
import tempfile
import time
from pathlib import Path
from typing import Any

from dris.catching.task import CatchingTask
from dris.learning.checkpoint import load_checkpoint, load_into
from dris.learning.config import EncoderConfig, TrainConfig
from dris.learning.trainer import Trainer

RECIPE_ITERATIONS = 1000
"""Iterations of the paper's recipe, 128 sets of 20 steps each."""


PARTS = {
    ("world.py", "advance"): "world",
    ("world.py", "solve_ik"): "inverse kinematics",
    ("policy.py", "inputs"): "encoder",
    ("ppo.py", "act"): "policy",
    ("ppo.py", "update"): "update",
}
"""Functions whose time is told apart, by file and name."""


def bench_train(instances: tuple[int, ...] = (1, 10, 50, 200), iterations: int = 6) -> dict[str, Any]:
    """Time iterations of the paper's recipe at several set sizes; the first one, which compiles, is left out.

    Parts are profiled inside the real trainer, with a trained policy in it: balls that lie on the plate cost
    more than balls that fell past it, so a beginner's iterations would flatter the figure.
    """
    rows = {str(n): time_iteration(iterations, instances=n) for n in instances}
    return {
        "settings": {"sets": 128, "iterations": iterations, "threads": TrainConfig.threads},
        "seconds": rows,
        "recipe_minutes": {n: row["iteration"] * RECIPE_ITERATIONS / 60 for n, row in rows.items()},
    }


def time_iteration(iterations: int, **recipe: Any) -> dict[str, float]:
    """Mean seconds of an iteration and of its parts, with values of the recipe changed."""
    config = TrainConfig(
        task="dris.catching.task:CatchingTask",
        iterations=iterations + 1,
        evaluate_every=10**6,
        evaluate_episodes=1,
        save_every=10**6,
        encoder=EncoderConfig(sets=4, episodes=1, passes=1),  # its weights do not matter for time
        **recipe,
    )
    profile = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(CatchingTask, config, Path(folder))
        ends = []
        for progress in trainer.run():
            if progress.stage == "policy":
                ends.append(time.perf_counter())
                if progress.done == 1:
                    _make_expert(trainer)
                    profile.enable()
                if progress.done == iterations:
                    break  # the last one also evaluates
    profile.disable()
    seconds = (ends[-1] - ends[0]) / (len(ends) - 1)
    parts = _parts(profile, len(ends) - 1)
    return {"iteration": seconds, **parts, "rest": seconds - sum(parts.values())}


def _make_expert(trainer: Trainer) -> None:
    """Give a trainer the weights of a policy that ships."""
    expert = load_checkpoint(CatchingTask.policies()["dris-200"], "policy")
    load_into(trainer.policy.actor, expert.group("actor"), "dris-200")
    load_into(trainer.policy.encoder, expert.group("encoder"), "dris-200")


def _parts(profile: cProfile.Profile, iterations: int) -> dict[str, float]:
    """Seconds an iteration spends in some functions, by a profile of the main thread."""
    spent = dict.fromkeys(PARTS.values(), 0.0)
    for (file, _, function), (*_, cumulative, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        name = PARTS.get((Path(file).name, function))
        if name is not None:
            spent[name] += cumulative / iterations
    return spent


def table(result: dict[str, Any]) -> str:
    """The result as text for a terminal."""
    names = [name for name in next(iter(result["seconds"].values())) if name != "iteration"]
    lines = [f"{'N':>5} {'iteration':>10}  " + "  ".join(f"{name:>18}" for name in names) + "   recipe"]
    for n, row in result["seconds"].items():
        parts = "  ".join(f"{1000 * row[name]:>15.0f} ms" for name in names)
        lines.append(f"{n:>5} {row['iteration']:>8.2f} s  {parts}  {result['recipe_minutes'][n]:>4.1f} min")
    return "\n".join(lines)
