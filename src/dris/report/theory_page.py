"""The page about the theory's measurements, from theory.json and, for the gap, a study's results."""

from __future__ import annotations

import math
from pathlib import Path

from dris.core.schema import read_as
from dris.experiments.study.results import Estimate, Results, estimate, load_results
from dris.experiments.study.theory import FEW_SETS, Theory
from dris.report.figures import theory_panels
from dris.report.html import write_page

GAP = ("dris-1", "dris-10", "dris-50", "dris-200")


def report_theory(folder: Path, out: Path) -> Path:
    """Write `out/index.html` and its figures about `folder/theory.json`; returns the page.

    The gap on held-out physics is that of the study in the folder `paper` beside it, if it is there.
    """
    found, study = read_as(folder / "theory.json", Theory, "theory"), folder.parent / "paper"
    gaps = generalisation_gaps(load_results(study)) if (study / "study.json").exists() else {}
    gradient, cost = found.gradient, found.local_cost
    pairs = zip(gradient.falling, gradient.fitted, strict=True)
    return write_page(
        out, "theory.html", theory_panels(found, gaps),
        found=found, gaps=gaps, few=min(found.config.sets, FEW_SETS),
        miss=max(abs(measured / fitted - 1) for measured, fitted in pairs),
        scatter=cost.signal_spread[-1] / abs(cost.signal[-1]) if cost.signal[-1] else math.inf,
    )  # fmt: skip


def generalisation_gaps(results: Results) -> dict[str, Estimate]:
    """Reward on the training's physics less reward on unseen restitution, by method."""
    gaps = {}
    for method in GAP:
        inside = results.scores("paper", method, "clean", "reward")
        outside = results.scores("paper", method, "restitution", "reward")
        pairs = zip(inside, outside, strict=True) if len(inside) == len(outside) else ()
        if gap := estimate([a - b for a, b in pairs]):
            gaps[method] = gap
    return gaps
