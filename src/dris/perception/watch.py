"""From frames to a track: search where the ball should be, then everywhere, and tell the tracker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dris.perception.calibration import check_image
from dris.perception.detect import Detection, DetectorConfig, Image, detect
from dris.perception.sources import Frame
from dris.perception.track import BallTracker


@dataclass(frozen=True, eq=False)
class FrameResult:
    """One frame and what was found in it."""

    frame: Frame
    detection: Detection | None


def look(
    frame: Frame, tracker: BallTracker, config: DetectorConfig | None = None, ignore: Image | None = None
) -> Detection | None:
    """Search one frame and tell the tracker.

    Raises:
        CalibrationError: The image does not fit the camera's calibration.
    """
    check_image(frame.image, tracker.rig[frame.camera])
    near = tracker.predicted_px(frame.time_s, frame.camera)
    found = detect(frame.image, config, near, ignore)
    if found is None and near is not None:  # it may have bounced out of the region
        found = detect(frame.image, config, None, ignore)
    tracker.observe(frame.time_s, frame.camera, found)
    return found


def watch(
    source: Iterable[Frame],
    tracker: BallTracker,
    config: DetectorConfig | None = None,
    ignore: tuple[Image | None, Image | None] = (None, None),
) -> Iterator[FrameResult]:
    """Follow the ball through a source of frames; ask the tracker for its state after each glimpse.

    Args:
        source: Frames by time, see `dris.perception.sources`.
        tracker: Takes in what is found.
        config: What counts as the ball.
        ignore: Masks of what is not the ball, for each camera; see `dris.perception.detect.ball_coloured`.
    """
    for frame in source:
        yield FrameResult(frame, look(frame, tracker, config, ignore[frame.camera]))
