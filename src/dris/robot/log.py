"""What happened, tick by tick, in a file that can be played again: one JSON object a line.

The first line says what the session was made of; the others are ticks. Written as it happens, so that what
led to a crash is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import msgspec
import numpy as np

from dris.core.schema import SCHEMA, header

KIND = "session-log"


class Tick(msgspec.Struct, frozen=True, omit_defaults=True):
    """One millisecond, or however long a tick is."""

    time_s: float
    state: str
    q: list[float]
    dq: list[float]
    wished: list[float] | None = None
    """Reference that approach, policy or way home asked for."""
    sent: list[float] | None = None
    """What the filter let through."""
    clauses: list[str] = []
    seen: list[float] | None = None
    """Ball's position and velocity in the base frame, at a control step."""
    age_s: float = 0.0
    action: list[float] | None = None
    """As the policy gave it, at a control step."""
    note: str = ""
    """Why the state changed."""


@dataclass
class Log:
    """An open log; without a file nothing is kept."""

    file: TextIO | None = None

    @classmethod
    def open(cls, path: Path | None, **made_of: Any) -> Log:
        """Begin a file."""
        if path is None:
            return cls()
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
        plain = {
            name: asdict(value) if hasattr(value, "__dataclass_fields__") else value
            for name, value in made_of.items()
        }
        file.write(json.dumps({**header(KIND), **plain}, default=_plain) + "\n")
        return cls(file)

    def add(self, tick: Tick, flush: bool = False) -> None:
        """One more line; `flush`: on the disk before anything else happens."""
        if self.file is not None:
            self.file.write(msgspec.json.encode(tick).decode() + "\n")
            if flush:
                self.file.flush()

    def close(self) -> None:
        """Nothing more comes."""
        if self.file is not None:
            self.file.close()
            self.file = None


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def read_log(path: Path) -> tuple[dict[str, Any], Iterator[Tick]]:
    """What a session was made of, and its ticks.

    Raises:
        ValueError: It is no log; a last line that was cut off by a crash is left out.
    """
    lines = path.read_text().splitlines()
    try:
        made_of = json.loads(lines[0])
        said = made_of["kind"], made_of["schema"]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no log of a session") from error
    if said != (KIND, SCHEMA):
        raise ValueError(f"{path} is of kind {said[0]!r}, schema {said[1]!r}, not of {KIND!r}, {SCHEMA}")

    def ticks() -> Iterator[Tick]:
        for number, line in enumerate(lines[1:], start=2):
            try:
                yield msgspec.json.decode(line, type=Tick)
            except msgspec.MsgspecError as error:
                if number < len(lines):
                    raise ValueError(f"{path}, line {number}: {error}") from error

    return made_of, ticks()
