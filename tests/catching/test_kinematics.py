"""What the arm's model tells besides places: torques of gravity and of moving on, by other means."""

import mujoco
import numpy as np

from dris.catching.kinematics import Kinematics
from dris.catching.robot_model import robot_model
from dris.catching.settings import PRESETS

TASK = PRESETS["released"]


def potential_energy(model, data, q):
    """Of all bodies [J]."""
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    return 9.81 * float(model.body_mass @ data.xipos[:, 2])


def test_gravity_is_the_slope_of_the_potential_energy():
    kinematics, model = Kinematics(TASK.home, TASK.mount), robot_model(TASK.mount)
    data = mujoco.MjData(model)
    for q in np.random.default_rng(0).uniform(kinematics.low, kinematics.high, (10, 7)):
        slope = [
            (potential_energy(model, data, q + 1e-5 * way) - potential_energy(model, data, q - 1e-5 * way))
            / 2e-5
            for way in np.eye(7)
        ]
        np.testing.assert_allclose(kinematics.bias(q, np.zeros(7)), slope, atol=1e-6)


def test_bias_moves_the_arm_on_without_acceleration():
    """Under these torques and no others, MuJoCo's joints keep their speeds."""
    kinematics, model = Kinematics(TASK.home, TASK.mount), robot_model(TASK.mount)
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    for q in rng.uniform(kinematics.low, kinematics.high, (10, 7)):
        dq = rng.normal(0, 1.5, 7)
        data.qpos[:], data.qvel[:] = q, dq
        data.qfrc_applied[:] = kinematics.bias(q, dq)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qacc, 0.0, atol=1e-8)


def test_one_look_at_the_arm_tells_gravity_bias_and_inertia():
    """MuJoCo's own dynamics of the same arm, and the single questions to the last bit."""
    kinematics, model = Kinematics(TASK.home, TASK.mount), robot_model(TASK.mount)
    data, draw = mujoco.MjData(model), np.random.default_rng(0)
    for q in draw.uniform(kinematics.low, kinematics.high, (20, 7)):
        dq = draw.uniform(-1, 1, 7)
        found = kinematics.dynamics(q, dq)
        for told, speeds in ((found.gravity, 0.0), (found.bias, dq)):
            data.qpos[:], data.qvel[:] = q, speeds
            mujoco.mj_forward(model, data)
            np.testing.assert_allclose(told, data.qfrc_bias, atol=1e-9)
        inertia = np.zeros((7, 7))
        mujoco.mj_fullM(model, data, inertia)
        np.testing.assert_allclose(found.inertia, inertia, atol=1e-12)
        assert (found.gravity == kinematics.bias(q, np.zeros(7))).all()
        assert (found.bias == kinematics.bias(q, dq)).all()
        assert (found.inertia == kinematics.mass_matrix(q)).all()
