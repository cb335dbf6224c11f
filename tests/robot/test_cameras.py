"""Cameras by name, and what is looked at through them before an arm moves."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
import rooms

from dris.catching.eyes_observer import EyesObserver
from dris.perception.calibration import save_rig
from dris.perception.camera import laboratory_rig
from dris.perception.eyes import Eyes
from dris.perception.plate import Plate
from dris.perception.sources import CameraSource, Frame
from dris.robot.cameras import check_cameras, check_rig_file, open_cameras
from dris.robot.rig_observer import RigObserver

RIG = laboratory_rig()
ROOMS = Path(rooms.__file__)
PLATE = Plate(0.0, np.array([0.5, 0.0, 0.5]), np.array([0.0, 0.0, 1.0]), np.zeros(3))


class Scripted(EyesObserver):
    """Cameras on a clock of their own, which only `sleep` moves: what comes when does not hang on a machine."""

    dropped, on_frame = 0, None

    def __init__(self, fps=80.0, delay_s=0.005, cameras=(0, 1), step=1, covered=None, **light):
        super().__init__(Eyes(RIG, (0.03, 0.03)), 0.03)
        self.now_s, self._came = 100.0, 0
        self._fps, self._delay_s, self._cameras, self._step = fps, delay_s, cameras, step
        self._pictures = list(rooms.pictures(RIG, **light))
        if covered is not None:
            self._pictures[covered] = rooms.pictures(RIG, 0, 4)[covered]

    def clock(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds

    def tick(self):
        if self.now_s - 100.0 < self._came / self._fps:
            return
        self._came += 1
        for camera in self._cameras:
            image = self._pictures[camera][self._came % 24][:: self._step, :: self._step].copy()
            frame = Frame(self.now_s - self._delay_s, camera, image)
            self.take(frame, self.now_s)
            self.on_frame(self.now_s, frame)


def looked(**room):
    """All checks by their names."""
    eyes = Scripted(**room)
    return {check.name: check for check in check_cameras(eyes, PLATE, eyes.clock, eyes.sleep)}


def test_a_quiet_room_passes():
    checks = looked()
    assert [name for name, check in checks.items() if check.ok] == ["cameras", "delay", "light", "eyes"]
    assert "come 5.0 and 5.0 ms" in checks["delay"].found
    assert "mean brightness 90 of 255, 0 % white" in checks["light"].found  # of 80 to 100
    assert "does not make the plate out" in checks["eyes"].found  # nothing confirms what is not seen


@pytest.mark.parametrize(
    ("room", "name", "words"),
    [
        ({"fps": 20.0}, "cameras", "20 and 20 frames a second"),
        ({"low": 0, "high": 4}, "light", "too dark"),
        ({"covered": 1}, "light", "right: mean brightness 2 of 255"),
        ({"low": 252, "high": 256}, "light", "100 % white, at most 25 %: overexposed"),
        ({"delay_s": -0.02}, "delay", "another clock"),
        ({"delay_s": -0.02}, "eyes", "stamp ahead"),
        ({"delay_s": 0.1}, "delay", "at most 60 ms"),
        ({"cameras": (0,)}, "cameras", "no frames of right"),
        ({"step": 2}, "cameras", "was calibrated at 640 x 480"),
    ],
)
def test_what_an_arm_must_not_move_by_is_refused(room, name, words):
    check = looked(**room)[name]
    assert not check.ok and words in check.found, check


def test_real_cameras_tell_of_every_frame():
    """The observer behind a thread, which the checks listen to."""
    source = open_cameras(f"{ROOMS}:empty", RIG, time.monotonic, 0.0)
    eyes, came = RigObserver(source, Eyes(RIG, (0.03, 0.03)), 0.03, time.monotonic), []
    eyes.on_frame = lambda came_s, frame: came.append((frame.camera, came_s - frame.time_s))
    until_s = time.monotonic() + 20
    while len(came) < 10 and time.monotonic() < until_s:
        eyes.tick()
    eyes.close()
    assert {camera for camera, _ in came} == {0, 1} and min(delay_s for _, delay_s in came) >= 0.005


def failing(rig, clock):
    raise RuntimeError("no licence")


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([Frame(0.0, 2, np.zeros((4, 4, 3), np.uint8))], "a frame of camera 2 came"),
        ((1 / 0 for _ in range(1)), "the cameras failed: ZeroDivisionError"),
    ],
)
def test_cameras_that_fail_in_any_way_are_a_stop(frames, words):
    eyes = RigObserver(iter(frames), Eyes(RIG, (0.03, 0.03)), 0.03, time.monotonic)
    eyes.close()
    assert eyes.trust[0] == "stop" and words in eyes.trust[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"{__file__}:failing", "failed: RuntimeError: no licence"),
        ("left and right", "no pair of cameras: write two numbers, 0,1"),
        ("nowhere.py:make", "there is no file nowhere.py"),
        (f"{ROOMS}:nobody", "has no function 'nobody'"),
    ],
)
def test_cameras_that_are_none_are_named(name, words):
    with pytest.raises(ValueError, match=words):
        open_cameras(name, RIG, time.monotonic, 0.0)


def test_two_numbers_are_devices_of_opencv():
    source = open_cameras("2,5", RIG, time.monotonic, 0.004)
    assert isinstance(source, CameraSource) and source.devices == (2, 5)
    assert source.delay_s == 0.004 and source.size == (RIG[0].width, RIG[0].height)


def test_an_old_calibration_is_refused(tmp_path):
    file, now_s = tmp_path / "rig.json", time.time()
    save_rig(file, RIG)
    assert check_rig_file(file, now_s).ok
    os.utime(file, (now_s - 45 * 86400,) * 2)
    check = check_rig_file(file, now_s)
    assert not check.ok and "45 days old" in check.found and "calibrate again" in check.found
