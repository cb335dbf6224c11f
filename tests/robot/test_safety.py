"""Nothing leaves the safety filter outside a limit, and nothing inside is changed: judged by other code.

Long, because all ask one filter, clause by clause.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from safety_oracle import (
    ALL_TO_ONE_SIDE,
    ARM,
    CLEARANCE,
    CONFIG,
    HIGH,
    HOME,
    INERTIA,
    LIMITS,
    LOW,
    NOTHING,
    SPEED,
    TASK,
    D,
    K,
    dh_flange,
    dh_plate,
    filtered,
)

from dris.robot.boundary import Boundary
from dris.robot.safety import filter_reference, outside
from dris.robot.safety_config import SafetyConfig
from dris.robot.safety_limits import Measured


def test_the_arm_is_the_published_one():
    """Places of the filter's own arm, by Franka's table."""
    for q in np.random.default_rng(0).uniform(LOW, HIGH, (50, 7)):
        top, corners = dh_plate(q)
        np.testing.assert_allclose(CLEARANCE.plate(q), top, atol=1e-9)
        assert CLEARANCE.lowest() <= corners[:, 2].min() + 1e-9
    np.testing.assert_allclose(LIMITS.low, LOW)
    np.testing.assert_allclose(LIMITS.high, HIGH)


def test_what_is_inside_goes_through_unchanged():
    wished = HOME + 0.002
    found = filtered(wished)
    assert found.verdict == "go" and found.clauses == () and found.beyond == ()
    assert (found.reference == wished).all()


@pytest.mark.parametrize(
    ("clause", "arguments"),
    [
        ("not finite", {"wished": HOME * np.nan}),
        ("stale", {"wished": HOME, "age_s": 0.1}),
        # Far: the elbow may lead by 0.9 x 2.62 rad/s x 14 / 120 s = 0.275 rad.
        ("speed", {"wished": HOME + np.eye(7)[3] * 0.6, "last": HOME + np.eye(7)[3] * 0.275}),
        # Joint 6 at 4 rad/s of 4.18 must brake: K e <= D dq + D (0.9 x 4.18 - 4), e <= 0.564 rad.
        ("speed", {"wished": HOME + np.eye(7)[5] * 0.57, "last": HOME + np.eye(7)[5] * 0.564, "dq": np.eye(7)[5] * 4.0}),
        # Joint 3 is too fast, and joint 1 would drive it on.
        ("coupling", {"wished": HOME - np.eye(7)[0] * 0.005, "dq": np.eye(7)[2] * 2.6, "torque": NOTHING,
                      "inertia": ARM.mass_matrix(HOME)}),
        # Joint 7 moves at -3 rad/s: D dq = -15 Nm, so K e <= 0.9 x 12 - 15 = -4.2 Nm, e <= -0.105 rad.
        ("torque", {"wished": HOME, "last": HOME - np.eye(7)[6] * 0.105, "dq": np.eye(7)[6] * -3.0}),
        # Gravity takes 4 of joint 6's 12 Nm: of 0.9 x 12 Nm, 6.8 are left for K e, e <= 0.34 rad.
        ("torque", {"wished": HOME + np.eye(7)[5] * 0.4, "last": HOME + np.eye(7)[5] * 0.34, "bias": np.eye(7)[5] * 4.0}),
        ("position", {"wished": np.where(np.arange(7) == 6, 3.0159, HOME), "q": np.where(np.arange(7) == 6, 2.99, HOME),
                      "last": np.where(np.arange(7) == 6, 2.99, HOME)}),
        # 0.95 Nm a millisecond: 0.95 / 120 = 7.9 mrad of joint 1.
        ("torque rate", {"wished": HOME + np.eye(7)[0] * 0.009}),
        # Joints at their limits, all to one side: 5.5 m/s at the plate.
        ("plate speed", {"wished": HOME + 0.4 * ALL_TO_ONE_SIDE, "last": HOME + 0.4 * ALL_TO_ONE_SIDE, "torque": NOTHING}),
    ],
)  # fmt: skip
def test_each_clause_is_named(clause, arguments):
    found = filtered(**arguments)
    assert clause in found.clauses, found


def test_how_much_is_cut_by_hand():
    elbow = np.eye(7)[3]
    at_once = replace(CONFIG, torque_rate=1e9)  # torques are taken back at once: only present speeds count
    found = filtered(HOME + 0.3 * elbow, last=HOME + 0.27 * elbow, config=at_once)
    assert found.reference[3] - HOME[3] == pytest.approx(0.9 * 2.62 * 14 / 120) and found.clauses == (
        "speed",
    )
    # By the torque rate, from where it was: 0.95 Nm over 120 Nm/rad.
    found = filtered(HOME + 0.2 * np.eye(7)[0])
    assert found.reference[0] - HOME[0] == pytest.approx(0.95 / 120) and found.clauses == ("torque rate",)
    # By the torque that gravity leaves joint 6: 0.9 x 12 - 4 Nm over 20 Nm/rad.
    wrist = np.eye(7)[5]
    found = filtered(HOME + 0.4 * wrist, last=HOME + 0.34 * wrist, bias=4.0 * wrist)
    assert found.reference[5] - HOME[5] == pytest.approx(6.8 / 20) and found.clauses == ("torque",)
    # A loop that slept for a second gets no more than 5 ms for it.
    found = filtered(HOME + 0.2 * np.eye(7)[0], dt_s=1.0)
    assert found.reference[0] - HOME[0] == pytest.approx(5 * 0.95 / 120)


def test_a_torque_that_cannot_be_taken_back_in_time_counts_as_speed():
    """Joint 1, 1 kg m2, at 2 rad/s under 20 Nm: it will be at 2 + 20^2 / (2 x 700) = 2.286 of 0.9 x 2.62 rad/s."""
    joint, moves = np.eye(7)[0], {"q": HOME, "dq": 2.0 * np.eye(7)[0], "inertia": np.eye(7)}
    last = HOME + (20 + 15 * 2.0) / 120 * joint
    found = filtered(last + 0.1 * joint, last=last, torque=20 * joint, **moves)
    push = 120 * (found.reference[0] - HOME[0]) - 15 * 2.0
    assert push == pytest.approx(20 - 0.95) and found.clauses == (
        "speed",
        "torque rate",
    )  # as fast as it may be
    assert found.beyond == ("speed",)
    # Under 1 Nm it still has D (0.9 x 2.62 - 2.0007) = 5.36 Nm, of which a tick gives 0.95.
    last = HOME + (1 + 15 * 2.0) / 120 * joint
    found = filtered(last + 0.1 * joint, last=last, torque=joint, **moves)
    assert 120 * (found.reference[0] - HOME[0]) - 30 == pytest.approx(1.95) and "speed" not in found.beyond


def test_a_joint_drives_no_other_that_is_too_fast():
    """Joint 3 at 2.6 of 0.9 x 2.62 rad/s: joint 1, whose push to one side drives it on, may only push to the other."""
    inertia = ARM.mass_matrix(HOME)
    side = np.sign(np.linalg.inv(inertia)[2, 0])  # of joint 1 that drives joint 3 up
    assert side == -1
    dq, joint = 2.6 * np.eye(7)[2], np.eye(7)[0]
    on = filtered(HOME + 0.005 * side * joint, dq=dq, inertia=inertia, torque=NOTHING)
    assert "coupling" in on.clauses and on.reference[0] == HOME[0]
    back = filtered(HOME - 0.005 * side * joint, dq=dq, inertia=inertia, torque=NOTHING)
    assert back.reference[0] == HOME[0] - 0.005 * side


def test_a_strong_joint_drives_no_weak_one_that_is_too_fast_though_a_newton_metre_of_it_moves_it_little():
    """Joint 1, of 87 Nm, moves joint 6 by 0.046 of what joint 6 does itself for each Nm, and by a third of it in all."""
    q = np.array([0.573, -1.2, -0.05, -2.45, 0.5, 0.794, 1.2])
    inertia = ARM.mass_matrix(q)
    per_torque = np.linalg.inv(inertia)
    assert abs(per_torque[5, 0]) < 0.05 * per_torque[5, 5]
    side = np.sign(per_torque[5, 0])  # of joint 1 that drives joint 6 up
    dq, joint = -1.2 * np.eye(7)[5], np.eye(7)[0]  # near the end of its range it may go no faster than 1.17
    on = filtered(q - 0.005 * side * joint, q=q, dq=dq, inertia=inertia, torque=NOTHING)
    assert "coupling" in on.clauses and on.reference[0] == q[0]
    back = filtered(q + 0.005 * side * joint, q=q, dq=dq, inertia=inertia, torque=NOTHING)
    assert back.reference[0] == q[0] + 0.005 * side


def test_a_hold_brakes_in_time_too():
    """The last reference counts in place of a wish that is none, and goes through the other clauses."""
    joint = np.eye(7)[0]
    moving = {"dq": 2.5 * joint, "last": HOME + 0.3 * joint, "torque": (120 * 0.3 - 15 * 2.5) * joint}
    found = filtered(np.full(7, math.nan), **moving)
    assert found.verdict == "hold" and found.clauses == ("not finite", "speed")
    assert 120 * (found.reference[0] - HOME[0]) - 15 * 2.5 == pytest.approx(15 * (0.9 * 2.62 - 2.5))


@pytest.mark.parametrize(
    "wished",
    [
        np.array(["far"] * 7),
        np.array([None] * 7),
        np.array([{}] * 7, object),
        np.array([10**400] * 7, object),
        [],
    ],
)
def test_a_wish_of_anything_else_than_numbers_holds(wished):
    """It raised a TypeError in the middle of a tick."""
    found = filtered(wished)
    assert (found.verdict, found.clauses) == ("hold", ("not finite",)) and (found.reference == HOME).all()
    assert filtered(np.array((HOME + 0.002).tolist(), dtype=object)).verdict == "go"  # numbers all the same


@pytest.mark.parametrize(
    "inertia", [-INERTIA, 0 * INERTIA, INERTIA - 100 * np.eye(7)[[0]].T @ np.eye(7)[[0]]]
)
def test_an_inertia_of_no_arm_stops(inertia):
    """A mass below zero went through: only one that cannot be inverted was refused."""
    found = filtered(HOME + 0.002, inertia=inertia)
    assert (found.verdict, found.clauses) == ("stop", ("not finite",))


@pytest.mark.parametrize("dt_s", [math.inf, math.nan, 0.0, -1.0])
def test_a_tick_without_end_stops(dt_s):
    found = filtered(HOME + 0.002, dt_s=dt_s)
    assert (found.verdict, found.clauses) == ("stop", ("not finite",))


def test_a_reference_may_go_with_a_moving_arm():
    """Joint 1 at 1.5 rad/s: the same torque needs 1.5 mrad a tick, and 0.95 Nm more 0.95 / 120 rad besides."""
    joint = np.eye(7)[0]
    torque = (120 * (0.25 - 0.0) - 15 * 1.5) * joint  # 7.5 Nm, asked for where the arm was a tick ago
    wished, last, q = HOME + 0.2515 * joint, HOME + 0.25 * joint, HOME + 0.0015 * joint
    found = filtered(wished, q=q, dq=1.5 * joint, last=last, torque=torque)
    assert found.clauses == () and (found.reference == wished).all()
    more = filtered(wished + 0.05 * joint, q=q, dq=1.5 * joint, last=last, torque=torque)
    assert "torque rate" in more.clauses
    assert more.reference[0] - HOME[0] == pytest.approx(0.2515 + 0.95 / 120)
    # Coriolis torques that grow by 0.5 Nm leave 0.45 of them.
    bent = {"q": q, "dq": 1.5 * joint, "last": last, "torque": torque, "bias": 0.5 * joint}
    assert filtered(wished + 0.05 * joint, **bent).reference[0] - HOME[0] == pytest.approx(
        0.2515 + 0.45 / 120
    )


def test_a_reference_does_not_jump_with_an_arm_that_is_said_to():
    """Joints that jump by 0.5 rad: the reference moves by 2.62 mrad, 0.95 Nm and 150 rad/s2 of a tick."""
    joint = np.eye(7)[0]
    for dt_s, ticks in ((0.001, 1), (1.0, 5)):  # of a loop that slept, no more than 5 ms count
        found = filtered(HOME + 0.5 * joint, q=HOME + 0.5 * joint, last=HOME, torque=NOTHING, dt_s=dt_s)
        assert found.clauses == ("jump",) and found.beyond == ("speed", "torque rate")
        most = ticks * 1e-3 * (2.62 + (950 + 15 * 150) / 120)
        assert found.reference[0] - HOME[0] == pytest.approx(most)


def test_an_arm_at_the_end_of_a_joint_comes_in_at_the_torque_rate():
    """2 mrad from the end, where 20 are asked for: 0.95 Nm a tick, not 18 mrad at once."""
    q = np.where(np.arange(7) == 0, HIGH - 0.002, HOME)
    found = filtered(q, q=q)
    assert found.clauses == ("position",) and q[0] - found.reference[0] == pytest.approx(0.95 / 120)


def test_old_sights_hold_and_then_stop():
    assert filtered(HOME, age_s=0.074).verdict == "go"
    for age_s, verdict in (
        (0.076, "hold"),
        (0.249, "hold"),
        (0.251, "stop"),
        (math.nan, "stop"),
        (math.inf, "stop"),
    ):
        found = filtered(HOME + 0.001, age_s=age_s)
        assert found.verdict == verdict and found.clauses == ("stale",) and (found.reference == HOME).all()
    # What is stamped ahead of the robot's clock is not believed either.
    assert filtered(HOME, age_s=-0.001).verdict == "go" and filtered(HOME, age_s=-0.01).verdict == "hold"
    assert filtered(HOME, age_s=-1.0).verdict == "stop"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_an_arm_that_tells_nonsense_is_stopped(bad):
    assert filtered(HOME, q=np.where(np.arange(7) == 2, bad, HOME), last=HOME).verdict == "stop"
    assert filtered(HOME, dq=np.full(7, bad)).verdict == "stop"
    assert filtered(HOME, bias=np.full(7, bad)).verdict == "stop"
    assert filtered(HOME, torque=np.full(7, bad)).verdict == "stop"
    assert filtered(HOME, dt_s=bad if bad != math.inf else 0.0).verdict == "stop"
    assert filtered(HOME[:6]).verdict == "hold"


def walk_to(goal, steps=4000):
    """References on the way to a goal that the filter may refuse; the arm follows at once."""
    reference, clauses = HOME.copy(), set()
    for _ in range(steps):
        found = filtered(goal, q=reference, last=reference, dt_s=0.005)
        clauses |= set(found.clauses)
        if np.abs(found.reference - reference).max() < 1e-7:
            break
        reference = found.reference
    return reference, clauses


def test_the_plate_stays_in_its_workspace():
    reference, clauses = walk_to(HOME + np.array([2.0, 0, 0, 0, 0, 0, 0]))  # turns away to the side
    assert "workspace" in clauses
    offset = dh_plate(reference)[0] - dh_plate(HOME)[0]
    assert (offset <= np.array([0.45, 0.45, 0.30]) + 1e-6).all() and (
        offset >= np.array([-0.45, -0.45, -0.25]) - 1e-6
    ).all()
    assert np.abs(offset).max() > 0.3  # it went as far as it may, not just nowhere


def to_robot(q, box="plate", bodies=("link2", "link3", "link4", "link5")):
    """Distance from a body's first box to capsules of the arm, on a grid of points of that box."""
    CLEARANCE.plate(q)
    model, data = CLEARANCE._model, CLEARANCE._data
    of = model.geom_bodyid.tolist().index(model.body(box).id)
    at, axes = data.geom_xpos[of], data.geom_xmat[of].reshape(3, 3)
    grid = [np.linspace(-half, half, 25 if half > 0.02 else 3) for half in model.geom_size[of]]
    points = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 3) @ axes.T + at
    nearest = math.inf
    for body in bodies:
        for geom in range(model.ngeom):
            if model.geom_bodyid[geom] == model.body(body).id:
                middle, axis = data.geom_xpos[geom], data.geom_xmat[geom].reshape(3, 3)[:, 2]
                radius, half = model.geom_size[geom][:2]
                along = np.clip((points - middle) @ axis, -half, half)[:, None] * axis
                nearest = min(nearest, float(np.linalg.norm(points - middle - along, axis=1).min() - radius))
    return nearest


def test_the_plate_keeps_off_the_robot_and_the_table():
    wide = SafetyConfig(TASK.stiffness, TASK.damping, workspace_low=(-3, -3, -3), workspace_high=(3, 3, 3))
    for way, near in (
        (np.array([0, 0, 0, 0, 0, -1.0, -3.0]), "robot"),
        (np.array([0, 0.9, 0, 0, 0, 0, 0]), "table"),
    ):
        reference, clauses = HOME.copy(), set()
        for _ in range(3000):
            found = filtered(HOME + way, q=reference, last=reference, dt_s=0.005, config=wide)
            clauses |= set(found.clauses)
            reference = found.reference
        assert "keep-out" in clauses, near
        distance = to_robot(reference) if near == "robot" else dh_plate(reference)[1][:, 2].min()
        least = 0.02 if near == "robot" else 0.10
        assert least - 1e-6 <= distance <= least + 0.012, near  # as near as it may, not nearer


HAND_IN_SHOULDER = np.array(
    [0.21810283, -0.65298827, -2.16637486, -2.97649739, 0.94534431, 0.61613171, 0.67170066]
)
"""Plate and joints are inside all their limits here, and the hand is 27 mm inside the shoulder."""


def test_the_hand_keeps_off_the_robot_too():
    shoulder = ("link1",)
    assert to_robot(HAND_IN_SHOULDER, "hand", shoulder) == pytest.approx(-0.0269, abs=0.002)
    assert to_robot(HAND_IN_SHOULDER) > 0.02  # of the plate alone
    assert Boundary(CONFIG, CLEARANCE, HOME).broken(HAND_IN_SHOULDER, np.zeros(7)).startswith("keep-out")
    wide = replace(CONFIG, workspace_low=(-3, -3, -3), workspace_high=(3, 3, 3), table_height=-1.0)
    lifted = HAND_IN_SHOULDER + np.array([0, 0, 0, 0.8, 0, 0, 0])  # by the elbow
    assert to_robot(lifted, "hand", shoulder) > 0.05
    reference, clauses = lifted, set()
    for _ in range(2000):
        found = filtered(HAND_IN_SHOULDER, q=reference, last=reference, dt_s=0.005, config=wide)
        clauses |= set(found.clauses)
        reference = found.reference
    assert "keep-out" in clauses
    assert 0.02 - 1e-6 <= to_robot(reference, "hand", shoulder) <= 0.032


def test_an_arm_that_begins_outside_may_come_in_but_go_no_further_out():
    away = HOME + np.array([2.0, 0, 0, 0, 0, 0, 0])
    out = outside(CONFIG, CLEARANCE, away)["workspace"].max()
    assert out > 0.1
    back = filtered(HOME, q=away, last=away, dt_s=0.005)
    assert (
        outside(CONFIG, CLEARANCE, back.reference)["workspace"].max() < out
        and "workspace" not in back.clauses
    )
    on = filtered(away + 0.2, q=away, last=away, dt_s=0.005)
    assert outside(CONFIG, CLEARANCE, on.reference)["workspace"].max() <= out and "workspace" in on.clauses


def test_outside_by_one_face_does_not_let_out_by_another():
    """Far behind, the plate may not leave to the side as well, nor come nearer to the robot."""
    reference = HOME + np.array([2.0, 0, 0, 0, 0, 0, 0])
    began = dh_plate(reference)[0] - dh_plate(HOME)[0]
    near = to_robot(reference)
    rng = np.random.default_rng(5)
    for _ in range(300):
        found = filtered(reference + rng.normal(0, 0.5, 7), q=reference, last=reference, dt_s=0.005)
        reference = found.reference
        offset = dh_plate(reference)[0] - dh_plate(HOME)[0]
        for axis, (low, high) in enumerate(zip((-0.45, -0.45, -0.25), (0.45, 0.45, 0.30), strict=True)):
            assert min(low, began[axis]) - 1e-6 <= offset[axis] <= max(high, began[axis]) + 1e-6
        assert to_robot(reference) >= min(0.02, near) - 1e-6


def test_the_wrist_stays_above_the_table_too():
    """Hand and forearm by Franka's kinematics: the flange is a point of both."""
    wide = SafetyConfig(TASK.stiffness, TASK.damping, workspace_low=(-3, -3, -3), workspace_high=(3, 3, 3))
    rng = np.random.default_rng(6)
    reference = HOME.copy()
    for _ in range(60):
        goal = np.clip(HOME + rng.normal(0, 1.2, 7), LOW + 0.05, HIGH - 0.05)
        for _ in range(60):
            reference = filtered(goal, q=reference, last=reference, dt_s=0.005, config=wide).reference
            assert dh_flange(reference)[2, 3] >= 0.10 and dh_plate(reference)[1][:, 2].min() >= 0.10 - 1e-9


def test_limits_that_are_none_stop_the_arm():
    broken = replace(LIMITS, speed=np.where(np.arange(7) == 2, math.nan, LIMITS.speed))
    now = Measured(HOME, NOTHING, HOME, NOTHING, 0.001, NOTHING, INERTIA)
    found = filter_reference(CONFIG, broken, CLEARANCE, HOME + 0.001, now)
    assert found.verdict == "stop" and (found.reference == HOME).all()


def test_repeating_it_changes_nothing():
    """What the filter let through it lets through again from the same place."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        wished = HOME + rng.normal(0, 0.3, 7)
        first = filtered(wished)
        second = filtered(first.reference)
        np.testing.assert_allclose(second.reference, first.reference, atol=2e-7)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stiffness": (0.0,) * 7}, "stiffness needs a positive number"),
        ({"stiffness": (300.0,) * 6}, "stiffness needs a positive number for each of 7 joints"),
        ({"damping": (30.0,) * 8}, "damping needs a positive number for each of 7 joints"),
        ({"torque": (80.0,)}, "torque needs a positive number for each of 7 joints"),
        ({"table_height": math.nan}, "table_height must be a finite number of metres, got nan"),
        ({"workspace_overshoot": math.inf}, "must not be negative, and finite, got inf"),
        ({"torque_share": 1.5}, r"torque_share must lie in \(0, 1\], got 1.5"),
        ({"plate_speed": math.nan}, "plate_speed must be positive"),
        ({"hold_age_s": 0.3}, "hold_age_s must be below stop_age_s"),
        ({"workspace_low": (0.5, 0, 0)}, "workspace_low must lie below"),
        ({"clearance": -0.1}, "must not be negative"),
        ({"acceleration": -1.0}, "acceleration must be positive"),
        ({"acceleration": math.inf}, "acceleration must be positive"),
    ],
)
def test_limits_that_limit_nothing_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        SafetyConfig(**{"stiffness": TASK.stiffness, "damping": TASK.damping, **change})


def test_a_fast_plate_is_slowed_to_its_limit():
    """All the way as the law would drive it in the end: joints at K e / D, none beyond its own limit."""
    wished = HOME + 0.4 * ALL_TO_ONE_SIDE
    slowed = filtered(wished, last=HOME + 0.2 * ALL_TO_ONE_SIDE, dt_s=0.005)
    assert "plate speed" in slowed.clauses
    at_once = SafetyConfig(TASK.stiffness, TASK.damping, torque_rate=1e9)  # nothing else in the way
    found = filtered(wished, config=at_once)
    step, speed = 1e-6, np.clip(K * (found.reference - HOME) / D, -SPEED, SPEED)
    fastest = np.linalg.norm(dh_plate(HOME + step * speed)[0] - dh_plate(HOME)[0]) / step
    corners = (dh_plate(HOME + step * speed)[1] - dh_plate(HOME)[1]) / step
    assert max(fastest, np.linalg.norm(corners, axis=1).max()) == pytest.approx(2.5, abs=0.02)


def test_shapes_that_are_left_out_are_never_the_nearest():
    """Bounding spheres: the distance is that to all shapes, wherever it counts."""
    near = 0
    for q in np.random.default_rng(1).uniform(LOW, HIGH, (500, 7)):
        CLEARANCE.plate(q)
        everything = CLEARANCE.to_robot(10.0)
        for within in (0.02, 0.3):
            assert CLEARANCE.to_robot(within) == everything or min(
                CLEARANCE.to_robot(within), everything
            ) >= min(within, 0.5)
        near += everything < 0.02
    assert near > 20


def test_the_fastest_corner_is_that_of_two_places_a_moment_apart():
    for q in np.random.default_rng(2).uniform(LOW, HIGH, (20, 7)):
        speeds = np.random.default_rng(3).uniform(-2, 2, 7)
        found = CLEARANCE.velocity_maps(q).fastest(speeds)
        places = []
        for at in (q - 1e-6 * speeds, q + 1e-6 * speeds):
            _, corners = dh_plate(at)
            places.append(np.vstack((corners[1::2], dh_flange(at)[:3, 3])))  # of the top face
        by_hand = np.linalg.norm(places[1] - places[0], axis=1).max() / 2e-6
        assert found == pytest.approx(by_hand, rel=1e-5)
