"""What became of a policy's trials through the whole chain, and the file that keeps it.

The file is replaced whole after every trial, so that an interrupted deployment can go on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dris.core.files import read_json, write_json
from dris.core.schema import header


@dataclass(frozen=True)
class Outcome:
    """What became of one trial."""

    name: str
    """Thing, launch, seed."""
    caught: bool
    began: bool
    state: str
    """Of the session at the end,"""
    reason: str
    """and why."""
    reflexes: tuple[str, ...]
    """By which the robot stopped itself."""
    clauses: dict[str, int]
    """Ticks in which each clause of the filter changed something."""
    beyond: dict[str, int]
    speed_share: float
    """Fastest joint over what FCI allows where it is."""
    ticks: int


def read_outcomes(file: Path, settings: dict[str, Any]) -> list[Outcome]:
    """What an interrupted deployment has left behind; nothing if there is no file yet.

    Raises:
        ValueError: It was made with other settings, or is no such file.
    """
    if not file.exists():
        return []
    found = read_json(file)
    others = {name: found.get(name) for name, value in settings.items() if found.get(name) != value}
    if others or "rows" not in found:
        asked = {name: settings[name] for name in others}
        raise ValueError(f"{file} holds trials of {others}, not of {asked}: choose another --json")
    rows = [row | {"reflexes": tuple(row["reflexes"])} for row in found["rows"]]
    return [Outcome(**row) for row in rows]


def write_outcomes(file: Path | None, settings: dict[str, Any], outcomes: list[Outcome]) -> dict[str, Any]:
    """What became of all so far, in a file if there is to be one; the totals of it."""
    totals = summary(settings["policy"], outcomes)
    rows = [asdict(one) for one in outcomes]
    write_json(file, {**header("deployment"), **settings, **totals, "rows": rows})
    return totals


def summary(policy: str, outcomes: list[Outcome]) -> dict[str, Any]:
    """What became of all, as results have it."""
    clauses: Counter[str] = Counter()
    for outcome in outcomes:
        clauses.update(outcome.clauses)
    return {
        "policy": policy,
        "trials": len(outcomes),
        "caught": sum(outcome.caught for outcome in outcomes),
        "reflexes": sum(len(outcome.reflexes) for outcome in outcomes),
        "faults": sum(outcome.state == "fault" for outcome in outcomes),
        "clauses": dict(clauses),
    }
