"""The twin's cameras and a belief behind them that note what they cost, for a look at both."""

from __future__ import annotations

import time

import numpy as np

from dris.catching.ball_belief import BallBelief
from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.belief_observer import BeliefObserver
from dris.catching.believed_balls import STATE
from dris.lab.camera_observer import CameraObserver, CameraObserverConfig
from dris.lab.objects import CatchObject
from dris.lab.twin import Twin
from dris.perception.detect import Detection
from dris.perception.sources import Frame
from dris.perception.triangulate import Bearing

FRAME, SIGHT = "tracker_frame", "belief_sight"
Seconds = dict[str, list[float]]
"""What one of each thing took [s]."""


class ToldBelief(BallBelief):
    """A belief that tells its instances, too."""

    def states_at(self, time_s: float) -> np.ndarray:
        """Position and velocity of each [N, 6] at a time."""
        self.at(time_s)  # carries the balls there
        return self._ahead.values[:, STATE].astype(np.float64)


class TimedEyes(CameraObserver):
    """Cameras that note how long a frame takes: detection, track and monitor, without a belief."""

    def __init__(
        self, twin: Twin, thing: CatchObject, config: CameraObserverConfig, seed: int, seconds: Seconds
    ):
        """See `CameraObserver`; what frames take is added to `seconds`."""
        super().__init__(twin, thing, config, seed)
        self.seconds = seconds

    def take(self, frame: Frame, now_s: float, whole: bool = True) -> Detection | None:
        """Look at a frame that has come."""
        pulls = self.seconds[SIGHT]
        before, began = len(pulls), time.perf_counter()
        found = super().take(frame, now_s, whole)
        self.seconds[FRAME].append(time.perf_counter() - began - sum(pulls[before:]))
        return found


class TimedBelief(BeliefObserver):
    """A belief behind such cameras that notes how long its updates take."""

    belief: ToldBelief

    def __init__(self, inner: TimedEyes, twin: Twin, config: BallBeliefConfig, seed: int):
        """See `BeliefObserver`."""
        super().__init__(inner, twin.kinematics, config, seed)
        self.belief = ToldBelief(twin.kinematics.plate_half_size, config, seed)
        self._seconds = inner.seconds

    def _see(self, sight: Bearing) -> None:
        began = time.perf_counter()
        super()._see(sight)
        self._seconds[SIGHT].append(time.perf_counter() - began)
