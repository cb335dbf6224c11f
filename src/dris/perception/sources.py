"""Where frames come from: files, videos, cameras. All give the same stream of frames by time."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np

from dris.core.errors import DrisError
from dris.perception.detect import Image
from dris.perception.devices import device_serial

_FILE_NAME = re.compile(r"(?P<camera>[01])_(?P<microseconds>-?\d+)\.png")


@dataclass(frozen=True, eq=False)
class Frame:
    """One image: the middle of its exposure, the camera it came from, BGR."""

    time_s: float
    camera: int
    image: Image


class SourceError(DrisError, RuntimeError):
    """Frames that cannot be had; the message names file or device and the way out."""


class FrameSource(Protocol):
    """Anything that yields frames by time: `for frame in source`.

    One that knows which devices it opened has `serials` besides, a word a camera (`CameraSource.serials`).
    """

    def __iter__(self) -> Iterator[Frame]: ...


def save_frame(folder: Path, frame: Frame) -> Path:
    """Write a frame so that `FolderSource` finds it: <camera>_<microseconds>.png."""
    path = folder / f"{frame.camera}_{round(frame.time_s * 1e6):012d}.png"
    if not cv2.imwrite(str(path), frame.image):
        raise SourceError(f"cannot write {path}: does the folder exist?")
    return path


@dataclass(frozen=True)
class FolderSource:
    """PNG files named <camera>_<microseconds>.png, as `save_frame` writes them."""

    folder: Path

    def __iter__(self) -> Iterator[Frame]:
        matches = [(path, _FILE_NAME.fullmatch(path.name)) for path in self.folder.glob("*.png")]
        found = sorted((int(m["microseconds"]), int(m["camera"]), path) for path, m in matches if m)
        if not found:
            raise SourceError(f"{self.folder} holds no file named <camera>_<microseconds>.png")
        for microseconds, camera, path in found:
            image = cv2.imread(str(path), cv2.IMREAD_COLOR)
            if image is None:
                raise SourceError(f"{path} is damaged or no PNG: remove it or record again")
            yield Frame(microseconds * 1e-6, camera, image)  # type: ignore[arg-type]


@dataclass(frozen=True)
class ArchiveSource:
    """One NPZ file with `images` [n, height, width, 3] uint8, `times_s` [n] and `cameras` [n]."""

    path: Path

    def __iter__(self) -> Iterator[Frame]:
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                images, times, cameras = (archive[key] for key in ("images", "times_s", "cameras"))
        except (OSError, ValueError, KeyError) as error:
            raise SourceError(f"{self.path} is no archive of images, times_s and cameras: {error}") from error
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
            raise SourceError(
                f"{self.path}: images are {images.dtype} {images.shape}, expected uint8 [n, h, w, 3]"
            )
        one_each = times.shape == cameras.shape == (len(images),)
        if not one_each or not np.isin(cameras, (0, 1)).all():
            raise SourceError(f"{self.path}: times_s and cameras (0 or 1) must have one entry per image")
        _check_times(times, str(self.path), ordered=False)
        for k in np.argsort(times, kind="stable"):
            yield Frame(float(times[k]), int(cameras[k]), images[k])


@dataclass(frozen=True)
class VideoSource:
    """One video per camera and the times of its frames [s]: videos keep none that can be trusted."""

    videos: tuple[Path, Path]
    times_s: tuple[Sequence[float], Sequence[float]]

    def __iter__(self) -> Iterator[Frame]:
        return heapq.merge(self._one(0), self._one(1), key=lambda frame: frame.time_s)

    def _one(self, camera: int) -> Iterator[Frame]:
        path, times = self.videos[camera], self.times_s[camera]
        _check_times(np.asarray(times, dtype=np.float64), f"times of {path}", ordered=True)
        video = cv2.VideoCapture(str(path))
        try:
            if not video.isOpened():
                raise SourceError(f"cannot open the video {path}")
            for count, time_s in enumerate(times):
                good, image = video.read()
                if not good:
                    raise SourceError(f"{path} ends after {count} frames, but {len(times)} times were given")
                yield Frame(float(time_s), camera, image)  # type: ignore[arg-type]
        finally:
            video.release()


@dataclass(frozen=True)
class CameraSource:
    """Two cameras that OpenCV can open, for a while.

    OpenCV gives no exposure time: a frame is stamped when it was grabbed, less a delay that must be measured
    (half the exposure and the transfer). The images are not triggered together.
    """

    devices: tuple[int, int]
    clock: Callable[[], float]
    """Seconds of the clock that the tracker's caller uses as well."""
    delay_s: float = 0.0
    duration_s: float = float("inf")
    size: tuple[int, int] = (640, 480)
    fps: float = 80.0

    @property
    def serials(self) -> tuple[str, str]:
        """What both devices call themselves, empty where the system does not tell."""
        return device_serial(self.devices[0]), device_serial(self.devices[1])

    def __iter__(self) -> Iterator[Frame]:
        captures = [cv2.VideoCapture(device) for device in self.devices]
        try:
            for device, stream in zip(self.devices, captures, strict=True):
                if not stream.isOpened():
                    raise SourceError(f"cannot open camera {device}: is it plugged in and free?")
                stream.set(cv2.CAP_PROP_FRAME_WIDTH, self.size[0])
                stream.set(cv2.CAP_PROP_FRAME_HEIGHT, self.size[1])
                stream.set(cv2.CAP_PROP_FPS, self.fps)
            end = self.clock() + self.duration_s
            while self.clock() < end:
                stamps = []
                for device, stream in zip(self.devices, captures, strict=True):
                    if not stream.grab():
                        raise SourceError(f"camera {device} gives no frame: check cable and bandwidth")
                    stamps.append(self.clock() - self.delay_s)
                for index, stream in enumerate(captures):
                    good, image = stream.retrieve()
                    if good:
                        yield Frame(stamps[index], index, image)  # type: ignore[arg-type]
        finally:
            for stream in captures:
                stream.release()


def _check_times(times: np.ndarray, what: str, ordered: bool) -> None:
    if not np.isfinite(times).all():
        raise SourceError(f"{what}: a time is not finite")
    if ordered and (np.diff(times) <= 0).any():
        raise SourceError(f"{what}: times must increase")
