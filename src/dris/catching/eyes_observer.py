"""Eyes as the observer of a ball, whosever cameras they look through: the twin's or a real rig's."""

from __future__ import annotations

import numpy as np

from dris.catching.control import BallEstimate
from dris.perception.arrival import Arrival
from dris.perception.eyes import Eyes
from dris.perception.plate import Plate


class EyesObserver:
    """A `BallObserver` by what eyes have seen. Whoever owns the cameras hands them the frames."""

    def __init__(self, eyes: Eyes, radius_m: float):
        """Eyes, and the radius of the ball that they look for."""
        self.eyes, self.radius_m = eyes, radius_m

    @property
    def trust(self) -> tuple[str, str]:
        """fine, hold or stop, and why: for whoever moves an arm by what is seen."""
        verdict = self.eyes.monitor.verdict
        return verdict.level, f"{verdict.cause}: {verdict.reason}"

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """It needs no telling."""

    def observe_plate(self, plate: Plate) -> None:
        """Tell the eyes where the plate is."""
        self.eyes.expect_plate(plate)

    def estimate(self, time_s: float) -> BallEstimate | None:
        """The ball as the track has it, carried on to a time.

        None if it is lost or too old, or while the monitor says not to act on it.
        """
        state = self.eyes.state(time_s)
        if state is None:
            return None
        return BallEstimate(state.ball_in_base, state.velocity_in_base, state.age_s)

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """By the parabola through the flight so far."""
        return self.eyes.arrival(time_s, height_m)
