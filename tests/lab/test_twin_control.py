"""The twin's control path, cameras and edges, against the training world's meaning of an action.

Longer than other files: all its tests share the twin, policies and recorded trials that it sets up.
"""

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from dris import Env, EnvConfig
from dris.catching.actions import decode
from dris.catching.baselines import still
from dris.catching.control import BallEstimate, Controller
from dris.catching.frames import tilt_of_normal
from dris.catching.kinematics import Kinematics, rotation_of_tilt
from dris.catching.settings import PRESETS, TEXT, CatchingConfig
from dris.catching.task import CatchingTask
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.lab.cameras import CAMERAS, CameraConfig
from dris.lab.drives import drive
from dris.lab.launch import RAMP_RADII, Drop, Placed, Ramp, Scene, Throw
from dris.lab.model import LabConfig
from dris.lab.objects import BALLS, THINGS, thing
from dris.lab.observer import TruthObserver
from dris.lab.trial import is_settled, run_trial
from dris.lab.twin import Twin, TwinConfig

TASK = CatchingConfig()
IDEAL = drive("ideal")  # what the training world has
STILL = PolicyHandle("still", CatchingTask, TEXT, still)  # from home, where the text's policies begin
both_tasks = pytest.mark.parametrize("task", [TASK, TEXT], ids=["released", "paper"])


def scene(task=TASK, thing=BALLS["foam"]):
    return Scene(LabConfig(), thing, Kinematics(task.home, task.mount))


# Control


@both_tasks
def test_actions_mean_what_they_mean_in_training(task):
    task = CatchingTask(task)
    actions = np.random.default_rng(0).uniform(-1.2, 1.2, (50, 5))
    inside = actions.clip(-1, 1)
    displacement, tilt, cut = decode(task.config, torch.tensor(inside, dtype=torch.float32))  # of 50 sets
    for k, action in enumerate(inside):  # of one robot
        found = decode(task.config, action)
        np.testing.assert_allclose(found[0], displacement[k], atol=1e-6)
        np.testing.assert_allclose(found[1], tilt[k], atol=1e-6)
        if abs(np.linalg.norm(action[3:]) - 1) > 1e-6:  # on the very edge, single precision decides
            assert found[2] == cut[k]


@pytest.mark.parametrize("joint_speed", [None, 0.5])
@both_tasks
def test_the_control_path_sees_and_commands_as_the_training_world(task, joint_speed):
    task = CatchingTask(replace(task, joint_speed=joint_speed))
    env = Env(task, EnvConfig(sets=20, instances=1, seed=5))
    seen = env.reset()
    action = torch.rand(20, 5, generator=torch.Generator().manual_seed(1)) * 2 - 1
    command, _ = task.command(action)
    kinematics = Kinematics(task.config.home, task.config.mount)
    for k in range(20):
        held = {}

        def act(states, condition, k=k, held=held):
            held["states"], held["condition"] = states, condition
            return action[k].numpy()

        controller = Controller(act, task.config)
        world = task.world
        ball = BallEstimate(world.pos[k, 0].double().numpy(), world.vel[k, 0].double().numpy())
        decision = controller.step(0.0, ball, world.q[k].double().numpy())
        np.testing.assert_allclose(held["states"], seen.states[k, 0], atol=1e-5)
        np.testing.assert_allclose(held["condition"], seen.condition[k], atol=1e-5)
        # Two solvers, one pose.
        (at, turned), (wished, wished_turned) = (
            kinematics.plate(decision.joints),
            kinematics.plate(command[k].double().numpy()),
        )
        np.testing.assert_allclose(at, wished, atol=0.01)
        assert turned[:, 2] @ wished_turned[:, 2] > math.cos(0.03)


@pytest.mark.parametrize("bearing", [0.0, 1.0, -1.5])
def test_the_workspace_about_the_start_stands_where_the_first_step_saw_the_plate(bearing):
    """Asked for 0.1 m more along x of the motion frame, 0.1 m from the start: it is cut at 0.15 m."""
    kinematics = Kinematics()
    start = kinematics.home_position + [0.05, -0.05, 0.02]
    ahead = np.array([math.cos(bearing), math.sin(bearing), 0.0])
    ball = start + 0.1 * ahead + [0.0, 0.0, 0.6]
    controller = Controller(lambda states, condition: np.array([1.0, 0, 0, 0, 0]), TASK)

    def joints(place):
        q = kinematics.home
        for _ in range(3):  # the pull to where a search starts lets go
            q, _ = kinematics.solve(place, np.zeros(2), q, iterations=60)
        return q

    for moved, asked, cut in ((0.0, 0.1, False), (0.04, 0.14, False), (0.1, 0.15, True)):
        seen = BallEstimate(ball, np.array([0, 0, -5.0]))
        decision = controller.step(0.0, seen, joints(start + moved * ahead))
        at, _ = kinematics.plate(decision.joints)
        np.testing.assert_allclose(at, start + asked * ahead, atol=0.006)  # what the solver tolerates
        assert decision.limited == cut


def test_steps_are_due_every_twentieth_of_a_second_of_the_clock_handed_in():
    now = 7.3
    controller = Controller(lambda states, condition: np.zeros(5), TASK)
    ball = BallEstimate(np.array([0.7, 0.1, 0.8]), np.zeros(3))
    taken = []
    for tick in range(121):
        now = 7.3 + tick * 0.001
        if controller.due(now):
            controller.step(now, ball, np.array(TASK.home))
            taken.append(tick)
    assert taken == [0, 50, 100]


@both_tasks
def test_inverse_kinematics_reaches_what_a_step_asks_for_inside_the_limits(task):
    kinematics, generator = Kinematics(task.home, task.mount), np.random.default_rng(0)
    # Half the workspace; from home, its far corners need the elbow to swing past a joint's limit.
    low, high = 0.5 * np.array(task.workspace_low), 0.5 * np.array(task.workspace_high)
    reached = 0
    for _ in range(100):
        position = kinematics.home_position + generator.uniform(low, high)
        angle = generator.uniform(0, 2 * math.pi)
        tilt = task.max_tilt * math.sqrt(generator.uniform()) * np.array([math.cos(angle), math.sin(angle)])
        q, found = kinematics.solve(position, tilt, kinematics.home, iterations=60)
        assert (q >= kinematics.low).all() and (q <= kinematics.high).all()
        if found:
            at, rotation = kinematics.plate(q)
            assert np.linalg.norm(at - position) <= 0.005
            np.testing.assert_allclose(tilt_of_normal(rotation[:, 2]), tilt, atol=0.021)
        reached += found
    assert reached >= 95


def test_tilts_follow_rodrigues():
    rotation = rotation_of_tilt(np.array([0.3 * math.cos(1.0), 0.3 * math.sin(1.0)]))
    # n = (sin a sin b, -cos a sin b, cos b)
    expected = [math.sin(1.0) * math.sin(0.3), -math.cos(1.0) * math.sin(0.3), math.cos(0.3)]
    np.testing.assert_allclose(rotation[:, 2], expected, atol=1e-12)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)


def test_a_throw_from_below_the_plate_is_not_lost_before_it_came():
    """Released 0.2 m below the plate, it rises first; the trial ends when it has fallen, not at once."""
    twin = Twin(drive("ideal", TEXT))
    trial = run_trial(STILL, BALLS["rubber"], Throw(spawn_height=(-0.2, -0.2)), 0, twin, duration_s=1.0)
    assert trial.began and not trial.caught and trial.lost_s > 0.1


def test_what_is_seen_decides_what_is_caught():
    player, twin = find_policy("dris-robot"), Twin(drive("ideal", PRESETS["robot"]))

    class Askew(TruthObserver):
        def estimate(self, time_s):
            seen = super().estimate(time_s)
            return BallEstimate(seen.position + [0.0, 0.25, 0.0], seen.velocity)

    drop = Drop(1.2, offset=(0.03, 0.02))
    straight = run_trial(player, BALLS["foam"], drop, 0, twin, duration_s=1.0)
    assert straight.caught and straight.position_error == straight.velocity_error == 0
    askew = run_trial(player, BALLS["foam"], drop, 0, twin, Askew(twin), duration_s=1.0)
    assert not askew.caught and askew.position_error == pytest.approx(0.25)


def test_a_trial_has_the_robot_of_its_policy():
    """Nothing else says that a policy for one mount acts on another."""
    placed = Placed((0.68, 0.0, 0.59), (0, 0, 0))  # on the plate of the level hand
    assert run_trial(STILL, THINGS["cube"], placed, 0, duration_s=0.2).caught
    with pytest.raises(ValueError, match="holds its plate 'down', the policy was trained with 'level'"):
        run_trial(STILL, THINGS["cube"], placed, 0, Twin(), duration_s=0.2)


def test_an_observer_has_the_noise_asked_for():
    twin = Twin(IDEAL)
    state = twin.reset(BALLS["foam"], Drop(1.2), 0)
    observer = TruthObserver(twin, noise=2.0, seed=1)
    seen = [observer.estimate(0.0) for _ in range(400)]
    position, velocity = (
        np.array([getattr(ball, part) for ball in seen]) for part in ("position", "velocity")
    )
    # 2 sigma: 2 cm and 10 cm/s; 1200 numbers know their spread to 2 %
    assert (position - state.thing_position).std() == pytest.approx(0.02, rel=0.1)
    assert (velocity - state.thing_velocity).std() == pytest.approx(0.1, rel=0.1)


def test_a_trial_begins_as_long_before_the_arrival_as_the_policy_was_trained():
    for lead in (0.1, 0.25):
        policy = replace(STILL, task_config=replace(TEXT, lead_s=(lead - 0.02, lead + 0.02)))
        twin = Twin(drive("ideal", TEXT))
        trial = run_trial(policy, BALLS["rubber"], Drop(1.0), 0, twin, duration_s=1.0)
        fall = math.sqrt(2 * 1.0 / 9.81)
        assert trial.states[0].time_s == pytest.approx(fall - lead, abs=0.006)


def test_settled_asks_for_the_disc_that_training_asks_for():
    twin = Twin(IDEAL)
    home = Kinematics().home_position
    cube = THINGS["cube"]
    for corner, settled in ((0.07, True), (0.10, False)):  # 0.10 m and 0.14 m from the middle, of 0.12 m
        place = home + [corner, corner, 0.02]
        state = twin.reset(cube, Placed(tuple(place), (0, 0, 0)), 0)
        assert state.on_plate(cube.reach) and is_settled(state, cube, TASK) == settled


def test_nothing_seen_is_no_trial():
    class Blind(TruthObserver):
        def estimate(self, time_s):
            return None

    twin = Twin(IDEAL)
    trial = run_trial("still", BALLS["foam"], Drop(0.3), 0, twin, Blind(twin), duration_s=1.0)
    assert not trial.began and not trial.caught and trial.decisions == [] and trial.position_error is None


def test_a_trial_tells_what_happened():
    lost = run_trial(STILL, BALLS["rubber"], Drop(0.5, offset=(0.11, 0.0)), 0, duration_s=1.0)
    assert not lost.caught and lost.lost_s is not None
    caught = run_trial(STILL, THINGS["cube"], Placed((0.68, 0.0, 0.59), (0, 0, 0)), 0, duration_s=1.0)
    assert caught.caught and caught.settled and caught.lost_s is None
    assert len(caught.decisions) == 20 and len(caught.states) == 21


# Cameras


@both_tasks
def test_cameras_hold_ramp_and_workspace_in_view(task):
    there = scene(task)
    points = [
        there.plate + np.array([x, y, z])
        for x in (task.workspace_low[0], task.workspace_high[0])
        for y in (task.workspace_low[1], task.workspace_high[1])
        for z in (task.workspace_low[2], task.workspace_high[2])
    ]
    points += [np.array(Ramp(r).shape(there).end) for r in RAMP_RADII]
    for camera in CAMERAS:
        pixels = camera.project(np.array(points))
        assert (pixels > 0).all() and (pixels < [camera.width - 1, camera.height - 1]).all()


def test_pictures_agree_with_the_projection():
    script = """
import numpy as np
from dris.lab.launch import Placed
from dris.lab.objects import BALLS
from dris.lab.twin import Twin
twin = Twin()
for place in ((0.9, 0.2, 0.9), (0.5, -0.3, 1.3)):
    state = twin.reset(BALLS["ping-pong"], Placed(place, (0, 0, 0)), 0)
    for camera in twin.config.lab.cameras:
        red, green, blue = np.moveaxis(twin.render(camera.name).astype(float), -1, 0)
        rows, columns = np.nonzero((red > 1.5 * blue) & (red > 1.3 * green))
        print(*(np.array([columns.mean(), rows.mean()]) - camera.project(state.thing_position)[0]))
twin.close()
"""
    environment = {**os.environ, "MUJOCO_GL": "egl"}
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    misses = np.array([[float(x) for x in line.split()] for line in out.stdout.splitlines()])
    assert misses.shape == (4, 2) and np.abs(misses).max() < 0.5


# Edges


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: thing("egg"), "known: wiffle"),
        (lambda: replace(BALLS["foam"], restitution=1.2), "restitution must lie"),
        (lambda: replace(BALLS["foam"], mass=0.0), "must be positive"),
        (lambda: LabConfig(timestep=0.001), "timestep must lie"),
        (lambda: LabConfig(timestep=0.0005, contact_frequency=2000.0), "shorten the step"),
        (lambda: TwinConfig(stiffness=(1.0,)), "needs 7 values"),
        (lambda: TwinConfig(torque_rate=0.0), "positive or None"),
        (lambda: CameraConfig("up", (0, 0, 1), (0, 0, 2)), "straight up or down"),
    ],
)
def test_wrong_values_are_refused_with_a_way_out(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()


def test_a_reference_must_be_seven_finite_numbers():
    twin = Twin()
    with pytest.raises(RuntimeError, match="call reset"):
        twin.advance(1)
    twin.reset(BALLS["foam"], Drop(), 0)
    with pytest.raises(ValueError, match="7 finite"):
        twin.set_reference(np.full(7, np.nan))
    with pytest.raises(ValueError, match="no camera 'top'"):
        twin.render("top")
