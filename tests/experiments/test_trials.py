"""Trials: what the cameras make of the twin's world, and tables that go on where they stopped."""

import json
import os
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

os.environ.setdefault("MUJOCO_GL", "egl")

from dris.catching.control import BallEstimate
from dris.evaluation.registry import find_policy
from dris.experiments.study.published import load_published
from dris.experiments.trials import belief_error
from dris.experiments.trials import sight_error as measure
from dris.experiments.trials import table as tables
from dris.experiments.trials.config import TrialsConfig
from dris.experiments.trials.film import SIDE, film
from dris.lab.camera_observer import CameraObserver, CameraObserverConfig
from dris.lab.drives import drive
from dris.lab.launch import Drop, Ramp
from dris.lab.objects import BALLS
from dris.lab.shown import Shown
from dris.lab.trial import run_trial
from dris.lab.twin import Twin
from dris.lab.window import WINDOW
from dris.report.trials_page import report_trials


@pytest.fixture(scope="module")
def twin():
    twin = Twin()
    yield twin
    twin.close()


def test_the_cameras_see_a_ball_from_the_ramp_where_it_is(twin):
    ball = BALLS["rubber"]  # air, of which the tracker knows nothing, slows a light one by 0.1 m/s a window
    state = twin.reset(ball, Ramp(0.20), 1)
    sight = CameraObserver(twin, ball, CameraObserverConfig(), 1)
    errors = []
    # From leaving the ramp to just over the plate; requests are for now, 10 ms after the youngest frame.
    while twin.time_s < 2.0:
        twin.advance(1)
        state = twin.state()
        if state.thing_position[2] < state.plate_position[2] + 0.15:
            break
        sight.tick()
        if state.thing_position[2] < state.plate_position[2] + 0.6:
            seen = sight.estimate(twin.time_s)
            if seen is not None:
                errors.append((seen.position - state.thing_position, seen.velocity - state.thing_velocity))
    assert len(errors) > 50
    position, velocity = (np.array(part) for part in zip(*errors, strict=True))
    # Medians: the first states, while the ball still leaves the ramp, are worse.
    assert np.median(np.linalg.norm(position, axis=1)) < 0.008
    assert np.median(np.linalg.norm(velocity, axis=1)) < 0.1


def test_a_window_shows_what_the_whole_picture_shows_there(twin):
    twin.reset(BALLS["rubber"], Ramp(0.20), 1)
    twin.advance(400)
    whole = twin.render("left").astype(int)
    part = twin.render("left", (230, 480 - WINDOW + 20)).astype(int)[:-20]  # 20 rows lie below the picture
    seen = whole[480 - WINDOW + 20 :, 230 : 230 + WINDOW]
    assert seen.std() > 10  # there is something to see
    np.testing.assert_allclose(part, seen, atol=2)


def test_windows_do_not_change_what_is_seen(twin):
    ball, seen = BALLS["rubber"], []
    for config in (CameraObserverConfig(), CameraObserverConfig(window_half_px=None)):
        twin.reset(ball, Ramp(0.20), 1)
        sight = CameraObserver(twin, ball, config, 1)
        dark = []  # share of each frame that was not read out
        for _ in range(600):
            twin.advance(1)
            before = sight.shown[0][0]
            sight.tick()
            if sight.shown[0][0] is not before:
                dark.append((sight.shown[0][0] == 0).all(axis=2).mean())
        # Of the last, one in eight is a whole one: the eyes look around for a second ball.
        assert np.median(dark[-16:]) > 0.8 or config.window_half_px is None
        seen.append(sight.estimate(twin.time_s))
    np.testing.assert_allclose(seen[0].position, seen[1].position, atol=0.004)
    np.testing.assert_allclose(seen[0].velocity, seen[1].velocity, atol=0.1)
    with pytest.raises(ValueError, match="window_half_px"):
        CameraObserverConfig(window_half_px=100)


def test_a_trial_runs_from_pictures_to_torques_and_repeats_itself():
    ball, policy = BALLS["foam"], find_policy("dris-robot")
    twin = Twin(drive("rate-limit", policy.task_config))
    first, again = (
        run_trial(policy, ball, Ramp(0.20), 3, twin, CameraObserver(twin, ball, seed=3), duration_s=0.3)
        for _ in range(2)
    )
    # One step may be blind: the monitor does not believe a track that has just begun anew at a bounce.
    assert first.began and first.blind_steps <= 1 and 0 < first.position_error < 0.02
    assert (first.caught, first.position_error) == (again.caught, again.position_error)
    assert all(np.array_equal(a.q, b.q) for a, b in zip(first.states, again.states, strict=True))
    twin.close()


def test_a_feather_flies_like_its_ball_and_does_not_push():
    policy, states = find_policy("still"), []
    for coupling in ("two-way", "one-way"):
        config = TrialsConfig(coupling=coupling, sight="perfect")
        world = Twin(tables.lab_of(config, policy))
        world.reset(tables.thing_of(config, "rubber"), Drop(0.5), 0)
        world.advance(320)  # falls for sqrt(2 * 0.5 / 9.81) = 0.319 s, with air a little longer
        before = world.state()
        world.advance(40)
        states.append((before, world.state()))
    (ball, pushed), (feather, still) = states
    np.testing.assert_allclose(ball.thing_velocity, feather.thing_velocity, rtol=1e-6)
    assert pushed.thing_velocity[2] > 1  # it has bounced
    assert np.abs(still.dq).max() < 0.01 * np.abs(pushed.dq).max()


def test_training_contact_is_the_training_s():
    ball = tables.thing_of(TrialsConfig(contact="training"), "rubber")
    # Middle of 0.4 to 0.7, averaged with the plate's 0.2; middle of 0 to 0.1 with the plate's 0.
    assert ball.restitution == pytest.approx(0.375) and ball.friction == pytest.approx(0.025)
    assert ball.mass == BALLS["rubber"].mass


def test_a_film_shows_the_side_and_both_cameras(tmp_path):
    pytest.importorskip("imageio")
    file = tmp_path / "film.mp4"
    found = film(
        find_policy("still"), BALLS["foam"], Drop(0.3), 0, drive("rate-limit"), "still", file, duration_s=0.05
    )
    trial = found.trial
    video, pictures = cv2.VideoCapture(str(file)), []
    while (read := video.read())[0]:
        pictures.append(read[1])
    video.release()
    # One every 10 ms from the fall's beginning to the end, and a second of the last one.
    assert len(pictures) == pytest.approx(trial.states[-1].time_s / 0.01 + 25, abs=1.5)
    assert pictures[0].shape == (480, 800, 3)
    assert all(pictures[-1][:, part].std() > 10 for part in (slice(0, 480), slice(480, 800)))
    assert pictures[-1][40:100, 20:460].mean() > 200  # light walls
    (column, row), last = SIDE.project(found.frames[-1].ghost)[0].round().astype(int), pictures[-1]
    around = last[row - 18 : row + 19, column - 18 : column + 19].astype(int)
    assert (around[..., 0] - around[..., 2] > 80).sum() > 40  # a blue ring where the policy saw the ball
    # For a replay, every 20 ms: 7.2 g of foam, 3 % of it borne by the air, fall by 0.1885 m in 0.2 s (0.196 m
    # in a vacuum; integrated by hand with its drag coefficient of 0.5), and are seen once the robot begins.
    times = [frame.time_s for frame in found.frames]
    assert times == pytest.approx([0.02 * k for k in range(len(times))]) and len(times) > 10
    fallen = found.frames[0].scene.points[0, 2] - found.frames[10].scene.points[0, 2]
    assert fallen == pytest.approx(0.1885, rel=0.005)
    last = found.frames[-1]
    assert found.frames[0].ghost is None and np.linalg.norm(last.ghost - last.scene.points[0]) < 0.25
    assert found.stage.shapes and not [shape for shape in found.stage.shapes if shape.body == 0]
    assert found.title == "still: lost" and found.video == file  # 0.05 s are too short for anything else


def test_a_replay_shows_the_ramp_that_the_ball_rolls_on(twin):
    ball = BALLS["rubber"]
    state = twin.reset(ball, Ramp(0.20), 1)
    track = np.array([shape.position for shape in Shown(twin).stage.shapes if shape.body == 0])
    away = np.linalg.norm(track - state.thing_position, axis=1)
    # The nearest piece of the track, 31 mm long and 4 mm thick, lies under the ball: its own middle is no
    # further than half its length off the point of contact.
    assert away.min() == pytest.approx(ball.radius, abs=0.018)


def test_the_eyes_are_measured_against_the_truth(twin):
    line, gravity = (measure.follow(twin, BALLS["rubber"], Ramp(0.20), e, 3) for e in ("line", "gravity"))
    # Requests every millisecond from 0.25 s to 0.02 s before the arrival.
    assert len(line.position) + line.missing == pytest.approx(230, abs=5)
    # A line through 0.1 s of free fall is the velocity of 0.05 s ago: 0.49 m/s too slow downwards.
    assert line.velocity[:, 2].mean() == pytest.approx(0.49, abs=0.06)
    assert abs(gravity.velocity[:, 2].mean()) < 0.05
    row = {
        "ball": "rubber",
        "ramp_m": 0.2,
        "estimator": "line",
        "requests": 9,
        "missing": 1,
        "found_share": 0.5,
    }
    row |= {"position_bias_m": [0.001, 0, 0], "position_spread_m": [0, 0.002, 0]}
    row |= {"velocity_bias": [0, 0, 0.3], "velocity_spread": [0, 0, 0]}
    assert measure.line(row).startswith(
        "| rubber | 0.20 m | line | 9 (1) | 1.0, 0.0, 0.0 | 0.0, 2.0, 0.0 | 0.00,"
    )


def test_a_belief_sees_better_around_a_bounce_and_with_poor_cameras_always(monkeypatch):
    monkeypatch.setattr(belief_error, "BALLS", {"rubber": BALLS["rubber"]})
    monkeypatch.setattr(belief_error, "RAMP_RADII", (0.20,))
    monkeypatch.setattr(belief_error, "WATCHED_S", 1.0)
    found = belief_error.measure(1, seed=5)
    rows = {(r["sight"], r["phase"], r["estimator"]): r for r in found["rows"]}
    tracker, belief = (rows["cameras", "just met the plate", name] for name in ("tracker", "belief"))
    assert belief["velocity"][0] < tracker["velocity"][0]
    tracker, belief = (rows["poor-cameras", "just met the plate", name] for name in ("tracker", "belief"))
    assert belief["missing"] == 0 < tracker["missing"] and belief["alone"] == tracker["missing"]
    assert rows["cameras", "flight", "belief"]["position_m"][0] < 0.01
    for row in rows.values():  # errors are those of the same requests
        other = rows[row["sight"], row["phase"], "tracker"]
        assert row["both"] == other["both"] > 0 and row["asked"] == other["asked"]
        assert row["asked"] == row["both"] + row["alone"] + row["missing"]
    inside = [row["inside"] for row in rows.values() if row["estimator"] == "belief"]
    assert len(inside) >= 6 and all(0 <= share <= 1 for shares in inside for share in shares)
    assert belief["inside_expected"] == pytest.approx(0.9 * 49 / 51)
    assert found["belief"]["instances"] == 50 and found["belief"]["believed_s"] == 0.2
    assert found["config"]["seed"] == 5 and "numpy" in found["versions"]
    for sight in found["sights"]:
        assert sight["trials"] == 1 and sight["delay_s"] in (0.01, 0.06)
        costs = [sight[f"{name}_ms"][0] for name in ("tracker_frame", "tracker_question", "belief_sight")]
        assert min(costs) > 0 and costs[0] != costs[1] and "belief_question_ms" in sight


def test_a_request_that_one_alone_answered_is_in_nobody_s_errors():
    def seen(off):
        return BallEstimate(np.array([off, 0.0, 0.0]), np.zeros(3))

    phase, truth = belief_error._Phase(), np.zeros(6)
    phase.add(truth, {"tracker": seen(0.001), "belief": seen(0.002)})
    phase.add(truth, {"tracker": None, "belief": seen(0.5)})  # of the hard ones, only one dares
    phase.add(truth, {"tracker": None, "belief": None})
    tracker, belief = phase.rows(50)
    assert (tracker["both"], tracker["alone"], tracker["missing"]) == (1, 0, 2)
    assert (belief["both"], belief["alone"], belief["missing"]) == (1, 1, 1)
    assert belief["position_m"] == pytest.approx([0.002, 0.002])
    row = {"sight": "cameras", "phase": "flight"}
    assert belief_error.line(row | belief).endswith("| belief | 1 (1, 1) | 2.0 (2.0) | 0.000 (0.00) | - |")
    assert belief_error.line(row | belief_error._Phase().rows(50)[0]).endswith("| 0 (0, 0) | - | - | - |")


def test_a_comparison_needs_a_belief():
    with pytest.raises(ValueError, match="'e2e' has no belief to compare: choose a policy that has one"):
        belief_error.measure(1, policy="e2e")


def test_a_table_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "cells_of", lambda kind: [("foam", "R = 0.20 m", Ramp(0.20))])
    config = TrialsConfig(policies=("veltrack",), trials=2, sight="perfect")
    file = tmp_path / "ramps.json"
    run = tables.run_table(config, file)
    first = next(run)
    with pytest.raises(ValueError, match="another process"):
        next(tables.run_table(config, file))
    assert first[0] == "veltrack/foam/R = 0.20 m/0"
    run.close()
    assert [name for name, _ in tables.run_table(config, file)] == ["veltrack/foam/R = 0.20 m/1"]
    assert list(tables.run_table(config, file)) == []
    # It may grow: by a policy, which then has as many trials.
    more = TrialsConfig(policies=("still",), trials=1, sight="perfect")
    added = [name for name, _ in tables.run_table(more, file)]
    assert added == ["still/foam/R = 0.20 m/0", "still/foam/R = 0.20 m/1"]
    total = json.loads(file.read_text())["totals"]["veltrack"]
    assert total["trials"] == 2 and 0 <= total["low"] <= total["rate"] <= total["high"] <= 1
    table = json.loads(file.read_text())
    file.write_text(json.dumps(table | {"weights": {"dris-200": "of yesterday"}}))
    with pytest.raises(ValueError, match="other weights of 'dris-200'"):
        list(tables.run_table(config, file))
    file.write_text(json.dumps(table))
    with monkeypatch.context() as patch:  # a ball that bounces otherwise than when the table was begun
        patch.setattr(tables, "thing", lambda name: replace(BALLS[name], restitution=0.123))
        with pytest.raises(ValueError, match="in another laboratory"):
            list(tables.run_table(config, file))
    with pytest.raises(ValueError, match="films show what cameras see"):
        list(tables.film_table(file))
    with pytest.raises(ValueError, match="another configuration"):
        list(tables.run_table(TrialsConfig(policies=("veltrack",), trials=3), file))
    page = report_trials(tmp_path, tmp_path / "out", load_published()).read_text()
    assert f"{total['caught']} / 2" in page and "3 / 5" in page and "41 / 60" in page


def test_workers_find_what_one_process_finds(tmp_path):
    config = TrialsConfig(kind="balancing", policies=("still",), trials=1, sight="perfect")
    alone, together = tmp_path / "alone.json", tmp_path / "together.json"
    for file, workers in ((alone, 1), (together, 2)):
        assert len(list(tables.run_table(config, file, workers))) == 4
    assert alone.read_text() == together.read_text()


def test_totals_by_hand():
    outcomes = {
        f"a/ball/ramp/{k}": {
            "caught": caught,
            "speed_share": share,
            "torque_share": 0.8,
            "torque_rate_share": rate,
        }
        for k, (caught, share, rate) in enumerate(
            [(True, 0.9, 1.0), (True, 1.1, 0.9), (False, 0.5, 0.5), (True, 1.0, 1.2)]
        )
    }
    found = tables.totals(outcomes)["a"]
    assert (found["caught"], found["trials"], found["rate"], found["within_speed"]) == (3, 4, 0.75, 2)
    assert found["within_limits"] == 1  # the second is too fast, the last asked for too fast a torque
    del outcomes["a/ball/ramp/0"]["torque_share"]  # of before it was measured
    assert tables.totals(outcomes)["a"]["within_limits"] == 0
    assert found["low"] < 0.75 < found["high"]


def test_the_paper_s_real_trials_add_up():
    real = load_published()["real"]
    sums = np.array(list(real["caught"].values())).sum(axis=0)
    assert [f"{s} / 60" for s in sums] == real["totals"] and len(real["caught"]) == 12


def test_films_of_a_table_from_before_beliefs_had_names_show_its_policies_own(monkeypatch):
    """Their null was looked up as a name, and the films of every table that ships failed."""
    seen = []

    def film(handle, *arguments):
        seen.append((handle.name, handle.belief.update))
        raise InterruptedError

    monkeypatch.setattr(tables, "film", film)
    for folder, policy, own in (
        ("trials", "dris-200", "none"),
        ("trials-belief", "belief-robot", "ensemble"),
    ):
        stored = Path(__file__).parents[2] / "results" / folder / "throws.json"
        assert json.loads(stored.read_text())["config"].get("belief") is None
        with pytest.raises(InterruptedError):
            list(tables.film_table(stored))
        assert seen[-1] == (policy, own)
