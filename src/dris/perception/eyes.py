"""Two cameras, a track and its monitor as one: frames go in as they come, a state to be trusted comes out.

The twin's cameras and a real rig's use the same: `Eyes.take` each frame, `Eyes.expect_plate` what the robot's
joints say, and ask `Eyes.state` when a policy needs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dris.perception.arrival import Arrival
from dris.perception.calibration import check_image
from dris.perception.camera import Rig
from dris.perception.detect import Detection, DetectorConfig, candidates, most_complete
from dris.perception.monitor import Monitor
from dris.perception.monitor_config import MonitorConfig
from dris.perception.plate import Plate
from dris.perception.plate_view import plate_shift
from dris.perception.sources import Frame
from dris.perception.track import BallState, BallTracker, TrackerConfig
from dris.perception.triangulate import Bearing

AROUND_S = 0.1
"""Beside the ball, a camera looks at the whole view so often: for a second ball. As often it looks for a
plate that it has not made out yet."""
PLATE_EVERY_S = 0.5
"""The plate is looked for so often once enough looks have made it out, while it stands still:"""
STILL_SPEED = 0.1
"""slower than this [m/s]."""
APART = 2.0
"""Two things are two if their centres are further apart than this times the sum of their radii."""


@dataclass
class _Looks:
    """When a camera last looked, and at what."""

    around_s: float = -np.inf
    """At the whole view,"""
    plate_s: float = -np.inf
    """and at the plate;"""
    plates: int = 0
    """how many looks made it out,"""
    blind: bool = False
    """and whether the last one did not."""
    crowded: bool = False
    """Whether there was more than one ball in the last whole view."""


class Eyes:
    """What sees the ball, and says when it should not be believed."""

    def __init__(
        self,
        rig: Rig,
        radii_m: tuple[float, float],
        detector: DetectorConfig | None = None,
        tracker: TrackerConfig | None = None,
        monitor: MonitorConfig | None = None,
    ):
        """Open.

        Args:
            rig: As calibrated.
            radii_m: Smallest and largest that the thing's outline can have; of a ball, twice the same.
            detector: What counts as the ball in an image.
            tracker: How it is followed.
            monitor: From when on something is wrong.
        """
        self.rig, self._detector = rig, detector or DetectorConfig()
        self.tracker = BallTracker(rig, tracker)
        self.monitor = Monitor(radii_m, monitor)
        self._looks = (_Looks(), _Looks())
        self._plate: Plate | None = None
        self.sight: Bearing | None = None
        """The ray on which the last frame showed the ball, if it did."""

    def expect_plate(self, plate: Plate, for_track: bool = True) -> None:
        """Learn where the plate is: for the monitor, and for the track unless that shall not know.

        A robot tells it all the time, so cameras that fall silent are noticed while nobody asks for a ball.
        """
        self._plate = plate
        if for_track:
            self.tracker.expect_plate(plate)
        if self.monitor.is_due(plate.time_s):
            self.monitor.judge(plate.time_s, self.tracker.state(plate.time_s))

    def wants_all(self, camera: int, now_s: float) -> bool:
        """Whether the next frame of a camera should show the whole view, not a window around the ball."""
        looks = self._looks[camera]
        return looks.crowded or now_s - looks.around_s >= AROUND_S or self._plate_is_due(looks, now_s)

    def take(self, frame: Frame, now_s: float, whole: bool = True) -> Detection | None:
        """Look at a frame that has come, and tell track and monitor; what was found.

        Args:
            frame: With its stamp.
            now_s: By the clock that stamps frames.
            whole: Whether it shows the whole view.

        Raises:
            CalibrationError: The image does not fit the camera's calibration.
        """
        check_image(frame.image, self.rig[frame.camera])
        found, self.sight = None, None
        if self.monitor.admit(now_s, frame.time_s, frame.camera, frame.image):
            found = self._look(frame, now_s, whole)
            self.sight = self.tracker.observe(frame.time_s, frame.camera, found)
            if whole:
                self._look_at_plate(frame, now_s)
        self.monitor.judge(now_s, self.tracker.state(now_s))
        return found

    def _look(self, frame: Frame, now_s: float, whole: bool) -> Detection | None:
        looks, near = self._looks[frame.camera], self.tracker.predicted_px(frame.time_s, frame.camera)
        everywhere = near is None or (whole and self.wants_all(frame.camera, now_s))
        seen = candidates(frame.image, self._detector, None if everywhere else near)
        if not seen and not everywhere:  # it may have bounced out of the region
            everywhere, seen = True, candidates(frame.image, self._detector)
        found = self._choose(seen, near)
        others = 0 if found is None else sum(_apart(found, other) for other in seen)
        self.monitor.looked(now_s, others)
        if whole and everywhere:
            looks.around_s, looks.crowded = now_s, others > 0
        elif others:
            looks.crowded = True
        return found

    def _choose(self, seen: list[Detection], near: tuple[float, float] | None) -> Detection | None:
        """The most complete one where the ball should be, if there is one there, or of all."""
        half = self._detector.roi_half_px
        if near is None:
            return most_complete(seen)
        (x, y), here = near, []
        for one in seen:
            if max(abs(one.centre_px[0] - x), abs(one.centre_px[1] - y)) <= half:
                here.append(one)
        return most_complete(here or seen)

    def _plate_is_due(self, looks: _Looks, now_s: float) -> bool:
        plate = self._plate
        if plate is None or plate.edge_in_base is None:
            return False
        if looks.plates >= self.monitor.config.shifts:
            wait_s = PLATE_EVERY_S
        else:  # dark first frames must not use up the quick looks, nor a blind camera look at every frame
            wait_s = AROUND_S if looks.blind else 0.0
        if now_s - looks.plate_s < wait_s:
            return False
        return math.hypot(*plate.velocity_in_base.tolist()) <= STILL_SPEED

    def _look_at_plate(self, frame: Frame, now_s: float) -> None:
        looks = self._looks[frame.camera]
        if self._plate is None or not self._plate_is_due(looks, now_s):
            return
        shift = plate_shift(frame.image, self.rig[frame.camera], self._plate, frame.time_s)
        looks.plate_s, looks.blind = now_s, shift is None
        if shift is not None:
            looks.plates += 1
            self.monitor.saw_plate(frame.camera, shift)

    def state(self, now_s: float) -> BallState | None:
        """The ball now; None if it is lost, too old, or not to be acted on: `monitor.verdict` says why."""
        state = self.tracker.state(now_s)
        if self.monitor.judge(now_s, state).level != "fine" or state is None or not state.valid:
            return None
        return state

    def arrival(self, now_s: float, height_m: float) -> Arrival | None:
        """When and where the ball sinks to a height, if that is known and can be trusted."""
        if self.monitor.judge(now_s, self.tracker.state(now_s)).level != "fine":
            return None
        return self.tracker.arrival(height_m)


def _apart(one: Detection, other: Detection) -> bool:
    """Whether two detections are of two things, neither a part of the other."""
    distance = math.dist(one.centre_px, other.centre_px)
    return distance > APART * (one.radius_px + other.radius_px)
