"""Wishes that nobody has, through the filter and over Franka's protocol."""

import importlib.util

import numpy as np
import pytest
from safety_oracle import HIGH, HOME, LIMITS, LOW

from dris.experiments.wild import HOLD_S, KINDS, Wild, WildRound, wild_rounds, wild_summary


def test_every_kind_of_wish_comes_and_is_what_its_name_says():
    path = Wild(LIMITS, HOME, 60.0, seed=4)
    seen = {kind: [] for kind in KINDS}
    for tick in range(20_000):
        wish = path.at(1e-3 * tick)
        seen[path._kind].append(wish)
    assert all(seen.values()) and path.asked == {kind: len(wishes) for kind, wishes in seen.items()}
    found = {kind: np.array(wishes) for kind, wishes in seen.items()}
    assert not np.isfinite(found["not-finite"]).all(axis=1).any()
    assert all(np.isfinite(wishes).all() for kind, wishes in found.items() if kind != "not-finite")
    assert ((found["anywhere"] >= LOW) & (found["anywhere"] <= HIGH)).all()
    assert (np.isclose(found["ends"], LOW) | np.isclose(found["ends"], HIGH)).all()
    assert (np.isclose(found["one-end"], HOME).sum(axis=1) == 6).all()
    assert np.abs(found["far"] - HOME).max() > 100 and np.abs(found["near"] - HOME).max() <= 0.3
    to_and_fro = np.diff(np.sign(found["shaken"][:2, 0] - HOME[0]))
    assert abs(to_and_fro[0]) == 2


def test_the_same_seed_asks_for_the_same():
    one, other = (Wild(LIMITS, HOME, 1.0, seed=9) for _ in range(2))
    for tick in range(1000):
        np.testing.assert_array_equal(one.at(1e-3 * tick), other.at(1e-3 * tick))
    assert HOLD_S[0] == 0.001  # no wish is shorter than a tick


def test_rounds_in_figures():
    calm = WildRound(0, "law and filter", "homed", 10.0, (), 0.9, {"far": 7, "near": 3}, {"speed": 2}, {})
    stop = WildRound(
        1, "filter", "stopped: the filter", 4.0, ("joint_velocity_violation",), 1.02, {"far": 5}, {}, {}
    )
    told = wild_summary([calm, stop])
    assert (told["rounds"], told["wishes"], told["robot_seconds"], told["fastest_share"]) == (
        2,
        15,
        14.0,
        1.02,
    )
    assert told["asked"] == {"far": 12, "near": 3} and told["reflexes"] == {"joint_velocity_violation": 1}
    assert told["stopped_by_session"] == {"stopped: the filter": 1} and told["never_began"] == 0


@pytest.mark.skipif(importlib.util.find_spec("franky") is None, reason="franky is not installed")
def test_a_robot_bears_whatever_the_filter_lets_through(tmp_path):
    """The second round is the one that ended in a joint_velocity_violation after 0.2 s."""
    from dris.experiments.deploy import TwinRig
    from dris.robot.export import export
    from dris.robot.runtime import Runtime

    export("belief-robot", tmp_path / "exported", 0)
    with TwinRig(Runtime(tmp_path / "exported"), "127.0.7.22") as rig:
        rounds = list(wild_rounds(rig, 80001, lambda number: number == 2, duration_s=1.0))
        # A stop while joints accelerate: franky's own brake let them go on to beyond their limits.
        stopped = list(wild_rounds(rig, 1034, lambda number: number == 1, duration_s=0.153))
    assert [one.through for one in rounds] == ["law and filter", "filter"]
    for one in rounds:
        assert one.reflexes == () and one.ended == "homed" and one.speed_share < 1.0, one
        assert sum(one.asked.values()) >= 990
    assert stopped[0].reflexes == () and stopped[0].ended == "homed"
