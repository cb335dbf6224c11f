"""A search for sequences of wishes by which MuJoCo's arm behind the filter comes beyond a limit.

    PYTHONPATH=tests/helpers python tests/robot/test_safety_search.py 1200 7 results/safety/search.json

goes on where its file ends, and keeps what came nearest.
"""

import sys
from pathlib import Path

import numpy as np
from going_on import begun
from safety_arm import drive, sequence

from dris.core.files import write_json

SECONDS = 0.7
SETTINGS = tuple(
    (preset, heavier, period)
    for preset in ("fr3", "released")
    for heavier, period in ((1.0, 1), (1.1, 1), (1.0, 3))
)
"""Gains by preset, the arm's mass by the one that is known, milliseconds between two calls of the filter."""
KEPT = 8
"""Sequences of a setting that others are made of."""


def part(rng):
    """Some milliseconds of one wish; see `safety_arm.sequence`."""
    return (
        round(float(np.exp(rng.uniform(np.log(0.01), np.log(0.3)))), 3),
        "".join(rng.choice(list("-0+"), 7, p=[0.4, 0.2, 0.4])),
        float(rng.choice([0.005, 0.02, 0.1, 0.2, 0.5, 1.0])),
        str(rng.choice(["last", "home", "arm", "turns"])),
    )


def fresh(rng):
    return [part(rng) for _ in range(rng.integers(3, 10))]


def changed(parts, rng):
    """Another one, by one change: a part anew, longer, shorter, turned round, away or put in."""
    parts, k = [tuple(one) for one in parts], rng.integers(len(parts))
    seconds, signs, far, origin = parts[k]
    how = rng.integers(5)
    if how == 0:
        parts[k] = part(rng)
    elif how == 1:
        parts[k] = (
            round(float(np.clip(seconds * np.exp(rng.normal(0, 0.3)), 0.005, 0.4)), 3),
            signs,
            far,
            origin,
        )
    elif how == 2:
        j = rng.integers(7)
        parts[k] = (seconds, signs[:j] + str(rng.choice(list("-0+"))) + signs[j + 1 :], far, origin)
    elif how == 3 and len(parts) > 1:
        del parts[k]
    else:
        parts.insert(k, part(rng))
    return parts


def try_one(number, seed, best):
    """The sequence of a number: of its setting, new or made of the best of those before, driven."""
    rng = np.random.default_rng((seed, number))
    preset, heavier, period = SETTINGS[number % len(SETTINGS)]
    known = best.setdefault(f"{preset}, mass {heavier}, {period} ms", [])
    new = len(known) < KEPT or rng.random() < 0.25
    parts = fresh(rng) if new else changed(known[rng.integers(len(known))]["parts"], rng)
    worst, wall = drive(preset, sequence(preset, parts), SECONDS, heavier, period)
    share = max(worst["speed"], worst["torque"], worst["flange"] / 3.0)
    known.append({"share": round(float(share), 4), "number": number, "parts": parts})
    known.sort(key=lambda one: -one["share"])
    del known[KEPT:]
    return worst, wall


def test_a_short_search_finds_nothing_and_drives_it_hard():
    best = {}
    found = [try_one(number, 1, best)[0] for number in range(18)]
    for name, limit in (("speed", 1.0), ("torque", 1.0), ("flange", 3.0)):
        assert max(worst[name] for worst in found) < limit
    assert np.median([worst["speed"] for worst in found]) > 0.5
    assert all(len(known) == 3 for known in best.values())


if __name__ == "__main__":
    total, first, file = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    so_far = begun(file, first, kind="safety-search", tried=0, stopped_at_walls=0, best={})
    for number in range(so_far["tried"], total):
        _, wall = try_one(number, first, so_far["best"])
        so_far["tried"] = number + 1
        so_far["stopped_at_walls"] += wall is not None
        if number % 20 == 19 or number + 1 == total:
            write_json(file, so_far)
            top = {name: known[0]["share"] for name, known in so_far["best"].items()}
            print(f"\r{number + 1} of {total}: {top}", end="", flush=True)
    print()
