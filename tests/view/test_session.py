"""A session without a page: what is thrown, paused, stepped and counted."""

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes import LineTask

from dris.catching.stage import chosen_throw, flight_time, spin_vector
from dris.catching.task import CatchingTask
from dris.core.conditions import Condition
from dris.core.env import Env, EnvConfig
from dris.core.rollout import rollout
from dris.core.task import NoConfig
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.view.run import Start, TrainingRun
from dris.view.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def still():
    return Session({name: partial(find_policy, name) for name in ("still", "veltrack", "belief-robot")})


def play_out(session, elapsed_s=0.1):
    shown = 0
    while session.outcome is None:
        shown += session.play(elapsed_s)
        assert session.play(0.0) in (True, False)
    return shown


def test_a_flight_meets_its_speed_and_distance():
    """d = v_x T and the fall from the top takes T / 2: the arrival's speed by hand."""
    for distance, speed in ((1.0, 5.0), (2.0, 7.5), (1.5, 6.2)):
        time = flight_time(distance, speed)
        assert math.hypot(distance / time, 9.81 * time / 2) == pytest.approx(speed)
        lower = math.sqrt(2 * (speed**2 - math.sqrt(speed**4 - (9.81 * distance) ** 2))) / 9.81
        assert time > lower
    slowest = flight_time(2.0, 1.0)  # too slow to get there: at 45 degrees
    assert 2.0 / slowest == pytest.approx(9.81 * slowest / 2)


def test_the_chosen_throw_is_the_one_that_flies():
    values = {"distance": 1.2, "direction": 30.0, "speed": 6.0}
    task = CatchingTask(chosen_throw(CatchingTask.Config(region_radius=1e-6), values))
    env = Env(task, EnvConfig(sets=1, instances=2, seed=5))
    env.reset()
    scene = task.stage().scene(0)
    velocity = task.world.vel[0, 0].numpy()
    lead = scene.figures["time to arrival [s]"]
    at_plate = velocity - (0, 0, 9.81 * lead)
    assert np.linalg.norm(at_plate) == pytest.approx(6.0, abs=0.05)  # its centre arrives a radius higher
    assert math.degrees(math.atan2(-velocity[1], -velocity[0])) == pytest.approx(30.0, abs=1e-3)
    earlier = task.stage().before(scene, 0.3)
    assert earlier.points[0] == pytest.approx(
        scene.points[0] - 0.3 * velocity - (0, 0, 0.5 * 9.81 * 0.09), abs=1e-5
    )
    path = task.stage().sketch(values)
    home = task.home_pos.numpy()
    assert path[-1] == pytest.approx(home, abs=1e-4)
    assert np.linalg.norm((path[0] - home)[:2]) == pytest.approx(1.2, abs=1e-4)
    assert task.stage().dragged(path[0]) == pytest.approx({"distance": 1.2, "direction": 30.0}, abs=1e-2)


def test_topspin_turns_as_a_ball_rolls():
    assert spin_vector(np.array([2.0, 0.0, -5.0]), 10.0) == pytest.approx([0.0, 10.0, 0.0])
    assert spin_vector(np.array([0.0, 0.0, -5.0]), 10.0) == pytest.approx([0.0, 0.0, 0.0])


def test_watching_does_not_change_what_happens():
    """The same bits as a plain rollout, whatever is looked at in between."""
    policy = find_policy("veltrack")
    run = TrainingRun(policy, Start(7, 11, Condition(noise=1.0)), frame_s=0.01)
    frames = []
    while run.outcome is None:
        frames += run.advance()
    task = policy.make_task()
    env = Env(task, EnvConfig(sets=1, instances=7, seed=11, noise=1.0))
    for transition in rollout(env, policy.make_agent(task, 1)):
        success = transition.step.success
    assert np.array_equal(frames[-1].scene.points, task.world.pos[0].numpy())
    assert run.outcome.share == pytest.approx(float(success.float().mean()))
    assert run.outcome.success == bool(success[0, 0]) and run.outcome.instances == 7
    assert frames[-1].time_s == pytest.approx(1.0) and run.advance() == []
    times = [frame.time_s for frame in frames]
    assert times == sorted(times) and max(np.diff([t for t in times if t >= 0])) <= 0.01 + 1e-9


def test_the_ghost_is_where_the_policy_sees_the_ball():
    """At 4 sigma of 1 cm the seen place is off by centimetres, without noise not at all."""
    off = {}
    for noise in (0.0, 4.0):
        run = TrainingRun(find_policy("still"), Start(3, 2, Condition(noise=noise)), frame_s=0.05)
        first = run.advance()[-1]
        off[noise] = np.linalg.norm(first.ghost - first.scene.points[0])
    assert off[0.0] < 1e-6 and 0.005 < off[4.0] < 0.25


def test_a_belief_is_shown_with_its_mean_as_what_is_seen():
    policy = find_policy("belief-robot")
    run = TrainingRun(policy, Start(21, 2, Condition(noise=2.0), policy.belief), frame_s=0.05)
    first = run.advance()[-1]
    assert len(first.scene.points) == 21  # the real one and 20
    assert first.ghost == pytest.approx(first.scene.points[1:].mean(axis=0), abs=1e-5)


def test_time_passes_at_the_chosen_speed(still):
    assert still.frame.time_s == pytest.approx(-0.6)  # the flight before is shown
    still.change("speed", "half")
    for _ in range(4):
        still.play(0.1)
    assert -0.42 <= still.frame.time_s <= -0.4 + 1e-9
    still.play(60.0)  # a page that slept does not jump: a tenth of a second at most
    assert still.frame.time_s <= -0.35 + 1e-9


def test_pause_and_single_steps(still):
    still.paused = True
    before = still.frame
    assert not still.play(1.0) and still.frame is before
    still.step()
    assert still.paused and still.frame.time_s == pytest.approx(before.time_s + 0.02)
    still.paused = False
    assert still.play(0.1)


def test_outcomes_are_counted_and_reset_forgets(still):
    play_out(still)
    assert (still.throws, still.successes) == (1, int(still.outcome.success))
    assert not still.play(1.0)  # over, and again is off
    still.change("again", True)
    assert still.play(0.1) and still.outcome is None
    still.reset()
    assert (still.throws, still.successes) == (0, 0)


def test_the_same_throw_again_has_the_same_bits(still):
    first = still.frame.scene.points[0].copy()
    still.reset()
    assert np.array_equal(still.frame.scene.points[0], first)
    still.throw()
    assert not np.array_equal(still.frame.scene.points[0], first)


def test_what_is_chosen_holds_from_the_next_throw_on(still):
    still.change("instances", 5)
    still.change("physics/restitution", 0.66)
    still.change("physics", "own")
    assert len(still.frame.scene.points) == 60
    still.throw()
    assert len(still.frame.scene.points) == 5
    radii = still.frame.scene.parameters["restitution"]
    assert radii[0] == pytest.approx(0.5 * (0.66 + 0.2))  # with the plate's: preset released averages
    assert len(set(radii.tolist())) == 5  # the others are drawn


def test_spin_is_given_to_the_ball(still):
    still.change("start/spin", 40.0)
    still.throw()
    world = still.stage._task.world
    velocity, spin = world.vel[0, 0].numpy(), world.spin[0].numpy()
    assert np.linalg.norm(spin[0]) == pytest.approx(40.0, abs=1e-3)
    assert spin[0] @ velocity == pytest.approx(0.0, abs=1e-3) and np.array_equal(spin[0], spin[-1])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("instances", 0, r"instances must be a number in \[1, 200\], got 0"),
        ("noise", float("nan"), "noise must be a number"),
        ("noise", "2", "noise must be a number"),
        ("delay_ms", True, "delay_ms must be a number"),
        ("start/distance", 9.0, r"start/distance must be a number in \[1, 2\], got 9"),
        ("physics/radius", -1.0, "physics/radius must be a number"),
        ("policy", "/etc/passwd", "policy must be one of still, veltrack, belief-robot, got '/etc/passwd'"),
        ("world", "mars", "world must be one of training, got 'mars'"),
        ("file", "x", "there is no setting 'file'"),
        ("start/file", 1.0, "there is no setting 'start/file'"),
    ],
)
def test_what_comes_from_outside_is_checked(still, name, value, words):
    before = still.settings
    with pytest.raises(ValueError, match=words):
        still.change(name, value)
    assert still.settings == before


def test_another_policy_keeps_what_was_chosen(still):
    still.change("start/distance", 1.9)
    still.change("policy", "belief-robot")
    assert still.chosen["distance"] == 1.9 and still.policy().name == "belief-robot"
    still.change("belief", "none")
    still.throw()
    assert len(still.frame.scene.points) == 60


def test_a_task_without_a_stage_is_refused_with_a_way_out():
    handle = PolicyHandle("idle", LineTask, NoConfig(), lambda task, sets: None)
    with pytest.raises(ValueError, match="LineTask has no stage.*method `stage`.*dris play"):
        Session({"idle": lambda: handle})


def test_any_task_with_a_stage_can_be_watched(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from own_stage import ShownCrane

    handle = PolicyHandle("still", ShownCrane, ShownCrane.Config(), ShownCrane.baselines()["still"])
    session = Session({"still": lambda: handle})
    session.change("speed", "real time")
    play_out(session)
    assert session.frame.time_s == pytest.approx(6.0)
    assert set(session.frame.scene.parameters) == {"rope", "drag"}
    task = session.stage.task
    angle, rope = task.state[0, 0, 2], task.rope[0, 0]
    drop = session.frame.scene.points[0, 2]
    assert drop == pytest.approx(float(-rope * torch.cos(angle)), abs=1e-6)
    sys.modules.pop("own_stage", None)
    sys.modules.pop("own_task", None)
