"""An excitation is slow and small, and what is found from it is what the joints are."""

import math
from dataclasses import replace

import numpy as np
import pytest
from arms_without_robots import HOME, LIMITS, TASK, SoftArm

from dris.catching.kinematics import Kinematics
from dris.catching.law import LawConfig
from dris.lab.launch import Placed
from dris.lab.model import LabConfig
from dris.lab.objects import BALLS
from dris.lab.twin import Twin, TwinConfig
from dris.robot.arm import ArmError
from dris.robot.clearance import Clearance
from dris.robot.excitation import Excitation, ExcitationConfig
from dris.robot.identify import Joints, extent, fit_gains, matching
from dris.robot.live import NoEyes, run_path
from dris.robot.log import Log, Tick, read_log
from dris.robot.safety_config import SafetyConfig
from dris.robot.session import Session

SHORT = ExcitationConfig(joint_s=4.0)
SAFETY = SafetyConfig(TASK.stiffness, TASK.damping)


def test_it_is_slow_small_and_one_joint_at_a_time():
    path = Excitation(ExcitationConfig(), HOME, LIMITS)
    assert path.duration_s == 42.0 and path.turns()[2] == (12.0, 18.0)
    times = np.arange(0, 42, 0.001)
    q = np.array([path.at(t) for t in times]) - HOME
    assert (path.at(-1.0) == HOME).all() and (path.at(42.0) == HOME).all()
    for joint in range(7):
        quiet = (times < 6 * joint) | (times >= 6 * joint + 6)
        assert (q[quiet, joint] == 0).all() and np.abs(q[~quiet, joint]).max() > 0.05
    # By hand: three sines of the same speed v / 3 have amplitudes v / (3 w) that add up to 0.12 rad, with
    # v = 0.496 rad/s, which is less than 0.2 x 2.62.
    omega = 2 * math.pi * np.array([0.3, 1.1, 3.1])
    assert q[2000, 0] == pytest.approx(
        (0.12 / (1 / omega).sum() / omega * np.sin(omega * 2.0)).sum(), abs=1e-9
    )
    speed = np.abs(np.diff(q, axis=0)).max(axis=0) / 1e-3
    assert np.abs(q).max() <= 0.12 + 1e-9 and (speed <= 0.22 * np.array(LIMITS.speed)).all()


def test_how_far_it_goes_is_known_before():
    clearance = Clearance(HOME, TASK.mount)
    path = Excitation(ExcitationConfig(), HOME, LIMITS)
    how = extent(path, LIMITS, clearance, SAFETY)
    assert how.clear and how.joint_rad <= 0.12 + 1e-9 and 0.02 < how.plate_m < 0.1
    tight = replace(SAFETY, workspace_low=(-0.01,) * 3, workspace_high=(0.01,) * 3)
    assert not extent(path, LIMITS, clearance, tight).clear


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"speed_share": 0.6}, "slow and small"),
        ({"amplitude_rad": 0.5}, "slow and small"),
        ({"frequencies_hz": (5.0,)}, r"\(0, 4.0\] Hz"),
        ({"frequencies_hz": ()}, r"\(0, 4.0\] Hz"),
        ({"joint_s": 2.0}, "a second between its ramps"),
        ({"amplitude_rad": math.nan}, "positive and finite"),
    ],
)
def test_what_is_not_slow_or_tells_nothing_is_refused(values, words):
    with pytest.raises(ValueError, match=words):
        ExcitationConfig(**values)


def test_the_twins_gains_and_friction_are_found_whatever_they_are():
    """MuJoCo moves the arm, by its own dynamics; the fit knows neither gains nor friction nor latency."""
    stiffness = tuple(np.array(TASK.stiffness) * (1.3, 0.8, 1.0, 1.2, 0.9, 1.1, 1.0))
    friction = (0.6, 0.3, 0.2, 0.4, 0.1, 0.2, 0.05)
    config = TwinConfig(
        LabConfig(joint_friction=friction), stiffness, TASK.damping, home=TASK.home, mount=TASK.mount
    )
    twin = Twin(config)
    twin.reset(BALLS["ping-pong"], Placed((30.0, 0.0, 8.0), (0.0, 0.0, 0.0), TASK.home), 0)
    path, ticks = Excitation(SHORT, HOME, LIMITS), []
    for _ in range(round(1e3 * path.duration_s)):
        now, sent = twin.time_s, path.at(twin.time_s)
        ticks.append(Tick(now, "following", twin.joints().tolist(), [0.0] * 7, None, sent.tolist()))
        twin.set_reference(sent)
        twin.advance(1)
    found = fit_gains(Joints.of(ticks), path.turns(), Kinematics(TASK.home, TASK.mount))
    np.testing.assert_allclose(found.stiffness, stiffness, rtol=0.035)
    np.testing.assert_allclose(found.damping, TASK.damping, rtol=0.035)
    np.testing.assert_allclose(found.friction, friction, rtol=0.05)
    np.testing.assert_allclose(found.offset, 0, atol=0.01)
    # 2 ms of latency, and a reference is held for a millisecond: half of it on average.
    assert found.delay_s == pytest.approx(0.0025, abs=0.0006)


def test_gains_that_match_undo_what_was_found():
    assert matching((100.0, 50.0), (80.0, 55.0)) == (125.0, 45.45)


def test_a_joint_that_is_held_and_a_log_without_motion_are_refused():
    path = Excitation(SHORT, HOME, LIMITS)
    still = [
        Tick(1e-3 * k, "following", HOME.tolist(), [0.0] * 7, None, path.at(1e-3 * k).tolist())
        for k in range(28_000)
    ]
    with pytest.raises(ValueError, match=r"moved for 0\.00 s only"):
        fit_gains(Joints.of(still), path.turns(), Kinematics(TASK.home, TASK.mount))
    with pytest.raises(ValueError, match="thousands of ticks"):
        Joints.of([replace_state(tick) for tick in still[:2000]])


def replace_state(tick):
    return Tick(tick.time_s, "homed", tick.q, tick.dq, None, tick.sent)


class _Swing:
    duration_s = 0.3

    def at(self, time_s):
        return HOME + 0.02 * math.sin(math.pi * time_s / 0.3) * np.eye(7)[0]


def on(arm, log=None):
    """A session by the arm's own clock, so that a busy machine changes nothing."""
    law = LawConfig(TASK.stiffness, TASK.damping, 0.9, 0.9, True)
    clock = lambda: arm.ticks * 1e-3  # noqa: E731
    return Session(arm, NoEyes(), lambda s, c: np.zeros(5), TASK, law, clock, log, speed_share=0.5)


def at_once(seconds):
    """In place of sleep."""


def test_a_path_is_followed_from_home_and_the_arm_stopped_after_it(tmp_path):
    arm, lines = SoftArm(q=HOME + 0.01), []
    session = on(arm, Log.open(tmp_path / "log.jsonl"))
    run_path(session, _Swing(), lines.append, at_once)
    states = [state for _, state, _ in session.changes]
    assert states == ["connected", "homing", "homed", "following", "homed", "stopped"] and not arm.moving
    ticks = [tick for tick in read_log(tmp_path / "log.jsonl")[1] if tick.wished]
    along = [tick.wished[0] - HOME[0] for tick in ticks if tick.state == "following"]
    assert max(along) == pytest.approx(0.02, abs=5e-4)


def test_a_path_that_is_cut_short_says_so():
    class Reflex(SoftArm):
        def exchange(self, reference):
            if self.ticks > 100:
                self.moving, self.error = False, "joint_reflex"
            return super().exchange(reference)

    with pytest.raises(ArmError, match="fault: joint_reflex"):
        run_path(on(Reflex(q=HOME + 0.05)), _Swing(), lambda line: None, at_once)
