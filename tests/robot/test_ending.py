"""Signals that ask for the end: noted at once, heeded where they cut nothing in two."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from dris.robot.ending import BACKGROUND, ENDING, Ended, ended_by_signals, heed, interruptibly


def strike(after_s, *numbers):
    """Send signals to this thread: Linux prefers a process's first one, other systems may not."""
    first = threading.main_thread().ident
    threading.Timer(after_s, lambda: [signal.pthread_kill(first, number) for number in numbers]).start()


def test_a_signal_is_heeded_at_the_next_place_for_it():
    with ended_by_signals():
        heed()
        strike(0.05, signal.SIGINT, signal.SIGTERM)
        time.sleep(0.3)  # nothing is raised here
        with pytest.raises(Ended, match="^SIGINT$"):  # the first of them
            heed()
    heed()  # nothing is left of it


def test_it_breaks_into_what_may_take_long():
    with ended_by_signals():
        strike(0.2, signal.SIGINT, signal.SIGTERM)
        began = time.monotonic()
        with pytest.raises(Ended, match="^SIGINT$"), interruptibly():
            time.sleep(10)
        assert 0.1 < time.monotonic() - began < 5
        strike(0.05, signal.SIGINT)
        time.sleep(0.3)  # nor does anything break into what comes after
        with pytest.raises(Ended), interruptibly():
            pytest.fail("it was asked for before")


def test_signals_mean_afterwards_what_they_meant_before():
    before = [signal.getsignal(number) for number in (*ENDING, *BACKGROUND)]
    with pytest.raises(ZeroDivisionError), ended_by_signals():
        assert signal.getsignal(signal.SIGTTOU) == signal.SIG_IGN
        assert before[0] is not signal.getsignal(signal.SIGINT)
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in (*ENDING, *BACKGROUND)] == before


def test_what_nohup_ignores_stays_ignored_where_no_arm_moves():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals(unless_ignored=True):
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        with ended_by_signals():
            assert signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


WRITES = """
import os, signal, sys
from dris.robot.ending import ended_by_signals

terminal = int(sys.argv[1])
os.setsid()
os.ttyname(terminal) and os.open(os.ttyname(terminal), os.O_RDWR)  # the session's terminal from now on
shell = os.getpid()
if os.fork() == 0:  # in the background, as a shell's `&`
    os.setpgid(0, 0)
    with ended_by_signals():
        os.write(terminal, b"drawn")
    os._exit(7)
_, status = os.waitpid(-1, os.WUNTRACED)
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)
"""


def test_a_view_in_the_background_suspends_nothing():
    """With `stty tostop` a terminal suspends whoever writes to it from there: the arm would be left alone."""
    import pty
    import termios

    ours, theirs = pty.openpty()
    told = termios.tcgetattr(theirs)
    told[3] |= termios.TOSTOP
    termios.tcsetattr(theirs, termios.TCSANOW, told)
    try:
        command = [sys.executable, "-c", WRITES, str(theirs)]
        assert subprocess.run(command, pass_fds=[theirs], timeout=30).returncode == 7
    finally:
        os.close(ours)
        os.close(theirs)
