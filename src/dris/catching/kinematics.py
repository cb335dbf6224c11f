"""Forward and inverse kinematics of the arm on MuJoCo: where the plate is, and joints for a wished pose.

Damped least squares on

    |p - p*|^2 + w_tilt |tilt error|^2 + w_yaw (yaw error)^2 + w_stay |q - q_start|^2 + w_home |q - q_home|^2

by Gauss-Newton steps, cut at the joint limits, with the weights and tolerances of CONTROL_IK, as in the
training world. The plate is square, so yaw is free where it costs; the last two terms keep the elbow from
swinging.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from dris.catching.joint_limits import SAFE_SHARE, JointLimits
from dris.catching.robot_model import robot_model
from dris.catching.settings import CONTROL_IK, CatchingConfig

LEAST_SPEED = 0.5
"""Inverse kinematics keeps joints where at least so much is allowed towards the end of their range [rad/s]:
nearer to it FCI allows next to nothing, and a joint that creeps stops the robot [design]."""


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Of an arm that carries the plate, at one place and speed."""

    gravity: np.ndarray
    """g(q) [M] [Nm]"""
    bias: np.ndarray
    """C(q, dq) dq + g(q) [M] [Nm]"""
    inertia: np.ndarray
    """M(q) [M, M], rotors included [kg m2]."""


class Kinematics:
    """The arm of fr3.xml, with no dynamics."""

    def __init__(self, home: tuple[float, ...] | None = None, mount: str | None = None):
        """Load the arm; home and mount are the catching task's unless given."""
        self._model = robot_model(mount or CatchingConfig().mount)
        self._data = mujoco.MjData(self._model)
        self._site = self._model.site("plate").id
        self.limits = JointLimits.of(self._model)
        self.low, self.high, self.speed_limit = self.limits.low, self.limits.high, self.limits.speed
        margin = self.limits.margin(LEAST_SPEED)
        self._reach_low, self._reach_high = self.low + margin, self.high - margin
        self.plate_half_size = tuple(self._model.geom("plate").size.tolist())
        """Half the plate's lengths and thickness [m]."""
        self.home = np.array(CatchingConfig().home if home is None else home)
        self.home_position, self.home_rotation = self.plate(self.home)

    def plate(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centre [3] of the plate's top face and its rotation [3, 3], base frame."""
        self._data.qpos[:] = q
        mujoco.mj_kinematics(self._model, self._data)
        return self._data.site_xpos[self._site].copy(), self._data.site_xmat[self._site].reshape(3, 3).copy()

    def plate_in_flange(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre [3] of the plate's top face and its rotation [3, 3], in the flange's frame."""
        at, rotation = self.plate(self.home)
        # The hand sits on the flange, turned about its axis; the flange has the last link's axes.
        to_flange = self._data.body("link7").xmat.reshape(3, 3).T
        return to_flange @ (at - self._data.body("hand").xpos), to_flange @ rotation

    def speed_limits_at(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Largest speeds [M] down and up that FCI allows at joints q [M], both positive [rad/s]."""
        return self.limits.speeds_at(q)

    def reachable(self, q: np.ndarray) -> np.ndarray:
        """Joints [M] cut to where FCI lets them move both ways."""
        return np.clip(q, self._reach_low, self._reach_high)

    def position_error_bounds(
        self,
        q: np.ndarray,
        share: float | None,
        stiffness: Sequence[float] | np.ndarray,
        damping: Sequence[float] | np.ndarray,
        near_end: float = SAFE_SHARE,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Position errors [M] down and up that drive joints at q [M] no faster than a share of their speeds.

        With no share they are infinite: see `JointLimits`.
        """
        if share is None:
            return np.full(len(q), np.inf), np.full(len(q), np.inf)
        return self.limits.position_error_bounds(
            q, share, np.asarray(stiffness), np.asarray(damping), near_end
        )

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """[6, M] of the plate's centre: linear, then angular velocity, base frame."""
        self.plate(q)
        mujoco.mj_comPos(self._model, self._data)
        jacobian = np.zeros((6, self._model.nv))
        mujoco.mj_jacSite(self._model, self._data, jacobian[:3], jacobian[3:], self._site)
        return jacobian

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """M(q) [M, M], rotors included [kg m2]."""
        self._composite_inertia(q)
        matrix = np.zeros((self._model.nv, self._model.nv))
        mujoco.mj_fullM(self._model, self._data, matrix)
        return matrix

    def _composite_inertia(self, q: np.ndarray) -> None:
        self.plate(q)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_crb(self._model, self._data)

    def inertial_torque(self, q: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """M(q) ddq [M], rotors included [Nm]."""
        self._composite_inertia(q)
        torque = np.zeros(self._model.nv)
        mujoco.mj_mulM(self._model, self._data, torque, ddq)
        return torque

    def bias(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """C(q, dq) dq + g(q) [M]: torques that move on, or hold, an arm that carries the plate [Nm]."""
        self._data.qvel[:] = dq
        self.plate(q)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_comVel(self._model, self._data)
        torque = np.zeros(self._model.nv)
        mujoco.mj_rne(self._model, self._data, 0, torque)
        return torque

    def dynamics(self, q: np.ndarray, dq: np.ndarray) -> Dynamics:
        """`bias` at rest and in motion, and `mass_matrix`, from one look at the arm: for every tick."""
        model, data = self._model, self._data
        self._composite_inertia(q)
        inertia, (gravity, bias) = np.zeros((model.nv, model.nv)), np.zeros((2, model.nv))
        mujoco.mj_fullM(model, data, inertia)
        for speeds, torque in ((0.0, gravity), (dq, bias)):
            data.qvel[:] = speeds
            mujoco.mj_comVel(model, data)
            mujoco.mj_rne(model, data, 0, torque)
        return Dynamics(gravity, bias, inertia)

    def solve(
        self, position: np.ndarray, tilt: np.ndarray, start: np.ndarray, iterations: int = 12
    ) -> tuple[np.ndarray, bool]:
        """Joints for a plate pose.

        Args:
            position: [3] wished centre of the top face, base frame.
            tilt: [2] wished tilt from the plate's home orientation, beta (cos alpha, sin alpha), base frame.
            start: [M] where the search begins and near which it stays.
            iterations: Gauss-Newton steps at most.

        Returns:
            Joints [M], so far inside their ranges that FCI lets them move, and whether the pose is reached.
        """
        goal = rotation_of_tilt(tilt) @ self.home_rotation
        low, high = self._reach_low, self._reach_high
        q = self.reachable(start)
        for _ in range(iterations):
            error, jacobian = self._residual(q, position, goal)
            stay, home = CONTROL_IK.stay_weight, CONTROL_IK.home_weight
            pull = stay * (start - q) + home * (self.home - q)
            curvature = jacobian.T @ jacobian + (stay + home + 1e-5) * np.eye(len(q))
            gradient = jacobian.T @ error + pull
            # Joints at a limit that push against it stay there; the others share the step.
            held = ((q <= low) & (gradient < 0)) | ((q >= high) & (gradient > 0))
            free = ~held
            step = np.zeros_like(q)
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
            step *= min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-9))  # far steps leave the linear range
            q = self.reachable(q + step)
            if np.abs(step).max() < 1e-4:
                break
        at, rotation = self.plate(q)
        angle = math.acos(float(np.clip(rotation[:, 2] @ goal[:, 2], -1.0, 1.0)))
        near = np.linalg.norm(at - position) <= CONTROL_IK.position_tolerance
        return q, bool(near and angle <= CONTROL_IK.tilt_tolerance)

    def _residual(
        self, q: np.ndarray, position: np.ndarray, goal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weighted error [6] and its Jacobian [6, M]: position, then rotation in the goal's axes."""
        jacobian = self.jacobian(q)
        at = self._data.site_xpos[self._site]
        rotation = self._data.site_xmat[self._site].reshape(3, 3)
        turn = rotation_vector(goal @ rotation.T)
        weights = np.sqrt([CONTROL_IK.tilt_weight, CONTROL_IK.tilt_weight, CONTROL_IK.yaw_weight])  # [m/rad]
        error = np.concatenate((position - at, weights * (goal.T @ turn)))
        jacobian[3:] = weights[:, None] * (goal.T @ jacobian[3:])
        return error, jacobian


def rotation_of_tilt(tilt: np.ndarray) -> np.ndarray:
    """I + W sin b + W^2 (1 - cos b) for the tilt b (cos a, sin a): the paper's Eq. 11."""
    beta = math.hypot(*tilt)
    if beta < 1e-12:
        return np.eye(3)
    x, y = np.asarray(tilt) / beta
    cross = np.array([[0.0, 0.0, y], [0.0, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + math.sin(beta) * cross + (1 - math.cos(beta)) * cross @ cross


def rotation_vector(rotation: np.ndarray) -> np.ndarray:
    """Axis times angle [3] of a rotation [3, 3]."""
    quat, vector = np.zeros(4), np.zeros(3)
    mujoco.mju_mat2Quat(quat, rotation.ravel())
    mujoco.mju_quat2Vel(vector, quat, 1.0)
    return vector
