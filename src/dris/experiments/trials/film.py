"""Films of trials: the laboratory from the side, and what both cameras and the tracker see.

Beside its film a trial keeps frames, from which a replay can be made (`dris.view.replay`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from dris.catching.control import BallEstimate, LookingObserver
from dris.core.stage import GHOST, Frame, Stage
from dris.core.validation import check_extra
from dris.evaluation.registry import PolicyHandle
from dris.lab.camera_observer import CameraObserver, CameraObserverConfig
from dris.lab.cameras import CAMERAS, CameraConfig
from dris.lab.launch import Launch
from dris.lab.objects import CatchObject
from dris.lab.shown import Shown
from dris.lab.trial import Trial, run_trial
from dris.lab.twin import Twin, TwinConfig

SIDE = CameraConfig("side", (1.15, -1.65, 1.05), (0.50, 0.0, 0.68), width=480, height=480, focal=480.0)
"""Where the film is taken from; no policy sees it."""
LIGHTER, SKY = 0.55, 250
"""Its picture is the laboratory's to this power, with its black walls as light as this."""
FRAME_TICKS = 10
"""A picture every 10 ms of the trial..."""
FPS = 25
"""...shown for 40 ms: four times slower than it was."""
SLOW_S, LATE_TICKS = 2.5, 100
"""After these seconds the film shows a picture every 100 ms: two and a half times faster than it was."""
REPLAY_TICKS = 20
"""A replay has a frame every 20 ms."""
FOUND, TRACKED, SEEN = (60, 220, 60), (60, 60, 255), tuple(round(255 * c) for c in GHOST[::-1])
"""Colours (BGR): what the detector found, where the tracker has the ball, what the policy saw last."""


@dataclass(frozen=True, eq=False)
class Filmed:
    """A trial that was filmed."""

    video: Path
    title: str
    """With what became of it."""
    trial: Trial
    stage: Stage
    frames: list[Frame]
    """For a replay."""


def film(
    policy: PolicyHandle,
    thing: CatchObject,
    launch: Launch,
    seed: int,
    config: TwinConfig,
    title: str,
    file: Path,
    duration_s: float = 10.0,
) -> Filmed:
    """Run a trial through the cameras, with whole frames, and write a video of it.

    Raises:
        ImportError: imageio is not there.
    """
    check_extra("imageio", "video")
    import imageio.v2 as imageio

    twin = Twin(replace(config, lab=replace(config.lab, cameras=(*CAMERAS, SIDE))))
    twin.reset(thing, launch, seed)
    observer = CameraObserver(twin, thing, CameraObserverConfig(window_half_px=None), seed)
    pictures: list[np.ndarray] = []
    shown = Shown(twin)
    frames, seen = [shown.frame(observer, None)], None

    def see(ball: BallEstimate | None) -> None:
        nonlocal seen
        seen = ball

    def watch(twin: Twin, eyes: LookingObserver) -> None:
        shown.tick()
        if twin.ticks % (FRAME_TICKS if twin.time_s <= SLOW_S else LATE_TICKS) == 0:
            pictures.append(_picture(twin, observer, seen, title))
        if twin.ticks % REPLAY_TICKS == 0:
            frames.append(shown.frame(eyes, seen))

    trial = run_trial(policy, thing, launch, seed, twin, observer, duration_s, watch, on_step=see)
    verdict = f"on the plate after {duration_s:.0f} s" if trial.caught else "lost"
    title = f"{title}: {verdict}"
    pictures += [_caption(pictures[-1], title)] * FPS
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}")
    imageio.mimwrite(unfinished, [p[..., ::-1] for p in pictures], fps=FPS, macro_block_size=1, quality=5)  # type: ignore[arg-type]
    unfinished.replace(file)
    twin.close()
    return Filmed(file, title, trial, shown.stage, frames)


def _picture(twin: Twin, observer: CameraObserver, seen: BallEstimate | None, title: str) -> np.ndarray:
    """One picture of the film [480, 800, 3], BGR."""
    views = [_view(twin, observer, camera) for camera in (0, 1)]
    picture = np.concatenate((_side(twin, seen), np.concatenate(views, axis=0)), axis=1)
    return _caption(picture, f"{title}   t = {twin.time_s:4.2f} s")


def _side(twin: Twin, seen: BallEstimate | None) -> np.ndarray:
    """The laboratory from the side, and a circle where the policy saw the thing last."""
    taken = cv2.cvtColor(twin.render("side"), cv2.COLOR_RGB2BGR)
    view = (255 * (taken / 255) ** LIGHTER).astype(np.uint8)
    view[(taken == 0).all(axis=2)] = SKY
    if seen is not None:
        ((column, row),) = SIDE.project(seen.position)
        radius = SIDE.focal * twin.thing.radius / float(np.linalg.norm(seen.position - SIDE.position))
        if np.isfinite((column, row)).all() and max(abs(column), abs(row)) < 2000:
            cv2.circle(view, (round(column), round(row)), round(radius) + 2, SEEN, 2, cv2.LINE_AA)
    cv2.circle(view, (18, 464), 7, SEEN, 2, cv2.LINE_AA)
    words, place = "what the policy saw last", (32, 469)
    cv2.putText(view, words, place, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (30, 30, 30), 1, cv2.LINE_AA)
    return view


def _view(twin: Twin, observer: CameraObserver, camera: int) -> Any:
    """What a camera saw last, with what was made of it; half size."""
    frame, found = observer.shown[camera]
    view = frame.copy()
    if found is not None:
        x, y = (round(value) for value in found.centre_px)
        cv2.circle(view, (x, y), round(found.radius_px) + 4, FOUND, 2, cv2.LINE_AA)
    ball = observer.estimate(twin.time_s)
    if ball is not None:
        place = observer.rig[camera].project(ball.position)
        ahead = observer.rig[camera].project(ball.position + 0.05 * ball.velocity)
        if np.isfinite((place, ahead)).all():
            ends = [tuple(int(v) for v in np.clip(np.rint(end), -2000, 2000)) for end in (place, ahead)]
            cv2.arrowedLine(view, ends[0], ends[1], TRACKED, 2, cv2.LINE_AA)
            cv2.drawMarker(view, ends[0], TRACKED, cv2.MARKER_CROSS, 14, 2, cv2.LINE_AA)
    name = f"{observer.rig[camera].name} camera"
    cv2.putText(view, name, (10, 468), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (255, 255, 255), 2, cv2.LINE_AA)
    return cv2.resize(view, (320, 240), interpolation=cv2.INTER_AREA)


def _caption(picture: np.ndarray, text: str) -> np.ndarray:
    captioned = picture.copy()
    captioned[:26] = 255
    cv2.putText(captioned, text, (8, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (30, 30, 30), 1, cv2.LINE_AA)
    return captioned
