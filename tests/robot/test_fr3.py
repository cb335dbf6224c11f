"""The driver of a real FR3 before it moves, against the robot behind Franka's protocol."""

import importlib.util
import multiprocessing
import re
import socket
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

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
from dris.robot.fr3 import Fr3
from dris.robot.fr3_config import Fr3Config
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


def test_an_address_without_a_robot_is_named_before_the_kernel():
    """Whoever mistyped it need not hear of a real-time kernel first."""
    with pytest.raises(ArmError, match=r"no FCI answers at 127\.0\.8\.34"):
        Fr3(replace(config("127.0.8.34"), realtime=True))


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


def moving(address, lost):
    """What an arm tells that is held where it is while some commands are lost, up to its first error."""
    with Served(address, held(), patience_s=0.9, faults=Faults(lost_commands=lost)) as served:
        arm = DriverProcess(Fr3, config(address))
        try:
            arm.begin(HOME)
            began_s, state = arm.state().time_s, arm.exchange(HOME)
            while not state.error and state.time_s < began_s + 1.5:
                state = arm.exchange(HOME)
            arm.stop()
            return state, state.time_s - began_s, arm.state(), served.server.cabinet.reflexes
        finally:
            arm.close()


def test_an_arm_that_hears_too_few_commands_says_so_while_it_still_obeys():
    """With a quarter lost at random 20 in a row, which the robot itself minds, hardly ever come."""
    state, after_s, stopped, reflexes = moving("127.0.9.33", 0.25)
    assert state.moving and 0.15 < after_s < 0.5, (state, after_s)
    told = re.match(r"only (0\.\d\d) of the last commands reached the robot in time, 0.9 must", state.error)
    # By the binomial distribution: 0.75 of 100, four standard deviations of 0.043 about it.
    assert 0.58 < float(told[1]) < 0.9
    assert not stopped.moving and stopped.error == "" and not reflexes


def test_an_arm_that_hears_nearly_all_commands_goes_on():
    """One of a hundred lost; ten or more of a hundred would be by chance one in ten million."""
    state, after_s, _, reflexes = moving("127.0.9.34", 0.01)
    assert state.error == "" and after_s >= 1.5 and not reflexes


@pytest.mark.parametrize(
    ("arrived", "for_s", "said"),
    [(0.89, 0.3, True), (0.9, 0.3, False), (1.0, 0.3, False), (0.5, 0.1, False), (0.0, 0.3, False)],
)
def test_what_counts_as_too_few_commands(arrived, for_s, said):
    """Not before the robot has counted, and not what it tells when nothing moves, which is 0."""
    arm = Fr3.__new__(Fr3)
    arm._began_s = 7.0
    time_ = SimpleNamespace(to_sec=lambda: 7.0 + for_s)
    found = SimpleNamespace(time=time_, control_command_success_rate=arrived)
    assert bool(arm._lost(found)) == said
