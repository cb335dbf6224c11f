"""Whatever is asked of the filter, MuJoCo's arm behind it stays where an FR3 would not stop itself."""

import mujoco
import numpy as np
import pytest
from safety_oracle import HIGH, LOW, TORQUE, allowed_speeds

from dris.catching.kinematics import Kinematics
from dris.catching.robot_model import robot_spec
from dris.catching.settings import PRESETS
from dris.experiments.wild import KINDS, Wild
from dris.robot.boundary import Boundary
from dris.robot.clearance import Clearance
from dris.robot.safety import filter_reference
from dris.robot.safety_config import SafetyConfig
from dris.robot.safety_limits import Measured, asked_torque

LIMITER_NM = 1.0
"""libfranka's: what a torque may change by in a millisecond."""


def drive_wildly(preset, seed, seconds):
    """Filter alone, then the arm's own law and libfranka's limiter; largest shares of the robot's limits."""
    task = PRESETS[preset]
    kinematics, home = Kinematics(task.home, task.mount), np.array(task.home)
    config, clearance = SafetyConfig(task.stiffness, task.damping), Clearance(home, task.mount)
    model = robot_spec(task.mount).compile()
    model.opt.timestep = 0.001
    data = mujoco.MjData(model)
    data.qpos[:7] = home
    mujoco.mj_forward(model, data)
    path, boundary = Wild(kinematics.limits, home, seconds, seed), Boundary(config, clearance, home)
    sent, torque = home.copy(), kinematics.bias(home, np.zeros(7))
    command, flange = np.zeros(7), np.zeros((3, model.nv))
    worst = dict.fromkeys(("speed", "torque", "flange"), 0.0)
    for tick in range(round(1e3 * seconds)):
        q, dq = data.qpos[:7].copy(), data.qvel[:7].copy()
        assert not boundary.broken(q)
        arm = kinematics.dynamics(q, dq)
        now = Measured(q, dq, sent, torque, 0.001, arm.bias, arm.inertia)
        sent = filter_reference(config, kinematics.limits, clearance, path.at(1e-3 * tick), now).reference
        torque = asked_torque(config, sent, q, dq, arm.bias)
        command = np.clip(torque - arm.gravity, command - LIMITER_NM, command + LIMITER_NM)
        data.qfrc_applied[:7] = command + arm.gravity
        mujoco.mj_step(model, data)
        q, dq = data.qpos[:7], data.qvel[:7]
        assert (q > LOW).all() and (q < HIGH).all()
        for j in range(7):
            down, up = allowed_speeds(j, q[j])
            worst["speed"] = max(worst["speed"], dq[j] / max(up, 1e-3), -dq[j] / max(down, 1e-3))
        worst["torque"] = max(worst["torque"], (np.abs(command + arm.gravity) / TORQUE).max())
        mujoco.mj_jacBody(model, data, flange, None, model.body("hand").id)
        worst["flange"] = max(worst["flange"], float(np.linalg.norm(flange[:, :7] @ dq)))
    return worst, path.asked


# Seeds whose wishes made joint 1 or 3 pass its limit within 0.1 s when the filter looked at present speeds.
@pytest.mark.parametrize(("preset", "seed"), [("fr3", 0), ("fr3", 1), ("released", 1)])
def test_wild_wishes_keep_the_robots_limits(preset, seed):
    worst, asked = drive_wildly(preset, seed, 2.0)
    assert worst["speed"] < 1.0 and worst["torque"] < 1.0 and worst["flange"] < 3.0
    assert worst["speed"] > 0.8  # it was driven hard, not held still
    assert len(asked) >= 0.7 * len(KINDS)
