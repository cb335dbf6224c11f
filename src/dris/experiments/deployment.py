"""What became of a policy's trials through the whole chain, and the file that keeps it.

The file is replaced whole after every trial, so that an interrupted deployment can go on.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dris import __version__
from dris.core.files import locked, read_json, write_json
from dris.core.schema import header, kind_of, source_state
from dris.robot.contract import WEIGHTS, Contract

KIND = "deployment"


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
    source: str = ""
    """Commit that ran, with a + if something was changed since."""
    belief: dict[str, int] = field(default_factory=dict)
    """What a belief refused and put right, and how often it began anew; empty without one."""
    repeated: int = 0
    """How often this trial was run again because it had not counted."""

    lost: bool | None = None
    """Whether the robot told nothing any more at the end; None: a row from before that was kept."""

    @property
    def counts(self) -> bool:
        """Whether it tells of policy and robot: a reflex came, or it began and the connection lasted."""
        lost = self.state == "fault" if self.lost is None else self.lost
        return bool(self.reflexes) or (self.ticks > 0 and not lost)

    def told(self) -> str:
        """In words: what became of it, and how near the limits the arm was."""
        became = "caught" if self.caught else f"lost ({self.reason or self.state})"
        cut = ", ".join(f"{clause} {ticks}" for clause, ticks in self.clauses.items())
        fastest = f"fastest joint {self.speed_share:.2f} of its limit"
        return f"{became}; {fastest}; filter: {cut or 'nothing'}"


def source() -> str:
    """Of an outcome: several versions of the code may add to one file."""
    state = source_state()
    return state.get("commit", "")[:12] + ("+" if state.get("changed files") else "")


def settings_of(contract: Contract, **values: Any) -> dict[str, Any]:
    """By what trials are told from others: the policy with all that it relies on, and how they were run."""
    relies_on = json.dumps([contract.task_config, contract.belief], sort_keys=True)
    return {
        "policy": contract.policy,
        "weights": contract.files[WEIGHTS],
        "relies_on": hashlib.sha256(relies_on.encode()).hexdigest()[:16],
        "dris": __version__,
        **values,
    }


@contextmanager
def _removed(folder: Path) -> Iterator[None]:
    """Leave no empty folder behind."""
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def writing(file: Path | None, kind: str) -> Iterator[None]:
    """Keep a file from being lost to results of another kind, or to another process that writes it.

    Raises:
        ValueError: It holds something else, or another process writes it.
    """
    if file is None:
        yield
        return
    lock = file.with_name(f".{file.name}.lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(lock, wait=False))
        except ValueError as error:
            way_out = "let it finish, or choose another --json"
            raise ValueError(f"another process is writing {file}: {way_out}") from error
        stack.enter_context(_removed(lock))
        if file.exists() and (found := kind_of(file)) != kind:
            holds = f"results of kind '{found}'" if found else "something else"
            raise ValueError(f"{file} holds {holds}, not a {kind}: choose another --json")
        yield


def read_outcomes(file: Path, settings: dict[str, Any], resume: bool) -> list[Outcome]:
    """What an interrupted deployment has left behind; nothing if there is no file yet.

    Raises:
        ValueError: It is no such file, was made with other settings, or nobody said that it goes on.
    """
    if not file.exists():
        return []
    found = read_json(file)
    whole = isinstance(found.get("settings"), dict) and isinstance(found.get("rows"), list)
    if found.get("kind") != KIND or not whole:
        raise ValueError(f"{file} holds no deployment: choose another --json")
    others = {name: found["settings"].get(name) for name in settings}
    if others := {name: value for name, value in others.items() if value != settings[name]}:
        asked = {name: settings[name] for name in others}
        raise ValueError(f"{file} holds trials of {others}, not of {asked}: choose another --json")
    rows = [Outcome(**row | {"reflexes": tuple(row["reflexes"])}) for row in found["rows"]]
    left = found.get("asked", 0) - sum(row.counts for row in rows)
    if left > 0 and not resume:
        raise ValueError(f"{file} lacks {left} of its trials: go on with --resume, or choose another --json")
    if rows and not resume:
        print(f"{file} had {len(rows)} such trials, which are run anew; --resume would have kept them")
    return rows if resume else []


def with_outcome(outcomes: list[Outcome], one: Outcome) -> list[Outcome]:
    """Outcomes and one more, which takes the place of one of the same trial that did not count."""
    before = [other for other in outcomes if other.name == one.name]
    others = [other for other in outcomes if other.name != one.name]
    repeated = max((other.repeated + 1 for other in before), default=0)
    return [*others, replace(one, repeated=repeated)]


def write_outcomes(
    file: Path | None, settings: dict[str, Any], asked: int, outcomes: list[Outcome]
) -> dict[str, Any]:
    """What became of all so far, in a file if there is to be one; the totals of it.

    Args:
        file: Replaced whole.
        settings: By which these trials are told from others.
        asked: How many trials there will be.
        outcomes: So far.
    """
    totals = summary(settings["policy"], outcomes)
    rows = [asdict(one) for one in outcomes]
    write_json(file, {**header(KIND), "settings": settings, "asked": asked, **totals, "rows": rows})
    return totals


def summary(policy: str, outcomes: list[Outcome]) -> dict[str, Any]:
    """What became of all, as results have it."""
    clauses: Counter[str] = Counter()
    belief: Counter[str] = Counter()
    for outcome in outcomes:
        clauses.update(outcome.clauses)
        belief.update(outcome.belief)
    return {
        "policy": policy,
        "trials": len(outcomes),
        "caught": sum(outcome.caught for outcome in outcomes),
        "reflexes": sum(len(outcome.reflexes) for outcome in outcomes),
        "faults": sum(outcome.state == "fault" for outcome in outcomes),
        "stopped": sum(outcome.state == "stopped" for outcome in outcomes),
        "repeated": sum(outcome.repeated for outcome in outcomes),
        "clauses": dict(clauses),
        "belief": dict(belief),
    }
