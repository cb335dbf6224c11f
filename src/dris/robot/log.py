"""What happened, tick by tick, in a file that can be played again: one JSON object a line.

The first line says what the session was made of: policy and hash of its weights, configuration, law, filter,
speed share and the robot's limits. The others are ticks, changes of state and what was asked for, with all
that arm and eyes told: `dris.robot.replay` needs nothing else. Written as it happens, so that what led to a
crash is there.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

import msgspec
import numpy as np

from dris.catching.control import FINE, Trust

KIND, SCHEMA = "session-log", 3
"""Since schema 2 a log holds all that a replay needs; since 3 ages are those of decisions."""
Asked = Literal["", "start", "arm", "arm when seen", "follow", "go home"]
"""What a person or a program asked a session for; `arm when seen`: to begin with no approach."""


class Tick(msgspec.Struct, frozen=True, omit_defaults=True):
    """One millisecond, or however long a tick is; with `note`, `asked` or `ball`, what happened beside it."""

    time_s: float
    state: str
    q: list[float]
    dq: list[float]
    wished: list[float] | None = None
    """Reference that approach, policy or way home asked for."""
    sent: list[float] | None = None
    """What the filter let through."""
    clauses: list[str] = []
    """Of the filter that changed something."""
    estimates: list[list[float] | None] = []
    """What the eyes told whenever the loop asked for the ball: position, velocity (base frame), age, and the
    deviations of position and velocity where a belief knows them; at a control step the last one is what the
    policy acts on."""
    arrival: list[float] | None = None
    """What they told of where the ball will come down, as `dris.robot.told` writes it."""
    trust: Trust = FINE
    """Whether the eyes believe themselves (fine, hold, stop), and why."""
    age_s: float = 0.0
    """Of what the wish rests on."""
    action: list[float] | None = None
    """As the policy gave it, at a control step."""
    note: str = ""
    """Why the state changed."""
    asked: Asked = ""
    ball: list[float] | None = None
    """Where the ball truly is (base frame), where somebody knows that: in the twin."""
    troubles: list[int] = []
    """Of a belief so far, where it was asked: sights refused, times it began anew, instances put right."""


def new_folder() -> Path:
    """For the log of an arm that moves and that nobody named a place for; not made yet."""
    return Path("logs") / time.strftime("%Y%m%d-%H%M%S")


@dataclass
class Log:
    """An open log; without a file nothing is kept."""

    file: TextIO | None = None
    made_of: dict[str, Any] | None = None
    """For the first line, as long as that is not written."""
    closed: bool = False
    """Whether it was kept and nothing more can be added."""

    @classmethod
    def open(cls, path: Path | None, **made_of: Any) -> Log:
        """Begin a file."""
        if path is None:
            return cls()
        path.parent.mkdir(parents=True, exist_ok=True)
        return cls(path.open("w"), {"kind": KIND, "schema": SCHEMA, **made_of})

    def tell(self, **made_of: Any) -> None:
        """Say more of what the session is made of; too late once there is a tick."""
        if self.made_of is not None:
            self.made_of.update(made_of)

    def add(self, tick: Tick, flush: bool = False) -> None:
        """One more line; `flush`: on the disk before anything else happens."""
        if self.file is not None:
            if self.made_of is not None:
                self.file.write(json.dumps(self.made_of, default=_plain) + "\n")
                self.made_of = None
            self.file.write(msgspec.json.encode(tick).decode() + "\n")
            if flush:
                self.file.flush()

    def close(self) -> None:
        """Nothing more comes."""
        if self.file is not None:
            file, self.file, self.closed = self.file, None, True  # closed also where the disk is full
            file.close()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def _tick(line: str) -> Tick:
    """One line; a number that was none, and is null in JSON, is NaN again."""
    if "null" not in line:
        return msgspec.json.decode(line, type=Tick)
    found = json.loads(line)
    for name in ("q", "dq", "wished", "sent", "arrival", "action", "ball"):
        if found.get(name) is not None:
            found[name] = [math.nan if one is None else one for one in found[name]]
    found["age_s"] = math.nan if found.get("age_s", 0.0) is None else found.get("age_s", 0.0)
    for one in found.get("estimates", ()):
        if one is not None:
            one[:] = [math.nan if number is None else number for number in one]
    return msgspec.convert(found, Tick)


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
        older = ": it is of another version of dris, make it again" if said[0] == KIND else ""
        raise ValueError(
            f"{path} is of kind {said[0]!r}, schema {said[1]!r}, not of {KIND!r}, {SCHEMA}{older}"
        )

    def ticks() -> Iterator[Tick]:
        for number, line in enumerate(lines[1:], start=2):
            try:
                yield _tick(line)
            except (msgspec.MsgspecError, ValueError) as error:
                if number < len(lines):
                    raise ValueError(f"{path}, line {number}: {error}") from error

    return made_of, ticks()
