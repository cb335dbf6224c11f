"""Sight through the twin's cameras: pictures at 80 FPS, a sensor's faults, detection, a track.

The cameras run while the twin does: call `tick` after every millisecond. A frame is the mean of pictures
taken during its exposure, bent by the lens, noisy, and reaches the tracker `delay_s` after its middle.
"""

from __future__ import annotations

import colorsys
from collections import deque
from dataclasses import dataclass, field

import cv2
import numpy as np

from dris.eyes.camera import CameraModel, Rig, look_at
from dris.eyes.detect import BallColour, Detection, DetectorConfig, Image
from dris.eyes.plate import Plate
from dris.eyes.sensor import Exposure, SensorConfig, add_noise, bend, exposures, lens_maps
from dris.eyes.sources import Frame
from dris.eyes.track import BallState, BallTracker, TrackerConfig
from dris.eyes.watch import look
from dris.twin.cameras import CameraConfig
from dris.twin.objects import Thing
from dris.twin.twin import TICK_S, State, Twin

LENS = (-0.12, 0.06, 0.0004, -0.0003, 0.0)
"""Distortion of both lenses (k1, k2, p1, p2, k3) [assumed: a 6 mm lens]."""
SHARP_SPEED = 0.3
"""A ball slower than this moves less than a third of a pixel in an exposure: one picture will do [m/s]."""
LONGEST_S = 20.0
"""Frames are planned for this long [s]."""


@dataclass(frozen=True)
class SightConfig:
    """The way from light to a state."""

    sensor: SensorConfig = field(default_factory=lambda: SensorConfig(subframes=3))
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    delay_s: float = 0.01
    """From the middle of an exposure to its detection: half the exposure, transfer and search [assumed]."""
    knows_plate: bool = True
    """Whether the tracker is told where the robot's plate is."""


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


def detector(thing: Thing) -> DetectorConfig:
    """A colour range around that of a thing; shading changes value, so its range is wide."""
    hue, saturation, _ = colorsys.rgb_to_hsv(*thing.colour)
    around = ((360 * hue - 14) % 360, (360 * hue + 14) % 360)
    return DetectorConfig(colour=BallColour(around, (max(0.3, saturation - 0.35), 1.0), (0.15, 1.0)))


class Sight:
    """Both cameras and the tracker of one trial."""

    def __init__(self, twin: Twin, thing: Thing, config: SightConfig, seed: int):
        self.config = config
        self._names = [camera.name for camera in twin.config.lab.cameras]
        self.rig = Rig((camera_model(twin.config.lab.cameras[0]), camera_model(twin.config.lab.cameras[1])))
        self._maps = [lens_maps(self.rig[k]) for k in (0, 1)]
        self._detector = detector(thing)
        self._generator = np.random.default_rng(seed)
        self._planned = deque(exposures(config.sensor, 0.0, LONGEST_S, self._generator))
        self._open: list[tuple[Exposure, list[int], list[Image]]] = []
        self._travelling: deque[tuple[float, Frame]] = deque()
        self.tracker = BallTracker(self.rig, config.tracker)
        self.shown: list[tuple[Image, Detection | None]] = [(np.zeros((1, 1, 3), np.uint8), None)] * 2
        """Last frame of each camera and what was found in it, for videos."""
        self.frames = self.found = 0

    def tick(self, twin: Twin) -> None:
        """Take what pictures are due now, and hand what has arrived to the tracker."""
        now = twin.ticks
        half = 0.5 * self.config.sensor.exposure_s
        while self._planned and round((self._planned[0].true_s - half) / TICK_S) <= now:
            exposure = self._planned.popleft()
            self._open.append((exposure, self._instants(twin, exposure, now), []))
        for exposure, instants, pictures in self._open:
            while instants and instants[0] <= now:
                instants.pop(0)
                pictures.append(twin.render(self._names[exposure.camera])[..., ::-1])
        for exposure, _, pictures in [entry for entry in self._open if not entry[1]]:
            self._finish(exposure, pictures)
        self._open = [entry for entry in self._open if entry[1]]
        while self._travelling and self._travelling[0][0] <= twin.time_s + 1e-9:
            frame = self._travelling.popleft()[1]
            found = look(frame, self.tracker, self._detector)
            self.frames, self.found = self.frames + 1, self.found + (found is not None)
            self.shown[frame.camera] = (frame.image, found)

    def _instants(self, twin: Twin, exposure: Exposure, now: int) -> list[int]:
        """Ticks at which an exposure's pictures are taken."""
        sensor, middle = self.config.sensor, round(exposure.true_s / TICK_S)
        speed = float(np.linalg.norm(twin.state().thing_velocity))
        if sensor.subframes == 1 or speed < SHARP_SPEED:
            return [max(middle, now)]
        shares = (np.arange(sensor.subframes) + 0.5) / sensor.subframes - 0.5
        return [max(round((exposure.true_s + sensor.exposure_s * s) / TICK_S), now) for s in shares]

    def _finish(self, exposure: Exposure, pictures: list[Image]) -> None:
        total = np.zeros(pictures[0].shape, np.float32)
        for picture in pictures:
            cv2.accumulate(np.ascontiguousarray(picture), total)
        clean = np.rint(total / len(pictures)).astype(np.uint8)
        image = add_noise(bend(clean, self._maps[exposure.camera]), self.config.sensor, self._generator)
        arrives = exposure.true_s + self.config.delay_s
        self._travelling.append((arrives, Frame(exposure.stamp_s, exposure.camera, image)))

    def tell_plate(self, state: State, velocity: np.ndarray) -> None:
        """Tell the tracker where the plate is, as the robot's own joints say."""
        if self.config.knows_plate:
            normal = state.plate_rotation[:, 2]
            self.tracker.expect_plate(Plate(state.time_s, state.plate_position, normal, velocity))

    def state(self, time_s: float) -> BallState | None:
        """The ball as the track has it, carried on to a time; None if it is lost or too old."""
        state = self.tracker.state(time_s)
        return state if state is not None and state.valid else None

    def arrives_in(self, state: State, radius: float) -> float | None:
        """Time until the ball is at the plate's height, by the parabola through the flight so far [s]."""
        arrival = self.tracker.arrival(float(state.plate_position[2]) + radius)
        return None if arrival is None else arrival.time_s - state.time_s
