"""The page about trials, from their files alone; the paper's real robot in columns of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from dris.core.rollout import wilson
from dris.core.schema import Count, Figure, kind_of, read_as, typed
from dris.experiments.study.published import Published, load_published
from dris.experiments.trials.config import Kind
from dris.experiments.trials.outcome import LIMITED, Outcome, within_limits
from dris.report.figures import trials_figure
from dris.report.html import write_page

TITLES: dict[Kind, str] = {
    "ramps": "Balls from a ramp",
    "throws": "Balls thrown by hand",
    "balancing": "Balancing from 30 degrees",
    "irregular": "Irregular objects",
}

SPEED = "caught, and no joint beyond the speed at which a real FR3 stops"
TORQUE = "caught, and besides no torque or torque rate beyond FCI's limits asked for"


class _Config(Struct, frozen=True):
    kind: Kind
    policies: Annotated[list[str], Meta(min_length=1)]
    trials: Count
    seed: Count
    drive: str
    sight: str
    contact: str = "real"
    coupling: str = "two-way"


class _Outcome(Struct, frozen=True):
    caught: bool
    speed_share: Figure
    torque_share: Figure = 0.0
    torque_rate_share: Figure = 0.0


class _Table(Struct, frozen=True):
    config: _Config
    trials: dict[str, Any]  # each one is checked by its own name below


def report_trials(folder: Path, out: Path, paper: Published | None = None) -> Path:
    """Write `out/index.html` about the trials in `folder/*.json`; returns the page.

    Args:
        folder: Of the tables; nothing else is read.
        out: Folder to write to.
        paper: The paper's own values; by default those that it published.

    Raises:
        ValueError: There are none, or a file is damaged.
    """
    files = [file for file in sorted(folder.glob("*.json")) if kind_of(file) == "trials"]
    if not files:
        raise ValueError(f"{folder} holds no trials: run `dris trials` first")
    tables = [_told(file, load_published() if paper is None else paper) for file in files]
    tables.sort(key=lambda table: list(TITLES).index(table["config"].kind))
    films = sorted(folder.glob("*.mp4"))
    replays = [file for file in sorted(folder.glob("*.html")) if file.name != "index.html"]
    elsewhere = out.resolve() != folder.resolve()
    shown = {file.name: file.read_bytes() for file in (*films, *replays) if elsewhere}
    shown["trials.png"] = trials_figure({TITLES[table["config"].kind]: table for table in tables})
    return write_page(
        out, "trials.html", shown, tables=tables, titles=TITLES, films=films, replays=replays, wilson=wilson,
        best=_in_short(tables),
    )  # fmt: skip


def _in_short(tables: list[dict[str, Any]]) -> str:
    """Who catches most of the first kind."""
    table = tables[0]
    counts = {
        policy: (sum(caught), len(caught))
        for policy, caught in zip(table["config"].policies, table["all"], strict=True)
        if caught
    }
    if not counts:
        return "No trial is in yet."
    name, (caught, trials) = max(counts.items(), key=lambda item: item[1][0] / item[1][1])
    return f"{TITLES[table['config'].kind]}: {name} catches most, {caught} of {trials}."


def _told(file: Path, paper: Published) -> dict[str, Any]:
    """What the page says of a table of trials: by object and launch, and all, whether a policy caught."""
    table = read_as(file, _Table, "trials")
    cells: dict[tuple[str, ...], dict[str, list[bool]]] = {}
    outcomes: dict[str, list[Outcome]] = {policy: [] for policy in table.config.policies}
    for name, outcome in table.trials.items():
        if name.count("/") < 3:
            raise ValueError(f"{file}: trials.{name!r} is no trial: its name is policy/object/launch/number")
        typed(outcome, _Outcome, f"{file}: trials.{name}")
        policy, *cell, _ = name.rsplit("/", 3)
        if policy not in outcomes:
            raise ValueError(f"{file}: trials.{name!r}: config.policies does not name {policy!r}")
        outcomes[policy].append(outcome)
        cells.setdefault(tuple(cell), {}).setdefault(policy, []).append(outcome["caught"])

    def caught(allowed: Callable[[Outcome], bool] = lambda outcome: True) -> list[list[bool]]:
        return [[outcome["caught"] and allowed(outcome) for outcome in found] for found in outcomes.values()]

    limited = {SPEED: caught(lambda outcome: outcome["speed_share"] <= 1)}
    if any(outcome.keys() >= set(LIMITED) for found in outcomes.values() for outcome in found):
        limited[TORQUE] = caught(within_limits)  # older trials did not record torques
    return {
        "name": file.stem, "config": table.config, "all": caught(), "limited": limited,
        "cells": {cell: [row.get(policy, []) for policy in outcomes] for cell, row in cells.items()},
        "complete": all(len(found) == len(cells) * table.config.trials for found in outcomes.values()),
        "real": paper.get("real", {}) if table.config.kind == "ramps" else {},
    }  # fmt: skip
