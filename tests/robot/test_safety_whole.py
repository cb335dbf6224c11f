"""The whole filter, every clause at once, under anything: judged by other code, many inputs at a time.

    PYTHONPATH=tests/helpers python tests/robot/test_safety_whole.py 1000000 7 results/safety/whole-7.json

tries more than a test should, stops at the first wrong answer, and goes on where its file ends.
"""

import math
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from going_on import begun
from safety_oracle import (
    ARM,
    CLEARANCE,
    CONFIG,
    DECELERATION,
    HIGH,
    HOME,
    LOW,
    OFFSET,
    SPEED,
    D,
    K,
    allowed_speeds,
    breaks_soft,
    dh_flange,
    dh_plate,
    filtered,
)

from dris.core.files import write_json
from dris.robot.safety import outside

NONE = (math.nan, math.inf, -math.inf, 1e300)
SLACK = 1e-6
PART = 5000
"""Inputs between two looks at the file."""
END = OFFSET**2 / (2 * DECELERATION) + 0.05
"""From the end of a range: where no speed is allowed any more, and the margin [rad]."""


def inputs(count, seed):
    """As dictionaries: near home and anywhere, at ends and at rest, fresh, stale and of no time; wishes of any kind."""
    rng = np.random.default_rng((seed, 1))
    near = rng.random(count) < 0.7  # where the walls are
    q = np.where(near[:, None], HOME + rng.normal(0, 0.25, (count, 7)), rng.uniform(LOW, HIGH, (count, 7)))
    q = np.clip(q, LOW + 0.021, HIGH - 0.021)
    dq = rng.normal(0, 1, (count, 7)) * SPEED * rng.choice([0.0, 0.1, 0.5, 1.5], (count, 1))
    lead = rng.normal(0, 1, (count, 7)) * rng.choice([1e-4, 0.01, 0.1], (count, 1))
    # Some go steadily, plate or flange nearly as fast as they may.
    steady = rng.random((count, 1)) < 0.15
    lead = np.where(
        steady, lead * (0.998 * CONFIG.plate_speed / np.maximum(drives(q + lead, q), 1e-3))[:, None], lead
    )
    dq = np.where(steady, K * lead / D, dq)
    last = np.clip(q + lead, LOW + 0.021, HIGH - 0.021)
    size = rng.choice([0.0, 1e-5, 1e-3, 0.03, 1.0, 1e3], (count, 1))
    wished = last + size * rng.uniform(-1, 1, (count, 7))
    ages = rng.choice(
        [0.0, 0.02, 0.07, 0.1, 0.3, -0.01, math.nan], count, p=[0.5, 0.2, 0.1, 0.1, 0.04, 0.03, 0.03]
    )
    for k in range(count):
        bias, inertia = ARM.bias(q[k], dq[k]), ARM.mass_matrix(q[k])
        torque = K * (last[k] - q[k] + 1e-3 * dq[k]) - D * dq[k] + bias  # where it was a tick ago
        wish, told = wished[k].copy(), q[k]
        if rng.random() < 0.03:
            wish[rng.integers(7)] = rng.choice(NONE)
        elif rng.random() < 0.01:
            wish = wish[: rng.integers(7)]
        if rng.random() < 0.01:
            told = told.copy()
            told[rng.integers(7)] = rng.choice(NONE[:3])
        now = {"q": told, "dq": dq[k], "last": last[k], "age_s": ages[k]}
        yield wish, now | {"bias": bias, "torque": torque, "inertia": inertia}


def walls(q):
    """Shortfall at each face of the plate's workspace [n, 6], and of its corners over the table [n]."""
    centre, corners = dh_plate(q)
    offset = centre - dh_plate(HOME)[0]
    faces = np.concatenate((CONFIG.workspace_low - offset, offset - CONFIG.workspace_high), axis=-1)
    return np.maximum(faces, 0.0), np.maximum(CONFIG.table_height - corners[..., 2].min(axis=-1), 0.0)


def drives(reference, q):
    """Speed of the fastest of flange and the top's corners [n] under references, no joint beyond its own limit."""
    allowed = np.array([[allowed_speeds(j, one[j]) for j in range(7)] for one in q])
    speeds = np.clip(K * (reference - q) / D, -allowed[..., 0], allowed[..., 1])
    h = 1e-6
    here, there = q - h * speeds, q + h * speeds  # a difference about where it is
    moved = (dh_plate(there)[1] - dh_plate(here)[1])[..., 1::2, :]  # every other corner is below
    corners = np.linalg.norm(moved, axis=-1).max(axis=-1)
    flange = np.linalg.norm(dh_flange(there)[..., :3, 3] - dh_flange(here)[..., :3, 3], axis=-1)
    return np.maximum(corners, flange) / (2 * h)


def jumps(reference, last):
    return (K * np.abs(reference - last) - 0.95 - 1e-3 * (K * SPEED + D * 150)).max(axis=-1)


def check(count, seed):
    """Returns how often each clause fired, and how often nothing did."""
    seen, fired = [], Counter()
    for wish, now in inputs(count, seed):
        found = filtered(wish, **now)
        fired.update(found.clauses or ("nothing",))
        assert np.isfinite(found.reference).all() and set(found.beyond) <= set(CLAUSES)
        if found.verdict == "stop":
            assert found.clauses and (found.reference == now["last"]).all()
            assert not np.isfinite(now["q"]).all() or not abs(now["age_s"]) <= 0.25
            continue
        sound = np.shape(wish) == (7,) and np.isfinite(wish).all()
        held = not sound or not -0.002 <= now["age_s"] <= 0.075
        assert held == (found.verdict == "hold")
        same = sound and (found.reference == wish).all()
        assert held or same == (not found.clauses)  # whatever was changed is named, and nothing else
        arm = {name: now[name] for name in ("q", "dq", "bias", "torque", "inertia")}
        broken = breaks_soft(found.reference, **arm)
        if rate(found.reference, now) > 0.95 + SLACK:
            broken.add("torque rate")
        assert broken <= set(found.beyond), (broken, found)
        if "plate speed" in found.beyond:  # it gave way to a later one
            assert {"torque", "torque rate", "position", "jump"} & set(found.clauses), found
        seen.append((found, wish if sound else found.reference, now, held))
    founds, wishes, nows, held = zip(*seen, strict=True)
    reference, wished = np.array([f.reference for f in founds]), np.array(wishes)
    q, last = (np.array([now[name] for now in nows]) for name in ("q", "last"))
    assert (reference >= LOW + 0.02 - 1e-9).all() and (reference <= HIGH - 0.02 + 1e-9).all()
    assert (jumps(reference, last) <= 1e-9).all()

    def told(clause):
        return np.array([clause in f.beyond for f in founds])

    (faces, table), (faces_before, _) = walls(reference), walls(last)
    assert ((faces <= faces_before + SLACK).all(axis=1) | told("workspace")).all()
    clear = np.array([not outside(CONFIG, CLEARANCE, one)["keep-out"].any() for one in last])
    assert ((table <= SLACK) | ~clear | told("keep-out")).all()
    fast = drives(reference, q)
    assert ((fast <= CONFIG.plate_speed + 1e-4) | told("plate speed")).all()
    # What lies inside everything goes through as it is, to the bit.
    inside = (
        ~np.array(held) & (jumps(wished, last) < -SLACK) & (drives(wished, q) < CONFIG.plate_speed - 1e-4)
    )
    inside &= (wished > LOW + END).all(axis=1) & (wished < HIGH - END).all(axis=1)
    for k in np.flatnonzero(inside):
        arm = {name: nows[k][name] for name in ("q", "dq", "bias", "torque", "inertia")}
        beyond = any(far.any() for far in outside(CONFIG, CLEARANCE, wished[k]).values())
        inside[k] = (
            not beyond and not breaks_soft(wished[k], **arm) and rate(wished[k], nows[k]) < 0.95 - SLACK
        )
        assert not inside[k] or (reference[k] == wished[k]).all(), founds[k]
    fired["inside"] = int(inside.sum())
    return fired


CLAUSES = ("coupling", "speed", "plate speed", "torque", "torque rate", "workspace", "keep-out")
"""Those that may have to give way."""


def rate(reference, now):
    """Largest change of a joint's torque in the tick [Nm]."""
    asked = K * (reference - now["q"]) - D * now["dq"] + now["bias"]
    return float(np.abs(asked - now["torque"]).max())


def test_the_whole_filter_keeps_every_limit_whatever_comes_in():
    fired = check(3000, 0)
    assert fired["inside"] > 50
    assert all(fired[clause] for clause in (*CLAUSES, "position", "jump", "stale", "not finite"))


def test_what_is_cut_while_it_brakes_at_a_wall_is_named():
    """Found by `check`: the speed of plate and joints gave way to the torque rate, which was not told."""
    q = np.array([-2.3459, 0.0118, -2.4128, -0.3211, -0.2305, 3.6997, 2.9802])
    dq = np.array([-1.0934, -1.1539, 0.5214, -2.4043, 0.1578, -0.2150, -0.9198])
    last = np.array([-2.4826, -0.1695, -2.3383, -0.6016, -0.2095, 3.6675, 2.8652])
    bias, inertia = ARM.bias(q, dq), ARM.mass_matrix(q)
    torque = K * (last - q + 1e-3 * dq) - D * dq + bias
    found = filtered(last, q, dq, last, bias=bias, torque=torque, inertia=inertia)
    assert {"plate speed", "coupling"} <= set(found.beyond) and "workspace" in found.clauses
    assert "torque rate" in found.clauses


if __name__ == "__main__":
    total, first, file = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    so_far = begun(file, first, kind="safety-whole", inputs=0, fired={})
    for part in range(so_far["inputs"] // PART, math.ceil(total / PART)):
        so_far["fired"] = dict(Counter(so_far["fired"]) + check(PART, first * 100_000 + part))
        so_far["inputs"] += PART
        write_json(file, so_far)
        print(f"\r{so_far['inputs']} of {total}: {so_far['fired']}", end="", flush=True)
    print()
