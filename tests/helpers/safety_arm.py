"""MuJoCo's arm behind the safety filter, the robot's own law and libfranka's limiter, with Franka's published limits."""

import mujoco
import numpy as np
from safety_oracle import HIGH, LOW, TORQUE, allowed_speeds

from dris.catching.kinematics import Kinematics
from dris.catching.robot_model import robot_spec
from dris.catching.settings import PRESETS
from dris.robot.boundary import Boundary
from dris.robot.clearance import Clearance
from dris.robot.safety import filter_reference
from dris.robot.safety_config import SafetyConfig
from dris.robot.safety_limits import Measured, asked_torque

LIMITER_NM = 1.0
"""libfranka's: what a torque may change by in a millisecond."""


def drive(preset, wish, seconds, heavier=1.0, period=1):
    """Filter alone, then the arm's own law and libfranka's limiter; largest shares of the robot's limits.

    `wish` gets the millisecond, measured joints and the last reference; the arm may be heavier than it is known,
    and the filter may be asked every `period` milliseconds.
    Where the arm passes a wall a session stops it, and the drive ends: the last value is the time of that [s].
    """
    task = PRESETS[preset]
    kinematics, home = Kinematics(task.home, task.mount), np.array(task.home)
    config, clearance = SafetyConfig(task.stiffness, task.damping), Clearance(home, task.mount)
    model = robot_spec(task.mount).compile()
    model.opt.timestep = 0.001
    model.body_mass[:] *= heavier
    model.body_inertia[:] *= heavier
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    data.qpos[:7] = home
    mujoco.mj_forward(model, data)
    boundary, sent = Boundary(config, clearance, home), home.copy()
    torque = kinematics.bias(home, np.zeros(7))
    command, flange = np.zeros(7), np.zeros((3, model.nv))
    worst = dict.fromkeys(("speed", "torque", "flange"), 0.0)
    for tick in range(round(1e3 * seconds)):
        q, dq = data.qpos[:7].copy(), data.qvel[:7].copy()
        if boundary.broken(q, np.zeros(7)):  # for its walls: no plate ends it by its speed
            return worst, 1e-3 * tick
        arm = kinematics.dynamics(q, dq)
        if tick % period == 0:
            now = Measured(q, dq, sent, torque, 0.001 * period, arm.bias, arm.inertia)
            sent = filter_reference(config, kinematics.limits, clearance, wish(tick, q, sent), now).reference
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
    return worst, None


def sequence(preset, parts):
    """A wish [7] as `drive` takes it, of parts: seconds, direction of every joint, how far [rad], and from where.

    That is the last reference, the arm, home, or the last reference and no number in turn.
    """
    home, ends = np.array(PRESETS[preset].home), np.cumsum([1e3 * part[0] for part in parts])

    def wish(tick, q, last):
        _, signs, far, origin = parts[min(int(np.searchsorted(ends, tick, side="right")), len(parts) - 1)]
        way = far * np.array([{"-": -1.0, "0": 0.0, "+": 1.0}[sign] for sign in signs])
        if origin == "turns" and tick % 2 == 0:
            return np.full(7, np.nan)
        return {"home": home, "arm": q}.get(origin, last) + way

    return wish
