"""What films and replays show: what the policy saw, at the right place and pace."""

import gc
import math
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from dris.catching.drawing import CLOSE_SIZE, SIZE, drawing_of
from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.conditions import Condition
from dris.core.stage import Frame, Scene
from dris.evaluation.registry import find_policy
from dris.view import play
from dris.view.drawn import Drawn
from dris.view.replay import _shown_s, thinned
from dris.view.run import Start, TrainingRun
from dris.view.serve import close_server, open_server


def balls(*restitutions):
    """Balls in a row, far from anything."""
    count = len(restitutions)
    points = np.array([[0.5, 0.1 * k, 2.0] for k in range(count)])
    nothing = np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]])
    parameters = {"restitution": np.array(restitutions)}
    return Scene(*nothing, points, np.full(count, 0.03), np.zeros(count, dtype=bool), {}, parameters)


def test_the_wire_ball_is_drawn_where_the_policy_sees_the_ball():
    """Where a pinhole camera at the drawing's place has it: f = half the height over tan(45 deg / 2)."""
    config, ghost = CatchingConfig(), np.array([0.55, 0.05, 0.85])
    drawing = drawing_of(config.mount)
    without, seen = (drawing.picture(np.array(config.home), balls(0.3), at) for at in (None, ghost))
    assert seen.shape == (SIZE[1], SIZE[0] + CLOSE_SIZE[0], 3)
    seen, without = (picture[:640, : SIZE[0]].astype(int) for picture in (seen, without))  # no legend
    rows, columns = np.nonzero(np.abs(seen - without).max(axis=2) > 40)
    azimuth, elevation = math.radians(drawing._camera.azimuth), math.radians(drawing._camera.elevation)
    ahead = np.array([math.cos(azimuth), math.sin(azimuth), math.tan(elevation)]) * math.cos(elevation)
    right = np.array([math.sin(azimuth), -math.cos(azimuth), 0.0])
    away = ghost - (drawing._camera.lookat - drawing._camera.distance * ahead)
    focal = SIZE[1] / 2 / math.tan(math.radians(45) / 2) / (away @ ahead)
    wanted = (SIZE[0] / 2 + focal * (away @ right), SIZE[1] / 2 - focal * (away @ np.cross(right, ahead)))
    assert (columns.mean(), rows.mean()) == pytest.approx(wanted, abs=2)
    assert columns.max() - columns.min() == pytest.approx(2 * 1.06 * 0.03 * focal, abs=4)
    blue = seen[rows, columns]
    assert (blue[:, 2] > blue[:, 0] + 60).mean() > 0.7


def test_a_task_that_was_drawn_may_be_let_go_by_any_thread(monkeypatch):
    """A renderer may not: its context is current where it drew last. Garbage is collected wherever it is time."""
    gc.collect()  # what others left
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: complaints.append(found.exc_value))
    task = CatchingTask()
    task.allocate(1, 1)
    task.draw(0)
    del task
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()
    assert complaints == []


def test_a_film_shows_what_is_seen_unless_it_is_the_truth(monkeypatch):
    """The wire ball is off by the error of the observation: |seen d - true d|, the same in any frame."""
    told, errors, truths = [], [], []

    def draw(task, which, ghost=None):
        told.append(ghost)
        return np.zeros((2, 2, 3), dtype=np.uint8)

    def agent_of(task, sets):
        agent = still.make_agent(task, sets)

        def act(seen):
            errors.append(float((seen.states[0, 0, :3] - task.states()[0, 0, :3]).norm()))
            truths.append(task.world.pos[0, 0].numpy().copy())
            return agent(seen)

        return act

    monkeypatch.setattr(CatchingTask, "draw", draw)
    monkeypatch.setattr(play, "FRAMES", 20)  # one a control step
    still = find_policy("still")
    policy = replace(still, make_agent=agent_of)
    play.record(policy, 3, 5, Condition())
    assert len(told) == 21 and told == [None] * 21
    told.clear(), errors.clear(), truths.clear()
    play.record(policy, 3, 5, Condition(noise=2.0))
    # Of the start, and then of the end of every step: what was seen at its beginning.
    assert len(told) == 21 and np.array_equal(told[0], told[1])
    off = [np.linalg.norm(ghost - truth) for ghost, truth in zip(told[1:], truths, strict=True)]
    assert off == pytest.approx(errors, abs=1e-5)
    assert 0.005 < np.mean(errors) < 0.08  # 2 sigma: 2 cm on each axis, 3.2 cm on average


def test_a_condition_changes_the_balls_that_are_shown():
    run = TrainingRun(find_policy("still"), Start(9, 1, Condition(domain=(("restitution", 0.7, 0.8),))), 0.05)
    found = run.advance()[-1].scene.parameters["restitution"]
    assert 0.45 <= found.min() < found.max() <= 0.5  # with the plate's 0.2: the default averages
    flat = Condition(task=(("spawn_height", (0.3, 0.3)), ("distance", (0.5, 0.5)), ("horizon", 3)))
    run = TrainingRun(find_policy("still"), Start(1, 1, flat), 0.05)
    while run.outcome is None:
        frames = run.advance()
    assert frames[-1].time_s == pytest.approx(0.15)  # three control steps of 50 ms


def test_a_replay_is_slow_while_something_happens_and_then_fast():
    """Up to 2.5 s a frame every 20 ms, four times slower; 1.51 s more at 2.5 times life, every 0.1 s."""
    frames = [Frame(time_s, balls(0.3), None) for time_s in (*(0.02 * k for k in range(201)), 4.01)]
    shown = thinned(frames)
    assert len(shown) == 126 + 15 + 1 and shown[-1] is frames[-1]
    assert _shown_s(shown[-1]) - _shown_s(shown[0]) == pytest.approx(4 * 2.5 + 1.51 / 2.5)
    assert _shown_s(shown[10]) == pytest.approx(0.8)


def test_a_belief_that_begins_has_its_own_range_of_colours(free_port):
    server = open_server("127.0.0.1", free_port, "test")
    try:
        drawn, one, four = Drawn(server.scene), balls(0.35), balls(0.35, 0.2, 0.4, 0.6)
        drawn.begin(find_policy("still").make_task().stage(), one, "restitution")
        drawn.show(Frame(0.0, replace(one, **_robot()), None))
        assert "restitution" not in drawn.legend() and "what the policy saw last" in drawn.legend()
        drawn.show(Frame(0.1, replace(four, **_robot()), np.zeros(3)))
        assert "restitution 0.2 " in drawn.legend() and " 0.6 " in drawn.legend()
        colours = drawn._colours(four)
        assert colours[1].tolist() == [255, 204, 26] and colours[3].tolist() == [204, 13, 51]
        assert colours[2].tolist() == [230, 108, 38]  # half way; 0.5 is rounded to even
    finally:
        close_server(server)


def test_words_of_a_frame_stand_in_the_scene_as_long_as_there_are_any(free_port):
    server = open_server("127.0.0.1", free_port, "test")
    try:
        drawn, one = Drawn(server.scene), replace(balls(0.3), **_robot())
        drawn.begin(find_policy("still").make_task().stage(), one, "restitution")
        drawn.show(Frame(0.0, one, None))
        assert drawn._words is None  # most tasks tell nothing
        for words in ("approaching", "catching; filter: speed", ""):
            drawn.show(Frame(0.1, one, None, words))
            assert drawn._words.text == words
    finally:
        close_server(server)


def _robot():
    positions, quaternions = find_policy("still").make_task().stage().poses(CatchingConfig().home)
    return {"positions": positions, "quaternions": quaternions}
