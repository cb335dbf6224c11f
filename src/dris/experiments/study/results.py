"""The results of a study as they lie on disk, and the figures one asks of them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from msgspec import Meta, Struct

from dris.core.schema import Count, Name, Positive, check_row, read_as
from dris.evaluation.statistics import bootstrap_interval, iqm, probability_of_improvement
from dris.experiments.study.plan import scored_with

NOISE = ("clean", "noise-1", "noise-2", "noise-3", "noise-4")
FIVE = ("e2e", "dris-1", "dris-10", "dris-50", "dris-200")
"""The paper's methods."""

LAST_ITERATIONS = 100
"""The paper averages its curves' figures over this many iterations at the end."""


class PlannedRun(Struct, frozen=True):
    """A run that a study plans: what its file is called, and what the file says of itself."""

    method: Annotated[Name, Meta(min_length=1)]
    preset: Name
    seed: Count

    @property
    def name(self) -> str:
        """Of its file."""
        return "/".join(part for part in (self.preset, self.method, str(self.seed)) if part)


class Plan(Struct, frozen=True):
    """study.json."""

    name: str
    jobs: Annotated[list[PlannedRun], Meta(min_length=1)]
    conditions: list[str]
    episodes: Count
    seed: Count
    more_conditions: list[tuple[str, list[str]]] = []
    widely: list[str] = []
    wide_conditions: list[tuple[str, list[str]]] = []


class Size(Struct, frozen=True):
    """Of a run."""

    sets: Count
    iterations: Count


class Stamp(Struct, frozen=True):
    """What decided a run's result; here, what a page tells of it."""

    config: Size


class Cell(Struct, frozen=True):
    """The result of a run."""

    method: str
    preset: str
    seed: int
    stamp: Stamp
    seconds: Positive | None
    """Of training; None if the run was interrupted before times were kept."""
    peak_memory_mb: Positive
    scores: dict[str, Any]
    """Of the final policy, by condition."""
    curve: list[dict[str, Any]]
    """Scores while it trained, as `condition/figure`."""

    def __post_init__(self) -> None:
        """Refuse scores that are none."""
        for condition, score in self.scores.items():
            check_row(score, f"scores.{condition}", ("success", "reward"))
        for number, row in enumerate(self.curve):
            check_row(row, f"curve[{number}]", ("iteration",))


@dataclass(frozen=True)
class Estimate:
    """Interquartile mean over seeds, with a 95 % bootstrap interval."""

    value: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True)
class Results:
    """Cells by preset and method, one per seed; and the names of those that are not there."""

    plan: Plan
    cells: dict[tuple[str, str], list[Cell]]
    missing: list[str]

    def methods(self, preset: str) -> list[str]:
        """Methods that the study plans under a preset, in its order."""
        return list(dict.fromkeys(job.method for job in self.plan.jobs if job.preset == preset))

    def presets(self) -> list[str]:
        """Presets that the study plans."""
        return list(dict.fromkeys(job.preset for job in self.plan.jobs))

    def conditions(self, preset: str, method: str = "") -> list[str]:
        """Conditions that runs of a preset are scored under, all of them or some; or those of a method."""
        more = [self.plan.more_conditions]
        if not method or method in self.plan.widely:
            more.append(self.plan.wide_conditions)
        return [*self.plan.conditions, *(name for of in more for name in dict(of).get(preset, ()))]

    def measures(self, preset: str) -> list[str]:
        """Measures of success that all runs of a preset have, the strictest (0.1 m/s) first."""
        cells = [cell for (p, _), cells in self.cells.items() if p == preset for cell in cells]
        scores = [cell.scores.get("clean", {"success": None}) for cell in cells]
        known = [key for key in scores[0] if key.split("_")[0] == "success"] if scores else ["success"]
        return [key for key in known if all(key in score for score in scores)]

    def planned(self, preset: str, method: str) -> int:
        """Runs that the study plans of a method."""
        return sum((job.preset, job.method) == (preset, method) for job in self.plan.jobs)

    def scores(self, preset: str, method: str, condition: str, key: str = "success") -> list[float]:
        """The final policies' scores, one a seed."""
        cells = self.cells.get((preset, method), [])
        found = [cell.scores.get(condition, {}) for cell in cells]
        return [score[key] for score in found if key in score]

    def run_means(
        self, preset: str, method: str, conditions: Iterable[str], key: str = "success"
    ) -> list[float]:
        """A score averaged over conditions, one a seed."""
        scores = [self.scores(preset, method, condition, key) for condition in conditions]
        return [sum(run) / len(run) for run in zip(*scores, strict=True)]

    def late(
        self, preset: str, method: str, condition: str, key: str = "success", until: float = 1.0
    ) -> list[float]:
        """Scores averaged over the evaluations of the last 100 iterations, one a seed.

        Args:
            preset: Of the runs.
            method: Of the runs.
            condition: That was evaluated.
            key: Success or reward.
            until: Share of the training after which they are the last.
        """
        found = []
        for cell in self.cells.get((preset, method), []):
            end = until * cell.stamp.config.iterations
            rows = [r for r in cell.curve if end - LAST_ITERATIONS <= r["iteration"] < end]
            values = [row[f"{condition}/{key}"] for row in rows if f"{condition}/{key}" in row]
            if values:
                found.append(sum(values) / len(values))
        return found

    def seconds(self) -> tuple[list[float], int]:
        """Training times of the planned runs whose method was timed, and how many of them were timed.

        A run that is missing or was interrupted counts as the median of its method's others.
        """
        found, timed = [], 0
        for preset in self.presets():
            for method in self.methods(preset):
                known = [cell.seconds for cell in self.cells.get((preset, method), []) if cell.seconds]
                if known:
                    guesses = self.planned(preset, method) - len(known)
                    found += known + [median(known)] * guesses
                    timed += len(known)
        return found, timed

    def improvement(
        self, preset: str, first: str, second: str, conditions: list[str], key: str = "success"
    ) -> tuple[float, float, float] | None:
        """Probability that a run of the first method beats one of the second, with its interval.

        None unless every run of both was scored under all the conditions.
        """
        groups = [[self.scores(preset, m, c, key) for c in conditions] for m in (first, second)]
        lengths = [{len(row) for row in group} for group in groups]
        if any(len(found) != 1 or 0 in found for found in lengths):
            return None
        statistic = probability_of_improvement
        return statistic(*groups), *bootstrap_interval(statistic, *groups)


def title_of(measure: str) -> str:
    """A measure of success as a page calls it."""
    return f"at {measure.removeprefix('success_') if measure != 'success' else '0.1'} m/s"


def estimate(values: list[float]) -> Estimate | None:
    """Average over seeds; None if there are no values."""
    if not values:
        return None
    return Estimate(iqm([values]), *bootstrap_interval(iqm, [values]), seeds=len(values))


def makespan(seconds: list[float], cores: int) -> float:
    """Time until all runs are done, each on one core, the longest first to whichever core is free."""
    busy_until = [0.0] * cores
    for duration in sorted(seconds, reverse=True):
        heapq.heapreplace(busy_until, busy_until[0] + duration)
    return max(busy_until)


def load_results(folder: Path) -> Results:
    """Read a study's folder.

    Raises:
        ValueError: It holds no study, or a file in it is not a study's.
    """
    file = folder / "study.json"
    if not file.exists():
        raise ValueError(f"{folder} holds no study: it has no study.json")
    plan = read_as(file, Plan, "study")
    cells: dict[tuple[str, str], list[Cell]] = {}
    results = Results(plan, cells, missing=[])
    for job in plan.jobs:
        file = folder / f"{job.name}.json"
        if not file.exists():
            results.missing.append(job.name)
            continue
        cell = read_as(file, Cell, "study-run")
        if (cell.method, cell.preset, cell.seed) != (job.method, job.preset, job.seed):
            raise ValueError(f"{file} is not the result of {job.name}: remove it and run the study again")
        wanted = scored_with(job.method, tuple(results.conditions(job.preset, job.method)))
        unscored = [name for name in wanted if name not in cell.scores]
        if unscored:
            raise ValueError(f"{file}: scores: there is no {', '.join(unscored)}")
        cells.setdefault((job.preset, job.method), []).append(cell)
    return results
