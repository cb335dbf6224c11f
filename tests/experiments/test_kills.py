"""Processes that are killed or told to end while the arm moves: the robot, behind its protocol, rests in time."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from fci import Served, skip_if_starved

from dris.lab.fci.cabinet import STANDING

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("franky") is None, reason="franky is not installed: pip install 'dris[fr3]'"
)

SWINGS = """
import sys, time
import numpy as np
from dris.robot.driver import DriverProcess
from dris.robot.fr3 import Fr3
from dris.robot.fr3_config import Fr3Config

arm = DriverProcess(Fr3, Fr3Config(sys.argv[1], (600,) * 7, (50,) * 7, realtime=False))
home = arm.state().q
arm.begin(home)
print(arm.process.pid, flush=True)
while True:
    now = arm.state().time_s
    arm.exchange(home + 0.2 * np.sin(3 * now) * np.eye(7)[0])
    time.sleep(0.002)
"""


IN_SESSION = """
import sys, time
import numpy as np
from dris.catching.settings import CatchingConfig
from dris.lab.drives import as_driven, drive, law_of
from dris.robot.arm import ArmError
from dris.robot.driver import DriverProcess
from dris.robot.fr3 import Fr3
from dris.robot.fr3_config import Fr3Config
from dris.robot.live import NoEyes, run_path
from dris.robot.session import Session

config = CatchingConfig()
driven = drive("fitted-gains", config)
arm = DriverProcess(Fr3, Fr3Config(sys.argv[1], driven.stiffness, driven.damping, realtime=False))

class Swing:
    duration_s = 120.0

    def at(self, time_s):
        return np.array(config.home) + 0.3 * np.sin(4 * time_s) * np.eye(7)[0]

print(arm.process.pid, flush=True)
act = lambda states, condition: np.zeros(5)
session = Session(arm, NoEyes(), act, as_driven(config, driven), law_of(driven), time.monotonic)
try:
    run_path(session, Swing(), lambda line: None)
except ArmError as error:
    print(error, flush=True)
finally:
    arm.close()
"""
"""As commands do it that move a real arm: a session that signals end, and its driver."""
IN_TIME_MS = 1000
"""Of the robot's time, from signal to rest."""


class Struck:
    """A client whose first joint swings, and when the robot came to rest after a signal.

    It is struck as soon as that joint goes faster than a speed [rad/s].
    """

    def __init__(self, served, script, speed):
        self._served, self._speed = served, speed
        self._command = [sys.executable, "-c", script, served.server.config.address]

    def __enter__(self):
        said = ""
        for _ in range(3):  # on a machine with too much to do a client may be stopped for its silence before
            self._start()
            if self.policy.poll() is None:
                return self
            said = self.policy.stdout.read()
            self.__exit__()
        raise AssertionError(f"the client ended before its arm was fast: {said}")

    def _start(self):
        # A terminal's Ctrl-C goes to all processes of a group; Ctrl-Z suspends only one that has a shell, as
        # this has in us: not one in a session of its own.
        self.policy = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, process_group=0)
        self.driver = int(self.policy.stdout.readline())
        robot, ended = self._served.robot, self.policy.poll
        self._served.wait_for(lambda: abs(robot.dq[0]) > self._speed or ended() is not None, 60)

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.policy.pid, signal.SIGKILL)  # a driver, too, that was suspended
        self.policy.wait(10)
        self.policy.stdout.close()

    def strike(self, victim, number):
        """Send a signal: to the policy's process, the driver's, or both, as a terminal does."""
        self.struck_ms = self._served.server.clock_ms
        if victim == "both":
            os.killpg(self.policy.pid, number)
        else:
            os.kill(self.policy.pid if victim == "policy" else self.driver, number)

    def rested_ms(self):
        """From the signal to an arm at rest, in robot time."""
        server, robot, rested = self._served.server, self._served.robot, []

        def rests():
            if server.cabinet.motion is None and np.abs(robot.dq).max() < STANDING:
                rested.append(server.clock_ms)
            return bool(rested)

        self._served.wait_for(rests, 20)
        return rested[0] - self.struck_ms


@pytest.mark.parametrize(("victim", "address"), [("policy", "127.0.7.11"), ("driver", "127.0.7.12")])
def test_sigkill_leaves_an_arm_at_rest_within_a_second(victim, address):
    with Served(address, patience_s=0.9) as served, Struck(served, SWINGS, 0.2) as client:
        client.strike(victim, signal.SIGKILL)
        rested_ms = client.rested_ms()
    skip_if_starved(served)
    # The driver sees the end of its pipe at once and brakes; the robot sees the end of its client.
    assert rested_ms < IN_TIME_MS


@pytest.mark.parametrize(
    ("victim", "number", "address", "words"),
    [
        ("both", signal.SIGINT, "127.0.7.13", "stopped: ended by SIGINT"),  # Ctrl-C
        ("policy", signal.SIGINT, "127.0.7.14", "stopped: ended by SIGINT"),
        ("policy", signal.SIGTERM, "127.0.7.15", "stopped: ended by SIGTERM"),
        ("both", signal.SIGTSTP, "127.0.7.18", "a robot cannot be put in the background"),  # Ctrl-Z
        ("both", signal.SIGQUIT, "127.0.7.19", "stopped: ended by SIGQUIT"),  # Ctrl-\
        ("driver", signal.SIGTERM, "127.0.7.16", "fault: the driver's process is gone"),
    ],
)
def test_signals_to_end_leave_an_arm_softly_at_rest_within_a_second(victim, number, address, words):
    with Served(address, patience_s=0.9) as served, Struck(served, IN_SESSION, 0.8) as client:
        client.strike(victim, number)
        rested_ms = client.rested_ms()
        said = client.policy.communicate(timeout=20)[0]  # one that was suspended says nothing
        reflexes = list(served.server.cabinet.reflexes)
    skip_if_starved(served)
    assert rested_ms < IN_TIME_MS and words in said and not reflexes, (rested_ms, said, reflexes)


@pytest.mark.parametrize(
    ("number", "address"), [(signal.SIGINT, "127.0.7.17"), (signal.SIGTSTP, "127.0.7.20")]
)
def test_what_a_terminal_sends_to_the_driver_alone_is_not_for_it(number, address):
    """The session goes on, and ends it."""
    with Served(address, patience_s=0.9) as served, Struck(served, IN_SESSION, 0.8) as client:
        client.strike("driver", number)
        served.wait_for(lambda: served.server.clock_ms > client.struck_ms + IN_TIME_MS, 30)
        moves = served.server.cabinet.motion is not None
        client.strike("policy", signal.SIGTERM)
        rested_ms = client.rested_ms()
    skip_if_starved(served)
    assert moves and rested_ms < IN_TIME_MS
