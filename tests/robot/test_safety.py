"""Nothing leaves the safety filter outside a limit, and nothing inside is changed: judged by other code.

Long, because all share one oracle.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dris.catching.kinematics import Kinematics
from dris.catching.settings import PRESETS
from dris.robot.clearance import Clearance
from dris.robot.safety import (
    Measured,
    SafetyConfig,
    filter_reference,
    outside,
    within_hard,
    within_soft,
)

TASK = PRESETS["released"]
HOME = np.array(TASK.home)
ARM = Kinematics(TASK.home, TASK.mount)
LIMITS = ARM.limits
CLEARANCE = Clearance(HOME, TASK.mount)
CONFIG = SafetyConfig(TASK.stiffness, TASK.damping)
K, D = np.array(TASK.stiffness), np.array(TASK.damping)

# Published by Franka for FCI, written down again.
LOW = np.array([-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159])
HIGH = np.array([2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159])
SPEED = np.array([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
OFFSET = np.array([0.6599, 0.2517, 0.2, 0.3533, 0.5757, 0.4878, 0.4628])
DECELERATION = np.array([6.0, 2.585, 3.5, 4.0, 17.0, 5.5, 17.0])
ALL_TO_ONE_SIDE = np.array([-1, 1, -1, -1, -1, -1, 1])
TORQUE = np.array([87.0] * 4 + [12.0] * 3)


def run(wished, q=HOME, dq=None, last=None, dt_s=0.001, age_s=0.0, config=CONFIG):
    now = Measured(
        np.array(q), np.zeros(7) if dq is None else np.array(dq), q if last is None else last, dt_s, age_s
    )
    return filter_reference(config, LIMITS, CLEARANCE, np.asarray(wished), now)


# An oracle of its own: Franka's kinematics by Denavit and Hartenberg, limits joint by joint in plain Python.
DH = [(0, 0.333, 0), (0, 0, -math.pi / 2), (0, 0.316, math.pi / 2), (0.0825, 0, math.pi / 2),
      (-0.0825, 0.384, -math.pi / 2), (0, 0, math.pi / 2), (0.088, 0, math.pi / 2)]  # fmt: skip


def dh_flange(q):
    pose = np.eye(4)
    for (a, d, alpha), theta in zip(DH, q, strict=True):
        ca, sa, ct, st_ = math.cos(alpha), math.sin(alpha), math.cos(theta), math.sin(theta)
        pose = pose @ np.array(
            [
                [ct, -st_, 0, a],
                [st_ * ca, ct * ca, -sa, -d * sa],
                [st_ * sa, ct * sa, ca, d * ca],
                [0, 0, 0, 1],
            ]
        )
    return pose @ np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.107], [0, 0, 0, 1]])


def dh_plate(q):
    """Centre of the plate's top face, and its corners: mounted by hand, see test_export."""
    flange = dh_flange(q)
    c = math.sqrt(0.5)
    hand = flange[:3, :3] @ np.array([[c, c, 0], [-c, c, 0], [0, 0, 1]])  # turned by -45 degrees
    middle = flange[:3, 3] + hand @ np.array([0.13, 0, 0.1034])
    axes = hand @ np.diag([1.0, -1.0, -1.0])  # turned by pi about x
    corners = [
        middle + axes @ np.array([sx * 0.12, sy * 0.12, sz * 0.005])
        for sx, sy, sz in itertools.product((-1, 1), repeat=3)
    ]
    return middle + axes @ np.array([0, 0, 0.005]), np.array(corners)


def allowed_speeds(j, q):
    def towards(distance):
        return min(SPEED[j], max(0.0, math.sqrt(2 * DECELERATION[j] * max(distance, 0.0)) - OFFSET[j]))

    return towards(q - LOW[j]), towards(HIGH[j] - q)


def breaks_soft(j, reference, q, dq):
    """Which of a joint's soft limits a reference breaks, by hand."""
    down, up = allowed_speeds(j, q)
    error, found = reference - q, set()
    if not -1.6 * down * D[j] / K[j] - 1e-9 <= error <= 1.6 * up * D[j] / K[j] + 1e-9:
        found.add("speed")
    if abs(K[j] * error - D[j] * dq) > 0.9 * TORQUE[j] + 1e-6:
        found.add("torque")
    if (dq > 0.95 * up and K[j] * error > D[j] * dq + 1e-9) or (
        -dq > 0.95 * down and K[j] * error < D[j] * dq - 1e-9
    ):
        found.add("too fast")
    return found


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
    found = run(wished)
    assert found.verdict == "go" and found.clauses == () and found.beyond == ()
    assert (found.reference == wished).all()


@pytest.mark.parametrize(
    ("clause", "arguments"),
    [
        ("not finite", {"wished": HOME * np.nan}),
        ("stale", {"wished": HOME, "age_s": 0.1}),
        # Far: the elbow may lead by 1.6 x 2.62 rad/s x 14 / 120 s = 0.489 rad.
        ("speed", {"wished": HOME + np.eye(7)[3] * 0.6, "last": HOME + np.eye(7)[3] * 0.489}),
        # Joint 6 at 4 rad/s of 4.18 must not be pushed: K e <= D dq, e <= 0.6 rad.
        ("too fast", {"wished": HOME + np.eye(7)[5] * 0.8, "last": HOME + np.eye(7)[5] * 0.6, "dq": np.eye(7)[5] * 4.0}),
        # Joint 7 moves at -3 rad/s: D dq = -15 Nm, so K e <= 0.9 x 12 - 15 = -4.2 Nm, e <= -0.105 rad.
        ("torque", {"wished": HOME, "last": HOME - np.eye(7)[6] * 0.105, "dq": np.eye(7)[6] * -3.0}),
        ("position", {"wished": np.where(np.arange(7) == 6, 3.0159, HOME), "q": np.where(np.arange(7) == 6, 2.99, HOME),
                      "last": np.where(np.arange(7) == 6, 2.99, HOME)}),
        # 0.95 Nm a millisecond: 0.95 / 120 = 7.9 mrad of joint 1.
        ("torque rate", {"wished": HOME + np.eye(7)[0] * 0.009}),
        # Joints at their limits, all to one side: 5.5 m/s at the plate.
        ("plate speed", {"wished": HOME + 0.4 * ALL_TO_ONE_SIDE, "last": HOME + 0.4 * ALL_TO_ONE_SIDE}),
    ],
)  # fmt: skip
def test_each_clause_is_named(clause, arguments):
    found = run(**arguments)
    assert clause in found.clauses, found


def test_how_much_is_cut_by_hand():
    elbow = np.eye(7)[3]
    found = run(HOME + 0.6 * elbow, last=HOME + 0.485 * elbow)
    assert found.reference[3] - HOME[3] == pytest.approx(1.6 * 2.62 * 14 / 120)
    # By the torque rate, from where it was: 0.95 Nm over 120 Nm/rad.
    found = run(HOME + 0.2 * np.eye(7)[0])
    assert found.reference[0] - HOME[0] == pytest.approx(0.95 / 120) and found.clauses == ("torque rate",)
    # A loop that slept for a second gets no more than 5 ms for it.
    found = run(HOME + 0.2 * np.eye(7)[0], dt_s=1.0)
    assert found.reference[0] - HOME[0] == pytest.approx(5 * 0.95 / 120)


def test_old_sights_hold_and_then_stop():
    assert run(HOME, age_s=0.074).verdict == "go"
    for age_s, verdict in (
        (0.076, "hold"),
        (0.249, "hold"),
        (0.251, "stop"),
        (math.nan, "stop"),
        (math.inf, "stop"),
    ):
        found = run(HOME + 0.001, age_s=age_s)
        assert found.verdict == verdict and found.clauses == ("stale",) and (found.reference == HOME).all()
    # What is stamped ahead of the robot's clock is not believed either.
    assert run(HOME, age_s=-0.001).verdict == "go" and run(HOME, age_s=-0.01).verdict == "hold"
    assert run(HOME, age_s=-1.0).verdict == "stop"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_an_arm_that_tells_nonsense_is_stopped(bad):
    assert run(HOME, q=np.where(np.arange(7) == 2, bad, HOME), last=HOME).verdict == "stop"
    assert run(HOME, dq=np.full(7, bad)).verdict == "stop"
    assert run(HOME, dt_s=bad if bad != math.inf else 0.0).verdict == "stop"
    assert run(HOME[:6]).verdict == "hold"


def walk_to(goal, steps=4000):
    """References on the way to a goal that the filter may refuse; the arm follows at once."""
    reference, clauses = HOME.copy(), set()
    for _ in range(steps):
        found = run(goal, q=reference, last=reference, dt_s=0.005)
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


def to_robot(q):
    """Distance from plate to the capsules of the arm, on a grid of points of the plate."""
    CLEARANCE.plate(q)
    model, data = CLEARANCE._model, CLEARANCE._data
    at, axes = data.geom_xpos[CLEARANCE._plate], data.geom_xmat[CLEARANCE._plate].reshape(3, 3)
    side = np.linspace(-0.12, 0.12, 25)
    points = np.array([[x, y, z] for x in side for y in side for z in (-0.005, 0.005)]) @ axes.T + at
    nearest = math.inf
    for body in ("link2", "link3", "link4", "link5"):
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
            found = run(HOME + way, q=reference, last=reference, dt_s=0.005, config=wide)
            clauses |= set(found.clauses)
            reference = found.reference
        assert "keep-out" in clauses, near
        distance = to_robot(reference) if near == "robot" else dh_plate(reference)[1][:, 2].min()
        least = 0.02 if near == "robot" else 0.10
        assert least - 1e-6 <= distance <= least + 0.012, near  # as near as it may, not nearer


def test_an_arm_that_begins_outside_may_come_in_but_go_no_further_out():
    away = HOME + np.array([2.0, 0, 0, 0, 0, 0, 0])
    out = outside(CONFIG, CLEARANCE, away)["workspace"].max()
    assert out > 0.1
    back = run(HOME, q=away, last=away, dt_s=0.005)
    assert (
        outside(CONFIG, CLEARANCE, back.reference)["workspace"].max() < out
        and "workspace" not in back.clauses
    )
    on = run(away + 0.2, q=away, last=away, dt_s=0.005)
    assert outside(CONFIG, CLEARANCE, on.reference)["workspace"].max() <= out and "workspace" in on.clauses


def test_outside_by_one_face_does_not_let_out_by_another():
    """Far behind, the plate may not leave to the side as well, nor come nearer to the robot."""
    reference = HOME + np.array([2.0, 0, 0, 0, 0, 0, 0])
    began = dh_plate(reference)[0] - dh_plate(HOME)[0]
    near = to_robot(reference)
    rng = np.random.default_rng(5)
    for _ in range(300):
        found = run(reference + rng.normal(0, 0.5, 7), q=reference, last=reference, dt_s=0.005)
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
            reference = run(goal, q=reference, last=reference, dt_s=0.005, config=wide).reference
            assert dh_flange(reference)[2, 3] >= 0.10 and dh_plate(reference)[1][:, 2].min() >= 0.10 - 1e-9


def test_limits_that_are_none_stop_the_arm():
    from dataclasses import replace

    broken = replace(LIMITS, speed=np.where(np.arange(7) == 2, math.nan, LIMITS.speed))
    now = Measured(HOME, np.zeros(7), HOME, 0.001)
    found = filter_reference(CONFIG, broken, CLEARANCE, HOME + 0.001, now)
    assert found.verdict == "stop" and (found.reference == HOME).all()


def adversarial(count, seed):
    """Wishes, joints, speeds and last references: near limits, beyond them, huge, and ordinary."""
    rng = np.random.default_rng(seed)
    inside_low, inside_high = LOW + 0.02, HIGH - 0.02
    q = rng.uniform(LOW - 0.02, HIGH + 0.02, (count, 7))
    edge = rng.random((count, 7)) < 0.3
    q = np.where(edge, np.where(rng.random((count, 7)) < 0.5, LOW, HIGH) + rng.normal(0, 0.02, (count, 7)), q)
    dq = rng.normal(0, 1, (count, 7)) * SPEED * rng.choice([0.0, 0.3, 1.0, 3.0], (count, 1))
    last = np.clip(q + rng.normal(0, 0.2, (count, 7)), inside_low, inside_high)
    size = rng.choice([1e-6, 1e-3, 0.1, 1.0, 1e3, 1e300], (count, 1))
    return last + size * rng.uniform(-1, 1, (count, 7)), q, dq, last


def check_joint_limits(count, seed):
    """Vectorised: the joints' own limits for many inputs at once, against plain formulas."""
    wished, q, dq, last = adversarial(count, seed)
    now = Measured(q, dq, last, 0.001)
    soft, fired = within_soft(CONFIG, LIMITS, wished, now)
    found, hard = within_hard(CONFIG, LIMITS, soft, now)
    # Hard limits hold for every one.
    assert (found >= LOW + 0.02 - 1e-9).all() and (found <= HIGH - 0.02 + 1e-9).all()
    assert (K * np.abs(found - last) <= 0.95 + 1e-9).all()
    # Soft ones hold before the hard ones cut.
    distance = np.stack((q - LOW, HIGH - q)).clip(0)
    down, up = np.minimum(SPEED, (np.sqrt(2 * DECELERATION * distance) - OFFSET).clip(0))
    error = soft - q
    assert (np.abs(K * error - D * dq) <= 0.9 * TORQUE + 1e-6).all()
    lead = 1.6 * D / K
    pushed = (dq > 0.95 * up) & (K * error > D * dq + 1e-7) & (dq > 0)
    braked = np.abs(K * error - D * dq) >= 0.9 * TORQUE - 1e-6  # torque has the last word
    assert (~pushed | braked).all()
    fast = (error > lead * up + 1e-9) | (error < -lead * down - 1e-9)
    assert (~fast | braked | (dq * error > 0)).all()
    # What was changed is named, and what was not is the same bits.
    changed = (found != wished).any(axis=1)
    named = np.any([*fired.values(), *hard.values()], axis=0)
    assert (changed == named).all()
    assert 0.001 < (~changed).mean() < 0.999  # both kinds are among them
    return count


def test_a_million_adversarial_inputs_leave_no_joint_outside_its_limits():
    assert sum(check_joint_limits(100_000, seed) for seed in range(10)) == 1_000_000


number = st.one_of(
    st.floats(-4, 4),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1e-300, 1e300]),
)
joints = st.lists(st.floats(0, 1), min_size=7, max_size=7).map(
    lambda x: LOW + 0.021 + np.array(x) * (HIGH - LOW - 0.042)
)


@settings(max_examples=150, deadline=None)
@given(
    q=joints,
    dq=st.lists(st.floats(-6, 6), min_size=7, max_size=7).map(np.array),
    wishes=st.lists(st.lists(number, min_size=7, max_size=7), min_size=1, max_size=8),
    ages=st.lists(st.one_of(st.floats(0, 0.4), st.just(math.nan)), min_size=8, max_size=8),
)
def test_sequences_of_anything_keep_the_hard_limits(q, dq, wishes, ages):
    last = q
    before = outside(CONFIG, CLEARANCE, last)
    for wished, age_s in zip(wishes, ages, strict=False):
        found = run(np.array(wished), q=q, dq=dq, last=last, age_s=age_s)
        reference = found.reference
        assert np.isfinite(reference).all()
        assert (reference >= LOW + 0.02 - 1e-9).all() and (reference <= HIGH - 0.02 + 1e-9).all()
        assert (K * np.abs(reference - last) <= 0.95 + 1e-9).all()
        after = outside(CONFIG, CLEARANCE, reference)
        assert all((after[clause] <= before[clause] + 1e-9).all() for clause in after)
        broken = {clause for j in range(7) for clause in breaks_soft(j, reference[j], q[j], dq[j])}
        if found.verdict == "go":
            assert broken <= set(found.beyond)  # what is not kept is said
            same = (reference == np.array(wished)).all()
            assert same == (not found.clauses)
        else:
            assert (reference == last).all() and found.clauses
        again = run(np.array(wished), q=q, dq=dq, last=last, age_s=age_s)
        assert (again.reference == reference).all() and again.clauses == found.clauses  # pure
        last, before = reference, after


def test_repeating_it_changes_nothing():
    """What the filter let through it lets through again from the same place."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        wished = HOME + rng.normal(0, 0.3, 7)
        first = run(wished)
        second = run(first.reference)
        np.testing.assert_allclose(second.reference, first.reference, atol=2e-7)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stiffness": (0.0,) * 7}, "stiffness needs a positive number"),
        ({"torque_share": 1.5}, r"torque_share must lie in \(0, 1\], got 1.5"),
        ({"plate_speed": math.nan}, "plate_speed must be positive"),
        ({"hold_age_s": 0.3}, "hold_age_s must be below stop_age_s"),
        ({"workspace_low": (0.5, 0, 0)}, "workspace_low must lie below"),
        ({"clearance": -0.1}, "must not be negative"),
    ],
)
def test_limits_that_limit_nothing_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        SafetyConfig(**{"stiffness": TASK.stiffness, "damping": TASK.damping, **change})


def test_a_fast_plate_is_slowed_to_its_limit():
    """All the way as the law would drive it in the end: joints at K e / D, none beyond its own limit."""
    wished = HOME + 0.4 * ALL_TO_ONE_SIDE
    slowed = run(wished, last=HOME + 0.2 * ALL_TO_ONE_SIDE, dt_s=0.005)
    assert "plate speed" in slowed.clauses
    at_once = SafetyConfig(TASK.stiffness, TASK.damping, torque_rate=1e9)  # nothing else in the way
    found = run(wished, config=at_once)
    step, speed = 1e-6, np.clip(K * (found.reference - HOME) / D, -SPEED, SPEED)
    fastest = np.linalg.norm(dh_plate(HOME + step * speed)[0] - dh_plate(HOME)[0]) / step
    corners = (dh_plate(HOME + step * speed)[1] - dh_plate(HOME)[1]) / step
    assert max(fastest, np.linalg.norm(corners, axis=1).max()) == pytest.approx(2.5, abs=0.02)
