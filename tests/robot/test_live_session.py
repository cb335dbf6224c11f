"""A session in real time, with cameras that are lists of frames."""

import os
import re
import signal
import threading
import time
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from arms_without_robots import HOME, TASK, SoftArm, UnstoppableArm
from sessions import make as ball_session

from dris.catching.eyes_observer import EyesObserver
from dris.catching.law import LawConfig
from dris.perception.camera import laboratory_rig
from dris.perception.eyes import Eyes
from dris.perception.sources import Frame, SourceError
from dris.robot.arm import ArmError
from dris.robot.live import NoEyes, run_live, run_path
from dris.robot.rig_observer import WAITING, RigObserver
from dris.robot.session import Session
from dris.robot.tick_times import TickTimes

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
                image = PICTURES[camera][k % 24].copy()
                image[3, 0] = (*divmod(k, 250), 1)  # no camera repeats a picture
                yield Frame(time.monotonic(), camera, image)
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


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (signal.SIGINT, ""),
        (signal.SIGTERM, ""),
        (signal.SIGHUP, ""),
        (signal.SIGQUIT, ""),
        (signal.SIGTSTP, ": a robot cannot be put in the background, so it was stopped"),
    ],
)
def test_signals_stop_the_arm(number, why):
    session, seen, arm = make(Room())
    before, stop, until = signal.getsignal(number), arm.stop, time.monotonic() + 20

    def strike():
        if signal.getsignal(number) is not before:  # or these tests would be suspended, or end
            os.kill(os.getpid(), number)

    arm.stop = lambda: (stop(), strike())  # once more while the arm is being stopped: it changes nothing
    threading.Timer(0.5, strike).start()
    run_live(session, seen, lambda line: None, lambda: time.monotonic() > until)
    assert session.state == "stopped" and session.reason == f"ended by {number.name}{why}" and not arm.moving
    assert arm.asked.count("stop") == 1
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


@pytest.mark.parametrize("silent", [(0, 1), (1,)])
def test_cameras_that_fall_silent_stop_an_arm_at_home(silent):
    """Nobody asks for a ball there: the plate that the session tells has the eyes judged."""
    arm, seen = SoftArm(q=HOME.copy()), EyesObserver(Eyes(RIG, (0.03, 0.03)), 0.03)
    clock = lambda: 1e-3 * arm.ticks  # noqa: E731
    session = Session(arm, seen, lambda s, c: np.zeros(5), TASK, LAW, clock)
    session.connect()
    session.start()
    session._go("homed", "")
    while session.state == "homed" and arm.ticks < 2000:
        if arm.ticks % 12 == 0:
            for camera in (0, 1) if arm.ticks < 600 else set((0, 1)) - set(silent):
                seen.take(Frame(clock() - 0.01, camera, grey(arm.ticks, camera)), clock())
        session.tick()
    # The last frames came at 0.588 s: silent after 0.25 s, and a stop after 0.25 s of that.
    assert session.state == "stopped" and "silent camera" in session.reason
    assert 1.088 <= clock() < 1.15


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


def test_a_session_whose_ticks_are_slow_does_not_arm_until_they_are_quick():
    """With every answer of the arm 15 ms late it homed and armed without a word."""
    arm, late_s, lines = SoftArm(), [0.015], []
    exchange, eyes = arm.exchange, SimpleNamespace(trust=("fine", ""), tick=lambda: None, close=lambda: None)
    session = Session(arm, NoEyes(), lambda s, c: np.zeros(5), TASK, LAW, time.monotonic)
    arm.exchange = lambda reference: time.sleep(late_s[0]) or exchange(reference)
    until, waited = time.monotonic() + 30, []

    def enough():
        waited.append((session.state, session.reason)) if late_s[0] else None
        late_s[0] = 0.0 if len(waited) > 150 else 0.015
        return session.state == "armed" or time.monotonic() > until

    run_live(session, eyes, lines.append, enough)
    state, reason = waited[-1]
    assert state == "homed" and "armed" not in [state for state, _ in waited]
    told = re.fullmatch(r"not armed: a tick takes (.*) ms in the median, at most 5: close what .*", reason)
    assert 15 <= float(told[1]) < 40  # and what a busy machine adds
    assert [line.split()[2] for line in lines[:-1]] == ["connected", "homing", "homed", "homed:", "armed"]
    assert lines[-1].startswith("stopped: the session is over; 0 balls; ticks took ")


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_reflex_after_the_preflight_is_not_answered_by_a_motion(when):
    """It was cleared without a word, and the arm went home: somebody may be in its way."""
    session, arm, _ = ball_session(SoftArm(q=HOME + 0.1))
    limits = arm.limits
    if when == "before":
        arm.error = "stopped by a reflex: joint_reflex"
    else:
        arm.limits = lambda: (setattr(arm, "error", "stopped by a reflex: joint_reflex"), limits())[1]
    eyes = SimpleNamespace(trust=("fine", ""), tick=lambda: None, close=lambda: None)
    with pytest.raises(ArmError, match="does not begin: stopped by a reflex: joint_reflex; look at why"):
        run_live(session, eyes, lambda line: None)
    assert not {"recover", "begin"} & set(arm.asked) and (arm.q == HOME + 0.1).all()


def test_balls_that_are_lost_count_too(monkeypatch):
    """After five that were missed it said "0 balls"."""
    monkeypatch.setattr("dris.robot.session.LONGEST_HOLD_S", 0.2)
    session, arm, sky = ball_session(SoftArm())
    thrown, lines = [], []

    def play():
        if session.state == "armed" and len(thrown) < 2 and sky.thrown_s > session.clock():
            thrown.append(session.clock())
            sky.thrown_s, sky.hidden = session.clock(), False
        if session.state == "catching" and session.clock() - session.loop.began_s > 0.1:
            sky.hidden = True  # gone: soon the arm returns
        if session.state == "returning":
            sky.thrown_s = np.inf

    sky.thrown_s = np.inf
    eyes = SimpleNamespace(trust=("fine", ""), tick=play, close=lambda: None)
    enough = lambda: len(thrown) == 2 and session.state == "homed" or session.clock() > 30  # noqa: E731
    assert run_live(session, eyes, lines.append, enough, sleep=lambda s: None) == 2, lines
    assert lines[-1].startswith("stopped: the session is over; 2 balls; "), lines
    assert "nothing seen for 0.2 s" in "".join(lines)


def test_durations_of_ticks_in_figures():
    """500 of 1 to 500 ms, after others that are forgotten: in the middle 251, five of a hundred beyond 495."""
    ticks = TickTimes()
    assert not ticks.known and ticks.too_slow() == ""
    for _ in range(99):
        ticks.add(0.001)
    assert not ticks.known
    for ms in np.random.default_rng(0).permutation(np.arange(1, 501)):
        ticks.add(1e-3 * ms)
    assert ticks.known and ticks.quantiles_s() == pytest.approx((0.251, 0.496))
    assert str(ticks) == "251.00 ms, 496.00 ms at the 99th percentile; 480 over 20 ms so far"
    for _ in range(251):
        ticks.add(0.005)
    assert ticks.too_slow() == ""


class There:
    """A path of one place."""

    duration_s = 0.2

    def at(self, time_s):
        return HOME


def on_its_own_clock(arm):
    return Session(arm, NoEyes(), lambda s, c: np.zeros(5), TASK, LAW, lambda: arm.ticks * 1e-3)


def test_how_long_ticks_take_is_told_after_a_path():
    lines = []
    run_path(on_its_own_clock(SoftArm()), There(), lines.append, sleep=lambda s: None)
    assert re.fullmatch(
        r"ticks took [\d.]+ ms, [\d.]+ ms at the 99th percentile; \d+ over 20 ms so far", lines[-1]
    )


def test_a_path_at_whose_end_the_arm_does_not_come_to_rest_has_failed(capsys):
    """It returned as if all were well, and identify-gains wrote its gains."""
    arm = UnstoppableArm()
    with pytest.raises(ArmError, match="fault: .*the arm may still move"):
        run_path(on_its_own_clock(arm), There(), lambda line: None, sleep=lambda s: None)
    assert arm.moving and "the arm may still move" in capsys.readouterr().err


def test_an_arm_that_does_not_come_to_rest_is_told_of_where_a_policy_broke_the_session(capsys):
    """The session stops it by itself there, before the exception passes."""
    session, seen, _ = make(Room())
    session.arm = UnstoppableArm(q=HOME + 0.02)

    def fails(now_s, measured):
        raise KeyError("joint")

    seen.tick, session._wished = lambda: None, fails
    with pytest.raises(KeyError, match="joint"):
        run_live(session, seen, lambda line: None)
    assert "fault: KeyError: 'joint'; the arm may still move" in capsys.readouterr().err


def test_an_arm_that_does_not_come_to_rest_is_told_of_whatever_broke_the_session(capsys):
    session, seen, _ = make(Room())
    session.arm = UnstoppableArm(q=HOME + 0.02)

    def fails():
        raise RuntimeError("cv2 failed")

    seen.tick = fails
    with pytest.raises(RuntimeError, match="cv2 failed"):
        run_live(session, seen, lambda line: None)
    assert session.reason.startswith("RuntimeError: cv2 failed; ")  # it was "the session is over"
    assert "the arm may still move" in capsys.readouterr().err
