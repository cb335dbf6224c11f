"""Follow the ball: from time-stamped detections of two cameras to its state at any requested time.

There is no clock here: every time is an argument, in seconds of one clock common to both cameras. The time of
a detection is the middle of its exposure.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dris.perception.arrival import Arrival
from dris.perception.camera import Array, Rig
from dris.perception.detect import Detection
from dris.perception.health import Health, Sizes
from dris.perception.motion import (
    FALLS_OR_ROLLS,
    Anchor,
    Motion,
    Sights,
    along_line,
    arrival_of,
    doubt,
    fit_motions,
    longest_flight,
)
from dris.perception.plate import Plate, across_impact, impact_time, is_above, lying, may_lie, places_apart
from dris.perception.track_config import BOUNCING_S, Phase, TrackerConfig
from dris.perception.triangulate import Bearing, sight_of


@dataclass(frozen=True, eq=False)
class BallState:
    """The ball at a requested time, as far as the track knows it."""

    time_s: float
    ball_in_base: Array
    velocity_in_base: Array
    covariance: Array
    """Of (position, velocity) [6, 6]: detection noise only; calibration and clocks come on top."""
    age_s: float
    """Requested time minus the time of the youngest sight that agreed with the track; negative if that sight
    claims to be of later."""
    phase: Phase
    sights: int
    """How many the state rests on."""
    valid: bool
    """Whether the youngest sight is neither too old nor of a time far ahead."""
    health: Health = field(default_factory=Health)


class BallTracker:
    """The track of one ball. `observe` each detection as it comes, ask `state` when a policy needs it."""

    def __init__(self, rig: Rig, config: TrackerConfig | None = None):
        self.rig, self.config = rig, config or TrackerConfig()
        self._flew_s = -np.inf
        self.reset()

    def reset(self) -> None:
        """Forget the ball, but not when one last flew."""
        self.phase: Phase = "searching"
        self.bounces: list[float] = []
        """Times of the first sights after each bounce (or other sudden change) of this track."""
        self.rejected = 0
        """Sights that neither fitted the track nor began a new motion."""
        self._behind = 0  # sights in a row that are far older than the youngest
        self._sights: list[Bearing] = []  # of the present motion, by time
        self._history: list[Bearing] = []  # of this motion and those before it, by time
        self._suspects: list[Bearing] = []  # that do not fit it
        self._motion: Motion | None = None
        self._anchor: Anchor | None = None
        self._plate: Plate | None = None
        self._sizes = Sizes()

    def expect_plate(self, plate: Plate | None) -> None:
        """Say where the plate is: bounces are then known a frame sooner, and states foresee them."""
        self._plate = plate

    @property
    def centre(self) -> Array | None:
        """Where the ball was [3] at the last sight that its motion rests on."""
        return None if self._motion is None else self._motion.ball_in_base

    @property
    def radius_m(self) -> float:
        """The ball's radius, from the size of its outline: median over the sights of this motion."""
        return 0.0 if self._motion is None else self._sizes.radius_m(self._sights, self._motion)

    def observe(self, time_s: float, camera: int, detection: Detection | None) -> Bearing | None:
        """Take in what a camera saw, or did not see, at a time; the ray of it, if it saw something.

        Args:
            time_s: Middle of the exposure. Cameras may run at their own times, and a frame may come late.
            camera: 0 or 1.
            detection: Or None if the ball was not found.

        Raises:
            ValueError: The time is not finite or the camera does not exist.
        """
        if not math.isfinite(time_s) or camera not in (0, 1):
            raise ValueError(f"need a finite time and camera 0 or 1, got {time_s} and {camera}")
        # With one camera blind sights still come in, but the motion rests on older ones.
        youngest = (
            self._motion.reference_s if self._motion else self._sights[-1].time_s if self._sights else None
        )
        if youngest is not None and self._is_lost(time_s - youngest):
            self.reset()
        if detection is None or not all(map(math.isfinite, (*detection.centre_px, detection.radius_px))):
            return None
        sight = sight_of(time_s, camera, self.rig[camera], detection)
        if self._motion is None:
            self._insert(self._sights, sight, self.config.window_s)
            self._begin()
        elif self._agrees(sight):
            self._insert(self._sights, sight, self.config.flight_window_s)
            self._insert(self._history, sight, self.config.flight_window_s)
            kept = [suspect for suspect in self._suspects if suspect.camera != camera]
            self.rejected += len(self._suspects) - len(kept)
            self._suspects = kept
            self._update()
        else:
            self._insert(self._suspects, sight, self.config.window_s)
            self._break()
        return sight

    def _is_lost(self, since_s: float) -> bool:
        """Whether a sight so long after the youngest (or before it, if negative) ends the track.

        One far behind is late. Several in a row say that the youngest was stamped far ahead.
        """
        self._behind = self._behind + 1 if since_s < -self.config.lost_s else 0
        return since_s > self.config.lost_s or self._behind >= self.config.begin_sights

    def _insert(self, sights: list[Bearing], sight: Bearing, window_s: float) -> None:
        """Add a sight at its place in time, and drop those that have left the window."""
        bisect.insort(sights, sight, key=lambda other: other.time_s)
        oldest = sights[-1].time_s - window_s - 1e-9
        while sights[0].time_s < oldest:
            del sights[0]

    def _first_since(self, time_s: float) -> int:
        """Index of the first sight of the present motion that is not older."""
        return bisect.bisect_left(self._sights, time_s - 1e-9, key=lambda sight: sight.time_s)

    def _agrees(self, sight: Bearing) -> bool:
        """Whether a sight lies where the motion so far predicts it."""
        motion, config = self._motion, self.config
        assert motion is not None
        ball, velocity = motion.at(sight.time_s)
        depth = sight.depth(ball)
        if not depth > 0:
            return False
        error = np.abs(sight.error_px(ball))
        if error.max() < config.gate_px:  # as most are: however certain the prediction is
            return True
        to_px = sight.focal_px * sight.rows / depth
        spread = to_px @ motion.covariance_at(sight.time_s)[:3, :3] @ to_px.T
        late = to_px @ velocity * config.sigma_s
        sigma = np.sqrt(np.diag(spread) + config.sigma_px**2 + late**2)
        gate = np.maximum(config.gate_px, config.gate_sigmas * sigma)
        return bool((error < gate).all())

    def _recent(self, sights: Sequence[Bearing], each: int) -> list[Bearing]:
        """The youngest sights of each camera, so many of each; fewer if there are not as many."""
        return [s for camera in (0, 1) for s in [s for s in sights if s.camera == camera][-each:]]

    def _begin(self) -> None:
        """Begin a track if the youngest sights of both cameras are one motion."""
        recent = self._recent(self._sights, self.config.begin_sights)
        if len(recent) < 2 * self.config.begin_sights:
            return
        found = self._explain(recent, "flight")
        if found is not None and found[1].rms_px <= self.config.fit_px:
            self._sights = sorted(recent, key=lambda s: s.time_s)
            self._history = list(self._sights)
            self.phase, self._motion = found

    def _break(self) -> None:
        """Begin a new motion if sights that do not fit the old one fit each other: a bounce."""
        anchor = self._bounced_at()
        need = self.config.bounce_sights if anchor is None else 1
        since = [s for s in self._suspects if anchor is None or s.time_s > anchor.time_s]
        recent = self._recent(since, self.config.bounce_sights)
        if any(sum(s.camera == camera for s in recent) < need for camera in (0, 1)):
            return
        if anchor is not None:  # sights since the impact that the gate let pass
            recent += [s for s in self._sights if s.time_s > anchor.time_s]
        motion, _ = self._fit(recent, anchor)
        if motion is None or motion.rms_px > self.config.fit_px:
            return
        self.rejected += sum(s not in recent for s in self._suspects)
        for sight in recent:
            if sight in self._suspects:
                self._insert(self._history, sight, self.config.flight_window_s)
        self._sights, self._suspects = sorted(recent, key=lambda s: s.time_s), []
        self._anchor = anchor
        self.bounces.append(self._sights[0].time_s)
        # Four frames cannot tell rolling from flying; the window decides when it is longer.
        self.phase, self._motion = "flight", motion

    def _bounced_at(self) -> Anchor | None:
        """Where the motion so far met the plate, if the plate is known and it did."""
        if self._plate is None or self._motion is None or self.phase != "flight":
            return None
        # The gate may have let a frame or two pass that were taken after the impact.
        start, end = self._sights[-1].time_s - 0.03, self._suspects[-1].time_s
        time_s = impact_time(self._motion, self._plate, self.radius_m, start, end)
        if time_s is None or time_s - self._motion.reference_s > self.config.valid_s:
            return None  # nobody saw it come: where it met the plate is a guess
        return Anchor(time_s, self._motion.at(time_s)[0], self.config.anchor_m)

    def _update(self) -> None:
        window = self._sights[self._first_since(self._sights[-1].time_s - self.config.window_s) :]
        found = self._explain(window, self.phase)
        if found is None:  # one camera has been blind for a while: go on with what is known
            return
        if self._anchor is not None and self._anchor.time_s < window[0].time_s - self.config.window_s / 4:
            self._anchor = None
        if found[0] == "flight" and not (self._plate and may_lie(found[1], self._plate, self.radius_m)):
            self._flew_s = found[1].reference_s
        if found[0] != self.phase:  # the window that speaks for the new phase is all there is of it
            self._sights = window
        self.phase, self._motion = found

    def _explain(self, seen: Sequence[Bearing], present: Phase) -> tuple[Phase, Motion] | None:
        """The phase that explains sights best, with inertia, and the motion fitted under it."""
        anchor, sights = self._anchor, Sights.of(seen)
        flight, plate = self._fit(sights, anchor)
        if flight is None or plate is None:
            return None
        # Sights alone decide: a plate that is a centimetre from where it was said to be moves the anchor.
        falls, rolls = (flight, plate) if anchor is None else self._fit(sights)
        if falls is None or rolls is None:
            return present, flight if present == "flight" else plate
        # Larger: the ball does not fall freely. The sagitta of 0.1 s of free fall is 12 mm, some 4 px.
        threshold = self.config.change_chi_square * (1 if present == "flight" else -1)
        evidence = falls.chi_square - rolls.chi_square
        if evidence > threshold and not (self._plate and is_above(rolls, self._plate, self.radius_m)):
            return "plate", replace(plate, doubt=doubt(sights, plate, rolls, self.config))
        return "flight", replace(flight, doubt=doubt(sights, flight, falls, self.config))

    def _fit(self, sights: Sequence[Bearing] | Sights, anchor: Anchor | None = None) -> list[Motion | None]:
        """Motions of a ball that falls and of one that rolls, with sights as exact as they are said to be."""
        config = self.config
        return fit_motions(sights, FALLS_OR_ROLLS, config.sigma_px, anchor=anchor, sigma_s=config.sigma_s)

    def state(self, time_s: float) -> BallState | None:
        """The ball at a time, or None while there is no track.

        In flight the state is carried along the parabola, on the plate along a straight line. While one
        camera is blind, a ball that can be lying on the plate is taken to do so.
        """
        motion = self._motion
        if not math.isfinite(time_s):
            return None
        if motion is None or time_s - motion.reference_s > self.config.valid_s:
            found = self._lying(time_s)
            if found is not None:
                return found
        if motion is None or time_s - motion.reference_s > self.config.lost_s:
            return None
        age = time_s - motion.reference_s
        ball, velocity, impact_s = self._carried(motion, time_s)
        return BallState(
            time_s=time_s,
            ball_in_base=ball,
            velocity_in_base=velocity,
            covariance=motion.covariance_at(time_s),
            age_s=age,
            phase=self.phase,
            sights=len(self._sights) - self._first_since(motion.reference_s - motion.span_s),
            valid=abs(age) <= self.config.valid_s,
            health=self._health(motion, max(time_s - impact_s, 0.0)),
        )

    def _carried(self, motion: Motion, time_s: float) -> tuple[Array, Array, float]:
        """Place and velocity [3] of the ball at a time, and when it met the plate till then; inf: not."""
        if self.phase == "flight":
            if self.config.estimator == "line":
                return *along_line(motion, self._sights, self.config.sigma_px, time_s), math.inf
            if self._plate is not None:
                impact = impact_time(motion, self._plate, self.radius_m, motion.reference_s, time_s)
                if impact is not None:
                    beyond = across_impact(motion, self._plate, impact, time_s, self.config.restitution)
                    return *beyond, impact
        return *motion.at(time_s), math.inf

    def _health(self, motion: Motion, foreseen_s: float) -> Health:
        """By what a state of this motion can be doubted, so long after an impact that it only foresees."""
        return Health(
            rms_px=motion.rms_px,
            doubt=motion.doubt,
            radii_m=self._sizes.seen(self._sights, motion),
            surprise=sum(s.time_s > motion.reference_s for s in self._suspects),
            span_s=motion.span_s,
            foreseen_s=foreseen_s,
            anchored=self._anchor is not None,
            lying=may_lie(motion, self._plate, self.radius_m) if self._plate else None,
        )

    def _lying(self, time_s: float) -> BallState | None:
        """The ball as single sights show it, if it can be lying on the plate; None without a plate.

        A ball that has flown lately may be bouncing, and one camera cannot tell.
        """
        if self._plate is None or time_s - self._flew_s < BOUNCING_S:
            return None
        fresh = [s for s in self._sights + self._suspects if time_s - s.time_s <= self.config.valid_s]
        fresh.sort(key=lambda s: s.time_s)
        found = lying(fresh, self._plate, time_s)
        if found is None:
            return None
        spread = np.diag([self.config.lying_m**2] * 3 + [self.config.lying_speed**2] * 3)
        age, apart = time_s - fresh[-1].time_s, places_apart(fresh, self._plate)
        health = Health(span_s=fresh[-1].time_s - fresh[0].time_s, lying=True, apart_m=apart)
        return BallState(time_s, *found, spread, age, "plate", len(fresh), age >= 0, health)

    def predicted_px(self, time_s: float, camera: int) -> tuple[float, float] | None:
        """Where a camera should see the ball at a time: the centre of the detector's region."""
        motion = self._motion
        if motion is not None and time_s - motion.reference_s <= self.config.valid_s:
            ball = self._carried(motion, time_s)[0]
        elif (state := self.state(time_s)) is not None:
            ball = state.ball_in_base
        else:
            return None
        pixel = self.rig[camera].pixel_of(ball)
        return pixel if pixel is not None and all(map(math.isfinite, pixel)) else None

    def arrival(self, height_m: float) -> Arrival | None:
        """When and where the ball's centre sinks to a height, or None if it is not seen to fly.

        By the parabola through the longest window up to now that one flight explains.
        """
        best = longest_flight(self._history, self.config) if self._motion is not None else None
        return None if best is None else arrival_of(best, height_m, self.config.sigma_px)
