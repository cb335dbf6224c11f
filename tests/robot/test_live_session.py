"""A session in real time, with cameras that are lists of frames."""

import os
import signal
import threading
import time

import cv2
import numpy as np
import pytest
from arms_without_robots import HOME, TASK, SoftArm

from dris.catching.law import LawConfig
from dris.perception.camera import laboratory_rig
from dris.perception.eyes import Eyes
from dris.perception.sources import Frame, SourceError
from dris.robot.live import run_live
from dris.robot.rig_observer import WAITING, RigObserver
from dris.robot.session import Session

LAW = LawConfig(TASK.stiffness, TASK.damping, 0.9, 0.9, True)
RIG = laboratory_rig()


def grey(k, camera):
    """An empty room, each picture a little other: a camera's noise."""
    rng = np.random.default_rng((k, camera))
    return rng.integers(80, 100, (RIG[camera].height, RIG[camera].width, 3), np.uint8)


PICTURES = [[grey(k, camera) for k in range(24)] for camera in (0, 1)]


class Room:
    """Frames of an empty room, as they come; ends, fails or goes on."""

    def __init__(self, frames=10_000, error=None):
        self.frames, self.error = frames, error

    def __iter__(self):
        for k in range(self.frames):
            for camera in (0, 1):
                yield Frame(time.monotonic(), camera, PICTURES[camera][k % 24])
            time.sleep(0.0125)
        if self.error:
            raise self.error


def make(source):
    arm = SoftArm(q=HOME + 0.02)
    seen = RigObserver(source, Eyes(RIG, (0.03, 0.03)), 0.03, time.monotonic)
    session = Session(arm, seen, lambda s, c: np.zeros(5), TASK, LAW, time.monotonic)
    return session, seen, arm


def test_it_goes_home_waits_and_stops_when_it_is_enough():
    session, seen, arm = make(Room())
    lines, until = [], time.monotonic() + 20
    enough = lambda: session.state == "armed" and seen.frames > 20 or time.monotonic() > until  # noqa: E731
    assert run_live(session, seen, lines.append, enough) == 0
    assert [line.split()[2] for line in lines[:4]] == ["connected", "homing", "homed", "armed"]
    assert session.state == "stopped" and not arm.moving and np.abs(arm.q - HOME).max() < 0.03


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_the_arm(number):
    session, seen, arm = make(Room())
    threading.Timer(0.5, lambda: os.kill(os.getpid(), number)).start()
    before = signal.getsignal(number)
    run_live(session, seen, lambda line: None)
    assert session.state == "stopped" and session.reason == f"ended by {number.name}" and not arm.moving
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Room(5, SourceError("camera 1 gives no frame")), "camera 1 gives no frame"),
        (Room(5), "the cameras have ended"),
    ],
)
def test_cameras_that_end_stop_the_arm(source, words):
    session, seen, arm = make(source)
    arm.q = HOME.copy()
    run_live(session, seen, lambda line: None, sleep=lambda s: time.sleep(0.0005))
    assert session.state == "stopped" and words in session.reason and not arm.moving


def test_frames_that_nobody_looks_at_are_dropped_and_counted():
    seen = RigObserver(Room(30), Eyes(RIG, (0.03, 0.03)), 0.03, time.monotonic)
    time.sleep(1.0)
    seen.close()
    assert len(seen._waiting) == WAITING and seen.dropped == 2 * 30 - WAITING


def test_an_image_of_another_size_is_refused():
    small = cv2.resize(PICTURES[0][0], (320, 240))
    seen = RigObserver(iter([Frame(0.0, 0, small)]), Eyes(RIG, (0.03, 0.03)), 0.03, time.monotonic)
    time.sleep(0.1)
    with pytest.raises(ValueError, match="was calibrated at"):
        seen.tick()


class Stuck(Room):
    """Cameras that, from a time on, give the same pictures again with new stamps."""

    def __init__(self, fine_s):
        super().__init__()
        self.fine_s, self.stuck_s = fine_s, None

    def __iter__(self):
        began = time.monotonic()
        for frame in super().__iter__():
            if time.monotonic() - began > self.fine_s:
                if self.stuck_s is None and frame.camera == 0:
                    self.stuck_s = time.monotonic()
                frame = Frame(frame.time_s, frame.camera, PICTURES[frame.camera][0])
            yield frame


def test_cameras_that_repeat_a_frame_stop_the_arm():
    source = Stuck(1.5)
    session, seen, arm = make(source)
    until = time.monotonic() + 20
    run_live(session, seen, lambda line: None, lambda: time.monotonic() > until)
    stopped_s = session.changes[-1][0]
    assert session.state == "stopped" and session.reason.startswith("the eyes: ") and not arm.moving
    assert "frozen" in session.reason or "same picture" in session.reason, session.reason
    assert stopped_s - source.stuck_s < 1.0
