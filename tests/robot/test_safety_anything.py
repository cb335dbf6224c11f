"""Whatever is asked of the safety filter, nothing leaves it outside a limit: judged by other code."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from safety_oracle import (
    ARM,
    CLEARANCE,
    CONFIG,
    DECELERATION,
    HIGH,
    LIMITS,
    LOW,
    OFFSET,
    REACTION,
    SPEED,
    TORQUE,
    D,
    K,
    breaks_soft,
    filtered,
)

from dris.robot.safety import SPEEDS, outside
from dris.robot.safety_limits import Measured, joint_bounds, rate_bounds, within_hard


def adversarial(count, seed):
    """Wishes, joints, speeds, last references and torques of gravity: near limits, beyond them, huge, and ordinary."""
    rng = np.random.default_rng(seed)
    inside_low, inside_high = LOW + 0.02, HIGH - 0.02
    q = rng.uniform(LOW - 0.02, HIGH + 0.02, (count, 7))
    edge = rng.random((count, 7)) < 0.3
    q = np.where(edge, np.where(rng.random((count, 7)) < 0.5, LOW, HIGH) + rng.normal(0, 0.02, (count, 7)), q)
    dq = rng.normal(0, 1, (count, 7)) * SPEED * rng.choice([0.0, 0.3, 1.0, 3.0], (count, 1))
    last = np.clip(q + rng.normal(0, 0.2, (count, 7)), inside_low, inside_high)
    size = rng.choice([1e-6, 1e-3, 0.1, 1.0, 1e3, 1e300], (count, 1))
    bias = rng.normal(0, 0.2, (count, 7)) * TORQUE * rng.choice([0.0, 1.0], (count, 1))
    # Where the arm was a tick ago: there, or, now and then, anywhere.
    before = q - 1e-3 * dq + rng.normal(0, 0.1, (count, 7)) * (rng.random((count, 1)) < 0.1)
    faster = dq + 0.03 * rng.normal(0, 1, (count, 7))
    torque = K * (last - before) - D * faster + bias
    some = np.array([ARM.mass_matrix(rng.uniform(LOW, HIGH)) for _ in range(100)])
    inertia = some[rng.integers(len(some), size=count)]
    return last + size * rng.uniform(-1, 1, (count, 7)), q, dq, last, torque, bias, inertia


def check_joint_limits(count, seed):
    """Vectorised: the joints' own limits for many inputs at once, against plain formulas."""
    wished, q, dq, last, torque, bias, inertia = adversarial(count, seed)
    now = Measured(q, dq, last, torque, 0.001, bias, inertia)
    every, soft, slow, fired = joint_bounds(CONFIG, LIMITS, now), wished, wished, []
    for clause in (*SPEEDS, "torque"):  # as the filter cuts, one after the other
        before, soft = soft, every[clause].cut(soft)
        fired.append((soft != before).any(axis=1))
        slow = soft if clause in SPEEDS else slow
    rated = rate_bounds(CONFIG, now).cut(soft)
    found, hard = within_hard(CONFIG, LIMITS, rated, now)
    # Hard limits hold for every one: 0.95 Nm more, and no faster than joints are and become.
    assert (found >= LOW + 0.02 - 1e-9).all() and (found <= HIGH - 0.02 + 1e-9).all()
    assert (K * np.abs(found - last) <= 0.95 + 1e-3 * (K * SPEED + D * 150) + 1e-9).all()
    # Torques change by no more than 0.95 Nm, but where that leaves a range or jumps.
    changes = np.abs(K * (found - q) - D * dq + bias - torque)
    assert (np.abs(K * (rated - q) - D * dq + bias - torque) <= 0.95 + 1e-6).all()
    assert ((changes <= 0.95 + 1e-6) | (found != rated)).all() and (found == rated).mean() > 0.2
    # Soft ones hold before the hard ones cut, and torque has the last word of them.
    end = dq + np.linalg.solve(inertia, ((torque - bias) * np.abs(torque - bias))[..., None])[..., 0] / 1400
    fast, reaction = (
        np.stack((-np.minimum(dq, end), np.maximum(dq, end))),
        np.diagonal(inertia, axis1=1, axis2=2),
    )
    ahead = np.maximum(REACTION, 1.2 * reaction / D) * fast
    distance = (np.stack((q - LOW, HIGH - q)) - ahead).clip(0)
    room = 0.9 * np.minimum(SPEED, (np.sqrt(2 * DECELERATION * distance) - OFFSET).clip(0)) - fast
    push = K * (slow - q) - D * dq
    slack = 1e-6 * (1 + D * np.abs(fast).max(axis=0))
    crossed = room.sum(axis=0) < 0  # too fast both ways, as it reverses: then the upper bound counts
    assert (push <= D * room[1] + slack).all() and ((push >= -D * room[0] - slack) | crossed).all()
    assert (np.abs(K * (soft - q) - D * dq + bias) <= 0.9 * TORQUE + 1e-6).all()
    # What was changed is named, and what was not is the same bits.
    changed = (found != wished).any(axis=1)
    named = np.any([*fired, (rated != soft).any(axis=1), *hard.values()], axis=0)
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
    moved=st.lists(st.floats(-0.05, 0.05), min_size=7, max_size=7).map(np.array),
)
def test_sequences_of_anything_keep_the_hard_limits(q, dq, wishes, ages, moved):
    last, bias, inertia = q, ARM.bias(q, dq), ARM.mass_matrix(q)
    before = outside(CONFIG, CLEARANCE, last)
    for wished, age_s in zip(wishes, ages, strict=False):
        torque = (
            K * (last - q + moved) - D * dq + bias
        )  # it was elsewhere when it was told its last reference
        now = {
            "q": q,
            "dq": dq,
            "last": last,
            "age_s": age_s,
            "bias": bias,
            "torque": torque,
            "inertia": inertia,
        }
        found = filtered(np.array(wished), **now)
        reference = found.reference
        assert np.isfinite(reference).all()
        assert (reference >= LOW + 0.02 - 1e-9).all() and (reference <= HIGH - 0.02 + 1e-9).all()
        assert (K * np.abs(reference - last) <= 0.95 + 1e-3 * (K * SPEED + D * 150) + 1e-9).all()
        after = outside(CONFIG, CLEARANCE, reference)
        for clause in after:  # no further out, but where it brakes; then that is said
            assert (after[clause] <= before[clause] + 1e-9).all() or clause in found.beyond
        broken = breaks_soft(reference, q, dq, bias, torque, inertia)
        if (np.abs(K * (reference - q) - D * dq + bias - torque) > 0.95 + 1e-6).any():
            broken.add("torque rate")
        same = (reference == np.array(wished)).all()
        if found.verdict == "stop":
            assert (reference == last).all() and found.clauses
        else:
            assert broken <= set(found.beyond)  # what is not kept is said
            assert same == (not found.clauses) or found.verdict == "hold"
        again = filtered(np.array(wished), **now)
        assert (again.reference == reference).all() and again.clauses == found.clauses  # pure
        last, before = reference, after
