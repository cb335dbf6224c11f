"""Wishes that no policy would have, through safety filter, driver and Franka's protocol, in lockstep.

Every round begins at home, where the arm is asked for anything for a while: joints anywhere, far beyond their
ranges, at their ends, shaken every millisecond or at a frequency, not finite. Rounds go in turn through law
and filter, as on a robot, and through the filter alone. Whether the robot bears it is judged behind the
protocol: a reflex is one too many. The session may stop the arm by itself, where it overshoots a wall; then
somebody leads it home.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.catching.kinematics import Dynamics
from dris.experiments.deploy import TwinRig
from dris.robot.arm import ArmError
from dris.robot.log import Log
from dris.robot.shaping import Shaper

Wish = Literal["anywhere", "far", "ends", "one-end", "shaken", "swung", "near", "not-finite"]
"""anywhere: in the joints' ranges. far: up to 1000 rad away. ends: every joint at an end of its range.
one-end: one joint at an end, the others at home. shaken: to and fro every millisecond. swung: about home, 0.5
to 20 times a second. near: up to 0.3 rad from home. not-finite: a number is none."""
KINDS: tuple[Wish, ...] = get_args(Wish)
ROUND_S = 10.0
HOLD_S = (0.001, 0.4)
"""A wish lasts between these, each order of magnitude as often [s]."""


class Wild:
    """A path of wishes; see `dris.robot.paths.Path`."""

    def __init__(self, limits: JointLimits, home: np.ndarray, duration_s: float, seed: int):
        self._limits, self._home, self.duration_s = limits, home, duration_s
        self._rng = np.random.default_rng(seed)
        self._until_s, self._sign = -1.0, 1.0
        self.asked: Counter[str] = Counter()
        """Ticks of every kind of wish."""

    def at(self, time_s: float) -> np.ndarray:
        """Joints [M] that are asked for; the same time twice may be another wish."""
        if time_s >= self._until_s:
            self._draw(time_s)
        self.asked[self._kind] += 1
        self._sign = -self._sign
        if self._kind == "shaken":
            return self._home + self._sign * self._size
        if self._kind == "swung":
            return self._home + self._size * np.sin(2 * np.pi * self._hertz * time_s)
        return self._wish

    def _draw(self, time_s: float) -> None:
        rng, low, high = self._rng, self._limits.low, self._limits.high
        joints = len(low)
        self._kind: Wish = KINDS[rng.integers(len(KINDS))]
        shortest, longest = np.log(HOLD_S)
        self._until_s = time_s + float(np.exp(rng.uniform(shortest, longest)))
        self._size = rng.uniform(-1, 1, joints) * rng.choice([0.01, 0.1, 1.0])
        self._hertz = float(np.exp(rng.uniform(np.log(0.5), np.log(20.0))))
        ends = np.where(rng.random(joints) < 0.5, low, high)
        one = np.arange(joints) == rng.integers(joints)
        self._wish = {
            "far": self._home + rng.uniform(-1, 1, joints) * rng.choice([10.0, 1000.0]),
            "ends": ends,
            "one-end": np.where(one, ends, self._home),
            "near": self._home + rng.uniform(-0.3, 0.3, joints),
            "not-finite": np.where(one, rng.choice([np.nan, np.inf, -np.inf]), self._home),
        }.get(self._kind, rng.uniform(low, high))


class NoLaw(Shaper):
    """In place of the governed law: what is wished goes to the filter as it is."""

    def __init__(self) -> None:
        """It needs nothing."""

    def reference(
        self, q: np.ndarray, dq: np.ndarray, wished: np.ndarray, tick_s: float, arm: Dynamics
    ) -> np.ndarray:
        """What was wished."""
        return wished

    def correct(self, arm: Dynamics, asked: np.ndarray) -> None:
        """Nothing is remembered."""


@dataclass(frozen=True)
class WildRound:
    """What became of one round."""

    number: int
    through: Literal["law and filter", "filter"]
    ended: str
    """The session's state, and why."""
    seconds: float
    """Of robot time that wishes were asked for."""
    reflexes: tuple[str, ...]
    speed_share: float
    """Of its limit that the fastest joint reached, in the robot."""
    asked: dict[str, int] = field(default_factory=dict)
    """Ticks of every kind of wish,"""
    clauses: dict[str, int] = field(default_factory=dict)
    """those in which a clause of the filter changed it,"""
    beyond: dict[str, int] = field(default_factory=dict)
    """and those in which a soft one could not be kept."""


def wild_rounds(
    rig: TwinRig, seed: int, enough: Callable[[int], bool], duration_s: float = ROUND_S
) -> Iterator[WildRound]:
    """Rounds until `enough` of their number."""
    number = 0
    while not enough(number):
        yield _round(rig, number, seed + number, duration_s)
        number += 1


def _round(rig: TwinRig, number: int, seed: int, duration_s: float) -> WildRound:
    before = len(rig.server.cabinet.reflexes)
    session = rig.session(Log())
    path = Wild(session.limits, session.kinematics.home, duration_s, seed)
    through: Literal["law and filter", "filter"] = "filter" if number % 2 else "law and filter"
    ended, began_s, share = "never began", rig.twin.time_s, 0.0
    try:
        # As a person does after a stop: from some places there is no clear way home.
        rig.gate.tick(lambda: rig.plant.lead_to(session.kinematics.home))
        rig.gate.release()
        rig.home(session)
        if through == "filter":
            session.shaper = NoLaw()

        def begin() -> None:
            rig.twin.speed_share = 0.0
            session.follow(path)

        rig.gate.tick(begin)
        began_s = rig.twin.time_s
        while session.state == "following":
            rig.gate.tick(session.tick, rig.moves)
        ended = f"{session.state}: {session.reason}" if session.reason else session.state
    except ArmError as error:
        ended = f"{ended}: {error}"
    finally:
        seconds, share = rig.twin.time_s - began_s, rig.twin.speed_share
        rig.gate.release()
        session.stop("the round is over")
    reflexes = tuple(", ".join(errors) for errors in rig.server.cabinet.reflexes[before:])
    return WildRound(
        number, through, ended, round(seconds, 3), reflexes, round(share, 4), dict(path.asked),
        dict(session.clauses), dict(session.beyond),
    )  # fmt: skip


def wild_summary(rounds: list[WildRound]) -> dict[str, Any]:
    """All rounds in figures."""
    total = lambda name: dict(sum((Counter(getattr(r, name)) for r in rounds), Counter()))  # noqa: E731
    return {
        "rounds": len(rounds),
        "wishes": sum(sum(r.asked.values()) for r in rounds),
        "robot_seconds": round(sum(r.seconds for r in rounds), 1),
        "reflexes": dict(Counter(reflex for r in rounds for reflex in r.reflexes)),
        "never_began": sum(r.ended.startswith("never") for r in rounds),
        "stopped_by_session": dict(Counter(r.ended for r in rounds if r.ended.startswith("stopped"))),
        "fastest_share": max((r.speed_share for r in rounds), default=0.0),
        "asked": total("asked"),
        "clauses": total("clauses"),
        "beyond": total("beyond"),
    }
