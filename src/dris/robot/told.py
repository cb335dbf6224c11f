"""What the eyes tell a session in a tick, written down for its log, and told again from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dris.catching.control import FINE, BallEstimate, BallObserver, Trust, troubles_of, trust_of
from dris.perception.arrival import Arrival
from dris.perception.plate import Plate
from dris.robot.log import Tick

if TYPE_CHECKING:
    from dris.catching.loop import CatchLoop
    from dris.robot.arm import ArmState
    from dris.robot.safety import Filtered
    from dris.robot.states import State


class Told:
    """An observer through which a catch loop asks another; remembers the answers of one tick."""

    def __init__(self, observer: BallObserver):
        self._observer, self.trust = observer, FINE
        self._estimates: list[BallEstimate | None] = []
        self._arrival: Arrival | None = None

    @property
    def radius_m(self) -> float:
        """As the other has it."""
        return self._observer.radius_m

    def begin(self, observer: BallObserver) -> Trust:
        """A new tick: forget, ask this observer from now on, and say whether it believes itself."""
        self._observer, self._estimates, self._arrival = observer, [], None
        found = trust_of(observer)
        if found[0] not in ("fine", "doubt", "hold", "stop"):
            found = "stop", f"they say {found[0]!r}, which is none of fine, doubt, hold and stop"
        self.trust = FINE if found[0] == "fine" else found
        return self.trust

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """Pass on."""
        self._observer.observe_joints(time_s, q)

    def observe_plate(self, plate: Plate) -> None:
        """Pass on."""
        self._observer.observe_plate(plate)

    def estimate(self, time_s: float) -> BallEstimate | None:
        """Ask, and remember."""
        found = self._observer.estimate(time_s)
        self._estimates.append(found)
        return found

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """Ask, and remember."""
        self._arrival = self._observer.arrival(time_s, height_m)
        return self._arrival

    def tick(
        self,
        now_s: float,
        state: State,
        measured: ArmState,
        wished: np.ndarray,
        loop: CatchLoop | None,
        safe: Filtered | None = None,
        age_s: float = 0.0,
    ) -> Tick:
        """A line of the log.

        Args:
            now_s: Of the tick.
            state: Of the session.
            measured: What the arm told.
            wished: Joints [M] that were asked for.
            loop: Whose decision it was, if it decided.
            safe: What the filter made of it; None: nothing was sent.
            age_s: Of what the wish rests on [s].
        """
        decision = loop.decisions[-1] if loop is not None and loop.decisions else None
        if decision is not None and decision.time_s != now_s:
            decision = None
        return Tick(
            now_s, state, measured.q.tolist(), measured.dq.tolist(), wished.tolist(),
            None if safe is None else safe.reference.tolist(), [] if safe is None else list(safe.clauses),
            self._told_estimates(), self._told_arrival(), self.trust, float(age_s),
            None if decision is None else decision.action.tolist(), troubles=self._told_troubles(),
        )  # fmt: skip

    def _told_estimates(self) -> list[list[float] | None]:
        """Of this tick, in order; nothing if no ball was told of."""
        if all(found is None for found in self._estimates):
            return []
        return [None if one is None else _numbers(one) for one in self._estimates]

    def _told_troubles(self) -> list[int]:
        """Of a belief that was asked in this tick."""
        found = troubles_of(self._observer) if self._estimates else None
        return [] if found is None else list(found)

    def _told_arrival(self) -> list[float] | None:
        """Of this tick: time, place, velocity, how sure time and place are, misfit."""
        one = self._arrival
        if one is None:
            return None
        sure = (one.time_sigma_s, one.place_sigma_m, one.misfit)
        return [
            float(one.time_s), *one.ball_in_base.tolist(), *one.velocity_in_base.tolist(), *map(float, sure)
        ]  # fmt: skip


def _numbers(one: BallEstimate) -> list[float]:
    """Position, velocity, age, and deviations if they are known."""
    found = [*one.position.tolist(), *one.velocity.tolist(), float(one.age_s)]
    return found if one.deviation is None else [*found, *one.deviation.tolist()]


class Recorded:
    """An observer that tells what was written down, whatever it is asked for."""

    radius_m = 0.0  # the session's loop does not ask
    trust: Trust = FINE

    def __init__(self) -> None:
        self._estimates: list[list[float] | None] = []
        self._arrival: list[float] | None = None

    def set(self, estimates: list[list[float] | None], arrival: list[float] | None, trust: Trust) -> None:
        """What to tell in the next tick, as `Told` wrote it."""
        self._estimates, self._arrival, self.trust = list(estimates), arrival, trust

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """It needs no telling."""

    def observe_plate(self, plate: Plate) -> None:
        """It needs no telling."""

    def estimate(self, time_s: float) -> BallEstimate | None:
        """The next answer."""
        if not self._estimates or (found := self._estimates.pop(0)) is None:
            return None
        deviation = np.array(found[7:]) if len(found) > 7 else None
        return BallEstimate(np.array(found[:3]), np.array(found[3:6]), found[6], deviation)

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """The answer."""
        if (found := self._arrival) is None:
            return None
        return Arrival(found[0], np.array(found[1:4]), np.array(found[4:7]), *found[7:])
