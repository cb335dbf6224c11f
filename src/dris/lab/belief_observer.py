"""A belief as the observer of the twin's ball: every sight of every camera pulls it, at its own time."""

from __future__ import annotations

import numpy as np

from dris.belief.config import BeliefConfig
from dris.catching.ball_belief import BallBelief, BallBeliefConfig
from dris.catching.control import BallEstimate
from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.lab.camera_observer import CameraObserver
from dris.lab.observer import LabObserver, TruthObserver
from dris.perception.arrival import Arrival
from dris.perception.plate import Plate
from dris.perception.triangulate import Bearing

BEGIN_SIGHTS = 6
"""Sights that a track rests on before the belief begins at its state [design]."""
START_SPREAD = 2.0
"""The belief begins so much wider than the track, whose covariance is that of detection alone [design]."""
SIGMA_SCALE = 1.5
"""A sight counts as this much less exact than detection is, for calibration and clocks [design]."""
GIVE_UP = 6
"""Sights in a row that surprise too much: the belief is wrong, and begins anew [design]."""


class BeliefObserver:
    """An observer whose sights go through a belief.

    Cameras: their tracker finds the ball and fits its flight, for the arrival and for where the belief
    begins; from then on single detections pull it. The truth, with or without noise: each state that is asked
    for pulls it.
    """

    def __init__(
        self,
        inner: LabObserver,
        kinematics: Kinematics,
        belief: BallBeliefConfig | None = None,
        config: CatchingConfig | None = None,
        seed: int = 0,
    ):
        """See.

        Args:
            inner: `CameraObserver` or `TruthObserver`.
            kinematics: Of the robot, which tells where the plate is.
            belief: What is believed before anything is seen.
            config: Of the task, for its noise scale.
            seed: Of the belief.
        """
        self.inner, self._kinematics = inner, kinematics
        self.belief = BallBelief(kinematics.plate_half_size, belief, seed)
        self.restarts = 0
        """How often the belief began anew."""
        if isinstance(inner, CameraObserver):
            inner.on_sight = self._see
        elif isinstance(inner, TruthObserver):
            config, floor = config or CatchingConfig(), BeliefConfig().noise_floor
            scale = np.array((config.noise_position,) * 3 + (config.noise_velocity,) * 3)
            self._deviation = np.maximum(np.repeat(inner.sigma, 3), floor * scale)
        else:
            raise ValueError(f"a belief needs cameras or the truth to look with, got {type(inner).__name__}")

    @property
    def radius_m(self) -> float:
        """As the eyes have it."""
        return self.inner.radius_m

    @property
    def found_share(self) -> float:
        """Of the eyes."""
        return self.inner.found_share

    def tick(self) -> None:
        """Look."""
        self.inner.tick()

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """Follow the plate."""
        self.belief.track_plate(time_s, *self._kinematics.plate(q))

    def observe_plate(self, plate: Plate) -> None:
        """For the tracker."""
        self.inner.observe_plate(plate)

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """As the eyes have it."""
        return self.inner.arrival(time_s, height_m)

    def estimate(self, time_s: float) -> BallEstimate | None:
        """The belief's mean at a time; before it begins, and when it has seen nothing for long, the eyes'."""
        seen, belief = self.inner.estimate(time_s), self.belief
        if isinstance(self.inner, TruthObserver) and seen is not None:
            self._take_state(time_s, np.concatenate((seen.position, seen.velocity)))
        if belief.time_s is None or belief.is_stale(time_s) or self._is_doubted:
            return seen
        mean, _ = belief.at(time_s)
        return BallEstimate(mean[:3], mean[3:], time_s - belief.time_s)

    @property
    def trust(self) -> tuple[str, str]:
        """As the eyes have it."""
        return getattr(self.inner, "trust", ("fine", ""))

    @property
    def _is_doubted(self) -> bool:
        """Whether the cameras' monitor does not believe the rig; its doubts about a track are the track's."""
        monitor = getattr(self.inner, "monitor", None)
        return monitor is not None and monitor.doubts_rig

    def _take_state(self, time_s: float, state: np.ndarray) -> None:
        belief = self.belief
        if belief.time_s is not None and not belief.is_stale(time_s):
            if time_s <= belief.time_s:  # asked twice
                return
            belief.see_state(time_s, state, self._deviation)
            if not belief.refused:
                return
            self.restarts += 1
        belief.begin(time_s, state, np.diag(self._deviation**2), self.radius_m)

    def _see(self, sight: Bearing) -> None:
        """Take in a sight of a camera."""
        belief, tracker = self.belief, self.inner.tracker  # type: ignore[attr-defined]  # a camera's
        if belief.time_s is not None and belief.is_stale(sight.time_s):
            belief.time_s = None
        if belief.time_s is None:
            state = tracker.state(sight.time_s)
            if state is not None and state.valid and state.sights >= BEGIN_SIGHTS:
                mean = np.concatenate((state.ball_in_base, state.velocity_in_base))
                belief.begin(sight.time_s, mean, START_SPREAD**2 * state.covariance, self.radius_m)
            return
        if belief.is_too_old(sight.time_s):
            return
        speed_px = sight.focal_px * belief.speed / max(sight.depth(belief.centre), 0.1)
        sigma = SIGMA_SCALE * np.hypot(tracker.config.sigma_px, tracker.config.sigma_s * speed_px)
        belief.see(sight, float(sigma))
        if belief.refused >= GIVE_UP:
            self.restarts += 1
            belief.time_s = None


def with_belief(
    observer: LabObserver, belief: BeliefConfig, config: CatchingConfig, kinematics: Kinematics, seed: int
) -> LabObserver:
    """An observer with a policy's belief behind it, if it has one.

    Raises:
        ValueError: The twin has no such belief.
    """
    if belief.update == "none":
        return observer
    if belief.update != "ensemble" or belief.view != "mean":
        raise ValueError(
            f"beside one robot a belief is an ensemble and shows its mean, not '{belief.update}' and "
            f"'{belief.view}': evaluate this policy in the training world"
        )
    return BeliefObserver(observer, kinematics, BallBeliefConfig(belief.instances), config, seed)
