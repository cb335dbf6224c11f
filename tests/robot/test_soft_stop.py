"""A soft stop ends when the arm rests by what it measures, and a robot is left as it may be expected."""

import enum
import importlib.util
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from arms_without_robots import TASK
from fci import AWAY, Served, skip_if_starved

from dris.lab.drives import drive
from dris.lab.fci.plant import Plant
from dris.lab.fci.protocol import Command
from dris.lab.objects import BALLS
from dris.lab.twin import Twin
from dris.robot import soft_stop
from dris.robot.arm import ArmError, RestsAlready
from dris.robot.driver import DriverProcess
from dris.robot.fr3 import Fr3
from dris.robot.fr3_config import Fr3Config
from dris.robot.payload import payload_of
from dris.robot.soft_stop import wait_for_rest

needs_franky = pytest.mark.skipif(
    importlib.util.find_spec("franky") is None, reason="franky is not installed: pip install 'dris[fr3]'"
)
ADDRESS = "127.0.0.11"
AT_REST = 0.02
"""[rad/s]: a plate 0.8 m away goes at 1.6 cm/s."""


def states(*speeds, every_s=0.01):
    """What a robot tells whose fastest joint goes at these speeds in turn, then at the last."""
    told = list(speeds)

    def read():
        read.count += 1
        now = SimpleNamespace(to_sec=lambda: every_s * read.count)
        return SimpleNamespace(time=now, dq=[0.0] * 6 + [told.pop(0) if len(told) > 1 else told[0]])

    read.count = 0
    return read


def test_an_arm_rests_once_it_has_been_still_for_a_while():
    read = states(1.0, 0.5, 0.0, -0.5, 0.0)  # as it swings it is still for a moment
    wait_for_rest(read)
    assert read.count == 5 + 5  # 0.05 s at 0.01 s each after the first state at rest


@pytest.mark.parametrize("speed", [0.03, -0.03, np.nan])
def test_an_arm_that_stays_fast_may_still_move(monkeypatch, speed):
    monkeypatch.setattr(soft_stop, "REST_S", 0.05)
    with pytest.raises(ArmError, match=r"may still move: .* goes at .* rad/s; use the robot's own stop"):
        wait_for_rest(states(speed))


MODES = enum.Enum("RobotMode", "Idle Move UserStopped Guiding Reflex AutomaticErrorRecovery")
"""Of an FR3, as franky names them."""


class Braking:
    """As much of franky's robot as a soft stop asks: keeps the motions that it is told."""

    is_in_control = True

    def __init__(self, mode="Idle", speed=0.0, tells=True):
        self.mode, self.speed, self.tells, self.moves = mode, speed, tells, []

    @property
    def state(self):
        if not (self.tells or self.moves):
            raise RuntimeError("no state")
        now_s = time.monotonic()
        return SimpleNamespace(
            q=[0.0] * 7, dq=[0.0 if self.moves else self.speed] + [0.0] * 6, robot_mode=MODES[self.mode],
            time=SimpleNamespace(to_sec=lambda: now_s), current_errors=["joint_reflex"], last_motion_errors=[],
        )  # fmt: skip

    def move(self, motion, asynchronous):
        self.moves.append(motion)

    def join_motion(self, timeout):
        return True


def braked_by(robot, told_before=""):
    """An FR3 that moves, without franky."""
    arm = Fr3.__new__(Fr3)
    arm._robot, arm._may_move, arm._error, arm._motion = robot, True, told_before, None
    arm._model = SimpleNamespace(gravity=lambda state: [38.3, 0, 0, 0, 0, 0, 0])
    arm._franky = SimpleNamespace(Exception=OSError, TorqueStopMotion=lambda **told: told, RobotMode=MODES)
    return arm


@pytest.mark.parametrize("tells", [True, False])
def test_an_arm_that_does_not_tell_how_fast_it_is_is_stopped_all_the_same(tells):
    """By franky's own brake; one that tells, by its own damping."""
    robot = Braking(speed=1.5, tells=tells)
    braked_by(robot).stop()
    (brake,) = robot.moves
    assert brake.pop("max_duration") == 0.6
    if tells:  # (0.9 x 87 - 38.3) / (1.5 + 0.5)
        np.testing.assert_allclose(brake["damping"], [20, 30, 30, 30, 3, 3, 3])
        assert brake["ramp_duration"] == 0.02
    else:
        assert brake == {}


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("Reflex", r"it rests, but not by this stop alone: stopped by a reflex: \['joint_reflex'\]"),
        ("UserStopped", "it rests, but not by this stop alone: the user stop is pressed"),
    ],
)
def test_a_reflex_during_a_soft_stop_is_told(mode, words):
    """A contact with somebody in those 0.15 s was noted nowhere."""
    robot = Braking(mode)
    arm = braked_by(robot)
    with pytest.raises(RestsAlready, match=words):
        arm.stop()
    robot.mode = "Idle"  # somebody released it
    arm.stop()  # told once
    assert arm.state().error == "" and len(robot.moves) == 1  # and not kept: it is the robot that knows


@pytest.mark.parametrize(
    ("mode", "before"), [("Reflex", "Move command aborted: motion aborted by reflex!"), ("Idle", "")]
)
def test_a_reflex_that_was_told_of_is_not_told_again(mode, before):
    robot = Braking(mode)
    braked_by(robot, before).stop()
    assert len(robot.moves) == 1


def test_an_arm_that_tells_nothing_may_still_move():
    def read():
        raise ArmError("the robot has told nothing for 3 s")

    with pytest.raises(ArmError, match="may still move, the robot has told nothing .* the robot's own stop"):
        wait_for_rest(read)


@contextmanager
def arm_that_moves(declared=True, **more):
    """A robot that holds its home, what is pushed there, and its driver."""
    driven = drive("fitted-gains", TASK)
    twin = Twin(driven)
    twin.reset(BALLS["foam"], replace(AWAY, joints=TASK.home), 0)
    settings = {"payload": payload_of(TASK.mount, "plate")} if declared else {}
    config = Fr3Config(ADDRESS, driven.stiffness, driven.damping, realtime=False, **settings)
    with Served(ADDRESS, Plant(twin, knows_plate=False), patience_s=0.9) as served:
        hand = twin.data.xfrc_applied[twin.model.body("hand").id]
        with closing(DriverProcess(Fr3, config, **more)) as arm:
            home = arm.state().q
            arm.begin(home)
            for _ in range(30):
                arm.exchange(home)
            yield arm, served, hand
            skip_if_starved(served)


def fastest(served):
    return np.abs(served.robot.dq).max()


@needs_franky
@pytest.mark.parametrize(("declared", "newtons"), [(True, 10.0), (False, 0.0)])
def test_an_arm_rests_after_a_soft_stop_whoever_pushes_it_and_whatever_it_carries(declared, newtons):
    """Damping alone lets it go on at 0.1 to 0.3 rad/s under 10 N, at 0.08 under a plate nobody declared."""
    with arm_that_moves(declared) as (arm, served, hand):
        hand[2] = -newtons
        arm.stop()
        assert fastest(served) < AT_REST
        assert not served.server.cabinet.reflexes and not arm.state().moving


@needs_franky
def test_an_arm_that_its_robot_does_not_hold_is_told_of():
    with arm_that_moves() as (arm, served, hand):
        served.robot.stiffness = np.ones(7)  # of a robot that yields
        hand[1] = 5.0
        for _ in range(2):  # whoever asks again is told again
            with pytest.raises(ArmError, match="the arm may still move"):
                arm.stop()
        assert fastest(served) > AT_REST
        hand[1] = 0.0
        served.robot.lead_to(served.robot.q)
        arm.stop()
        assert fastest(served) < AT_REST


@needs_franky
def test_an_arm_that_a_reflex_has_stopped_rests_when_a_soft_stop_is_over():
    with arm_that_moves(silence_s=5.0) as (arm, served, _):  # or a busy machine's driver stops it before
        served.robot.twin.data.qvel[:7] = 1.5  # struck
        served.wait_for(lambda: served.server.cabinet.reflexes)
        assert fastest(served) > 0.5
        with pytest.raises(ArmError, match="it rests, but not by this stop alone: stopped by a reflex"):
            arm.stop()
        assert fastest(served) < AT_REST


@contextmanager
def listening():
    """A robot with a laboratory's own thresholds, and what it is told about them and about its load."""
    with Served(ADDRESS, patience_s=0.9) as served:
        cabinet, told = served.server.cabinet, []
        answer = cabinet.answer

        def note(request):
            if request.command == Command.SET_COLLISION_BEHAVIOR:
                told.append(
                    (request.body["torque_nominal"][1].tolist(), request.body["force_nominal"][1].tolist())
                )
            elif request.command == Command.SET_LOAD:
                told.append(round(float(request.body["mass"]), 9))
            else:
                assert request.command in (Command.GET_ROBOT_MODEL, Command.MOVE)
            return answer(request)

        cabinet.answer = note
        yield served, told


@needs_franky
def test_a_robot_that_is_only_asked_gets_thresholds_that_stop_it_soon():
    for site, torque, force in (
        ({}, 10.0, 10.0),
        ({"torque_thresholds": (30.0,) * 4 + (9.0,) * 3, "force_threshold": 5.0}, 9.0, 5.0),
    ):
        config = Fr3Config(ADDRESS, TASK.stiffness, TASK.damping, realtime=False, **site)
        with listening() as (_, told):
            with closing(DriverProcess(Fr3, config)) as arm:
                arm.state(), arm.limits(), arm.masses(), arm.carries()
            assert told == [([torque] * 7, [force] * 6)]


@needs_franky
def test_a_robot_that_has_moved_is_left_with_low_thresholds_and_no_load():
    plate = payload_of(TASK.mount, "plate")
    config = Fr3Config(ADDRESS, TASK.stiffness, TASK.damping, realtime=False, payload=plate)
    resting, moving = ([10.0] * 7, [10.0] * 6), ([80.0] * 4 + [12.0] * 3, [80.0] * 6)
    with listening() as (served, told):
        with closing(DriverProcess(Fr3, config)) as arm:
            arm.begin(arm.state().q)
            arm.stop()
            assert told == [resting, moving, 0.35]
        assert told == [resting, moving, 0.35, resting, 0.0]
        assert not served.server.cabinet.reflexes


@needs_franky
def test_closing_ends_though_the_robot_does_not_answer_its_settings():
    """libfranka waits for that answer without end."""
    with arm_that_moves(close_s=3.0) as (arm, served, _):
        arm.stop()
        cabinet = served.server.cabinet
        cabinet.answer = lambda request: b""
        began_s = time.monotonic()
        arm.close()
        assert 2.5 < time.monotonic() - began_s < 10.0 and not arm.process.is_alive()
        assert (cabinet.settings.thresholds.force == 80.0).all()
