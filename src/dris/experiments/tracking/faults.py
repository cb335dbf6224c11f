"""Faults that cameras, clocks and rooms have: what becomes of a recorded trial's frames, or of its rig."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np

from dris.experiments.tracking.conditions import moved
from dris.experiments.tracking.recording import Arrived, Recording
from dris.perception.camera import CameraModel, Rig
from dris.perception.detect import Image
from dris.perception.sources import Frame

BEFORE_LANDING_S = 0.15
"""Faults that begin during a trial begin so long before the ball meets the plate."""
PATCH_M = 0.04
"""Side of a patch on the plate."""

Spoil = Callable[[Recording], list[Arrived]]


def _as_recorded(recording: Recording) -> list[Arrived]:
    return recording.frames


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong."""

    name: str
    spoil: Spoil = _as_recorded
    believed: Callable[[Rig], Rig] | None = None
    """The cameras as calibrated, from the true ones."""
    later: bool = False
    """Whether it begins `BEFORE_LANDING_S` before the ball lands, and not with the trial."""

    def begins_s(self, recording: Recording) -> float:
        """When it begins: at the first frame that it changes, or with the trial."""
        if self.believed is not None:
            return recording.frames[0].now_s
        if self.later:
            return onset_s(recording)
        frames = zip(self.spoil(recording), recording.frames, strict=True)
        return next(
            (old.now_s for new, old in frames if _differ(new.frame, old.frame)), recording.frames[0].now_s
        )


def _differ(one: Frame, other: Frame) -> bool:
    return one.time_s != other.time_s or not np.array_equal(one.image, other.image)


def onset_s(recording: Recording) -> float:
    """When faults of `later` begin."""
    return recording.truth.landing_s() - BEFORE_LANDING_S


def each(change: Callable[[Frame], Frame | None], later: bool = False, only: int | None = None) -> Spoil:
    """Change every frame (of one camera, from the onset on); None loses it."""
    return lambda recording: _change(recording, change, onset_s(recording) if later else 0.0, np.inf, only)


def during(seconds: float, change: Callable[[Frame], Frame | None], only: int | None = None) -> Spoil:
    """Change frames (of one camera) for a while from the onset on; None loses them."""
    return lambda recording: _change(recording, change, onset_s(recording), seconds, only)


def _change(
    recording: Recording,
    change: Callable[[Frame], Frame | None],
    start_s: float,
    seconds: float,
    only: int | None,
) -> list[Arrived]:
    found = []
    for item in recording.frames:
        touched = start_s <= item.now_s < start_s + seconds and only in (None, item.frame.camera)
        frame = change(item.frame) if touched else item.frame
        if frame is not None:
            found.append(replace(item, frame=frame))
    return found


def shifted(seconds: float) -> Callable[[Frame], Frame]:
    """Another stamp."""
    return lambda frame: replace(frame, time_s=frame.time_s + seconds)


def pictures(change: Callable[[Image], Image]) -> Callable[[Frame], Frame]:
    """Another picture."""
    return lambda frame: replace(frame, image=change(frame.image))


def freeze(cameras: tuple[int, ...], length: int) -> Spoil:
    """From the onset on cameras give their last `length` pictures again and again; stamps go on."""

    def spoil(recording: Recording) -> list[Arrived]:
        start_s, found = onset_s(recording), []
        past: dict[int, list[Image]] = {0: [], 1: []}
        counts = {0: 0, 1: 0}
        for item in recording.frames:
            camera = item.frame.camera
            if item.now_s < start_s or camera not in cameras:
                past[camera].append(item.frame.image)
                found.append(item)
                continue
            kept = past[camera][-length:]
            image = kept[counts[camera] % len(kept)]
            counts[camera] += 1
            found.append(replace(item, frame=replace(item.frame, image=image)))
        return found

    return spoil


def one_far_ahead(recording: Recording) -> list[Arrived]:
    """A single frame is stamped a million seconds ahead."""
    k = next(k for k, item in enumerate(recording.frames) if item.now_s >= onset_s(recording))
    item = recording.frames[k]
    wrong = replace(item, frame=shifted(1e6)(item.frame))
    return [*recording.frames[:k], wrong, *recording.frames[k + 1 :]]


def exchange_stamps(within_camera: bool) -> Spoil:
    """Neighbours, of one camera or of the stream of both, have each other's stamps."""

    def spoil(recording: Recording) -> list[Arrived]:
        found = list(recording.frames)
        lanes = [[k for k, i in enumerate(found) if i.frame.camera == camera] for camera in (0, 1)]
        for lane in lanes if within_camera else [list(range(len(found)))]:
            for first, second in zip(lane[::2], lane[1::2], strict=False):
                a, b = found[first], found[second]
                found[first] = replace(a, frame=replace(a.frame, time_s=b.frame.time_s))
                found[second] = replace(b, frame=replace(b.frame, time_s=a.frame.time_s))
        return found

    return spoil


def repeat_stamp(recording: Recording) -> list[Arrived]:
    """From the onset on both cameras give the stamp of their last frame again."""
    start_s, last, found = onset_s(recording), {0: 0.0, 1: 0.0}, []
    for item in recording.frames:
        if item.now_s < start_s:
            last[item.frame.camera] = item.frame.time_s
        found.append(replace(item, frame=replace(item.frame, time_s=last[item.frame.camera])))
    return found


def come_late(recording: Recording) -> list[Arrived]:
    """Every fifth frame comes 30 ms later than it should."""
    late = [replace(i, now_s=i.now_s + 0.03 * (k % 5 == 0)) for k, i in enumerate(recording.frames)]
    return sorted(late, key=lambda item: item.now_s)


def _paint(recording: Recording, draw: Callable[[Image, CameraModel, int], None]) -> list[Arrived]:
    """Frames with something drawn into them; `draw` is told the millisecond."""
    found = []
    for item in recording.frames:
        image, last = item.frame.image.copy(), len(recording.truth.states) - 1
        draw(image, recording.rig[item.frame.camera], min(max(round(item.frame.time_s / 1e-3), 0), last))
        found.append(replace(item, frame=replace(item.frame, image=image)))
    return found


def _colour(recording: Recording) -> tuple[float, float, float]:
    red, green, blue = (200.0 * value for value in recording.thing.colour)
    return blue, green, red


def _draw_ball(image: Image, camera: CameraModel, place: np.ndarray, recording: Recording) -> None:
    depth = float(camera.to_camera(place)[2])
    if depth > 0.1 and bool(camera.sees(place)):
        x, y = (round(16 * value) for value in camera.project(place))
        radius = round(16 * camera.mean_focal_px * recording.thing.radius / depth)
        cv2.circle(image, (x, y), radius, _colour(recording), -1, cv2.LINE_AA, shift=4)


def second_ball(path: Callable[[float, np.ndarray], np.ndarray]) -> Spoil:
    """A second ball on a path: where it is, for the time since the landing and the plate's place then."""

    def spoil(recording: Recording) -> list[Arrived]:
        landing_s, states = recording.truth.landing_s(), recording.truth.states
        plate = states[0].plate_position

        def draw(image: Image, camera: CameraModel, tick: int) -> None:
            _draw_ball(image, camera, path(states[tick].time_s - landing_s, plate), recording)

        return _paint(recording, draw)

    return spoil


def _lies_still(since_landing_s: float, plate: np.ndarray) -> np.ndarray:
    return plate + (0.3, 0.4, 0.1)


def _flies_by(since_landing_s: float, plate: np.ndarray) -> np.ndarray:
    """Over the plate from the side, 0.1 s after the other lands, 0.25 m above it."""
    t = since_landing_s - 0.1
    return plate + (0.05, 1.8 * t, 0.25 + 1.0 * t - 4.905 * t * t)


def patch(recording: Recording) -> list[Arrived]:
    """A square of the ball's colour sticks to the plate, off its middle."""
    states = recording.truth.states

    def draw(image: Image, camera: CameraModel, tick: int) -> None:
        state = states[tick]
        square = 0.5 * PATCH_M * np.array([[1, 1, 0], [1, -1, 0], [-1, -1, 0], [-1, 1, 0]]) + (
            0.05,
            0.04,
            0.001,
        )
        corners = camera.project(state.plate_position + square @ state.plate_rotation.T)
        over = image.copy()
        cv2.fillConvexPoly(
            over, np.rint(16 * corners).astype(np.int32), _colour(recording), cv2.LINE_AA, shift=4
        )
        ball = np.zeros(image.shape[:2], np.uint8)  # which is before the plate
        depth = float(camera.to_camera(state.thing_position)[2])
        x, y = (round(value) for value in camera.project(state.thing_position))
        cv2.circle(ball, (x, y), round(camera.mean_focal_px * recording.thing.radius / depth), 1, -1)
        image[ball == 0] = over[ball == 0]

    return _paint(recording, draw)


def turned(camera: CameraModel, axis: int, degrees: float) -> CameraModel:
    """A camera turned about its own x (pitch) or y (yaw)."""
    change, turn = np.eye(4), np.zeros(3)
    turn[axis] = np.deg2rad(degrees)
    change[:3, :3] = cv2.Rodrigues(turn)[0]
    return replace(camera, camera_to_base=camera.camera_to_base @ change)


def _both(change: Callable[[CameraModel], CameraModel]) -> Callable[[Rig], Rig]:
    return lambda rig: Rig((change(rig[0]), change(rig[1])))


def _zoomed(camera: CameraModel) -> CameraModel:
    return replace(camera, focal_px=(1.05 * camera.focal_px[0], 1.05 * camera.focal_px[1]))


def _overexpose(image: Image) -> Image:
    bright = image.copy()
    bright[:, : image.shape[1] // 2] = 255
    return bright


def _dim(image: Image) -> Image:
    return np.rint(0.4 * image).astype(np.uint8)


FAULTS = (
    Fault("none"),
    Fault("cameras exchanged", believed=lambda rig: Rig((rig[1], rig[0]))),
    Fault("one camera turned by 2 degrees", believed=lambda rig: moved(rig, turn_degrees=2.0)),
    Fault("both cameras pitched by 2 degrees", believed=_both(lambda camera: turned(camera, 0, 2.0))),
    Fault("focal length of one camera 5 % off", believed=lambda rig: moved(rig, zoom=1.05)),
    Fault("focal length of both cameras 5 % off", believed=_both(_zoomed)),
    Fault("both cameras freeze", freeze((0, 1), 1), later=True),
    Fault("one camera freezes", freeze((0,), 1), later=True),
    Fault("both cameras repeat their last 10 pictures", freeze((0, 1), 10), later=True),
    Fault("both cameras repeat their last 40 pictures", freeze((0, 1), 40), later=True),
    Fault("both cameras give no frames", each(lambda frame: None, later=True), later=True),
    Fault("stamps of both 1 s ahead", each(shifted(1.0))),
    Fault("stamps of one 20 ms ahead", each(shifted(0.02), only=0)),
    Fault("stamps of one 8 ms ahead", each(shifted(0.008), only=0)),
    Fault("one frame stamped a million seconds ahead", one_far_ahead, later=True),
    Fault("stamps of neighbours exchanged, same camera", exchange_stamps(within_camera=True)),
    Fault("stamps of neighbours exchanged, both cameras", exchange_stamps(within_camera=False)),
    Fault("stamps repeat", repeat_stamp, later=True),
    Fault("a second ball lies in view", second_ball(_lies_still)),
    Fault("a second ball flies by", second_ball(_flies_by)),
    Fault("a patch of the ball's hue on the plate", patch),
    Fault("half of each picture overexposed", each(pictures(_overexpose), later=True), later=True),
    Fault("black for 50 ms", during(0.05, pictures(np.zeros_like)), later=True),
    Fault("a camera missing for 0.2 s", during(0.2, lambda frame: None, only=0), later=True),
    Fault("brightness x 0.4", each(pictures(_dim))),
    Fault("every fifth frame 30 ms late", come_late),
    Fault("stamps of both jump back by 50 ms", each(shifted(-0.05), later=True), later=True),
)
"""By what is wrong; every one of the list that the perception report keeps."""
