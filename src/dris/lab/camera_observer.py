"""The ball through the twin's cameras: pictures at 80 FPS, a sensor's faults, detection, a track.

The cameras run while the twin does. A frame is the mean of pictures taken during its exposure, bent by the
lens, noisy, and reaches the tracker `delay_s` after its middle. While the ball is followed, a camera reads
out a window around where it should be, as industrial cameras can; what lies outside stays black.
"""

from __future__ import annotations

import colorsys
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np

from dris.catching.eyes_observer import EyesObserver
from dris.lab.cameras import CameraConfig
from dris.lab.objects import CatchObject
from dris.lab.sensor import Exposure, SensorConfig, SensorNoise, bend, covers, exposures, lens_maps
from dris.lab.twin import TICK_S, Twin
from dris.lab.window import WINDOW
from dris.perception.camera import CameraModel, Rig, look_at
from dris.perception.detect import BallColour, Detection, DetectorConfig, Image
from dris.perception.eyes import Eyes
from dris.perception.monitor import Monitor
from dris.perception.monitor_config import MonitorConfig
from dris.perception.plate import Plate
from dris.perception.sources import Frame
from dris.perception.track import BallTracker, TrackerConfig

LENS = (-0.12, 0.06, 0.0004, -0.0003, 0.0)
"""Distortion of both lenses (k1, k2, p1, p2, k3) [assumed: a 6 mm lens]."""
SHARP_SPEED = 0.3
"""A ball slower than this moves less than a third of a pixel in an exposure: one picture will do [m/s]."""
LONGEST_S = 20.0
"""Frames are planned for this long [s]."""


@dataclass(frozen=True)
class CameraObserverConfig:
    """The way from light to a state."""

    sensor: SensorConfig = field(default_factory=lambda: SensorConfig(subframes=3))
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    delay_s: float = 0.01
    """From the middle of an exposure to its detection: half the exposure, transfer and search [assumed]."""
    knows_plate: bool = True
    """Whether the tracker is told where the robot's plate is."""
    window_half_px: int | None = 72
    """Half side of the window that is read out around the ball: the detector's own and a little more. None:
    whole frames, for videos."""

    def __post_init__(self) -> None:
        """Refuse windows that the renderer cannot fill: the lens shifts their pixels."""
        if self.window_half_px is not None and not 16 <= self.window_half_px <= 0.42 * WINDOW:
            raise ValueError(
                f"window_half_px must lie in [16, {0.42 * WINDOW:.0f}] or be None, got {self.window_half_px}"
            )


POOR_CAMERAS = CameraObserverConfig(
    # Four times the noise of a pixel: a sixteenth of the light, four times the electronics' part.
    sensor=SensorConfig(
        subframes=3, full_well=625.0, read_noise=8.0, drop_rate=0.0, drop_every=3, covered_s=(0.55, 0.75)
    ),
    delay_s=0.06,
    tracker=TrackerConfig(valid_s=0.15),  # or it would have nothing to say: its youngest sight is 60 ms old
)
"""Cheap cameras in dim light: noise, 60 ms of latency, every third frame lost; and somebody stands before one
for 0.2 s while balls from ramps meet the plate."""


def camera_model(camera: CameraConfig) -> CameraModel:
    """What a perfect calibration of a camera of the twin would find."""
    return CameraModel(
        name=camera.name,
        width=camera.width,
        height=camera.height,
        focal_px=(camera.focal, camera.focal),
        centre_px=(0.5 * (camera.width - 1), 0.5 * (camera.height - 1)),
        distortion=LENS,
        camera_to_base=look_at(camera.position, camera.target),
    )


def detector(thing: CatchObject) -> DetectorConfig:
    """A colour range around that of a thing; shading changes value, so its range is wide."""
    hue, saturation, _ = colorsys.rgb_to_hsv(*thing.colour)
    around = ((360 * hue - 14) % 360, (360 * hue + 14) % 360)
    return DetectorConfig(colour=BallColour(around, (max(0.3, saturation - 0.35), 1.0), (0.15, 1.0)))


@dataclass
class _Shot:
    """A frame that is being exposed."""

    exposure: Exposure
    instants: list[int]
    """Ticks at which its pictures are still to be taken."""
    centre: tuple[int, int] | None
    """Of the window that is read out [pixels]; None: all of it."""
    pictures: list[Image] = field(default_factory=list)


class CameraObserver(EyesObserver):
    """Both cameras and the tracker of one trial."""

    def __init__(
        self,
        twin: Twin,
        thing: CatchObject,
        config: CameraObserverConfig | None = None,
        seed: int = 0,
        believed: Rig | None = None,
        monitor: MonitorConfig | None = None,
        wires: Callable[[Frame], Frame | None] | None = None,
    ):
        """Open the eyes.

        Args:
            twin: Whose ball.
            thing: The ball.
            config: The way from light to a state.
            seed: Of noise, jitter and losses.
            believed: The cameras as calibrated, if that differs from what they are.
            monitor: From when on the eyes do not believe themselves.
            wires: What becomes of a frame on its way; None: it is lost.
        """
        self.config = config = config or CameraObserverConfig()
        self._names = [camera.name for camera in twin.config.lab.cameras]
        self.rig = Rig((camera_model(twin.config.lab.cameras[0]), camera_model(twin.config.lab.cameras[1])))
        self._maps = [lens_maps(self.rig[k]) for k in (0, 1)]
        eyes = Eyes(believed or self.rig, thing.outline, detector(thing), config.tracker, monitor)
        super().__init__(eyes, thing.radius)
        self._twin, self._wires = twin, wires
        generator = np.random.default_rng(seed)
        self._planned = deque(exposures(config.sensor, 0.0, LONGEST_S, generator))
        self._shape = (self.rig[0].height, self.rig[0].width, 3)
        self._noise = SensorNoise(self._shape, config.sensor, generator)
        self._open: list[_Shot] = []
        self._travelling: deque[tuple[float, Frame, bool]] = deque()
        self._missed = [True, True]  # the next frame of a camera that missed the ball is a whole one
        self.shown: list[tuple[Image, Detection | None]] = [(np.zeros(self._shape, np.uint8), None)] * 2
        """Last frame of each camera and what was found in it, for videos."""

    @property
    def tracker(self) -> BallTracker:
        """Of the ball."""
        return self.eyes.tracker

    @property
    def monitor(self) -> Monitor:
        """Says when the eyes should not be believed."""
        return self.eyes.monitor

    def tick(self) -> None:
        """Take what pictures are due now, and hand what has arrived to the tracker."""
        twin = self._twin
        now = twin.ticks
        half = 0.5 * self.config.sensor.exposure_s
        while self._planned and self._planned[0].true_s - half < (now + 0.5) * TICK_S:
            exposure = self._planned.popleft()
            self._open.append(_Shot(exposure, self._instants(exposure, now), self._window(exposure)))
        for shot in self._open:
            while shot.instants and shot.instants[0] <= now:
                shot.instants.pop(0)
                shot.pictures.append(self._render(shot))
        for shot in self._open:
            if not shot.instants:
                frame = Frame(shot.exposure.stamp_s, shot.exposure.camera, self._frame(shot))
                comes_s = shot.exposure.true_s + self.config.delay_s
                self._travelling.append((comes_s, frame, shot.centre is None))
        self._open = [shot for shot in self._open if shot.instants]
        while self._travelling and self._travelling[0][0] <= twin.time_s + 1e-9:
            _, frame, whole = self._travelling.popleft()
            arrived = frame if self._wires is None else self._wires(frame)
            if arrived is not None:
                self.take(arrived, twin.time_s, whole)

    def take(self, frame: Frame, now_s: float, whole: bool = True) -> Detection | None:
        """Look at a frame that has come, and keep it for videos."""
        found = super().take(frame, now_s, whole)
        self._missed[frame.camera] = found is None
        self.shown[frame.camera] = (frame.image, found)
        return found

    def _window(self, exposure: Exposure) -> tuple[int, int] | None:
        """Where to look, if the ball is being followed."""
        if self.config.window_half_px is None or self._missed[exposure.camera]:
            return None
        if self.eyes.wants_all(exposure.camera, self._twin.time_s):
            return None
        centre = self.tracker.predicted_px(exposure.stamp_s, exposure.camera)
        height, width = self._shape[:2]
        if centre is None or not (0 <= centre[0] <= width - 1 and 0 <= centre[1] <= height - 1):
            return None
        return round(centre[0]), round(centre[1])

    def _instants(self, exposure: Exposure, now: int) -> list[int]:
        """Ticks at which an exposure's pictures are taken: evenly about the tick of its middle."""
        sensor, middle = self.config.sensor, math.floor(exposure.true_s / TICK_S + 0.5)
        speed = float(np.linalg.norm(self._twin.state().thing_velocity))
        if sensor.subframes == 1 or speed < SHARP_SPEED:
            return [max(middle, now)]
        shares = (np.arange(sensor.subframes) + 0.5) / sensor.subframes - 0.5
        return [max(middle + round(sensor.exposure_s * s / TICK_S), now) for s in shares]

    def _corner(self, shot: _Shot) -> tuple[int, int]:
        """Left and top, before the lens, of what is drawn for a window."""
        assert shot.centre is not None
        x, y = shot.centre
        column, row = (float(way[y, x]) for way in self._maps[shot.exposure.camera])
        return round(column) - WINDOW // 2, round(row) - WINDOW // 2

    def _render(self, shot: _Shot) -> Image:
        corner = None if shot.centre is None else self._corner(shot)
        picture = self._twin.render(self._names[shot.exposure.camera], corner)
        return cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)  # type: ignore[return-value]

    def _frame(self, shot: _Shot) -> Image:
        """What the sensor gives: the mean of the pictures, bent and noisy, in a frame of full size."""
        if covers(self.config.sensor, shot.exposure):
            return self._noise(np.zeros(self._shape, np.uint8))
        clean = shot.pictures[0]
        if len(shot.pictures) > 1:
            clean = np.rint(np.mean(shot.pictures, axis=0, dtype=np.float32)).astype(np.uint8)
        across, down = self._maps[shot.exposure.camera]
        if shot.centre is None:
            return self._noise(bend(clean, (across, down)))
        half = self.config.window_half_px or 0
        (x, y), (left, top) = shot.centre, self._corner(shot)
        rows, columns = slice(max(y - half, 0), y + half), slice(max(x - half, 0), x + half)
        part = bend(clean, (across[rows, columns] - left, down[rows, columns] - top))
        frame = np.zeros(self._shape, np.uint8)
        frame[rows, columns] = self._noise(part)
        return frame

    def observe_plate(self, plate: Plate) -> None:
        """Tell the eyes where the plate is."""
        self.eyes.expect_plate(plate, self.config.knows_plate)
