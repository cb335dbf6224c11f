"""Processes that are killed while the arm moves: the robot itself, behind its protocol, is at rest in time."""

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
from dris.robot.fr3 import Fr3, Fr3Config

arm = DriverProcess(Fr3, Fr3Config(sys.argv[1], (600,) * 7, (50,) * 7, realtime=False))
home = arm.state().q
arm.begin(home)
print(arm.process.pid, flush=True)
while True:
    now = arm.state().time_s
    arm.exchange(home + 0.2 * np.sin(3 * now) * np.eye(7)[0])
    time.sleep(0.002)
"""


@pytest.mark.parametrize(("victim", "address"), [("policy", "127.0.7.11"), ("driver", "127.0.7.12")])
def test_sigkill_leaves_an_arm_at_rest_within_a_second(victim, address):
    rested_ms = []

    with Served(address, patience_s=0.9) as served:
        server, robot = served.server, served.robot
        policy = subprocess.Popen([sys.executable, "-c", SWINGS, address], stdout=subprocess.PIPE, text=True)
        try:
            driver = int(policy.stdout.readline())
            served.wait_for(lambda: abs(robot.dq[0]) > 0.2, 60)
            began_ms = server.clock_ms
            os.kill(policy.pid if victim == "policy" else driver, signal.SIGKILL)

            def rests():
                standing = server.cabinet.motion is None and np.abs(robot.dq).max() < STANDING
                if standing:
                    rested_ms.append(server.clock_ms)
                return standing

            served.wait_for(rests, 20)
        finally:
            policy.kill()
            policy.wait(10)
            policy.stdout.close()
    skip_if_starved(served)
    # The driver sees the end of its pipe at once and brakes; the robot sees the end of its client.
    assert rested_ms[0] - began_ms < 1000
