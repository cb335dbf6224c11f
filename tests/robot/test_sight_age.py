"""How old a sight may be that an arm acts on, with a belief and without."""

from dataclasses import replace

import pytest
from sessions import LAW, catching

from dris.catching.ball_belief_config import BallBeliefConfig
from dris.robot.safety_config import SafetyConfig


@pytest.mark.parametrize("age_s", [0.08, 0.1, 0.12, -0.24])
def test_what_was_decided_on_an_old_sight_is_held_in_every_tick(age_s):
    """The age counted in the tick of the decision alone: at 0.08 s one of nine ticks held."""
    session, _, sky = catching()
    sky.age_s = age_s
    for _ in range(60):  # a control step and some more
        session.tick()
    before = session.clauses["stale"]
    for _ in range(300):
        session.tick()
    assert session.state == "catching" and session.clauses["stale"] - before == 300


def test_behind_a_belief_sights_may_be_as_old_as_it_carries_them_on():
    plain = SafetyConfig(LAW.stiffness, LAW.damping)
    assert plain.behind(None) is plain and replace(plain, hold_age_s=0.05).behind(1).hold_age_s == 0.05
    assert replace(plain, stop_age_s=0.2).behind(1).hold_age_s < 0.2
    assert plain.behind(1).blind.hold_age_s == plain.hold_age_s  # nobody carries on what nobody tells
    session, _, sky = catching(safety=plain.behind(BallBeliefConfig()))
    sky.age_s = 0.19
    for _ in range(300):
        session.tick()
    assert session.state == "catching" and session.clauses["stale"] == 0


def test_a_ball_out_of_sight_is_held_as_soon_behind_a_belief():
    plain = SafetyConfig(LAW.stiffness, LAW.damping)
    session, _, sky = catching(safety=plain.behind(BallBeliefConfig()))
    sky.hidden = True
    before = session.clauses["stale"]
    for _ in range(240):  # the step it was seen in, 75 ms, and a step more until that is known
        session.tick()
    assert session.state == "hold" and session.clauses["stale"] - before > 80
