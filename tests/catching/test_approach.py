"""The approach: poses against the training world's solver, motions against their limits, refusals by name."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from dris.catching.approach import Approach, ApproachLimits
from dris.catching.frames import tilt_of_normal
from dris.catching.kinematics import Kinematics
from dris.catching.settings import PRESETS, CatchingConfig
from dris.catching.task import CatchingTask
from dris.catching.throws import Thrown
from dris.evaluation.registry import find_policy
from dris.lab.drives import drive
from dris.lab.launch import Drop, Laid, Throw
from dris.lab.objects import BALLS
from dris.lab.observer import TruthObserver
from dris.lab.trial import run_trial
from dris.lab.twin import Twin
from dris.perception.arrival import Arrival, sinks_in

TASK = CatchingConfig()
KINEMATICS = Kinematics()
HOME = np.array(TASK.home)
LIMITS = ApproachLimits()
FALLING = np.array([-1.2, 0.3, -5.0])  # comes from ahead, 0.24 rad from the vertical


def arrival(offset=(0.1, -0.05, 0.0), time_s=1.0, velocity=FALLING, **doubts):
    return Arrival(time_s, KINEMATICS.home_position + offset, np.array(velocity), **doubts)


def told(approach, estimate, from_s=0.0):
    """Tell an approach the same estimate until it is believed; the time then."""
    for tick in range(8):
        approach.update(estimate, from_s + 0.005 * tick)
    return from_s + 0.035


def test_eyes_that_doubt_themselves_brake_the_arm_and_it_goes_on_when_they_are_fine_again():
    approach = Approach(TASK, KINEMATICS)
    now_s = told(approach, arrival((0.2, 0.0, 0.0))) + 0.12
    _, speed, acceleration = approach.desired(now_s)
    assert np.abs(speed).max() > 0.5
    assert approach.halt(now_s) == "halted" and approach.changes[-1][1].startswith("halted")
    # By hand: first the acceleration goes, then the speed that it has added to, then what brakes.
    most, jerk = np.array(LIMITS.acceleration), np.array(LIMITS.jerk)
    peak = np.abs(speed) + acceleration**2 / (2 * jerk)
    within_s = (np.abs(acceleration) / jerk + peak / most + most / jerk).max()
    at, then, pull = approach.desired(now_s)
    np.testing.assert_allclose(then, speed, atol=1e-9)  # nothing jumps
    np.testing.assert_allclose(pull, acceleration, atol=1e-9)
    for k in range(1, math.ceil(1e3 * within_s)):
        assert approach.halt(now_s + 1e-3 * k) == "halted"
        assert (np.abs(approach.desired(now_s + 1e-3 * k)[2]) <= most + 1e-9).all()
    rest, still, _ = approach.desired(now_s + within_s + 1e-3)
    assert not still.any() and (np.abs(rest - at) <= peak * within_s).all()
    np.testing.assert_array_equal(approach.desired(now_s + 1.0)[0], rest)
    assert approach.update(None, now_s + 0.3) == "waiting"  # the eyes are fine, the ball is not seen yet
    np.testing.assert_array_equal(approach.desired(now_s + 0.3)[0], rest)
    again_s = told(approach, arrival((0.2, 0.0, 0.0)), now_s + 0.3)
    assert approach.outcome == "going"
    np.testing.assert_allclose(approach.desired(again_s + 0.5)[0], approach.goal, atol=1e-9)
    at = KINEMATICS.plate(approach.goal)[0]
    np.testing.assert_allclose(at, KINEMATICS.home_position + [0.2, 0.0, 0.0], atol=0.006)
    down_s = 1.0 + approach.lead_s + 0.01  # it has come down without the arm
    there, still, _ = approach.desired(down_s)
    assert not still.any() and approach.halt(down_s) == "halted"
    np.testing.assert_array_equal(approach.desired(down_s + 5.0)[0], there)
    assert approach.update(None, down_s + 5.0) == "waiting"
    np.testing.assert_allclose(approach.goal, HOME)


def test_an_approach_that_is_halted_on_its_way_home_brakes_too_and_goes_on_afterwards():
    approach = Approach(TASK, KINEMATICS)
    now_s = told(approach, arrival((0.2, 0.0, 0.0)))
    for k in range(20):  # it comes down elsewhere, where the arm does not go
        now_s += 0.01
        approach.update(arrival((0.2 if k < 10 else 0.6, 0.0, 0.0)), now_s)
    assert approach.outcome == "past" and np.abs(approach.desired(now_s)[1]).max() > 0.5
    assert approach.halt(now_s) == "halted"
    rest, still, _ = approach.desired(now_s + 0.5)
    assert not still.any() and np.abs(rest - HOME).max() > 0.05
    assert approach.halt(now_s + 0.5) == "halted"
    np.testing.assert_array_equal(approach.desired(now_s + 5.0)[0], rest)
    assert approach.update(None, now_s + 5.0) == "waiting"  # the eyes are fine again
    np.testing.assert_allclose(approach.desired(now_s + 9.0)[0], HOME)


def test_the_pose_is_the_one_that_training_begins_with():
    task = CatchingTask()
    task.allocate(1, 1)
    generator = np.random.default_rng(0)
    for _ in range(8):
        angle, reach = generator.uniform(0, 2 * math.pi), 0.2 * math.sqrt(generator.uniform())
        offset = np.array([reach * math.cos(angle), reach * math.sin(angle), 0.0])
        velocity = np.array([*generator.uniform(-1.5, 0.0, 2), generator.uniform(-7.5, -4.7)])
        row = [torch.tensor(value, dtype=torch.float32)[None] for value in (offset, velocity)]
        expected = task._meeting(Thrown(row[0], row[1], row[0], row[1]))[0].double().numpy()
        approach = Approach(TASK, KINEMATICS)
        told(approach, arrival(offset, velocity=velocity))
        (at, turned), (wished, wished_turned) = (KINEMATICS.plate(q) for q in (approach.goal, expected))
        np.testing.assert_allclose(at, wished, atol=0.006)
        assert turned[:, 2] @ wished_turned[:, 2] > math.cos(0.02)
        # and that is where the ball comes, and against its velocity
        np.testing.assert_allclose(at, KINEMATICS.home_position + offset, atol=0.005)
        assert turned[:, 2] @ velocity < -math.cos(0.02) * np.linalg.norm(velocity)


def test_a_motion_keeps_its_limits_and_changes_its_goal_without_a_jump():
    approach = Approach(TASK, KINEMATICS)
    told(approach, arrival((0.15, 0.1, 0.0)))
    q = []
    for tick in range(35, 1500):
        now = 0.001 * tick
        if tick in (100, 105, 110, 115, 120, 125, 130, 135, 140, 145):  # the ball will come elsewhere
            approach.update(arrival((-0.1, -0.1, 0.0), velocity=(0.5, -1.0, -5.0)), now)
        q.append(approach.desired(now)[0])
    q, h = np.array(q), 0.001
    speed, acceleration = np.diff(q, axis=0) / h, np.diff(q, 2, axis=0) / h**2
    jerk = np.diff(q, 3, axis=0) / h**3
    down, up = np.array([KINEMATICS.speed_limits_at(joints) for joints in q[1:]]).swapaxes(0, 1)
    assert (np.abs(speed) <= LIMITS.speed_share * np.where(speed > 0, up, down) + 1e-6).all()
    assert float(down.min()) < 1.9  # on the way less is allowed than the 2.62 rad/s of the middle
    assert (np.abs(acceleration).max(0) <= np.array(LIMITS.acceleration) + 1e-6).all()
    assert (np.abs(jerk).max(0) <= np.array(LIMITS.jerk) * 1.001).all()
    assert np.abs(speed).max() > 0.5  # it did move
    np.testing.assert_allclose(q[-1], approach.goal, atol=1e-9)
    assert approach.changes[0][1] == "uncertain: too few sights" and approach.changes[1][1] == "going"


def test_the_reference_makes_up_for_the_laws_lag():
    """Without friction and latency the arm stands where the plan has it; by the plan alone it lags D / K."""
    misses = []
    for compensated in (True, False):
        twin, approach = Twin(drive("ideal", TASK)), Approach(TASK, KINEMATICS)
        twin.reset(BALLS["foam"], Drop(1.5, offset=(0.5, 0.5)), 0)
        told(approach, arrival((0.1, 0.15, 0.0)))
        miss = np.zeros(7)
        for tick in range(35, 500):
            now = 0.001 * tick
            twin.set_reference(approach.reference(now) if compensated else approach.desired(now)[0])
            twin.advance(1)
            miss = np.maximum(miss, np.abs(twin.state().q - approach.desired(now + 0.001)[0]))
        misses.append(miss.max())
    assert misses[0] < 0.01 and misses[1] > 0.1


def test_free_fall_by_hand():
    # 0.5 m over the height at rest: sqrt(2 x 0.5 / 9.81) = 0.319 s; thrown up at 9.81 m/s: 2 s to come back
    assert sinks_in(0.5, 0.0) == pytest.approx(0.3193, abs=1e-4)
    assert sinks_in(0.0, 9.81) == pytest.approx(2.0)
    assert sinks_in(-1.0, 1.0) is None
    twin = Twin(drive("ideal", TASK))
    state = twin.reset(BALLS["rubber"], Drop(0.5, offset=(0.1, 0.0)), 0)
    seen = TruthObserver(twin).arrival(0.0, float(state.thing_position[2]) - 0.5)
    assert seen.time_s == pytest.approx(0.3193, abs=1e-4)
    np.testing.assert_allclose(seen.ball_in_base, state.thing_position - [0, 0, 0.5], atol=1e-9)
    np.testing.assert_allclose(seen.velocity_in_base, [0, 0, -math.sqrt(2 * 9.81 * 0.5)], atol=1e-9)
    # From ahead at 45 degrees: the normal leans ahead, that is, the plate turns about y by pi / 4.
    np.testing.assert_allclose(tilt_of_normal(np.array([1, 0, 1]) / 2**0.5), [0, math.pi / 4], atol=1e-12)


# What it will not do


@pytest.mark.parametrize(
    "estimate, words",
    [
        (arrival((0.1, 0.0, 0.9)), "out of reach: no pose of the arm meets the ball"),
        (arrival((0.4, 0.0, 0.0)), "past: arrives 0.40 m from the plate's home"),
        (arrival(misfit=5.0), "uncertain: sights lie 5.0 standard deviations from a parabola"),
        (arrival(place_sigma_m=0.2), "uncertain: the place is known to 0.20 m only"),
        (arrival(time_sigma_s=0.05), "uncertain: the time is known to 0.050 s only"),
    ],
)
def test_what_cannot_be_met_is_refused_with_a_reason(estimate, words):
    approach = Approach(TASK, KINEMATICS)
    now = told(approach, estimate)
    assert approach.changes[-1][1].startswith(words) and approach.arrival is None
    np.testing.assert_array_equal(approach.reference(now + 0.3), HOME)
    assert not approach.due(now + 5.0)  # no policy begins


def test_too_few_and_contradicting_sights_move_nothing():
    approach = Approach(TASK, KINEMATICS)
    assert approach.update(None, 0.0) == "waiting" and approach.changes == []
    assert approach.update(arrival(), 0.0) == "uncertain"  # one estimate is none
    for tick in range(1, 30):  # a place that wanders by 2 m/s: a ball that does not fly yet
        assert approach.update(arrival((0.2 - 0.01 * tick, 0.0, 0.0)), 0.005 * tick) == "uncertain"
    assert len(approach.changes) == 1  # said once
    np.testing.assert_array_equal(approach.reference(0.15), HOME)


def test_a_ball_that_turns_out_to_fly_past_sends_the_robot_back():
    approach = Approach(TASK, KINEMATICS)
    now = told(approach, arrival())
    assert approach.outcome == "going" and approach.goal is not HOME
    now = told(approach, arrival((0.5, 0.0, 0.0)), now)
    assert [words.split(":")[0] for _, words in approach.changes] == [
        "uncertain",
        "going",
        "uncertain",  # the first estimates of the new place contradict the old
        "past",
    ]
    np.testing.assert_allclose(approach.reference(now + 1.0), HOME, atol=1e-12)


def test_doubt_keeps_the_goal_and_time_ends_the_wait():
    approach = Approach(TASK, KINEMATICS)
    now = told(approach, arrival(time_s=0.6))
    goal = approach.goal
    assert approach.update(arrival(misfit=9.0), now) == "uncertain"
    np.testing.assert_array_equal(approach.goal, goal)
    assert not approach.due(0.499) and approach.due(0.501)  # 0.1 s before the arrival
    assert approach.update(None, 0.69) == "uncertain" and approach.update(None, 0.71) == "waiting"
    np.testing.assert_array_equal(approach.goal, HOME)


def test_too_late_is_said_and_gone_for_all_the_same():
    approach = Approach(TASK, KINEMATICS)
    now = told(approach, arrival((-0.15, 0.1, 0.0), time_s=0.2))
    assert (
        approach.outcome == "late" and "rad from there when the policy takes over" in approach.changes[-1][1]
    )
    assert approach.due(0.101) and np.abs(approach.desired(now + 0.06)[0] - HOME).max() > 0.005


def test_a_flat_ball_is_faced_no_further_than_allowed():
    approach = Approach(TASK, KINEMATICS)
    told(approach, arrival((0.0, 0.0, 0.0), velocity=(-5.0, 0.0, -1.0)))
    tilt = tilt_of_normal(KINEMATICS.plate(approach.goal)[1][:, 2])
    assert approach.facing_cut and np.linalg.norm(tilt) == pytest.approx(LIMITS.facing, abs=0.02)


@pytest.mark.parametrize("wrong", [{"speed_share": 0.0}, {"jerk": (1.0,)}, {"region_radius": -1.0}])
def test_limits_that_allow_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ApproachLimits(**wrong)


# In a trial


@pytest.fixture(scope="module")
def twin():
    return Twin(drive("fitted-gains", TASK))


def test_the_plate_meets_a_throw_and_the_policy_takes_over(twin):
    trial = run_trial(find_policy("veltrack"), BALLS["rubber"], Throw(), 3, twin, duration_s=0.1)
    found = trial.approach
    assert found.outcome == "going" and found.place_error < 0.015 and found.facing_error < 0.03
    state = trial.states[0]
    # the true ball, by free fall, comes down on the plate's centre in 0.1 s
    left_s = sinks_in(
        float(state.thing_position[2] - state.plate_position[2]), float(state.thing_velocity[2])
    )
    place = state.thing_position[:2] + left_s * state.thing_velocity[:2]
    assert left_s == pytest.approx(0.1, abs=0.01)
    np.testing.assert_allclose(place, state.plate_position[:2], atol=0.02)
    assert np.abs(state.dq).max() < 0.2
    assert max(trial.speed_share, trial.torque_share, trial.torque_rate_share) <= 1
    assert trial.limited_share == 0 and found.speed_share <= 0.8


def test_a_ball_that_flies_past_is_let_go(twin):
    trial = run_trial(find_policy("still"), BALLS["foam"], Drop(0.8, offset=(0.4, 0.0)), 0, twin)
    assert not trial.began and not trial.caught and trial.decisions == []
    assert trial.approach.outcome == "past" and trial.approach.place_error is None
    assert "0.40 m from the plate's home" in trial.approach.changes[-1][1]
    np.testing.assert_allclose(trial.states[-1].q, HOME, atol=0.01)


def test_only_policies_that_begin_at_the_arrival_approach(twin):
    config = PRESETS["paper"]
    still = replace(find_policy("still"), task_config=config)
    trial = run_trial(still, BALLS["foam"], Drop(0.5), 0, Twin(drive("rate-limit", config)), duration_s=0.1)
    assert trial.began and trial.approach is None
    laid = run_trial(find_policy("still"), BALLS["foam"], Laid(), 0, twin, duration_s=0.1)
    assert laid.states[0].time_s == 0.0 and laid.approach is None


def test_the_governor_keeps_a_jumping_reference_inside_fcis_limits():
    jump = HOME + [0.3, 0.3, -0.3, 0.4, 0.5, 0.5, -0.5]
    rates = {}
    for name in ("rate-limit", "fitted-gains"):
        twin = Twin(drive(name, TASK))
        twin.reset(BALLS["foam"], Drop(1.5, offset=(0.5, 0.5)), 0)
        twin.set_reference(jump)
        twin.advance(300)
        rates[name] = (twin.largest_rate.max(), (twin.largest_torque / twin.torque_limit).max())
        assert (twin.limited_ticks == 0) == (name == "fitted-gains") and np.abs(
            twin.state().q - HOME
        ).max() > 0.2
    # K e = 120 x 0.4 = 48 Nm at once is 48 times what FCI accepts in a millisecond; 20 x 0.5 and gravity near 12
    assert rates["rate-limit"][0] == pytest.approx(48_000, rel=0.1)
    assert rates["fitted-gains"][0] <= 1000 and rates["fitted-gains"][1] <= 1
