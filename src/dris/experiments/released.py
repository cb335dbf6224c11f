"""The outside check: the policy that the paper's laboratory published, in the worlds of this package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dris.catching.released import TASK, Released, ReleasedAgent
from dris.catching.task import CatchingTask
from dris.evaluation.registry import PolicyHandle
from dris.experiments import World
from dris.experiments.study.published import bands_of, load_published
from dris.experiments.worlds import score_in

EPISODES: dict[World, int] = {"training": 2000, "twin": 100, "physx": 200}
"""By what a world costs."""
FIGURES = {
    "success_released": "its own test",
    "success_0.2": "at 0.2 m/s",
    "success": "at 0.1 m/s",
    "reward": "reward",
}
"""Of its own test, see `dris.catching.success`."""


def published_row() -> dict[str, dict[str, float]]:
    """The paper's own figures for DRIS-200: the middles of its bands, by condition."""
    paper = load_published()
    return {
        figure: {name: sum(band) / 2 for name, band in bands_of(paper, figure)["dris-200"].items()}
        for figure in ("success", "reward")
    }


def scores(
    weights: Released, worlds: tuple[World, ...], conditions: tuple[str, ...], episodes: int | None, seed: int
) -> Iterator[dict[str, Any]]:
    """Rows by world and condition; `cut_actions` is the share that asked for more than the task allows."""
    for world in worlds:
        for condition in conditions:
            made: list[ReleasedAgent] = []

            def make_agent(task: CatchingTask, sets: int, made: list = made) -> ReleasedAgent:
                made.append(ReleasedAgent(weights, task))
                return made[-1]

            policy = PolicyHandle("released", CatchingTask, TASK, make_agent)
            row = score_in(world, policy, condition, episodes or EPISODES[world], seed)
            cut = sum(agent.cut for agent in made) / sum(agent.actions for agent in made)
            yield {**row, "world": world, "cut_actions": cut}


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
