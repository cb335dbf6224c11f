"""What a log looks like: the arm as it was measured, the ball where it was or was seen."""

import numpy as np
import pytest
from arms_without_robots import HOME, TASK

from dris.cli.logs import play_log
from dris.robot.log import Log, Tick
from dris.robot.log_frames import BLIND_S, shown

PLACE, VELOCITY, ARRIVES_S = np.array([0.5, 0.1, 0.6]), np.array([-1.0, 0.0, -3.0]), 10.4


def ball_at(time_s):
    """The parabola that ends at `PLACE` with `VELOCITY`, by hand: p = p1 + v1 t - g t^2 / 2, t < 0."""
    t = time_s - ARRIVES_S
    return PLACE + VELOCITY * t - np.array([0, 0, 0.5 * 9.81 * t * t])


def write(file, truth, catches=True, waits_s=0.1, lasts_s=1.0):
    """Armed at 10 - `waits_s`, told of the ball from 10.1 s, the policy from 10.3 s, blind from 10.4 s."""
    log = Log.open(file, policy="test", trial="foam/1", task_config=TASK, ball_radius_m=0.04)
    log.add(Tick(9.0, "homed", [], [], note="begins"))
    first = 10 - waits_s
    log.add(Tick(first, "armed", [], [], note="begins", asked="arm"))
    for k in range(round(1e3 * (waits_s + lasts_s))):
        time_s = first + 1e-3 * k
        arrival = estimates = action = None
        state = "armed" if time_s < 10.1 else "approaching" if time_s < 10.3 or not catches else "catching"
        if state == "approaching" and k % 5 == 0:
            arrival = [ARRIVES_S, *PLACE.tolist(), *VELOCITY.tolist(), 0.0, 0.0, 0.0]
        if state == "catching" and k % 50 == 0 and time_s < 10.41:
            seen = ball_at(time_s) + 0.01
            estimates, action = [[*seen.tolist(), *VELOCITY.tolist(), 0.0]], [0.0] * 5
        clauses = ["speed"] if state == "catching" and k % 7 == 0 else []
        q = (HOME + 0.1 * (time_s - 10)).tolist()
        log.add(Tick(time_s, state, q, [0.0] * 7, q, q, clauses, estimates or [], arrival, action=action))
        if truth and k % 10 == 0:
            log.add(Tick(time_s, state, [], [], ball=ball_at(time_s).tolist()))
    log.add(Tick(first + waits_s + lasts_s, "stopped", [], [], note="enough"))
    log.close()
    return file


def test_with_the_truth_the_ball_is_there_and_the_wire_ball_where_the_policy_saw_it(tmp_path):
    found = shown(write(tmp_path / "log.jsonl", truth=True))
    assert found.title == "test, foam/1" and found.mount == TASK.mount
    times = np.array([frame.time_s for frame in found.frames])
    assert times == pytest.approx(0.02 * np.arange(55), abs=1e-6)
    for frame in found.frames:
        assert frame.scene.points[0] == pytest.approx(ball_at(frame.time_s + 9.9), abs=1e-3)
        assert frame.q == pytest.approx(HOME + 0.1 * (frame.time_s - 0.1)) and frame.scene.radii[0] == 0.04
    before, after = found.frames[19], found.frames[21]  # at 10.28 and 10.32 s; it took over at 10.3
    assert before.ghost is None and before.words == "approaching"
    assert after.ghost == pytest.approx(ball_at(10.3) + 0.01) and after.words == "catching; filter: speed"


def test_without_the_truth_the_ball_is_where_the_eyes_had_it_or_nowhere(tmp_path):
    frames = {round(f.time_s + 9.9, 2): f for f in shown(write(tmp_path / "l.jsonl", truth=False)).frames}
    assert all(frame.ghost is None for frame in frames.values())
    assert frames[10.0].scene.points[0, 2] == pytest.approx(ball_at(10.1)[2], abs=1e-3)  # just before: near
    assert frames[10.2].scene.points[0] == pytest.approx(ball_at(10.2), abs=1e-3)
    assert frames[10.3].scene.points[0] == pytest.approx(ball_at(10.3) + 0.01, abs=1e-3)
    assert frames[10.5].scene.points[0] == pytest.approx(ball_at(10.4) + 0.01, abs=1e-3)
    late = [frame for time_s, frame in frames.items() if time_s > 10.41 + BLIND_S]
    assert late and all(frame.scene.points[0, 2] < -1 for frame in late)


def test_a_long_wait_is_cut_and_a_log_without_an_attempt_is_refused(tmp_path):
    frames = shown(write(tmp_path / "log.jsonl", truth=True, waits_s=4.0)).frames
    assert frames[0].time_s == pytest.approx(0, abs=2e-3)
    assert frames[0].scene.points[0] == pytest.approx(ball_at(10.3 - 1.5), abs=0.02)
    assert {frame.words for frame in shown(write(tmp_path / "no.jsonl", True, catches=False)).frames} == {
        "armed",
        "approaching",
    }
    log = Log.open(tmp_path / "none.jsonl", task_config=TASK)
    log.add(Tick(0.0, "homed", [], [], note="begins"))
    log.close()
    with pytest.raises(ValueError, match="never waited for a ball"):
        shown(tmp_path / "none.jsonl")


def test_a_film_and_a_replay_are_written(tmp_path, capsys):
    log = write(tmp_path / "log.jsonl", truth=True, waits_s=0.0, lasts_s=0.05)  # three frames
    for html, name, first in ((False, "log.mp4", b"ftyp"), (True, "log.html", b"<!")):
        assert play_log(log, html, tmp_path) == 0
        assert name in capsys.readouterr().out
        assert first in (tmp_path / name).read_bytes()[:12]
    assert "test, foam/1" in (tmp_path / "log.html").read_text()
