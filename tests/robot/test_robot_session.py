"""A session goes where it should, and stops when anything is wrong.

Long, because all ask one session, state by state.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from arms_without_robots import HOME, LIMITS, TASK, SoftArm
from sessions import LAW, catching, homed, make, run

from dris.perception.arrival import free_fall
from dris.robot.arm import ArmError, limits_of_urdf, masses_of_urdf
from dris.robot.ending import Ended
from dris.robot.log import Log, read_log


def test_from_connecting_to_a_catch_and_home_again():
    session, arm, sky = homed(arm=SoftArm(q=HOME + 0.2))
    assert np.abs(arm.q - HOME).max() < 0.03
    sky.thrown_s = arm.ticks * 1e-3 + 0.2
    session.arm_now()
    run(session, lambda: session.state == "catching")
    # The ball comes down at the plate's height after 1.1 s; the policy takes over 0.1 s before.
    left = free_fall(session.clock(), *sky._ball(session.clock()), session.kinematics.home_position[2]).time_s
    assert left - session.clock() == pytest.approx(session.loop.approach.lead_s, abs=2e-3)
    session.go_home()
    run(session, lambda: session.state == "homed")
    states = [state for _, state, _ in session.changes]
    assert states == [
        "connected",
        "homing",
        "homed",
        "armed",
        "approaching",
        "catching",
        "returning",
        "homed",
    ]
    session.stop("enough")
    assert not arm.moving and session.state == "stopped"
    session.tick()
    assert arm.asked.count("stop") == 1 and not arm.moving  # nothing moves after a stop


def test_a_policy_is_rehearsed_before_every_decision_and_at_no_other_time():
    called = []
    session, arm, sky = homed(
        act=lambda s, c: called.append("act") or np.zeros(5), rehearse=lambda: called.append("rehearsed")
    )
    sky.thrown_s = arm.ticks * 1e-3 + 0.2
    session.arm_now()
    run(session, lambda: session.state == "catching")
    for _ in range(200):  # four steps of 50 ms
        session.tick()
    session.go_home()
    run(session, lambda: session.state == "homed")
    assert called == ["rehearsed", "act"] * 4 + ["rehearsed"] + called[9:]
    assert called[9:] in ([], ["act"])  # whether the fifth was still due


def test_nothing_moves_before_it_is_told_to():
    session, arm, _ = make(arm=SoftArm(q=HOME + 0.3))
    session.tick()
    session.connect()
    session.tick()
    assert arm.asked == [] and (arm.q == HOME + 0.3).all()
    with pytest.raises(ArmError, match="is connected, not homed"):
        session.arm_now()


def test_the_way_home_is_slow():
    session, arm, _ = make(arm=SoftArm(q=HOME + np.array([0.8, -0.4, 0.5, 0.6, -0.9, 0.5, 1.0])))
    session.connect()
    session.start()
    fastest = np.zeros(7)
    while session.state == "homing":
        session.tick()
        fastest = np.maximum(fastest, np.abs(arm.dq))
    # 0.15 of the limits, and what a soft arm adds by catching up.
    assert (fastest <= 0.2 * np.array([2.62] * 4 + [5.26, 4.18, 5.26])).all() and fastest.max() > 0.1


def test_a_reflex_is_a_fault_with_its_name():
    session, arm, _ = homed()
    session.arm_now()
    arm.moving, arm.error = False, "motion aborted by reflex! [joint_velocity_violation]"
    session.tick()
    assert session.state == "fault" and "joint_velocity_violation" in session.reason
    arm.moving, arm.error, before = True, "", session._sent.copy()  # recovered by somebody else
    session.tick()
    assert session.state == "fault" and (session._sent == before).all()


def test_eyes_that_know_they_are_wrong_stop_the_arm():
    session, arm, sky = homed()
    session.arm_now()
    session.tick()
    sky.trust = ("stop", "cameras disagree: 40 px")
    session.tick()
    assert (
        session.state == "stopped"
        and session.reason == "the eyes: cameras disagree: 40 px"
        and not arm.moving
    )


def test_sights_that_are_far_too_old_stop_the_arm():
    session, arm, sky = catching()
    sky.age_s = 0.3
    for _ in range(60):
        session.tick()
    assert session.state == "stopped" and session.reason == "the filter: stale" and not arm.moving


@pytest.mark.parametrize("error", [KeyError("joint"), OSError("no file"), TypeError("none")])
def test_a_mistake_of_the_policy_stops_the_arm_and_the_log_names_it(tmp_path, error):
    def act(states, condition):
        raise error

    file = tmp_path / "log.jsonl"
    session, arm, sky = homed(act=act, log=Log.open(file))
    sky.thrown_s = arm.ticks * 1e-3
    session.arm_now()
    with pytest.raises(type(error)):
        run(session, lambda: session.state == "catching")
    assert session.state == "fault" and session.reason.startswith(type(error).__name__) and not arm.moving
    assert list(read_log(file)[1])[-1].note == session.reason


def test_a_signal_inside_a_policy_is_no_mistake():
    def act(states, condition):
        raise Ended("SIGINT")

    session, arm, sky = homed(act=act)
    sky.thrown_s = arm.ticks * 1e-3
    session.arm_now()
    with pytest.raises(Ended):
        run(session, lambda: session.state == "catching")
    assert session.state not in ("stopped", "fault")  # whoever runs it stops it, by that name


def test_a_word_of_trust_that_nobody_knows_stops_the_arm():
    session, arm, sky = catching()
    sky.trust = ("STOP", "somebody shouted")
    session.tick()
    assert session.state == "stopped" and "which is none of" in session.reason and not arm.moving


def test_a_ball_out_of_sight_holds_the_reference_and_is_given_up_after_a_second():
    session, arm, sky = catching(act=lambda s, c: np.array([1.0, 0, 0, 0, 0]))
    sky.hidden = True
    for _ in range(150):  # the step it was seen in, and 75 ms
        session.tick()
    held = session._sent.copy()
    assert session.reason == "no ball is seen"
    for _ in range(500):
        session.tick()
        assert (session._sent == held).all() and session.state == "hold"
    run(session, lambda: session.state == "returning", most=600)
    sky.hidden = False  # somebody takes the ball off the plate: it is not chased
    run(session, lambda: session.state == "homed")


def test_a_catch_goes_on_when_the_ball_is_seen_again_and_its_eyes_say_why_it_was_not(tmp_path):
    file = tmp_path / "log.jsonl"
    session, _, sky = catching(log=Log.open(file))
    for hidden, trust in ((True, ("hold", "jump: 9 sigma")), (False, ("fine", "")), (True, ("fine", ""))):
        sky.hidden, sky.trust = hidden, trust
        for _ in range(60):  # a control step and some more
            session.tick()
        assert session.state == ("hold" if hidden else "catching")
    assert [one[1:] for one in session.changes[-4:]] == [
        ("catching", ""), ("hold", "the eyes: jump: 9 sigma"), ("catching", ""), ("hold", "no ball is seen"),
    ]  # fmt: skip
    session.stop("enough")
    ticks = list(read_log(file)[1])
    assert [tick.note for tick in ticks if tick.note and tick.state == "hold"] == [
        "the eyes: jump: 9 sigma",
        "no ball is seen",
    ]
    assert {tick.trust for tick in ticks if not tick.note} == {("fine", ""), ("hold", "jump: 9 sigma")}
    # What the wish rests on grows older, up to just under where the filter would stop the arm.
    ages = [tick.age_s for tick in ticks if not tick.note and tick.state == "hold"]
    assert 0.04 < max(ages) < session.safety.stop_age_s


def test_eyes_that_tell_a_ball_all_the_same_hold_nothing():
    """A belief goes on where the track behind it is doubted."""
    session, _, sky = catching()
    sky.trust = ("hold", "jump: 9 sigma")
    for _ in range(60):
        session.tick()
    assert session.state == "catching"


@pytest.mark.parametrize("level", ["hold", "doubt"])
def test_eyes_that_doubt_themselves_brake_an_arm_that_approaches(level):
    """It went on for 17 cm at up to 2.3 rad/s; what is doubted of the ball alone stops nothing."""
    session, arm, sky = homed()
    sky.thrown_s = arm.ticks * 1e-3
    ball = sky._ball
    sky._ball = lambda t: (ball(t)[0] + [0.0, 0.2, 0.0], ball(t)[1])
    session.arm_now()
    run(session, lambda: session.state == "approaching")
    run(session, lambda: np.abs(arm.dq).max() > 0.5, most=200)
    sky.trust, arrival = (level, "second ball: take it away"), sky.arrival
    sky.arrival = lambda time_s, height_m: None
    before, fastest = session.kinematics.plate(arm.q)[0], np.abs(arm.dq).max()
    for _ in range(250):
        session.tick()
    moved = float(np.linalg.norm(session.kinematics.plate(arm.q)[0] - before))
    if level == "doubt":
        assert session.state == "approaching" and moved > 0.05
        return
    assert (session.state, session.reason) == ("hold", "the eyes: second ball: take it away")
    # From 0.5 rad/s at 20 rad/s2 and 300 rad/s3: some 0.1 s, and a few hundredths of a radian.
    assert np.abs(arm.dq).max() < 0.01 < fastest and moved < 0.05
    assert session.sight_age_s > 0 and not session.clauses["stale"]
    sky.trust, sky.arrival = ("fine", ""), arrival
    run(session, lambda: session.state == "approaching", most=100)
    run(session, lambda: session.state == "catching")
    assert session._age(session.clock()) < 0.05  # not since before the hold


def test_an_arm_that_tells_the_same_state_for_long_is_a_fault():
    session, arm, _ = homed()
    session.arm_now()
    session.tick()
    start, frozen = session.clock(), arm.state()
    arm.exchange = lambda reference: (setattr(arm, "ticks", arm.ticks + 1), frozen)[1]
    run(session, lambda: session.state == "fault", most=300)
    assert "the same state for 0.1 s" in session.reason and session.clock() - start < 0.11


def test_a_session_that_moves_is_not_connected_again():
    session, arm, _ = homed()
    with pytest.raises(ArmError, match="is homed: stop it before"):
        session.connect()
    assert arm.moving and session.state == "homed"


def test_slow_ticks_keep_the_torque_rate():
    """The law is told how long a tick is: at 200 Hz it may ask for 0.9 x 5 Nm more, not for 0.9."""
    from dris.catching.kinematics import Kinematics
    from dris.robot.shaping import Shaper

    arm = Kinematics(TASK.home, TASK.mount).dynamics(HOME, np.zeros(7))
    for tick_s in (0.001, 0.005):
        shaper = Shaper(LAW, LIMITS, np.array([87.0] * 4 + [12.0] * 3))
        sent = shaper.reference(HOME, np.zeros(7), HOME + 0.3 * np.eye(7)[0], tick_s, arm)
        assert TASK.stiffness[0] * (sent[0] - HOME[0]) == pytest.approx(900 * tick_s)


@pytest.mark.parametrize("speed", [0.0, 1.5])
def test_joints_keep_their_torque_limits_with_what_the_robot_adds(speed):
    """Gravity and Coriolis torques come on top of what is asked for: joint 6 has 12 Nm, and stopped over FCI
    at 10.8 + 2.5. Wishes far away in either direction end at 0.9 of every limit."""
    import mujoco

    from dris.catching.kinematics import Kinematics
    from dris.catching.robot_model import robot_model
    from dris.robot.shaping import Shaper

    limit = np.array([87.0] * 4 + [12.0] * 3)
    stiff = replace(LAW, stiffness=(300.0,) * 4 + (60.0,) * 3, joint_speed=None, brakes_in_time=False)
    K, D = np.array(stiff.stiffness), np.array(stiff.damping)
    model = robot_model(TASK.mount)
    data, dq = mujoco.MjData(model), speed * np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
    data.qpos[:], data.qvel[:] = HOME, dq
    mujoco.mj_forward(model, data)
    assert np.abs(data.qfrc_bias).max() > 2
    for way in (1.0, -1.0):
        shaper = Shaper(stiff, LIMITS, limit)
        arm = Kinematics(TASK.home, TASK.mount).dynamics(HOME, dq)
        for _ in range(200):
            sent = shaper.reference(HOME, dq, HOME + way * 1.0, 0.001, arm)
        asked = K * (sent - HOME) - D * dq
        np.testing.assert_allclose(asked + data.qfrc_bias, way * 0.9 * limit, rtol=1e-6)


def test_an_action_that_is_not_finite_is_a_fault():
    session, arm, sky = homed(act=lambda s, c: np.full(5, math.nan))
    sky.thrown_s = arm.ticks * 1e-3
    session.arm_now()
    run(session, lambda: session.state in ("fault", "stopped"))
    assert session.state == "fault" and "not finite" in session.reason and not arm.moving


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_seen_and_not_finite_is_a_fault_whatever_the_policy_makes_of_it(wrong):
    """A policy that is none of `Runtime` was given it, and the arm went on catching."""
    seen = []
    session, arm, sky = catching(act=lambda states, tilt: seen.append(states) or np.zeros(5))
    ball, steps = sky._ball, len(seen)
    sky._ball = lambda time_s: (ball(time_s)[0] + wrong, ball(time_s)[1])
    run(session, lambda: session.state != "catching", most=100)
    assert session.state == "fault" and session.reason.startswith("what is seen is not finite: ball")
    assert len(seen) == steps and not arm.moving


def test_a_way_that_cannot_be_planned_is_a_fault():
    """It left the command as a traceback."""
    session, arm, sky = homed()
    sky.thrown_s = arm.ticks * 1e-3
    session.arm_now()

    def fails(*asked):
        raise RuntimeError("no motion from here to there")

    session.loop.approach.update = fails
    session.tick()
    assert (session.state, session.reason) == ("fault", "no motion from here to there") and not arm.moving


def test_an_arm_that_stands_at_the_end_of_a_joint_is_not_begun_with():
    session, arm, _ = make(arm=SoftArm(q=np.where(np.arange(7) == 3, LIMITS.high[3], HOME)))
    session.connect()
    with pytest.raises(ArmError, match="end of its range"):
        session.start()
    assert not arm.moving


def test_an_arm_that_cannot_get_home_stops():
    class Stuck(SoftArm):
        def exchange(self, reference):
            self.ticks += 1
            return self.state()

    session, arm, _ = make(arm=Stuck(q=HOME + 0.5))
    session.connect()
    session.start()
    run(session, lambda: session.state == "stopped", most=60_000)
    assert "does not reach its home: 0.500 rad away" in session.reason


def test_a_log_that_a_crash_cut_off_is_read_as_far_as_it_goes(tmp_path):
    file = tmp_path / "log.jsonl"
    session, _, _ = homed()
    session._log = Log.open(file, policy="x")
    for _ in range(5):
        session.tick()
    session._log.close()
    text = file.read_text()
    file.write_text(text[:-40])
    assert len(list(read_log(file)[1])) == len(text.splitlines()) - 2
    lines = text.splitlines()
    lines[2] = lines[2][:20]
    file.write_text("\n".join(lines))
    with pytest.raises(ValueError, match="line 3"):
        list(read_log(file)[1])
    for wrong in ("", "{}", '{"kind": "study", "schema": 1}'):
        file.write_text(wrong)
        with pytest.raises(ValueError, match="log|kind"):
            read_log(file)
    file.write_text('{"kind": "session-log", "schema": 1}')
    with pytest.raises(
        ValueError, match=r"log.jsonl.*schema 1, not .*another version of dris, make it again"
    ):
        read_log(file)


def test_limits_come_from_the_robots_own_model():
    joint = (
        '<joint name="fr3_joint{0}"><limit lower="-{0}" upper="{0}.5" velocity="2.{0}" effort="87"/>'
        '<position_based_velocity_limits velocity_offset="0.{0}" deceleration_limit="{0}"/></joint>'
    )
    urdf = f"<robot>{''.join(joint.format(k) for k in range(1, 8))}</robot>"
    limits = limits_of_urdf(urdf)
    assert limits.low.tolist() == [-1, -2, -3, -4, -5, -6, -7] and limits.speed[2] == 2.3
    assert limits.offset[6] == 0.7 and limits.deceleration[4] == 5
    finger = '<joint name="fr3_finger_joint1"><limit lower="0" upper="0.04" velocity="0.2"/></joint>'
    assert limits_of_urdf(urdf.replace("<robot>", f"<robot>{finger}")).high[0] == 1.5
    wrong = [
        ("velocity_offset", "other"),
        ("2.3", "fast"),
        ("2.3", "nan"),
        ("2.3", "262"),
        ('upper="4.5"', 'upper="-9"'),
    ]
    for broken in ("", "<robot/>", *(urdf.replace(*pair) for pair in wrong)):
        with pytest.raises(ArmError, match="limits of all seven joints"):
            limits_of_urdf(broken)


@pytest.mark.parametrize("prefix", ["", "fr3_", "fr3v2_"])
def test_masses_come_from_the_robots_own_model(prefix):
    link = '<link name="{0}link{1}"><inertial><mass value="{1}.5"/></inertial></link>'
    more = '<link name="{0}link0"/><link name="{0}link1_sc"/><link name="{0}link8"/><link name="{0}hand"/>'
    urdf = f"<robot>{more.format(prefix)}{''.join(link.format(prefix, k) for k in range(1, 8))}</robot>"
    assert masses_of_urdf(urdf) == (1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5)
    wrong = [
        ("3.5", "nan"),
        ("3.5", "0"),
        ("3.5", "-1"),
        ("3.5", "light"),
        ("<mass ", "<weight "),
        ("link3", "x"),
    ]
    for broken in ("", "<robot/>", *(urdf.replace(*pair) for pair in wrong)):
        with pytest.raises(ArmError, match="plausible masses of all seven links"):
            masses_of_urdf(broken)


def test_eyes_are_told_of_the_plate_on_the_way_home_too():
    """Or they would look for it where it was, and a belief would know no plate."""
    session, arm, sky = make(SoftArm(q=HOME + 0.1))
    told = []
    sky.observe_plate = told.append
    session.connect()
    session.start()
    run(session, lambda: session.state == "homed")
    assert len(told) == pytest.approx(arm.ticks / 5, abs=2) == pytest.approx(sky.told, abs=2)
    places = np.array([plate.centre_in_base for plate in told])
    assert np.linalg.norm(places[-1] - session.kinematics.plate(HOME)[0]) < 0.02
    moved = np.linalg.norm(np.diff(places, axis=0), axis=1) / 0.005
    speeds = [np.linalg.norm(plate.velocity_in_base) for plate in told[1:]]
    assert speeds == pytest.approx(moved, abs=1e-9) and max(speeds) > 0.02


def test_an_arm_that_does_not_stop_when_asked_is_a_fault():
    session, arm, _ = make()
    session.connect()
    session.start()
    arm.stop = lambda: (_ for _ in ()).throw(ArmError("the arm may still move"))
    session.stop("ended by SIGINT")
    assert session.state == "fault" and session.reason == "ended by SIGINT; the arm may still move"
