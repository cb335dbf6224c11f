"""The driver of a real FR3 before it moves, against the robot behind Franka's protocol."""

import importlib.util
import multiprocessing
import socket
import time
from contextlib import closing
from dataclasses import replace

import pytest
from arms_without_robots import HOME, TASK, quick_runtime
from fci import AWAY, Served

from dris.lab.drives import drive
from dris.lab.fci.faults import Faults
from dris.lab.fci.plant import Plant
from dris.lab.fci.protocol import PORT, Mode
from dris.lab.objects import BALLS
from dris.lab.twin import Twin
from dris.robot.arm import ArmError
from dris.robot.driver import MOST_RECOVERIES, DriverProcess
from dris.robot.fr3 import Fr3, Fr3Config
from dris.robot.preflight import preflight

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("franky") is None, reason="franky is not installed: pip install 'dris[fr3]'"
)


def config(address):
    return Fr3Config(address, TASK.stiffness, TASK.damping, realtime=False)


def test_a_robot_of_another_version_is_named_with_the_way_out():
    words = (
        r"speaks another version than this libfranka \(.*server version: 9.*install the franky-control wheel"
    )
    with Served("127.0.7.31", faults=Faults(version=9)), pytest.raises(ArmError, match=words):
        DriverProcess(Fr3, config("127.0.7.31"))


def test_a_listener_that_is_no_robot_leaves_no_process_behind():
    """It accepts the connection and says nothing; the child sits in libfranka then."""
    with socket.create_server(("127.0.8.33", PORT)) as listener:
        listener.settimeout(0)
        words = r"127\.0\.8\.33 has not answered as a robot for 6 s: .*check the address.*activate FCI"
        with pytest.raises(ArmError, match=words):
            DriverProcess(Fr3, config("127.0.8.33"), connect_s=6.0)
        listener.accept()[0].close()  # it had come so far
    assert not [child for child in multiprocessing.active_children() if child.name == "dris-driver"]


def held():
    """A robot at the policies' home that has its hand in its settings, not the plate."""
    twin = Twin(drive("fitted-gains", TASK))
    twin.reset(BALLS["foam"], replace(AWAY, joints=TASK.home), 0)
    return Plant(twin, knows_plate=False)


def told(arm, mode, cabinet):
    """What the preflight says of a robot in a mode, once its states have told of it."""
    cabinet.mode, until_s = mode, time.monotonic() + 10
    while time.monotonic() < until_s:
        time.sleep(0.05)
        found = {check.name: check for check in preflight(quick_runtime(), arm)}["arm"]
        if found.ok == (mode == Mode.IDLE):
            return found
    return found


def test_modes_are_refused_by_name_and_errors_cleared_a_few_times_with_nothing_sent():
    with Served("127.0.7.32", held(), patience_s=0.9) as served:
        cabinet = served.server.cabinet
        with closing(DriverProcess(Fr3, config("127.0.7.32"))) as arm:
            checks = {check.name: check for check in preflight(quick_runtime(), arm)}
            for name in ("driver", "arm", "limits", "masses", "posture", "way", "payload"):
                assert checks[name].ok, checks[name]
            assert "franky-control 2" in checks["driver"].found and "libfranka 0." in checks["driver"].found
            for mode, words in (
                (Mode.USER_STOPPED, "the user stop is pressed"),
                (Mode.GUIDING, "somebody guides the robot"),
                (Mode.OTHER, "the robot is in mode Other, as with locked joints"),
                (Mode.REFLEX, "stopped by a reflex"),
            ):
                check = told(arm, mode, cabinet)
                assert not check.ok and words in check.found, check
            assert arm.recover() and arm.recover() and arm.recover()
            with pytest.raises(
                ArmError, match=r"cleared 3 times over this connection, at most 3: look at the"
            ):
                arm.recover()
            assert (arm.recoveries, MOST_RECOVERIES) == (3, 3)
            assert told(arm, Mode.IDLE, cabinet).ok
        assert served.server.motion_ms is None and not [line for line in served.said if "motion" in line]
        assert cabinet.settings.load_mass == 0 and abs(served.robot.q - HOME).max() < 1e-3
