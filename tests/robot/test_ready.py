"""An arm that is not ready does not begin, and one that is not heard any more is stopped."""

import math
from dataclasses import replace

import numpy as np
import pytest
from arms_without_robots import HOME, LIMITS
from sessions import homed, make, run

from dris.robot.arm import ArmError
from dris.robot.log import Log, read_log
from dris.robot.ready import stricter


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"error": "stopped by a reflex: joint_reflex"},
            "joint_reflex; look at why, clear it at the robot, and begin anew",
        ),
        ({"moving": True}, "it still obeyed references of before: look at why, and begin anew"),
        ({"dq": np.full(7, 3.0)}, "a joint moves at 3.00 rad/s: let go of the robot"),
        ({"dq": np.full(7, math.nan)}, "a joint moves at nan rad/s"),
    ],
)
def test_an_arm_that_something_stopped_or_moves_is_not_begun_with(wrong, words):
    """Whoever was touched while the cameras were looked through was answered by recovery and homing."""
    session, arm, _ = make()
    vars(arm).update(wrong)
    with pytest.raises(ArmError, match=f"the arm does not begin: .*{words}"):
        session.connect()
    asked = ["stop"] if wrong.get("moving") else []  # nobody else would: a fault is taken for stopped
    assert (session.state, arm.asked) == ("fault", asked) and words in session.reason and not arm.moving
    session, arm, _ = make()
    session.connect()
    vars(arm).update(wrong)  # between connecting and beginning
    with pytest.raises(ArmError, match=f"the arm does not begin: .*{words}"):
        session.start()
    assert arm.asked == []


def test_errors_are_cleared_where_that_is_asked_for_a_bounded_number_of_times(tmp_path, capsys):
    file = tmp_path / "log.jsonl"
    session, arm, _ = make(log=Log.open(file))
    for _ in range(3):
        arm.error = "reflex"
        session.connect(clear=True)
        assert session.state == "connected" and arm.error == ""
        session.state = "stopped"  # as if it had moved meanwhile
    arm.error = "reflex"
    with pytest.raises(ArmError, match="clear it at the robot"):
        session.connect(clear=True)
    assert arm.asked.count("recover") == 3 and session.state == "fault"
    said = "cleared, as it was asked to: reflex"
    assert capsys.readouterr().err == 3 * f"dris: {said}\n"
    session._log.close()
    assert [tick.note for tick in read_log(file)[1]][:3] == 3 * [said]
    stubborn, arm, _ = make()
    arm.error, arm.recovers = "user stop", False
    with pytest.raises(ArmError, match="user stop"):
        stubborn.connect(clear=True)


def test_an_arm_is_looked_at_again_after_its_error_was_cleared():
    session, arm, _ = make()
    arm.error, recover = "reflex", arm.recover
    arm.recover = lambda: (recover(), setattr(arm, "error", "the user stop is pressed"))[0]
    with pytest.raises(ArmError, match="the user stop is pressed"):
        session.connect(clear=True)


def test_a_session_whose_log_is_closed_is_not_connected_again(tmp_path):
    """It homed, and nothing of that was in the log."""
    session, arm, _ = homed(log=Log.open(tmp_path / "log.jsonl"))
    session.stop("enough")
    with pytest.raises(ArmError, match="log of this session is closed: make a new session"):
        session.connect()
    assert session.state == "stopped" and not arm.moving
    session, arm, _ = homed()  # that kept none
    session.stop("enough")
    session.connect()
    assert session.state == "connected"


@pytest.mark.parametrize(
    "told_s", [lambda k: math.nan, lambda k: -1e-3 * k, lambda k: 7.0 + 1e-3 * (k % 2), lambda k: math.inf]
)
def test_an_arm_whose_clock_does_not_go_on_is_a_fault(told_s):
    """Not a number never equals itself, and one that goes back was taken for one that goes on."""
    session, arm, _ = homed()
    start, exchange = session.clock(), arm.exchange
    arm.exchange = lambda reference: replace(exchange(reference), time_s=told_s(arm.ticks))
    run(session, lambda: session.state == "fault", most=300)
    assert "or no later one" in session.reason and session.clock() - start < 0.11 and not arm.moving


def test_limits_that_are_no_numbers_are_refused():
    with pytest.raises(ArmError, match=r"not finite \(speed\): look at its model"):
        stricter(replace(LIMITS, speed=np.full(7, np.nan)), LIMITS)


def test_the_stricter_of_two_sets_is_taken_part_by_part():
    short = LIMITS.high - 0.1 * np.eye(7)[1]
    told = replace(LIMITS, low=LIMITS.low - 1, high=short, offset=LIMITS.offset + 0.1, speed=2 * LIMITS.speed)
    kept = stricter(replace(told, deceleration=LIMITS.deceleration - 1), LIMITS)
    assert (kept.low == LIMITS.low).all() and (kept.high == short).all()
    assert (kept.offset == LIMITS.offset + 0.1).all() and (kept.speed == LIMITS.speed).all()
    assert (kept.deceleration == LIMITS.deceleration - 1).all()
    for q in (HOME, LIMITS.low + 0.3, short - 0.2):  # never faster than either allows
        for speeds, others, theirs in zip(
            kept.speeds_at(q), told.speeds_at(q), LIMITS.speeds_at(q), strict=True
        ):
            assert (speeds <= np.minimum(others, theirs)).all()
