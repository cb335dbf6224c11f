"""A log is enough to live through a session again, and a changed one is noticed."""

import json

import numpy as np
import pytest
from arms_without_robots import HOME, TASK, SoftArm
from sessions import LAW, homed, make, run

from dris.catching.control import Troubles
from dris.robot.log import Log, read_log
from dris.robot.paths import WayHome
from dris.robot.replay import TOLERANCE, replay
from dris.robot.told import Recorded


def act(states, condition):
    return np.clip(0.3 * states[:5], -1, 1)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """From a start off home to a catch, a ball out of sight, the way back and a second arming."""
    file = tmp_path_factory.mktemp("logs") / "log.jsonl"
    made = Log.open(file, policy="test", weights="0" * 64)
    session, arm, sky = homed(arm=SoftArm(q=HOME + 0.05), act=act, log=made, speed_share=0.9)
    sky.thrown_s = arm.ticks * 1e-3 + 0.1
    session.arm_now()
    run(session, lambda: session.state == "catching")
    for hidden in (False, True, False):
        sky.hidden, sky.trust = hidden, ("hold", "jump: 9 sigma") if hidden else ("fine", "")
        for _ in range(120):
            session.tick()
    session.go_home()
    run(session, lambda: session.state == "homed")
    session.begins_when_seen = True
    session.arm_now()
    for _ in range(20):
        session.tick()
    session.stop("enough")
    return file


def test_the_file_alone_gives_the_same_references(log):
    made_of, ticks = read_log(log)
    assert made_of["speed_share"] == 0.9 and made_of["law"]["governor"] == LAW.governor
    assert made_of["task_config"]["home"] == list(TASK.home) and len(made_of["limits"]["low"]) == 7
    ticks = list(ticks)
    states = {tick.state for tick in ticks if not tick.note}
    assert states == {"homing", "homed", "armed", "approaching", "catching", "hold", "returning"}
    found = replay(log, act, weights="0" * 64)
    assert found.differs == "" and found.largest <= TOLERANCE
    assert found.ticks == sum(tick.wished is not None for tick in ticks) > 1000
    assert found.same > 0.9 * found.ticks


def test_a_log_that_was_cut_is_played_and_says_so(log, tmp_path, capsys):
    """296 of 12,171 ticks were called perfect, without a word of the rest."""
    assert replay(log, act).ended
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(log.read_bytes()[:200_000])
    found = replay(cut, act)
    assert found.differs == "" and 100 < found.ticks < replay(log, act).ticks and not found.ended


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_log_of_an_arm_that_tells_no_number_is_read_and_played(tmp_path, wrong):
    """JSON has no such numbers: the log of just that fault could not be read."""

    class Broken(SoftArm):
        def exchange(self, reference):
            state = super().exchange(reference)
            if self.ticks > 400:
                state.dq[3] = wrong
            return state

    file = tmp_path / "log.jsonl"
    session = make(arm=Broken(q=HOME + 0.2), act=act, log=Log.open(file))[0]
    session.connect()
    session.start()
    for _ in range(600):
        session.tick()
    assert (session.state, session.reason) == ("stopped", "the filter: not finite")
    last = [tick for tick in read_log(file)[1] if tick.wished is not None][-1]
    assert np.isnan(last.dq[3]) and np.isfinite(last.dq[:3]).all()
    found = replay(file, act)
    assert found.differs == "" and found.ticks > 300 and found.ended


def test_a_log_of_eyes_that_tell_no_age_is_played(tmp_path):
    file = tmp_path / "log.jsonl"
    session, arm, sky = homed(arm=SoftArm(q=HOME + 0.02), act=act, log=Log.open(file))
    sky.thrown_s = arm.ticks * 1e-3
    session.arm_now()
    run(session, lambda: session.state == "catching")
    sky.age_s = np.nan
    for _ in range(60):
        session.tick()
    assert (session.state, session.reason) == ("stopped", "the filter: stale")
    found = replay(file, act)
    assert found.differs == "" and found.ended


def test_how_sure_a_belief_is_stands_in_the_log_and_older_logs_are_played_without(tmp_path):
    file = tmp_path / "log.jsonl"
    session, arm, sky = homed(arm=SoftArm(q=HOME + 0.02), act=act, log=Log.open(file))
    sky.thrown_s, sky.deviation = arm.ticks * 1e-3, np.arange(1.0, 7.0) * 1e-3
    sky.troubles = Troubles(3, 2, 1)
    session.arm_now()
    run(session, lambda: session.state == "catching")
    assert session.seen.deviation is sky.deviation
    session.stop("enough")
    told = [tick for tick in read_log(file)[1] if tick.estimates]
    assert told and told[-1].estimates[-1][7:] == sky.deviation.tolist()
    assert {tuple(tick.troubles) for tick in told} == {(3, 2, 1)}
    recorded = Recorded()
    recorded.set(told[-1].estimates, None, ("fine", ""))
    np.testing.assert_array_equal(recorded.estimate(0.0).deviation, sky.deviation)
    found = replay(file, act)
    assert found.differs == "" and found.ticks > 500

    ticks = [json.loads(line) for line in file.read_text().splitlines()]
    for tick in ticks[1:]:  # as before deviations were told
        tick.pop("troubles", None)
        tick["estimates"] = [one and one[:7] for one in tick.get("estimates", [])]
    file.write_text("\n".join(map(json.dumps, ticks)))
    older = replay(file, act)
    assert (older.differs, older.ticks, older.same) == ("", found.ticks, found.same)


def changed(log, file, change, where):
    """A log with one tick changed; the number of its line."""
    lines = log.read_text().splitlines()
    number = next(k for k, line in enumerate(lines) if k and where(json.loads(line)))
    tick = json.loads(lines[number])
    change(tick)
    lines[number] = json.dumps(tick)
    file.write_text("\n".join(lines))
    return number + 1


@pytest.mark.parametrize("name, by", [("q", 1e-5), ("sent", 1e-8), ("action", 1e-6), ("estimates", 1e-4)])
def test_the_tick_with_a_number_that_was_changed_is_told(log, tmp_path, name, by):
    def change(tick):
        values = tick[name][-1] if name == "estimates" else tick[name]
        values[0] += by

    def where(tick):  # at a control step
        return tick.get("action") and tick["state"] == "catching"

    number = changed(log, tmp_path / "changed.jsonl", change, where)
    found = replay(tmp_path / "changed.jsonl", act)
    assert found.differs.startswith(f"line {number}, ") and "differs by" in found.differs
    assert 0 < found.ticks < number


def test_another_policy_another_state_and_a_header_with_less_are_told(log, tmp_path):
    with pytest.raises(ValueError, match="made by 'test' with weights 000000000000, not 111111111111"):
        replay(log, act, weights="1" * 64)
    assert "action differs by" in replay(log, lambda s, c: act(s, c) + 1e-6).differs
    file = tmp_path / "changed.jsonl"
    changed(log, file, lambda tick: tick.update(state="hold"), lambda tick: tick.get("action"))
    assert "state was hold, is catching" in replay(file, act).differs
    lines = log.read_text().splitlines()
    for name in ("law", "limits"):
        header = json.loads(lines[0])
        del header[name]
        file.write_text("\n".join([json.dumps(header), *lines[1:]]))
        with pytest.raises(ValueError, match=f"has no {name}: its session never connected"):
            replay(file, act)


def test_a_path_that_was_followed_is_taken_from_the_wishes(tmp_path):
    file = tmp_path / "log.jsonl"
    session, _, _ = homed(arm=SoftArm(q=HOME + 0.02), log=Log.open(file))

    class ThereAndBack(WayHome):
        def at(self, time_s):
            return HOME + 0.05 * np.sin(np.pi * time_s / self.duration_s) * np.eye(7)[3]

    session.follow(ThereAndBack(HOME + 0.05, HOME, session.limits))
    run(session, lambda: session.state == "homed")
    session.stop("enough")
    found = replay(file, act)
    assert found.differs == "" and found.ticks > 500
