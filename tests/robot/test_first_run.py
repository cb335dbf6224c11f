"""Before a first run: payload, speed, and an arm that is stopped where it itself, not its reference, leaves."""

import math
import os
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from arms_without_robots import HOME, LIMITS, TASK, SoftArm
from fci import AWAY, FRICTIONLESS

from dris.catching.kinematics import Kinematics
from dris.catching.law import LawConfig
from dris.catching.robot_model import robot_model
from dris.lab.fci.plant import Plant
from dris.lab.objects import BALLS
from dris.lab.twin import Twin
from dris.robot.arm import Carried, Payload
from dris.robot.boundary import Boundary
from dris.robot.clearance import Clearance
from dris.robot.live import NoEyes
from dris.robot.log import Log
from dris.robot.own_clock import OwnClock
from dris.robot.payload import compare, near, payload_of
from dris.robot.safety import filter_reference, outside
from dris.robot.safety_config import SafetyConfig
from dris.robot.session import Session

LAW = LawConfig(TASK.stiffness, TASK.damping, 0.95, 0.9, True)
SAFETY = SafetyConfig(TASK.stiffness, TASK.damping)


def test_the_plate_weighs_what_the_model_says_where_it_is():
    plate = payload_of("down", "plate")
    # By hand: 0.13 m along the hand's x, which is turned by -45 degrees from the flange's; 0.1034 m out.
    side = 0.13 / math.sqrt(2)
    np.testing.assert_allclose(plate.centre_in_flange, (side, -side, 0.1034), atol=1e-6)
    assert plate.mass_kg == 0.35
    # A box of 0.24 x 0.24 x 0.01 m: m (a^2 + b^2) / 12, the same about every axis of the square.
    across, about = 0.35 * (0.24**2 + 0.01**2) / 12, 0.35 * 2 * 0.24**2 / 12
    np.testing.assert_allclose(
        np.reshape(plate.inertia, (3, 3)), np.diag([across, across, about]), rtol=1e-6, atol=1e-9
    )


def test_what_the_robot_believes_is_compared():
    hand, plate = payload_of("down", "hand"), payload_of("down", "plate")
    both = payload_of("down", "hand", "plate")
    assert both.mass_kg == pytest.approx(1.08)
    assert compare(Carried(hand, Payload()), "down")[0] and compare(Carried(hand, plate), "down")[0]
    for carried, words in (
        (Carried(both, Payload()), "add the plate again"),
        (Carried(Payload(), Payload()), "end effector is 0.00 kg"),
        (Carried(hand, replace(plate, mass_kg=0.5)), "told of a load of 0.50 kg"),
        (Carried(hand, replace(plate, centre_in_flange=(0.0, 0.0, 0.2))), "told of a load of 0.35 kg at"),
    ):
        good, found = compare(carried, "down")
        assert not good and words in found
    assert near(Payload(0.02, (0.5, 0.0, 0.0)), Payload()) and not near(plate, payload_of("level", "plate"))


def test_an_arm_sinks_under_a_plate_that_was_not_declared_and_holds_one_that_was():
    twin = Twin(replace(FRICTIONLESS, home=TASK.home, mount=TASK.mount))
    twin.reset(BALLS["foam"], AWAY, 0)
    robot = Plant(twin, knows_plate=False)
    assert robot.end_effector()[0] == pytest.approx(0.73)
    undeclared = robot.gravity.copy()
    plate = payload_of(TASK.mount, "plate")
    robot.load_mass, robot.load_centre = plate.mass_kg, np.array(plate.centre_in_flange)
    robot._look()
    whole = Plant(twin)
    np.testing.assert_allclose(robot.gravity, whole.gravity, atol=1e-9)  # the twin's own arm, plate and all
    assert np.abs(robot.gravity - undeclared).max() > 1.0
    height = robot.flange_pose()[2, 3]
    for _ in range(300):
        robot.advance_with(np.zeros(7))
    assert abs(robot.flange_pose()[2, 3] - height) < 1e-6
    robot.load_mass = 0.0
    robot._look()
    for _ in range(300):
        robot.advance_with(np.zeros(7))
    assert robot.flange_pose()[2, 3] < height - 0.005


class _There:
    """A step of a joint, far away."""

    duration_s = 0.8

    def __init__(self, way):
        self.way = np.asarray(way)

    def at(self, time_s):
        return HOME + self.way


def homed(arm, **changes):
    clock = lambda: arm.ticks * 1e-3  # noqa: E731
    session = Session(arm, NoEyes(), lambda s, c: np.zeros(5), TASK, LAW, clock, **changes)
    session.connect()
    session.start()
    while session.state == "homing":
        session.tick()
    assert session.state == "homed", session.reason
    return session


class HeavyArm(SoftArm):
    """The twin's arm, with masses and no friction, under tau = K (q~ - q) - D dq + C, and what pushes it."""

    def __init__(self):
        super().__init__()
        self.push_nm = np.zeros(7)
        twin = Twin(replace(FRICTIONLESS, home=TASK.home, mount=TASK.mount))
        twin.reset(BALLS["foam"], AWAY, 0)
        self._plant = Plant(twin)

    def exchange(self, reference):
        plant = self._plant
        pull = np.array(TASK.stiffness) * (reference - plant.q) - np.array(TASK.damping) * plant.dq
        plant.advance_with(pull + plant._bias - plant.gravity + self.push_nm)
        self.q, self.dq, self.ticks = plant.q, plant.dq, self.ticks + 1
        return self.state()


@pytest.mark.parametrize("share", [1.0, 0.4, 0.1])
def test_a_share_of_the_speed_is_kept_by_the_arm(share):
    """A wish that jumps by 0.6 rad drives a joint at its limit, or at that share of it."""
    arm = HeavyArm()
    session = homed(arm, speed_share=share)
    session.follow(_There(0.6 * np.eye(7)[0]))
    fastest = 0.0
    while session.state == "following":
        session.tick()
        fastest = max(fastest, abs(arm.dq[0]))
    # The law drives at 0.95 of the limit, 2.62 rad/s.
    assert 0.8 * 0.95 * 2.62 * share < fastest <= 2.62 * share
    assert session.safety.plate_speed == pytest.approx(2.5 * share)


@pytest.mark.parametrize("stall_ms", [3, 10, 100])
def test_a_session_that_stalls_does_not_push_the_arm_on(stall_ms):
    """The arm goes on under its last reference; the next one asks for 5 ms of torque rate more, 4.75 Nm."""
    arm = HeavyArm()
    session = homed(arm)
    session.follow(_There(0.6 * np.eye(7)[0]))
    worst = 0.0
    for _ in range(6):
        for _ in range(40):
            session.tick()
        for _ in range(stall_ms):
            arm.exchange(session._sent)
        before = session._sent.copy()
        session.tick()
        worst = max(worst, np.abs(np.array(TASK.stiffness) * (session._sent - before)).max())
    assert session.state in ("following", "homed") and 0.3 < worst < 4.75 + 0.2


def test_the_law_forgets_torques_that_a_wall_of_the_workspace_took():
    """Held at the wall for half a second, the reference comes back within a few ticks of another wish."""
    small = replace(SAFETY, workspace_low=(-0.1,) * 3, workspace_high=(0.1,) * 3)
    arm = HeavyArm()
    session = homed(arm, safety=small)
    session.follow(_There(0.6 * np.eye(7)[0]))
    for _ in range(700):
        session.tick()
    assert session.fired == ("workspace",) and abs(arm.dq[0]) < 0.1
    at_wall = session._sent[0]
    session._path = _There(np.zeros(7))
    for _ in range(4):
        session.tick()
    assert session._sent[0] < at_wall - 1e-4


def test_the_filter_is_told_of_gravity_and_coriolis_torques(monkeypatch):
    """By MuJoCo's own sum of both, at joints that move."""
    told = []
    keep = lambda *a: told.append(a[-1]) or filter_reference(*a)  # noqa: E731
    monkeypatch.setattr("dris.robot.session.filter_reference", keep)
    arm = HeavyArm()
    session = homed(arm)
    session.follow(_There(0.4 * np.ones(7)))
    for _ in range(150):
        session.tick()
    model = robot_model(TASK.mount)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = told[-1].q, told[-1].dq
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(told[-1].bias, data.qfrc_bias, atol=1e-9)
    coriolis = data.qfrc_bias.copy()
    data.qvel[:] = 0.0
    mujoco.mj_forward(model, data)
    assert np.abs(coriolis - data.qfrc_bias).max() > 0.1  # there is some


def test_the_filter_keeps_the_share_without_the_law():
    """The joints' limits are slowed where the filter looks, too: a reference leads by 1.6 D / K of less."""
    arm = HeavyArm()
    session = homed(arm, speed_share=0.25)
    assert session.limits.speed == pytest.approx(0.25 * np.array(LIMITS.speed))
    session.shaper.reference = lambda q, dq, wished, tick_s, arm: wished
    session.follow(_There(0.6 * np.eye(7)[0]))
    lead = 0.0
    for _ in range(500):
        session.tick()
        lead = max(lead, session._sent[0] - arm.q[0])
    assert session.clauses["speed"] > 100 and lead <= 1.6 * 15 / 120 * 0.25 * 2.62 + 1e-9


def test_shares_that_are_none_are_refused():
    for share in (0.0, 1.5, -0.1, math.nan):
        with pytest.raises(ValueError, match=r"speed_share must lie in \(0, 1\]"):
            Session(SoftArm(), NoEyes(), lambda s, c: np.zeros(5), TASK, LAW, lambda: 0.0, speed_share=share)


def test_an_arm_that_overshoots_its_workspace_is_stopped_by_name():
    """References leave no further than braking needs, and that is told; the arm is pushed on."""
    small = replace(SAFETY, workspace_low=(-0.1, -0.1, -0.1), workspace_high=(0.1, 0.1, 0.1))
    clearance = Clearance(HOME, TASK.mount)
    arm = HeavyArm()
    session = homed(arm, safety=small)
    session.follow(_There(0.5 * np.eye(7)[0]))
    arm.push_nm = 60.0 * np.eye(7)[0]  # half a radian against 120 Nm/rad
    pushes = []
    while session.state == "following":
        session.tick()
        if outside(small, clearance, session._sent)["workspace"].any() and session.state == "following":
            assert session.beyond["workspace"]
            q, dq = session.measured.q[0], session.measured.dq[0]
            pushes.append(
                session.safety.stiffness[0] * (session._sent[0] - q) - session.safety.damping[0] * dq
            )
    # From the first of these on the law brakes, as fast as the torque rate allows: 0.95 Nm a tick.
    assert np.diff(pushes[:41]) == pytest.approx(np.full(40, -0.95), abs=0.02)
    assert session.state == "stopped" and not arm.moving
    assert (
        session.reason.startswith("workspace: the arm itself is 0.06")
        and "0.06 m is allowed" in session.reason
    )
    beyond = outside(small, clearance, arm.q)["workspace"].max()
    assert 0.06 < beyond < 0.07  # stopped in the tick in which it passed
    obedient = homed(SoftArm(), safety=small)
    obedient.follow(_There(0.5 * np.eye(7)[0]))
    while obedient.state == "following":
        obedient.tick()
    assert obedient.state == "homed" and obedient.clauses["workspace"] > 0


def test_an_arm_that_comes_too_near_to_the_table_is_stopped():
    high = replace(SAFETY, table_height=Clearance(HOME, TASK.mount).plate(HOME)[2] - 0.1)
    arm = HeavyArm()
    session = homed(arm, safety=high)
    session.follow(_There(0.5 * np.eye(7)[1]))
    arm.push_nm = 40.0 * np.eye(7)[1]
    while session.state == "following":
        session.tick()
    assert session.state == "stopped" and session.reason.startswith("keep-out: the arm itself is 0.01")


def test_an_arm_that_begins_outside_may_come_in_and_not_go_back():
    clearance = Clearance(HOME, TASK.mount)
    small = replace(SAFETY, workspace_low=(-0.1,) * 3, workspace_high=(0.1,) * 3)
    far, near_, home = HOME + 0.6 * np.eye(7)[0], HOME + 0.4 * np.eye(7)[0], HOME
    rest = np.zeros(7)
    boundary = Boundary(small, clearance, far)
    assert boundary.broken(far, rest) == "" and boundary.broken(near_, rest) == ""
    assert boundary.broken(far, rest).startswith("workspace")
    boundary = Boundary(small, clearance, far)
    assert boundary.broken(home, rest) == "" and boundary.broken(near_, rest).startswith("workspace")
    assert Boundary(small, clearance, home).broken(np.full(7, math.nan), rest) != ""


def test_an_arm_whose_plate_is_too_fast_is_stopped_wherever_it_is():
    """Joint 1 alone turns the plate about the base: its speed is that joint's, times the distance."""
    clearance = Clearance(HOME, TASK.mount)
    boundary = Boundary(replace(SAFETY, plate_speed=0.5), clearance, HOME)
    kinematics = Kinematics(HOME, TASK.mount)
    position, rotation = kinematics.plate(HOME)
    corners = position + np.array([[x, y, 0.0] for x in (-0.12, 0.12) for y in (-0.12, 0.12)]) @ rotation.T
    furthest = np.linalg.norm(corners[:, :2], axis=1).max()
    turn = np.eye(7)[0] / furthest  # 1 m/s
    assert boundary.broken(HOME, 0.69 * turn) == ""  # 1.4 x 0.5 m/s is where it ends
    assert boundary.broken(HOME, -0.71 * turn).startswith("plate speed: plate or flange move at 0.71 m/s")


def test_a_session_by_the_robot_s_clock_follows_in_the_robot_s_time():
    """However slowly that passes: a path of 0.8 s is 800 of the robot's milliseconds."""
    arm = OwnClock(SoftArm())
    session = Session(arm, NoEyes(), lambda s, c: np.zeros(5), TASK, LAW, arm.clock)
    session.connect()
    session.start()
    while session.state == "homing":
        session.tick()
    began = arm.ticks
    session.follow(_There(0.1 * np.eye(7)[0]))
    while session.state == "following":
        session.tick()
    assert session.state == "homed" and abs(arm.ticks - began - 800) <= 2
    assert arm.clock() == arm.state().time_s


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_a_full_disk_stops_the_arm():
    from pathlib import Path

    arm = SoftArm(q=HOME + 0.05)
    clock = lambda: arm.ticks * 1e-3  # noqa: E731
    with open("/dev/null", "w") as fine:
        session = Session(arm, NoEyes(), lambda s, c: np.zeros(5), TASK, LAW, clock, Log(fine))
        session.connect()
        session.start()
        for _ in range(20):
            session.tick()
        assert session.state == "homing" and arm.moving
        session._log.file = Path("/dev/full").open("w", buffering=1)  # noqa: SIM115
        session.tick()
    assert session.state == "fault" and not arm.moving
    assert session.reason == "the log cannot be written: No space left on device"
