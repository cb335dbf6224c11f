"""One catch on one robot: go where the ball will arrive, wait for the moment, act at 20 Hz."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dris.catching.approach import Approach
from dris.catching.control import BallEstimate, BallObserver, Controller, Decision, Robot, trust_of
from dris.catching.plate_teller import PlateTeller

WATCH_TICKS = 5
"""Arrivals are looked for, and the observer is told the joints, every so many ticks. At 1 kHz that is
every 5 ms, often enough for a belief: docs/guides/belief.md."""


class CatchLoop:
    """The memory of one catch. Call `tick` once a cycle of the robot."""

    def __init__(
        self,
        robot: Robot,
        observer: BallObserver,
        controller: Controller,
        approach: Approach | None = None,
        lead_s: float | None = None,
        on_step: Callable[[BallEstimate | None], None] = lambda seen: None,
        disturb: Callable[[np.ndarray], np.ndarray] = lambda q: q,
    ):
        """Get ready.

        Args:
            robot: The arm.
            observer: Tells where the ball is.
            controller: Decides, once the policy has taken over.
            approach: Brings the plate to the arrival before; None: the robot waits where it is.
            lead_s: Without an approach, the policy takes over so long before the ball arrives [s]; None: as
                soon as it is seen.
            on_step: Called at every control step with what is seen, before anything is decided.
            disturb: What becomes of references on their way, for tests of robustness.
        """
        self._robot, self._observer, self._controller = robot, observer, controller
        self.approach, self._lead_s = approach, lead_s
        self._on_step, self._disturb = on_step, disturb
        self.began_s: float | None = None
        """When the policy took over [s]; None: not yet."""
        self.blind_steps = 0
        """Control steps without a valid state; the robot then holds its last reference."""
        self.decisions: list[Decision] = []
        self._ticks = 0
        self._teller = PlateTeller(controller.kinematics)
        if approach is None and lead_s is None:
            self._tell_plate()

    def tick(self) -> None:
        """One cycle: approach, hand over, or decide, if that is due."""
        now_s, watch = self._robot.time_s, self._ticks % WATCH_TICKS == 0
        self._ticks += 1
        if watch:
            self._observer.observe_joints(now_s, self._robot.joints())
        if self.began_s is None and self.approach is not None:
            if watch:
                self._tell_plate()
                self._go_on(self.approach, now_s)
            self._robot.set_reference(self.approach.reference(now_s))
        if self.began_s is None and self._may_begin(now_s, watch):
            self.began_s = now_s
        if self.began_s is not None and self._controller.due(now_s):
            self._step(now_s)

    def decides_at(self, time_s: float) -> bool:
        """Whether a control step is due at a time, as far as that is known now."""
        return self.began_s is not None and self._controller.due(time_s)

    def _go_on(self, approach: Approach, now_s: float) -> None:
        """Where the ball arrives, as far as the eyes believe themselves; otherwise no further."""
        if trust_of(self._observer)[0] == "hold":
            approach.halt(now_s)
        else:
            height = float(self._controller.kinematics.home_position[2])
            approach.update(self._observer.arrival(now_s, height), now_s)

    def _may_begin(self, now_s: float, watch: bool) -> bool:
        """Whether the ball is as near as the policy was trained to see it first, and seen."""
        if self.approach is not None:
            if not self.approach.due(now_s):
                return False
        elif self._lead_s is not None:
            if not watch:
                return False
            plate = self._controller.kinematics.plate(self._robot.joints())[0]
            arrival = self._observer.arrival(now_s, float(plate[2]) + self._observer.radius_m)
            if arrival is None or arrival.time_s - now_s > self._lead_s:
                return False
        return self._observer.estimate(now_s) is not None

    def _tell_plate(self) -> None:
        self._teller.tell(self._observer, self._robot.time_s, self._robot.joints())

    def _step(self, now_s: float) -> None:
        """One control step; without a valid state the last reference stays."""
        self._tell_plate()
        seen = self._observer.estimate(now_s)
        self._on_step(seen)
        if seen is None:
            self.blind_steps += 1
            self._controller.skip()
            return
        decision = self._controller.step(now_s, seen, self._robot.joints())
        self.decisions.append(decision)
        self._robot.set_reference(self._disturb(decision.joints))
