"""The cameras of a real rig: opened by name, and looked at before an arm moves."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from dris.core.named import find_module
from dris.perception.camera import Rig
from dris.perception.monitor_config import MonitorConfig
from dris.perception.pictures import white_share
from dris.perception.plate import Plate
from dris.perception.sources import CameraSource, Frame, FrameSource
from dris.robot.preflight import Check
from dris.robot.rig_observer import RigObserver

LEAST_FPS = 40.0
"""Half of what the eyes were tried with [1/s] [design]."""
LONGEST_DELAY_S = 0.06
"""From a frame's stamp to its coming: as late as the poor cameras of the trials [s]."""
DARKEST, BRIGHTEST_SHARE = 8.0, MonitorConfig.white_share
"""Mean brightness of 255 [design], and share of pixels that are white: a ball in them cannot be seen."""
OLDEST_DAYS = 30.0
"""Of a calibration: cameras are touched, and screws give way [design]."""
LOOK_S = 1.5

Clock = Callable[[], float]


def open_cameras(name: str, rig: Rig, clock: Clock, delay_s: float) -> FrameSource:
    """Cameras by what a person types.

    Args:
        name: Two numbers of devices that OpenCV opens, such as 0,1; or `path/file.py:function`, which is
            called with rig and clock and gives a `FrameSource`, for cameras that stamp their frames
            themselves (`dris.perception.clocks`).
        rig: As calibrated.
        clock: The session's, which stamps must be of [s].
        delay_s: From the middle of an exposure to its frame's coming, for cameras of OpenCV.

    Raises:
        ValueError: The name is neither, or there is no such function.
    """
    if numbers := re.fullmatch(r"(\d+),(\d+)", name):
        size = (rig[0].width, rig[0].height)
        return CameraSource((int(numbers[1]), int(numbers[2])), clock, delay_s, size=size)
    module_name, colon, function = name.rpartition(":")
    if not colon or not function:
        raise ValueError(f"'{name}' is no pair of cameras: write two numbers, 0,1, or file.py:function")
    make = getattr(find_module(module_name), function, None)
    if not callable(make):
        raise ValueError(f"{module_name} has no function '{function}'")
    try:
        return make(rig, clock)
    except Exception as error:  # anything may stand in a user's file
        raise ValueError(f"{name} failed: {type(error).__name__}: {error}") from error


def check_rig_file(path: Path, rig: Rig, now_s: float) -> Check:
    """How good and how old a calibration is; that it is plausible was checked when it was read.

    Args:
        path: Of its file, whose own date counts where it holds none.
        rig: As read from there.
        now_s: Since 1970.
    """
    dated = rig.calibrated is not None
    then_s = rig.calibrated.timestamp() if rig.calibrated is not None else path.stat().st_mtime
    days = (now_s - then_s) / 86400
    errors = " and ".join(f"{camera.reprojection_px:.2f}" for camera in rig.cameras)
    by = "" if dated else " by the file's own date, which a copy resets: it holds none"
    found = f"{path}: reprojection error {errors} px, {days:.0f} days old{by}"
    if days < -1:
        return Check("rig", False, f"{found}: that is to come; set this computer's clock")
    fresh = days <= OLDEST_DAYS
    return Check("rig", fresh, found if fresh else f"{found}, at most {OLDEST_DAYS:.0f}: calibrate again")


def check_devices(rig: Rig, opened: tuple[str, str]) -> Check:
    """Whether the cameras that were opened are those of the calibration, where both say who they are.

    Args:
        rig: As calibrated.
        opened: Serial numbers in the order of the rig; empty where they are not known.
    """
    told = []
    for camera, serial, other in zip(rig.cameras, opened, reversed(opened), strict=True):
        if not camera.serial or not serial:
            told.append(f"nothing tells whether '{camera.name}' is the one that was calibrated")
        elif camera.serial == serial:
            told.append(f"'{camera.name}' is {serial}")
        else:
            found = f"'{camera.name}' was calibrated as {camera.serial}, opened is {serial}"
            exchanged = camera.serial == other
            way_out = (
                "exchange the two in --rig.cameras" if exchanged else "open that one, or calibrate again"
            )
            return Check("devices", False, f"{found}: {way_out}")
    return Check("devices", True, "; ".join(told))


def check_cameras(
    eyes: RigObserver,
    plate: Plate,
    clock: Clock,
    unconfirmed: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Check]:
    """Look through the cameras for a while, the arm at rest: rate, delay, light, and what the eyes say.

    Args:
        eyes: Behind the cameras, just opened.
        plate: Where the robot's joints say that it is.
        clock: The session's [s].
        unconfirmed: Whether a camera that does not make the plate out will do.
        sleep: Until the next look.
    """
    came: tuple[list[float], list[float]] = ([], [])
    delays: tuple[list[float], list[float]] = ([], [])
    light: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])

    def note(came_s: float, frame: Frame) -> None:
        came[frame.camera].append(came_s)
        delays[frame.camera].append(came_s - frame.time_s)
        light[frame.camera].append((float(frame.image[::8, ::8].mean()), white_share(frame.image)))

    eyes.on_frame, eyes_until_s, before = note, clock() + LOOK_S, eyes.dropped
    eyes.observe_plate(plate)
    try:
        while clock() < eyes_until_s:
            eyes.tick()
            sleep(0.001)
    except ValueError as error:  # a picture that does not fit its calibration
        yield Check("cameras", False, str(error))
        return
    finally:
        eyes.on_frame = None
    silent = [name for name, times in zip(_names(eyes), came, strict=True) if len(times) < 2]
    level, why = eyes.trust
    if silent:
        found = f"no frames of {' and '.join(silent)}"
        yield Check("cameras", False, f"{found}; {why}" if level == "stop" else found)
        return
    yield _rate(came, eyes.dropped - before)
    yield _delay(delays)
    yield _light(_names(eyes), light)
    yield _eyes(eyes, unconfirmed)


def _names(eyes: RigObserver) -> tuple[str, str]:
    return eyes.eyes.rig[0].name, eyes.eyes.rig[1].name


def _rate(came: tuple[list[float], list[float]], dropped: int) -> Check:
    fps = [(len(times) - 1) / max(times[-1] - times[0], 1e-9) for times in came]
    found = f"{fps[0]:.0f} and {fps[1]:.0f} frames a second, {dropped} dropped"
    if min(fps) < LEAST_FPS:
        return Check("cameras", False, f"{found}, at least {LEAST_FPS:.0f}: shorten exposure, check the bus")
    return Check("cameras", True, found)


def _delay(delays: tuple[list[float], list[float]]) -> Check:
    ways = [float(np.median(one)) for one in delays]
    found = f"frames come {1e3 * ways[0]:.1f} and {1e3 * ways[1]:.1f} ms after their stamps"
    if min(ways) < 0:
        return Check("delay", False, f"{found}: stamps are of another clock than the session's")
    if max(ways) > LONGEST_DELAY_S:
        return Check("delay", False, f"{found}, at most {1e3 * LONGEST_DELAY_S:.0f} ms")
    return Check("delay", True, f"{found}; what a shared delay hides, only a measurement tells")


def _light(names: tuple[str, str], light: tuple[list[tuple[float, float]], ...]) -> Check:
    told = []
    for name, one in zip(names, light, strict=True):
        mean, white = np.median(one, axis=0)
        found = f"{name}: mean brightness {mean:.0f} of 255, {100 * white:.0f} % white"
        if mean < DARKEST:
            return Check("light", False, f"{found}: too dark; uncover it, more light")
        if white > BRIGHTEST_SHARE:
            most = f"at most {100 * BRIGHTEST_SHARE:.0f} %"
            return Check("light", False, f"{found}, {most}: overexposed; expose shorter, or dim the light")
        told.append(found)
    return Check("light", True, "; ".join(told))


def _eyes(eyes: RigObserver, unconfirmed: bool) -> Check:
    """What the eyes say of themselves, and whether both see the plate where their calibrations have it."""
    level, why = eyes.trust
    if level != "fine":
        return Check("eyes", False, f"{level}: {why}")
    monitor, seen, few, blind = eyes.eyes.monitor, [], [], []
    most_px, least = monitor.config.shift_px, monitor.config.shifts
    for name, px, looks in zip(_names(eyes), monitor.plate_shifts_px, monitor.plate_looks, strict=True):
        if px is None:
            blind.append(name)
            continue
        seen.append(f"{name} sees the plate {px:.0f} px off")
        if not px <= most_px:  # the monitor itself judges no sooner than after enough looks
            why = f"{seen[-1]}, at most {most_px:g}: moved, exchanged, or another camera's calibration"
            return Check("eyes", False, f"{why}; open the right cameras, or calibrate again")
        if looks < least:
            few.append(f"{name} made it out in {looks} looks, at least {least}")
    if not few and not blind:
        return Check("eyes", True, f"nothing wrong; {', '.join(seen)}")
    unseen = [f"{' and '.join(blind)} cannot make the plate out"] if blind else []
    found = f"{'; '.join([*seen, *few, *unseen])}: nothing confirms the calibration"
    if unconfirmed:
        return Check("eyes", True, f"{found}, and --rig.unconfirmed goes on")
    return Check(
        "eyes",
        False,
        f"{found}. Exchanged or foreign cameras look like that, too: guide the plate to where both see all "
        "of it, mend light and contrast at its edges, or go on all the same with --rig.unconfirmed",
    )
