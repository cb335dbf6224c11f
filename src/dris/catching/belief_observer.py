"""A belief between eyes and a policy: every sight of every camera pulls it, at its own time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dris.belief.config import BeliefConfig
from dris.catching.ball_belief import LONGEST_S, BallBelief
from dris.catching.ball_belief_config import BELIEVED_S, BallBeliefConfig
from dris.catching.control import BallEstimate, LookingObserver, Troubles, Trust, trust_of
from dris.catching.eyes_observer import EyesObserver
from dris.catching.kinematics import Kinematics
from dris.perception.arrival import Arrival
from dris.perception.plate import Plate
from dris.perception.triangulate import Bearing

BEGIN_SIGHTS = 6
"""Sights that a track rests on before the belief begins at its state [design]."""
START_SPREAD = 2.0
"""The belief begins so much wider than the track, whose covariance is that of detection alone [design]."""
SIGMA_SCALE = 1.5
"""A sight counts as this much less exact than detection is, for calibration and clocks [design]."""
FAR_M = 0.3
"""So far from the plate's centre nothing touches a ball that a belief knows of [m] [design]."""
GIVE_UP = 6
"""Sights in a row that surprise too much: the belief is wrong, and begins anew [design]."""


class Believing:
    """An observer with a belief behind it. Subclasses say what pulls the belief."""

    def __init__(
        self,
        inner: LookingObserver,
        kinematics: Kinematics,
        belief: BallBeliefConfig | None = None,
        seed: int = 0,
    ):
        """See.

        Args:
            inner: The eyes.
            kinematics: Of the robot, which tells where the plate is.
            belief: What is believed before anything is seen.
            seed: Of the belief.
        """
        self.inner, self._kinematics = inner, kinematics
        self._plate = np.zeros(3)
        self.belief = BallBelief(kinematics.plate_half_size, belief, seed)
        self.refused = self.restarts = 0
        """Sights that surprised the belief too much, and how often it began anew."""

    @property
    def radius_m(self) -> float:
        """As the eyes have it."""
        return self.inner.radius_m

    @property
    def found_share(self) -> float:
        """Of the eyes."""
        return self.inner.found_share

    @property
    def trust(self) -> Trust:
        """As the eyes have it."""
        return trust_of(self.inner)

    @property
    def troubles(self) -> Troubles:
        """Of the belief, so far."""
        return Troubles(self.refused, self.restarts, self.belief.repaired)

    def tick(self) -> None:
        """Look."""
        self.inner.tick()

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """Follow the plate."""
        self._plate, rotation = self._kinematics.plate(q)
        self.belief.track_plate(time_s, self._plate, rotation)

    def observe_plate(self, plate: Plate) -> None:
        """For the tracker."""
        self.inner.observe_plate(plate)

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """As the eyes have it."""
        return self.inner.arrival(time_s, height_m)

    def estimate(self, time_s: float) -> BallEstimate | None:
        """The belief's mean at a time; before it begins, and when it has seen nothing for long, the eyes'."""
        seen, belief = self.inner.estimate(time_s), self.belief
        if seen is not None:
            self._told(time_s, seen)
        if belief.time_s is None or not self.believes_at(time_s):
            return seen
        mean, deviation = belief.at(time_s)
        return BallEstimate(mean[:3], mean[3:], time_s - belief.time_s, deviation)

    def believes_at(self, time_s: float) -> bool:
        """Whether it has a belief of a time; what it tells otherwise is the eyes'."""
        belief = self.belief
        if belief.time_s is None or time_s - belief.time_s > BELIEVED_S or belief.is_too_old(time_s):
            return False
        return not self._is_doubted()

    def _told(self, time_s: float, seen: BallEstimate) -> None:
        """The eyes have told a state."""

    def _follow_clock(self, time_s: float) -> None:
        """Give up a belief that is far ahead of what is seen: the clock has begun again.

        Otherwise it would refuse every sight as too old until the clock has come to where it was.
        """
        if self.belief.time_s is not None and time_s < self.belief.time_s - LONGEST_S:
            self.belief.time_s = None
            self.restarts += 1

    def _is_doubted(self) -> bool:
        """Whether the eyes themselves are not to be believed."""
        return False


class BeliefObserver(Believing):
    """A belief behind cameras.

    Their tracker finds the ball and fits its flight, for the arrival and for where the belief begins; from
    then on single detections pull it.
    """

    def __init__(
        self,
        inner: EyesObserver,
        kinematics: Kinematics,
        belief: BallBeliefConfig | None = None,
        seed: int = 0,
    ):
        """See `Believing`."""
        super().__init__(inner, kinematics, belief, seed)
        self._eyes = inner.eyes
        inner.on_sight = self._see

    def _is_doubted(self) -> bool:
        """Whether the monitor does not believe the rig; its doubts about a track are the track's."""
        return self._eyes.monitor.doubts_rig

    def _see(self, sight: Bearing) -> None:
        """Take in a sight of a camera."""
        belief, tracker = self.belief, self._eyes.tracker
        self._follow_clock(sight.time_s)
        if belief.time_s is not None and (belief.is_stale(sight.time_s) or self._rolls_elsewhere()):
            belief.time_s = None
        if belief.time_s is None:
            state = None if self._rolls_elsewhere() else tracker.state(sight.time_s)
            if state is not None and state.valid and state.sights >= BEGIN_SIGHTS:
                mean = np.concatenate((state.ball_in_base, state.velocity_in_base))
                belief.begin(sight.time_s, mean, START_SPREAD**2 * state.covariance, self.radius_m)
            return
        if belief.is_too_old(sight.time_s):
            return
        speed_px = sight.focal_px * belief.speed / max(sight.depth(belief.centre), 0.1)
        sigma = SIGMA_SCALE * np.hypot(tracker.config.sigma_px, tracker.config.sigma_s * speed_px)
        belief.see(sight, float(sigma))
        self.refused += belief.refused > 0
        if belief.refused >= GIVE_UP:
            self.restarts += 1
            belief.time_s = None

    def _rolls_elsewhere(self) -> bool:
        """Whether the ball rolls on something that is not the plate, such as a ramp: no belief knows it."""
        tracker = self._eyes.tracker
        centre = tracker.centre
        return (
            tracker.phase == "plate"
            and centre is not None
            and float(np.linalg.norm(centre - self._plate)) > FAR_M
        )


def beside_one_robot(belief: BeliefConfig) -> BallBeliefConfig | None:
    """A policy's belief as one robot has it; None if it has none.

    It has as many instances. A `prior` of restitution or static friction widens what a robot's belief takes
    things for and never narrows it: things differ by more than a training's. Dynamic friction is a share of
    the static there, and the radius is what the eyes are told. The other values have no effect: how exact
    sights are (`told_noise`, `noise_floor`, `jitter`) is a matter of pixels, when to begin anew
    (`restart_surprise`) of single sights, and the delay that `look_ahead` bridges is told in training alone.

    Raises:
        ValueError: No robot has such a belief, or it would have no such range.
    """
    if belief.update == "none":
        return None
    if (belief.update, belief.view, belief.physics) != ("ensemble", "mean", "domain"):
        raise ValueError(
            "beside one robot a belief is an ensemble of any physics and shows its mean, not "
            f"'{belief.update}', '{belief.physics}' and '{belief.view}': evaluate this policy in the "
            "training world"
        )
    own = BallBeliefConfig()
    wider: dict[str, Any] = {}
    for name, low, high in belief.prior:
        if name in ("static_friction", "restitution"):
            least, most = getattr(own, name)
            wider[name] = min(least, low), max(most, high)
    return replace(own, instances=belief.instances, **wider)
