"""Result files as typed values: what a page or a figure relies on is checked once, when a file is read.

A result file says what it is, `{"kind": ..., "schema": 1, ...}`. One from before that was written has neither
and is taken for what its place says: study.json and the runs under it, theory.json, tables of trials.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from dris.core.files import read_json
from dris.core.typed import typed

SCHEMA = 1
"""Raised when a file's keys change their meaning."""

Rate = Annotated[float, Meta(ge=0, le=1)]
Figure = Annotated[float, Meta(ge=-1e12, le=1e12)]
"""Any number that a figure can show; msgspec refuses NaN wherever a bound is given."""
Positive = Annotated[float, Meta(ge=1e-12, le=1e12)]
Count = Annotated[int, Meta(ge=0, le=10**12)]
Name = Annotated[str, Meta(pattern=r"\A(\w[\w.+-]*)?\Z", max_length=100)]
"""Part of a file's name."""

_COLUMNS: dict[str, Any] = {
    **{name: Rate for name in ("success", "low", "high")},
    **{name: Count for name in ("iteration", "episodes", "seed")},
    **{name: str for name in ("policy", "condition", "world")},
    "reward": Figure,
}
"""What the columns of a table hold that are shown; success_0.2 is success by another measure."""

T = TypeVar("T")


def header(kind: str) -> dict[str, Any]:
    """How a result file begins."""
    return {"kind": kind, "schema": SCHEMA}


def kind_of(file: Path) -> str:
    """What a JSON file holds, or nothing if it does not say so: a list of scores, a run's configuration."""
    if file.name in ("study.json", "theory.json"):
        return file.stem
    found = read_json(file, (dict, list))
    if isinstance(found, list):
        return ""
    return str(found.get("kind", "trials" if found.keys() >= {"trials", "config"} else ""))


def read_as(file: Path, of: type[T], kind: str = "") -> T:
    """What a JSON file holds, as a type; keys that the type does not have are left out.

    Args:
        file: Read as a whole.
        of: A msgspec.Struct, or whatever else `msgspec.convert` takes.
        kind: That the file has to be of, where result files have one.

    Raises:
        ValueError: It is no such file; the message names it, and the key.
    """
    found = read_json(file, (dict, list))
    if kind and isinstance(found, dict):
        said = found.get("kind", kind), found.get("schema", SCHEMA)
        if said != (kind, SCHEMA):
            raise ValueError(
                f"{file} is of kind {said[0]!r}, schema {said[1]!r}, not of {kind!r}, {SCHEMA}: it is of "
                "another place or of another version of dris"
            )
    return typed(found, of, str(file))


def check_row(row: Mapping[str, Any], where: str, needed: Iterable[str] = ()) -> None:
    """Refuse a row of a table whose columns are missing, of another type, or no rate or number.

    Raises:
        ValueError: The message names the column.
    """
    typed(row, dict, where)
    missing = [name for name in needed if name not in row]
    if missing:
        raise ValueError(f"{where}: there is no {', '.join(missing)}")
    for name, value in row.items():
        column = name.rpartition("/")[2]  # a condition's: noise-2/success
        of = _COLUMNS.get("success" if column.startswith("success_") else column)
        if of is not None:
            shown = f" = {value!s:.20}" if isinstance(value, (int, float)) else ""
            typed(value, of, f"{where}.{name}{shown}")


def source_state() -> dict[str, str]:
    """Commit of the source that runs, and what was changed since; nothing where it is not in a repository."""
    found = {}
    here = str(Path(__file__).parent)
    for name, command in {"commit": "rev-parse HEAD", "changed files": "status --porcelain"}.items():
        run = subprocess.run(["git", "-C", here, *command.split()], capture_output=True, text=True)
        if run.returncode == 0:
            found[name] = run.stdout.strip()
    return found
