"""The page about the study of beliefs, from its result files and filters.json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from dris.core.schema import Count, Figure, Rate, read_as
from dris.experiments.study.filters import INSIDE, Filters
from dris.experiments.study.plan import BELIEF_METHODS, split
from dris.experiments.study.published import load_published
from dris.experiments.study.results import Estimate, Results, estimate, load_results, title_of
from dris.report import belief_figures as figures
from dris.report.html import write_page

FILTERS = ("none", "kalman", "nominal", "particles", "ensemble")
"""In the order of the page: the best last."""
SETS_AND_FILTERS = ("e2e", "dris-10", "dris-200", "e2e-noise", "loop", "dris-loop")
"""Single balls, sets, noise in training, and a belief in training after the first two."""
MEANING = {
    "none": "what the sensor says, as the paper's policies see it",
    "kalman": "a Kalman filter that knows gravity and neither plate nor bounce",
    "nominal": "the ensemble, all of whose balls have the middle of the physical ranges",
    "particles": "50 balls, of which those survive that predicted what is seen",
    "ensemble": "50 balls, each with its own physics, pulled by what is seen (ensemble Kalman)",
}


def report_belief(folder: Path, out: Path) -> Path:
    """Write `out/index.html` and its figures about the study in `folder`; returns the page."""
    results, file = load_results(folder), folder / "filters.json"
    filters = read_as(file, Filters, "filters") if file.exists() else None
    files = figures.leading(results, load_published())
    if filters is not None:
        files |= figures.quality(filters)
    return write_page(
        out, "belief.html", files,
        results=results, study=BeliefTables(results), meaning=MEANING, filters=filters, inside=INSIDE,
        title_of=title_of, ablation=read_ablation(folder / "ablation.json"),
    )  # fmt: skip


class _Told(Struct, frozen=True, rename={"slower": "success_0.2"}):
    policy: str
    known: list[str]
    noise: Figure
    success: Rate
    slower: Rate | None = None


class _Ablation(Struct, frozen=True):
    """ablation.json."""

    episodes: Count
    seed: Count
    rows: list[_Told]

    @property
    def levels(self) -> list[float]:
        """Noise."""
        return sorted({row.noise for row in self.rows})

    @property
    def lines(self) -> list[tuple[str, list[str], list[_Told]]]:
        """Policy, what it was told, a row a noise."""
        found: dict[tuple[str, tuple[str, ...]], list[_Told]] = {}
        for row in sorted(self.rows, key=lambda row: row.noise):
            found.setdefault((row.policy, tuple(row.known)), []).append(row)
        return [(policy, list(known), rows) for (policy, known), rows in found.items()]


def read_ablation(file: Path) -> _Ablation | None:
    """What `dris study ablation` has written, if it has."""
    return read_as(file, _Ablation, "ablation") if file.exists() else None


@dataclass(frozen=True)
class Purpose:
    """Sets and filter side by side."""

    columns: list[tuple[str, str]]
    """Measure in words, "" where there is one alone; condition."""
    rows: list[tuple[str, list[Estimate | None]]]
    """Method; an estimate without a belief and one behind the ensemble for each column."""


class BeliefTables:
    """What the page's tables show."""

    def __init__(self, results: Results):
        self.results = results

    def conditions(self, preset: str, belief: str = "ensemble") -> list[str]:
        """Scored with a belief under a preset."""
        pairs = [split(name) for name in self.results.conditions(preset)]
        return [condition for found, condition in pairs if found == belief]

    def filters(self, preset: str, condition: str) -> list[str]:
        """Filters that a condition was scored with."""
        return [b for b in FILTERS if f"{b}/{condition}" in self.results.conditions(preset)]

    def methods(self, preset: str) -> tuple[list[str], list[str]]:
        """Those that were trained without a belief, and with one."""
        every = self.results.methods(preset)
        looped = [method for method in every if method in BELIEF_METHODS]
        return [method for method in every if method not in looped], looped

    def row(
        self, preset: str, method: str, belief: str, conditions: list[str], measure: str
    ) -> list[Estimate | None]:
        """Estimates over seeds, by condition."""
        names = [f"{belief}/{condition}" for condition in conditions]
        return [estimate(self.results.scores(preset, method, name, measure)) for name in names]

    def purpose(self, preset: str = "released") -> Purpose:
        """What sets bring without a belief and with one, under noise and from ramps."""
        asked = [(measure, "noise-4") for measure in ("success", "success_0.2")] + [("", "ramp-2.0")]
        rows = []
        for method in SETS_AND_FILTERS:
            found = [
                one
                for measure, condition in asked
                for belief in ("none", "ensemble")
                for one in self.row(preset, method, belief, [condition], measure or "success")
            ]
            if any(found):
                rows.append((method, found))
        return Purpose([(title_of(m) if m else "", condition) for m, condition in asked], rows)

    def measures(self, preset: str) -> list[str]:
        """Measures of success that all runs of a preset have."""
        scores = [c.scores for (p, _), cells in self.results.cells.items() if p == preset for c in cells]
        rows = [row for score in scores for name, row in score.items() if "ramp" not in name]
        return [key for key in ("success", "success_0.2") if all(key in row for row in rows)]
