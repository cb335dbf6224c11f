"""The outside check: the policy that the paper's laboratory published, in the worlds of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from dris.core import validation
from dris.core.files import to_json, write_atomically
from dris.core.schema import header
from dris.evaluation.registry import in_words
from dris.experiments.worlds import World, check_world, score_in

EPISODES: dict[World, int] = {"training": 2000, "twin": 100, "physx": 200}
"""By what a world costs."""
SEED = 30_011
"""That of the study's final figures."""
CONDITIONS = ("clean", "noise-1", "noise-2", "noise-3", "noise-4", "execution", "restitution")
"""Those of the paper's figures."""
FIGURES = {"success_0.2": "at 0.2 m/s", "success": "at 0.1 m/s", "reward": "reward"}


def released(
    encoder_file: tyro.conf.Positional[Path],
    policy_file: tyro.conf.Positional[Path],
    worlds: tuple[World, ...] = ("training", "twin", "physx"),
    conditions: tuple[str, ...] = CONDITIONS,
    episodes: int | None = None,
    seed: int = SEED,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Evaluate the policy that the paper's laboratory published, beside the paper's figures for DRIS-200.

    Args:
        encoder_file: Its set encoder, dris_encoder.pt of the laboratory's repository ManiDreams.
        policy_file: Its policy, policy_ckpt.pt.
        worlds: training, twin, physx (which needs the extra physx).
        conditions: clean, noise-1 to noise-4, execution, restitution.
        episodes: Per world and condition; by default 2000 in training, 100 in the twin, 200 in PhysX.
        seed: Seed of the episodes.
        json_file: Also write the scores to this file.
    """
    validation.check_named(worlds=worlds, conditions=conditions)
    validation.check_at_least_one(episodes=1 if episodes is None else episodes)
    validation.check_seed(seed)
    validation.check_json(json_file)
    for world in worlds:
        check_world(world, conditions)
    from dris.catching.released import load_released
    from dris.experiments.study.published import load_published

    weights, paper = load_released(encoder_file, policy_file), load_published()
    published = {
        figure: {name: sum(band) / 2 for name, band in paper[figure]["dris-200"].items()}
        for figure in ("success", "reward")
    }
    rows = []
    for world in worlds:
        for condition in conditions:
            row = _score(weights, world, condition, episodes or EPISODES[world], seed)
            rows.append(row)
            print(f"{world:<10} {condition:<12} {in_words(row)}", flush=True)
    print(table(rows, published))
    if json_file is not None:
        found = header("outside") | {"paper_dris_200": published, "rows": rows}
        write_atomically(json_file, to_json(found))
    return 0


def _score(weights: Any, world: World, condition: str, episodes: int, seed: int) -> dict[str, Any]:
    """A row of the table; `cut_actions` is the share that asked for more than the task allows."""
    from dris.catching.released import TASK, ReleasedAgent
    from dris.catching.task import CatchingTask

    made: list[ReleasedAgent] = []

    def make_agent(task: CatchingTask, sets: int) -> ReleasedAgent:
        made.append(ReleasedAgent(weights, task))
        return made[-1]

    row = score_in(world, lambda: CatchingTask().changed(**TASK), make_agent, condition, episodes, seed)
    cut = sum(agent.cut for agent in made) / sum(agent.actions for agent in made)
    return {**row, "world": world, "cut_actions": cut}


def table(rows: list[dict[str, Any]], published: dict[str, dict[str, float]]) -> str:
    """Figures by world, a column a condition, under the paper's row."""
    names = list(dict.fromkeys(row["condition"] for row in rows))
    lines = [f"{'':<26}" + "".join(f"{name:>12}" for name in names)]

    def line(title: str, figures: list[float | None]) -> str:
        return f"{title:<26}" + "".join(f"{'' if f is None else format(f, '.3f'):>12}" for f in figures)

    lines += [
        line(f"paper, {figure}", [values.get(n) for n in names]) for figure, values in published.items()
    ]
    for world in dict.fromkeys(row["world"] for row in rows):
        mine = {row["condition"]: row for row in rows if row["world"] == world}
        lines += [line(f"{world}, {t}", [mine[n].get(f) for n in names]) for f, t in FIGURES.items()]
    return "\n".join(lines)
