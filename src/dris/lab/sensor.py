"""What a real camera does to a clean image and to its time: lens, exposure, noise, jitter, lost frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from dris.perception.camera import CameraModel
from dris.perception.detect import Image

Renderer = Callable[[int, float], Image]
"""The image of a camera (index) at an instant (time in s), with no blur and no noise."""


@dataclass(frozen=True)
class SensorConfig:
    """Imperfections of a camera; the defaults are an industrial camera, free-running, in room light."""

    fps: float = 80.0
    exposure_s: float = 0.003
    subframes: int = 5
    """Instants averaged over an exposure: the ball's edge is drawn in that many steps."""
    full_well: float = 10_000.0
    """Electrons of a white pixel: its shot noise is 255 / sqrt(full_well), 2.6 of 255."""
    read_noise: float = 2.0
    """Standard deviation of every pixel, of 255."""
    offset_s: tuple[float, float] = (0.0, 0.005)
    """When each camera's first exposure is centred: cameras without a common trigger differ."""
    jitter_s: float = 0.0005
    """Standard deviation of a time stamp about the exposure's true middle."""
    clock_s: tuple[float, float] = (0.0, 0.0)
    """Constant error of each camera's time stamps: what nobody measured or knows."""
    drop_rate: float = 0.01
    """Share of frames that never arrive, at random,"""
    drop_every: int | None = None
    """and every so many, of each camera."""
    covered_s: tuple[float, float] | None = None
    """From when to when the first camera sees nothing: somebody stands before it."""

    def __post_init__(self) -> None:
        """Refuse values that no camera has."""
        if not 0 < self.fps < 10_000 or not 0 <= self.exposure_s <= 1 / self.fps:
            found = f"{self.fps}, {self.exposure_s}"
            raise ValueError(f"need 0 < fps and 0 <= exposure_s <= 1 / fps, got {found}")
        if self.drop_every is not None and self.drop_every < 2:
            raise ValueError(f"drop_every must be None or at least 2, got {self.drop_every}")
        if self.covered_s is not None and not 0 <= self.covered_s[0] <= self.covered_s[1]:
            raise ValueError(f"covered_s must be None or go from a time to a later one, got {self.covered_s}")
        if self.subframes < 1 or not self.full_well > 0:
            found = f"{self.subframes}, {self.full_well}"
            raise ValueError(f"subframes and full_well must be positive, got {found}")
        if not 0 <= self.drop_rate < 1 or self.jitter_s < 0 or self.read_noise < 0:
            raise ValueError(
                f"need 0 <= drop_rate < 1 and no negative jitter_s or read_noise, got {self.drop_rate}, "
                f"{self.jitter_s}, {self.read_noise}"
            )


@dataclass(frozen=True)
class Exposure:
    """One frame to be taken: its true middle, and the time that its stamp will claim."""

    camera: int
    true_s: float
    stamp_s: float


def exposures(
    config: SensorConfig, start_s: float, end_s: float, generator: np.random.Generator
) -> Iterator[Exposure]:
    """The frames of both cameras that arrive in an interval, by true time."""
    period = 1 / config.fps
    count = int(np.floor((end_s - start_s) / period)) + 1
    frames = [
        (start_s + config.offset_s[camera] + k * period, camera)
        for k in range(count)
        if config.drop_every is None or (k + 1) % config.drop_every
        for camera in (0, 1)
    ]
    for true_s, camera in sorted(frames):
        jitter, chance = config.jitter_s * generator.standard_normal(), generator.random()
        if true_s <= end_s and chance >= config.drop_rate:
            yield Exposure(camera, true_s, true_s + config.clock_s[camera] + jitter)


def covers(config: SensorConfig, exposure: Exposure) -> bool:
    """Whether something stands before the camera while it exposes."""
    if config.covered_s is None or exposure.camera != 0:
        return False
    return config.covered_s[0] <= exposure.true_s <= config.covered_s[1]


def expose(render: Renderer, exposure: Exposure, config: SensorConfig) -> Image:
    """The mean of instants spread evenly over an exposure: motion blur."""
    if config.subframes == 1 or config.exposure_s == 0:
        return render(exposure.camera, exposure.true_s)
    # The middles of equal parts of the exposure: their mean time is its middle.
    shares = (np.arange(config.subframes) + 0.5) / config.subframes - 0.5
    images = [render(exposure.camera, exposure.true_s + config.exposure_s * share) for share in shares]
    total = np.zeros(images[0].shape, np.float32)
    for image in images:
        cv2.accumulate(image, total)
    return np.rint(total / config.subframes).astype(np.uint8)


class SensorNoise:
    """Shot noise, whose variance goes with brightness, and read noise, both as normal numbers.

    Numbers are drawn once, for an area larger than a frame; every frame gets a window of it at a place drawn
    anew. That is four times faster, and nothing that looks at frames one by one can tell.
    """

    MARGIN = 256

    def __init__(self, shape: tuple[int, ...], config: SensorConfig, generator: np.random.Generator):
        """Draw.

        Args:
            shape: Of the largest image (height, width, 3).
            config: How noisy.
            generator: Draws the numbers, and later the windows.
        """
        size = (shape[0] + self.MARGIN, shape[1] + self.MARGIN, *shape[2:])
        self._normal = generator.standard_normal(size, dtype=np.float32)
        self._generator = generator
        gain = 255.0 / config.full_well  # image units per electron: variance of shot noise = gain * value
        self._sigma = np.sqrt(gain * np.arange(256) + config.read_noise**2).astype(np.float32)

    def __call__(self, image: Image) -> Image:
        """A noisy copy of an image no larger than announced."""
        top, left = self._generator.integers(0, self.MARGIN, 2)
        normal = self._normal[top : top + image.shape[0], left : left + image.shape[1]]
        noise = cv2.multiply(cv2.LUT(image, self._sigma), normal)
        return cv2.add(image, noise, dtype=cv2.CV_8U)  # type: ignore[return-value]


def lens_maps(camera: CameraModel) -> tuple[np.ndarray, np.ndarray]:
    """Where each pixel of a distorted image comes from in the image of a camera without distortion."""
    return _maps(camera.width, camera.height, camera.focal_px, camera.centre_px, camera.distortion)


# A third of a second each: at the start of a trial a simulated robot's time would stand for as long.
@lru_cache(maxsize=16)
def _maps(
    width: int,
    height: int,
    focal_px: tuple[float, float],
    centre_px: tuple[float, float],
    distortion: tuple[float, float, float, float, float],
) -> tuple[np.ndarray, np.ndarray]:
    camera = CameraModel("", width, height, focal_px, centre_px, np.eye(4), distortion)
    x, y = np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64))
    straight = camera.to_normalised(np.stack((x, y), axis=-1)) * focal_px + centre_px
    across, down = straight[..., 0].astype(np.float32), straight[..., 1].astype(np.float32)
    across.setflags(write=False)
    down.setflags(write=False)
    return across, down


def bend(image: Image, maps: tuple[np.ndarray, np.ndarray]) -> Image:
    """Apply a lens's distortion, as `lens_maps` describes it, to the image of a renderer without a lens."""
    return cv2.remap(image, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)  # type: ignore[return-value]
