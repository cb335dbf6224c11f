"""Eyes as the observer of the ball, whoever their cameras are: the twin's or a real rig's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dris.catching.control import BallEstimate, Trust
from dris.perception.arrival import Arrival
from dris.perception.detect import Detection
from dris.perception.eyes import Eyes
from dris.perception.plate import Plate
from dris.perception.sources import Frame
from dris.perception.triangulate import Bearing


class EyesObserver:
    """A `BallObserver` by what eyes have seen. Whoever owns the cameras hands it the frames."""

    def __init__(self, eyes: Eyes, radius_m: float):
        """Eyes, and the radius of the ball that they look for."""
        self.eyes, self.radius_m = eyes, radius_m
        self.frames = self.found = 0
        """Frames that were looked at, and those in which there was a ball."""
        self.on_sight: Callable[[Bearing], None] | None = None
        """Told of every detection, after the tracker."""

    @property
    def found_share(self) -> float:
        """Share of frames in which the ball was found."""
        return self.found / max(self.frames, 1)

    def take(self, frame: Frame, now_s: float, whole: bool = True) -> Detection | None:
        """Look at a frame that has come, and tell whoever listens; what was found.

        Args:
            frame: With its stamp.
            now_s: When it came, by the clock that stamps frames.
            whole: Whether it shows the whole view.

        Raises:
            CalibrationError: The image does not fit the camera's calibration.
        """
        found = self.eyes.take(frame, now_s, whole)
        self.frames, self.found = self.frames + 1, self.found + (found is not None)
        if self.eyes.sight is not None and self.on_sight is not None:
            self.on_sight(self.eyes.sight)
        return found

    @property
    def trust(self) -> Trust:
        """For whoever moves an arm by what is seen: a hold because of the rig, and only that, is one."""
        monitor = self.eyes.monitor
        level, cause, reason = monitor.verdict.level, monitor.verdict.cause, monitor.verdict.reason
        if level == "hold" and not monitor.halts:
            return "doubt", f"{cause}: {reason}"
        return level, f"{cause}: {reason}"

    def tick(self) -> None:
        """Look, if it is time to: once a millisecond."""

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
