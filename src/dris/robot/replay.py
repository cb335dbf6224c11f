"""A session lived through again from its log alone: what it was told goes in, what it sends is compared.

The arm tells the recorded joints at the recorded times, the eyes the recorded answers, whoever asked asks
again; policy, approach, law and filter compute anew. A path that was followed is not in the file: there the
recorded wishes stand in.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dris.catching.control import Act
from dris.catching.joint_limits import JointLimits
from dris.catching.law import LawConfig
from dris.catching.settings import CatchingConfig
from dris.core.typed import from_plain, typed
from dris.robot.arm import ArmState, Carried, Payload
from dris.robot.log import Log, Tick, read_log
from dris.robot.safety_config import SafetyConfig
from dris.robot.session import Session
from dris.robot.states import STOPPED
from dris.robot.told import Recorded

TOLERANCE = 1e-9
"""Largest difference of a number that counts as the same: linear algebra may round otherwise where its arrays
lie elsewhere in memory, or on another processor."""
COMPUTED = ("age_s", "action", "wished", "sent")
"""Numbers of a tick that a session computes, causes first,"""
DECIDED = ("state", "clauses")
"""and what it decides."""


@dataclass(frozen=True)
class Replayed:
    """What came of a replay."""

    ticks: int
    """That were lived through again."""
    same: int
    """Of them with every number the same, to the last bit."""
    largest: float
    """Difference of a number in any tick up to the first that differs [rad]."""
    differs: str = ""
    """The first tick that differs, by its line and time, and in what; nothing: none does."""
    ended: bool = True
    """Whether the log tells how its session ended."""


def replay(path: Path, act: Act, weights: str = "") -> Replayed:
    """Live through a log again, up to the first tick that differs.

    Args:
        path: The log.
        act: The policy that acted then.
        weights: SHA-256 of its weights, to be compared with the log's; empty: unknown.

    Raises:
        ValueError: It is no log, one of another version, of another policy, or of a session that never
            connected.
    """
    made_of, lines = read_log(path)
    _check_weights(path, made_of, weights)
    past = _Past(path, made_of)
    session = Session(
        past, past.eyes, act, past.config, past.law, lambda: past.now.time_s, past.heard, past.safety,
        speed_share=past.speed_share,
    )  # fmt: skip
    session.connect()
    ticks, same, largest = 0, 0, 0.0
    for number, line in enumerate(lines, start=2):
        past.now = line
        if line.asked:
            _ask(session, line, past)
        if line.note or line.wished is None:
            continue
        past.heard.tick = None
        past.eyes.set(line.estimates, line.arrival, line.trust)
        session.tick()
        ticks += 1
        off, words = _compared(line, past.heard.tick)
        if words:
            return Replayed(ticks, same, largest, f"line {number}, {line.time_s:.3f} s: {words}")
        same, largest = same + (off == 0.0), max(largest, off)
    return Replayed(ticks, same, largest, ended=past.now.state in STOPPED)


def _check_weights(path: Path, made_of: dict[str, Any], weights: str) -> None:
    then = made_of.get("weights", "")
    if weights and then and weights != then:
        raise ValueError(
            f"{path} was made by '{made_of.get('policy')}' with weights {then[:12]}, not {weights[:12]}: "
            "replay it with the policy that acted then"
        )


def _ask(session: Session, line: Tick, past: _Past) -> None:
    """What was asked for then."""
    if line.asked == "start":
        session.start()
    elif line.asked == "follow":
        session.follow(past)
    elif line.asked == "go home":
        session.go_home()
    else:
        session.begins_when_seen = line.asked == "arm when seen"
        session.arm_now()


def _compared(then: Tick, now: Tick | None) -> tuple[float, str]:
    """Largest difference of a tick's numbers, and the words for it if it is one."""
    if now is None:
        return 0.0, f"was {then.state}, the replay has stopped"
    for name in DECIDED:
        before, after = getattr(then, name), getattr(now, name)
        if before != after:
            return 0.0, f"{name} was {before}, is {after}"
    largest = 0.0
    for name in COMPUTED:
        before, after = getattr(then, name), getattr(now, name)
        if (before is None) != (after is None):
            return 0.0, f"{name} was {before}, is {after}"
        if before is None or before == after:
            continue
        if np.array_equal(before, after, equal_nan=True):  # JSON has one word for all numbers that are none
            continue
        off = float(np.abs(np.subtract(before, after)).max())
        if not off <= TOLERANCE:
            return off, f"{name} differs by {off:.2e}"
        largest = max(largest, off)
    return largest, ""


class _Heard(Log):
    """A log that keeps the last tick."""

    tick: Tick | None = None

    def add(self, tick: Tick, flush: bool = False) -> None:
        """Keep it, unless it is a change of state."""
        if tick.wished is not None:
            self.tick = tick


class _Past:
    """What a log says, as what a session is made of: an arm, and a path to follow."""

    def __init__(self, path: Path, made_of: dict[str, Any]):
        needed = ("task_config", "law", "safety", "limits", "speed_share")
        if missing := [name for name in needed if name not in made_of]:
            raise ValueError(f"{path} has no {missing[0]}: its session never connected to an arm")
        config, law, safety, limits, share = (made_of[name] for name in needed)
        self.config = from_plain(CatchingConfig, config, f"{path}: task_config")
        self.law = from_plain(LawConfig, law, f"{path}: law")
        self.safety = from_plain(SafetyConfig, safety, f"{path}: safety")
        numbers: dict[str, list[float]] = typed(limits, dict[str, list[float]], f"{path}: limits")
        try:
            self._limits = JointLimits(**{name: np.array(values) for name, values in numbers.items()})
        except TypeError as error:
            raise ValueError(f"{path}: limits: {error}") from error
        self.speed_share: float = typed(share, float, f"{path}: speed_share")
        self.eyes, self.heard = Recorded(), _Heard()
        self.now, self._begun = Tick(0.0, "connected", [], []), False

    # As an arm.

    def limits(self) -> JointLimits:
        """As the robot told them."""
        return self._limits

    def masses(self) -> tuple[float, ...]:
        """Nobody asks."""
        return ()

    def versions(self) -> str:
        """Nobody asks."""
        return "a log"

    def carries(self) -> Carried:
        """Nobody asks."""
        return Carried(Payload(), Payload())

    def state(self) -> ArmState:
        """Of the present line."""
        return ArmState(self.now.time_s, np.array(self.now.q), np.array(self.now.dq), self._begun)

    def begin(self, reference: np.ndarray) -> None:
        """From here on it moved."""
        self._begun = True

    def exchange(self, reference: np.ndarray) -> ArmState:
        """As `state`."""
        return self.state()

    def stop(self) -> None:
        """It is over."""

    def recover(self) -> bool:
        """There is nothing to clear."""
        return True

    def close(self) -> None:
        """It is over."""

    # As a path.

    @property
    def duration_s(self) -> float:
        """It ends in the tick in which it ended."""
        return -np.inf if self.now.state == "homed" else np.inf

    def at(self, time_s: float) -> np.ndarray:
        """What was wished."""
        return np.array(self.now.wished)
