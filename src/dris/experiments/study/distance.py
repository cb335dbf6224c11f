"""How far a study's figures are from the paper's: one number for success, one for reward, by preset.

The paper publishes 70 means: five methods under seven conditions, success and reward. Our policies may be
better than its own, which makes them distant too, so beside the distance stands that of the differences that
its claims are about: DRIS with N instances minus E2E.
"""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import Struct

from dris.core.schema import check_row, read_as
from dris.experiments.study.published import Published, bands_of
from dris.experiments.study.results import FIVE, NOISE, Results, estimate

PUBLISHED = (*NOISE, "execution", "restitution")
"""Conditions of the paper's figures."""
MEASURES = {"success": "success", "success_0.2": "success", "reward": "reward"}
"""Ours, and which of the paper's values it is compared with: success is told at 0.1 m/s and at 0.2 m/s."""


OUTSIDE = "released, the laboratory's policy"
"""Name of the outside check among the presets: the environment without our training."""


class Outside(Struct, frozen=True):
    """outside.json: what `dris released --json` writes."""

    rows: list[dict[str, Any]]

    def __post_init__(self) -> None:
        """Refuse rows that lack what is compared."""
        for number, row in enumerate(self.rows):
            check_row(row, f"rows[{number}]", ("world", "condition", *MEASURES))


def outside_file(folder: Path) -> Path:
    """Where the outside check's figures lie, from a study's folder."""
    return folder.parent / "released" / "outside.json"


def published(paper: Published, key: str, method: str, condition: str) -> float | None:
    """The paper's mean: the middle of the band that it draws."""
    band = bands_of(paper, key).get(method, {}).get(condition)
    return None if band is None else 0.5 * (band[0] + band[1])


def distance(results: Results, paper: Published, preset: str) -> dict[str, Any]:
    """Root mean squares of our means minus the paper's, over what is there of both.

    Returns:
        By measure: `<measure>_rms` over methods and conditions and `<measure>_difference_rms` over the
        differences from E2E (None where nothing can be compared), and `<measure>_cells`, how many of the 35
        means were there.
    """
    found: dict[str, Any] = {}
    for measure, key in MEASURES.items():
        off = {}
        for method, condition in product(FIVE, PUBLISHED):
            ours = estimate(results.scores(preset, method, condition, measure))
            theirs = published(paper, key, method, condition)
            if ours is not None and theirs is not None:
                off[method, condition] = ours.value - theirs
        # (ours - theirs) of a method minus that of E2E = our difference minus theirs
        differences = [
            error - off["e2e", condition]
            for (method, condition), error in off.items()
            if method != "e2e" and ("e2e", condition) in off
        ]
        found[f"{measure}_rms"] = _rms(list(off.values()))
        found[f"{measure}_difference_rms"] = _rms(differences)
        found[f"{measure}_cells"] = len(off)
    return found


def outside_distance(rows: list[dict[str, Any]], paper: Published) -> dict[str, Any]:
    """The same for the laboratory's own policy in the training world, against the paper's row of DRIS-200.

    Args:
        rows: Of `dris released --json`.
        paper: The paper's own values.
    """
    found: dict[str, Any] = {}
    for measure, key in MEASURES.items():
        off = [
            row[measure] - theirs
            for row in rows
            if row["world"] == "training"
            and (theirs := published(paper, key, "dris-200", row["condition"])) is not None
        ]
        found |= {f"{measure}_rms": _rms(off), f"{measure}_difference_rms": None}
        found[f"{measure}_cells"] = len(off)
    return found


def _rms(values: list[float]) -> float | None:
    return math.sqrt(sum(value**2 for value in values) / len(values)) if values else None


def distances(results: Results, paper: Published, outside: Path | None = None) -> dict[str, dict[str, Any]]:
    """The distance of every preset that has runs, and of the outside check if its file is there.

    Args:
        results: Of the study.
        paper: The paper's own values.
        outside: File of `dris released --json`.
    """
    presets = [p for p in results.presets() if any(preset == p for preset, _ in results.cells)]
    found = {preset: distance(results, paper, preset) for preset in presets}
    if outside is not None and outside.exists():
        found[OUTSIDE] = outside_distance(read_as(outside, Outside, "outside").rows, paper)
    return found


def in_words(name: str, found: dict[str, Any]) -> str:
    """A preset's distance in a line."""
    parts = [
        f"{measure.replace('success_', 'success at ')} {found[f'{measure}_rms']:.3f} "
        f"(DRIS minus E2E {_shown(found[f'{measure}_difference_rms'])}; {found[f'{measure}_cells']} of 35)"
        for measure in MEASURES
        if found[f"{measure}_rms"] is not None
    ]
    return f"{name}: {', '.join(parts)}"


def _shown(value: float | None) -> str:
    return "missing" if value is None else f"{value:.3f}"
