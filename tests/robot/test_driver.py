"""The arm in another process: it obeys, and stops when nobody asks any more."""

import multiprocessing
import os
import pickle
import re
import signal
import threading
import time
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from arms_without_robots import (
    HOME,
    TASK,
    Clearing,
    HalfBegun,
    NotedArm,
    SlowArm,
    SoftArm,
    StruckArm,
    StubbornArm,
    UnstoppableArm,
    fails,
    hangs,
    refuses,
)
from sessions import LAW

from dris.robot.arm import ArmError, ArmState
from dris.robot.driver import DriverProcess
from dris.robot.ending import BACKGROUND, ENDING, Ended, ended_by_signals
from dris.robot.live import NoEyes, run_live
from dris.robot.session import Session


@contextmanager
def driven_as(make, folder, silence_s=0.1):
    """An arm that begins to move where it is, in a driver of its own, and the file that notes its stops."""
    file = folder / "stops.txt"
    arm = DriverProcess(make, str(file) if issubclass(make, NotedArm) else None, silence_s=silence_s)
    try:
        yield arm, file
    finally:
        arm.close()


@pytest.fixture
def driven(tmp_path):
    with driven_as(NotedArm, tmp_path, 0.3) as (arm, file):
        yield arm, file


def stops(file):
    return file.read_text().splitlines() if file.exists() else []


def test_it_obeys_across_the_border(driven):
    arm, file = driven
    assert (arm.state().q == HOME).all() and not arm.state().moving
    arm.begin(HOME)
    goal = HOME + 0.01
    for _ in range(50):
        state = arm.exchange(goal)
    # By hand: dq = K / D (q~ - q) for 50 ms.
    way = 0.01 * (1 - (1 - 1e-3 * np.array([8, 70 / 11, 7, 120 / 14, 7.5, 20 / 3, 8])) ** 50)
    np.testing.assert_allclose(state.q - HOME, way, rtol=1e-9)
    assert arm.limits().speed[0] == 2.62 and arm.recover() is True
    arm.stop()
    assert not arm.state().moving and len(stops(file)) == 1


def test_silence_stops_the_arm_within_the_time_that_is_said(driven):
    arm, file = driven
    arm.begin(HOME)
    arm.exchange(HOME)
    last = time.monotonic()
    deadline = last + 5
    while not stops(file) and time.monotonic() < deadline:
        time.sleep(0.02)
    stopped = float(stops(file)[0])
    assert 0.25 <= stopped - last <= 1.5  # 0.3 s, on a busy machine
    assert not arm.state().moving


def test_an_arm_that_silence_does_not_stop_is_told_of_when_it_is_asked_again(tmp_path):
    with driven_as(UnstoppableArm, tmp_path) as (arm, _):
        arm.begin(HOME)
        time.sleep(0.5)
        assert arm.process.is_alive() and arm.state().moving
        with pytest.raises(ArmError, match="the arm may still move"):
            arm.stop()


def test_a_stop_that_failed_is_tried_again_and_a_session_that_wakes_up_does_not_drive_on(tmp_path):
    words = r"for 0\.1 s, so the driver stopped the arm: look at what else runs on this machine$"
    with driven_as(StubbornArm, tmp_path) as (arm, file):
        arm.begin(HOME)
        time.sleep(0.5)  # it stops at the third time it is asked to
        assert len(stops(file)) >= 3 and not arm.state().moving
        with pytest.raises(ArmError, match=words):
            arm.exchange(HOME)
        arm.begin(HOME)
        assert arm.exchange(HOME).moving


def test_an_arm_whose_beginning_failed_half_way_is_watched_too(tmp_path):
    with driven_as(HalfBegun, tmp_path) as (arm, file):
        with pytest.raises(ArmError, match="does not begin"):
            arm.begin(HOME)
        time.sleep(0.5)
        assert len(stops(file)) == 1 and not arm.state().moving


def test_an_arm_that_rests_already_is_not_stopped_again(tmp_path):
    """By a reflex, for instance, while the driver stopped it: that is told, and no retry takes its place."""
    words = r"on this machine; it rests, but not by this stop alone: reflex$"
    with driven_as(StruckArm, tmp_path) as (arm, _):
        arm.begin(HOME)
        time.sleep(0.5)
        with pytest.raises(ArmError, match=words):
            arm.exchange(HOME)


def test_the_watch_stays_on_whatever_is_asked_besides(driven):
    arm, file = driven
    arm.begin(HOME)
    arm.exchange(HOME)
    arm.state()
    arm.limits()
    time.sleep(1.0)
    assert len(stops(file)) == 1 and not arm.state().moving


def test_an_answer_that_nobody_waited_for_is_dropped(driven):
    """A signal between question and answer, for instance."""
    arm, _ = driven
    arm._number += 1
    arm._pipe.send((arm._number, "limits", ()))
    assert (arm.state().q == HOME).all() and arm.recover() is True


def cut_off(monkeypatch, interrupt):
    """Let something happen between length and body of the next answer."""
    receive, reads = Connection._recv, [0]

    def interrupted(self, *arguments):
        reads[0] += 1
        if reads[0] == 2:
            interrupt()
        return receive(self, *arguments)

    monkeypatch.setattr(Connection, "_recv", interrupted)


def test_an_answer_that_is_cut_off_lets_the_driver_stop_the_arm(driven, monkeypatch):
    """Nobody knows where the next answer begins: it was taken for a driver that is gone, and not closed."""
    arm, file = driven
    arm.begin(HOME)
    cut_off(monkeypatch, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        arm.exchange(HOME)
    for ask in (arm.stop, arm.stop, arm.state):
        with pytest.raises(ArmError, match="was cut off, so it was let go: it stops the arm softly by it"):
            ask()
    assert len(stops(file)) == 1 and not arm.process.is_alive()
    arm.close()


def test_closing_ends_the_process_whatever_comes_back(driven, monkeypatch):
    arm, file = driven
    arm.begin(HOME)
    monkeypatch.setattr("dris.robot.driver.pickle.loads", lambda answer: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        arm.close()
    assert not arm.process.is_alive() and len(stops(file)) == 1  # not killed before the arm was stopped


def test_a_signal_in_the_middle_of_an_answer_waits_for_its_end(driven, monkeypatch):
    arm, file = driven
    session = Session(arm, NoEyes(), lambda s, c: np.zeros(5), TASK, LAW, time.monotonic)
    struck, until = [], time.monotonic() + 20

    def enough():
        if session.state == "homed" and not struck:
            struck.append(cut_off(monkeypatch, lambda: signal.raise_signal(signal.SIGINT)))
        return time.monotonic() > until

    eyes = SimpleNamespace(trust=("fine", ""), tick=lambda: None, close=lambda: None)
    run_live(session, eyes, lambda line: None, enough)
    assert (session.state, session.reason) == ("stopped", "ended by SIGINT")
    assert len(stops(file)) == 1 and not arm.state().moving


def test_a_signal_breaks_into_the_wait_for_an_answer_that_is_late():
    arm = DriverProcess(SlowArm, 2.0)
    try:
        threading.Timer(0.3, signal.raise_signal, [signal.SIGTERM]).start()
        with ended_by_signals(), pytest.raises(Ended, match="SIGTERM"):
            began = time.monotonic()
            arm.limits()
        assert time.monotonic() - began < 1.5
        assert (arm.state().q == HOME).all()  # the answer that came too late is dropped
    finally:
        arm.close()


def ignored(process):
    """Signals that a process ignores."""
    [mask] = re.findall(r"SigIgn:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    return {number for number in signal.valid_signals() if int(mask, 16) >> (number - 1) & 1}


def test_what_a_terminal_sends_is_the_session_s(driven):
    """Ctrl-Z would suspend the 1 kHz loop. Not all are sent here: a test's own group may be without a shell,
    and nothing is suspended there."""
    arm, _ = driven
    assert (arm.state().q == HOME).all()
    assert ignored(arm.process) >= {*ENDING, *BACKGROUND} - {signal.SIGTERM}
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        os.kill(arm.process.pid, number)
    time.sleep(0.2)
    assert (arm.state().q == HOME).all()


def test_the_end_of_the_session_s_process_stops_the_arm(driven):
    arm, file = driven
    arm.begin(HOME)
    arm._pipe.close()  # what the driver sees of a session that was killed
    arm.process.join(5)
    assert not arm.process.is_alive() and len(stops(file)) == 1
    arm._pipe = multiprocessing.Pipe()[0]


def test_a_driver_that_was_told_to_end_stops_the_arm_first(driven):
    arm, file = driven
    arm.begin(HOME)
    os.kill(arm.process.pid, signal.SIGTERM)
    arm.process.join(5)
    assert not arm.process.is_alive() and len(stops(file)) == 1
    with pytest.raises(ArmError, match="driver's process is gone"):
        arm.state()


class CarefulArm(SoftArm):
    """Takes half a second to come to rest, and says so in a file when it is done."""

    def __init__(self, file):
        super().__init__()
        self._file = Path(file)

    def close(self):
        self._file.write_text("stopping\n")
        time.sleep(0.5)
        self._file.write_text("stopped, and all is set back\n")


@pytest.mark.parametrize("first", ["signal", "close"])
def test_a_second_signal_to_end_does_not_cut_the_soft_stop(first, tmp_path):
    """It left thresholds and load as they were for moving."""
    file = tmp_path / "closing.txt"
    arm = DriverProcess(CarefulArm, str(file))
    arm.begin(HOME)
    pid = arm.process.pid
    if first == "signal":
        os.kill(pid, signal.SIGTERM)
    else:
        arm._pipe.send((1_000_000, "close", ()))
    until = time.monotonic() + 5
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.01)
    for _ in range(3):
        os.kill(pid, signal.SIGTERM)
        time.sleep(0.05)
    arm.process.join(5)
    assert file.read_text() == "stopped, and all is set back\n"
    arm.close()


def test_a_killed_driver_is_noticed_at_once(driven):
    arm, _ = driven
    arm.begin(HOME)
    arm.process.kill()
    arm.process.join(5)
    with pytest.raises(ArmError, match="driver's process is gone"):
        arm.exchange(HOME)


def test_errors_are_cleared_a_few_times_whichever_session_asks(tmp_path):
    """What did not clear does not count; a new connection counts anew."""
    arm = DriverProcess(Clearing, 2, most_recoveries=2)
    try:
        assert [arm.recover() for _ in range(4)] == [False, False, True, True]
        with pytest.raises(
            ArmError, match="cleared 2 times over this connection, at most 2: look at the robot"
        ):
            arm.recover()
        assert (arm.state().q == HOME).all()  # it still answers
    finally:
        arm.close()


def test_what_an_arm_refuses_reaches_the_session():
    with pytest.raises(ArmError, match=r"no FCI answers at 10\.0\.0\.1"):
        DriverProcess(refuses, "10.0.0.1")
    with pytest.raises(ArmError, match="ZeroDivisionError: division by zero"):
        DriverProcess(fails, None)


def test_an_address_that_says_nothing_leaves_no_process_behind():
    """It stayed, heeded no SIGTERM, and the command waited for its end for ever."""
    with pytest.raises(
        ArmError, match=r"10\.0\.0\.1 has not answered as a robot for 3 s.*reboot the cabinet"
    ):
        DriverProcess(hangs, "10.0.0.1", connect_s=3.0)
    assert not [child for child in multiprocessing.active_children() if child.name == "dris-driver"]


def test_a_state_crosses_the_border_to_the_last_bit():
    there = ArmState(0.1, np.array([0.1, 1 / 3, np.pi]), np.array([-0.0, 1e-300, np.nan]), True, "why")
    back = pickle.loads(pickle.dumps(there))
    assert (back.time_s, back.moving, back.error) == (0.1, True, "why")
    assert back.q.tobytes() == there.q.tobytes() and back.dq.tobytes() == there.dq.tobytes()
