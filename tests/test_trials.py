"""Trials: what the cameras make of the twin's world, and tables that go on where they stopped."""

import json
import os

import numpy as np
import pytest

os.environ.setdefault("MUJOCO_GL", "egl")

from dris.study.page import load_paper
from dris.trials import table as tables
from dris.trials.config import TrialsConfig
from dris.trials.page import report_trials
from dris.trials.sight import Sight, SightConfig
from dris.trials.trial import run_seen_trial
from dris.twin.control import make_agent
from dris.twin.launch import Ramp
from dris.twin.objects import BALLS
from dris.twin.twin import Twin


@pytest.fixture(scope="module")
def twin():
    twin = Twin()
    yield twin
    twin.close()


def test_the_cameras_see_a_ball_from_the_ramp_where_it_is(twin):
    ball = BALLS["rubber"]  # air, of which the tracker knows nothing, slows a light one by 0.1 m/s a window
    state = twin.reset(ball, Ramp(0.20), 1)
    sight = Sight(twin, ball, SightConfig(), 1)
    errors = []
    # From leaving the ramp to just over the plate; requests are for now, 10 ms after the youngest frame.
    while twin.time_s < 2.0:
        twin.advance(1)
        state = twin.state()
        if state.thing_position[2] < state.plate_position[2] + 0.15:
            break
        sight.tick(twin)
        if state.thing_position[2] < state.plate_position[2] + 0.6:
            seen = sight.state(twin.time_s)
            if seen is not None:
                errors.append(
                    (seen.ball_in_base - state.thing_position, seen.velocity_in_base - state.thing_velocity)
                )
    assert len(errors) > 50
    position, velocity = (np.array(part) for part in zip(*errors, strict=True))
    # Medians: the first states, while the ball still leaves the ramp, are worse.
    assert np.median(np.linalg.norm(position, axis=1)) < 0.008
    assert np.median(np.linalg.norm(velocity, axis=1)) < 0.1


def test_a_trial_runs_from_pictures_to_torques_and_repeats_itself(twin):
    agent = make_agent("dris-200", 40)
    first, again = (
        run_seen_trial(agent, BALLS["foam"], Ramp(0.20), 3, twin, duration_s=0.3) for _ in range(2)
    )
    assert first.began and first.blind_steps == 0 and first.position_error < 0.02
    assert (first.caught, first.position_error) == (again.caught, again.position_error)
    assert all(np.array_equal(a.q, b.q) for a, b in zip(first.states, again.states, strict=True))


def test_a_table_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "cells_of", lambda kind: [("foam", "R = 0.20 m", Ramp(0.20))])
    config = TrialsConfig(policies=("veltrack",), trials=2, sight="perfect")
    file = tmp_path / "ramps.json"
    run = tables.run_table(config, file)
    first = next(run)
    assert first[0] == "veltrack/foam/R = 0.20 m/0"
    run.close()
    assert [name for name, _ in tables.run_table(config, file)] == ["veltrack/foam/R = 0.20 m/1"]
    total = json.loads(file.read_text())["totals"]["veltrack"]
    assert total["trials"] == 2 and 0 <= total["low"] <= total["rate"] <= total["high"] <= 1
    with pytest.raises(ValueError, match="another configuration"):
        list(tables.run_table(TrialsConfig(trials=3), file))
    page = report_trials(tmp_path, tmp_path / "out", load_paper()).read_text()
    assert f"{total['caught']} / 2" in page and "3 / 5" in page and "41 / 60" in page


def test_the_paper_s_real_trials_add_up():
    real = load_paper()["real"]
    sums = np.array(list(real["caught"].values())).sum(axis=0)
    assert [f"{s} / 60" for s in sums] == real["totals"] and len(real["caught"]) == 12
