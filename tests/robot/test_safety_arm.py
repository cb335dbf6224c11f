"""Whatever is asked of the filter, MuJoCo's arm behind it stays where an FR3 would not stop itself."""

import mujoco
import numpy as np
import pytest
from safety_arm import drive, sequence
from safety_oracle import HIGH, LOW, TORQUE, allowed_speeds

from dris.catching.kinematics import Kinematics
from dris.catching.robot_model import robot_spec
from dris.catching.settings import PRESETS
from dris.experiments.wild import KINDS, Wild
from dris.robot.soft_stop import stop_damping


# Seeds whose wishes made joint 1 or 3 pass its limit within 0.1 s when the filter looked at present speeds.
@pytest.mark.parametrize(("preset", "seed"), [("fr3", 0), ("fr3", 1), ("released", 1)])
def test_wild_wishes_keep_the_robots_limits(preset, seed):
    limits = Kinematics(PRESETS[preset].home, PRESETS[preset].mount).limits
    path = Wild(limits, np.array(PRESETS[preset].home), 2.0, seed)
    worst, wall = drive(preset, lambda tick, q, last: path.at(1e-3 * tick), 2.0)
    assert wall is None and worst["speed"] < 1.0 and worst["torque"] < 1.0 and worst["flange"] < 3.0
    assert worst["speed"] > 0.8  # it was driven hard, not held still
    assert len(path.asked) >= 0.7 * len(KINDS)


FOUND = {
    # Sequences that a search found against filters of before: seconds, direction of every joint, how far [rad],
    # and from where: the last reference, the arm, home, or the last reference and no number in turn.
    "walls froze the joints that had to brake: joint 4 at 2.5 of its limit": ("released", (
        (0.027, "+----++", 0.2, "home"), (0.251, "--+--++", 0.5, "last"), (0.029, "--+-0++", 0.5, "last"),
        (0.028, "--++-++", 0.1, "turns"), (0.136, "+---+++", 0.02, "last"), (0.174, "---0000", 0.5, "turns"),
        (0.055, "0++-0+-", 0.1, "last"),
    )),
    "the same: joint 6 at 1.31": ("fr3", (
        (0.22, "+++0--+", 0.1, "turns"), (0.032, "--+---+", 0.5, "turns"), (0.017, "+00+++0", 0.5, "last"),
        (0.087, "++0-0--", 0.5, "arm"), (0.132, "++--00+", 0.02, "last"), (0.212, "+-+++-+", 1.0, "home"),
    )),
    "a braking torque to come hid a joint that was too fast: joint 1 at 1.05": ("fr3", (
        (0.095, "++-++-+", 1.0, "home"), (0.073, "++++-++", 0.02, "last"), (0.09, "+0---+-", 0.5, "last"),
        (0.082, "+0++++0", 0.1, "last"), (0.107, "-+++-+0", 0.1, "last"), (0.121, "+00+0-+", 0.1, "last"),
        (0.031, "++-+-++", 0.02, "last"), (0.014, "-++++--", 0.5, "last"), (0.087, "+0-+0-0", 0.2, "home"),
    )),
    "joint 1's 87 Nm drove the wrist on, which a single one moves little: joint 6 at 1.007": ("released", (
        (0.016, "0++-000", 0.005, "turns"), (0.149, "+-00+--", 0.02, "last"), (0.165, "0-000-+", 0.1, "last"),
        (0.21, "+--+++0", 0.1, "arm"), (0.096, "----++-", 0.1, "arm"), (0.075, "-0+-+++", 0.005, "last"),
    )),
}  # fmt: skip


@pytest.mark.parametrize("heavier", [1.0, 1.1])
@pytest.mark.parametrize("found", FOUND)
def test_sequences_that_a_search_found_keep_them_too(found, heavier):
    preset, parts = FOUND[found]
    worst, wall = drive(preset, sequence(preset, parts), 0.7, heavier)
    assert 0.5 < worst["speed"] < 1.0 and worst["torque"] < 1.0 and worst["flange"] < 3.0, worst
    assert (
        wall is None or wall > 0.6
    )  # one of them passes the robot's own by a centimetre, where a session stops it


@pytest.mark.parametrize("preset", ["fr3", "paper"])
def test_a_soft_stop_asks_no_joint_for_more_than_its_torque(preset):
    """At any speed, wherever the arm is, beside MuJoCo's gravity; and no joint is left without a brake."""
    model = robot_spec(PRESETS[preset].mount).compile()
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    for _ in range(2000):
        data.qpos[:7] = rng.uniform(LOW, HIGH)
        mujoco.mj_forward(model, data)
        fastest = np.array([max(allowed_speeds(j, data.qpos[j])) for j in range(7)])
        dq = rng.uniform(-fastest, fastest)
        damping, gravity = stop_damping(dq, data.qfrc_bias[:7]), np.abs(data.qfrc_bias[:7])
        assert (damping * np.abs(dq) + gravity < TORQUE).all() and (damping > 0.9).all(), data.qpos[:7]
    at_rest = stop_damping(np.zeros(7), np.array([0, 60.0, 0, 0, 0, 6.8, 0]))
    np.testing.assert_allclose(at_rest, [30, 30, 30, 30, 3, 2, 3])  # the sixth: (10.8 - 6.8) / 2
