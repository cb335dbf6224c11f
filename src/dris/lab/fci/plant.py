"""What the robot does with torques: the twin under a client's, or under the robot's own controller.

A client sends torques without gravity, which the robot adds for itself and for the load that it was told of.
Joint friction it compensates, too: the twin has what is left. The own controller brakes the arm, holds it and
follows motion generators:

    tau = M ddq_d + C + g + K (q_d - q) + D (dq_d - dq)
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from dris.catching.robot_model import at_flange, robot_spec
from dris.lab.fci.limits import Limits, Moment, Reference
from dris.lab.launch import Launch
from dris.lab.model import JOINTS
from dris.lab.objects import CatchObject
from dris.lab.twin import TICK_S, Twin

FLANGE = np.array([0.0, 0.0, 0.107])
"""In link 7 [m]."""
STIFFNESS = (3000.0, 3000.0, 3000.0, 2500.0, 2500.0, 2000.0, 2000.0)
"""Of the own controller until a client sets it [Nm/rad] [assumed: that of libfranka's examples]."""
DAMPING_RATIO = 0.7
"""Of the own controller, for each joint by itself [design]."""
BRAKING = 10.0
"""At least so fast the own controller slows joints down [rad/s2] [assumed]; faster where the speed limits
near the end of a range count on it."""
OUTER_FILTER_S = 0.016
"""Time constant of the estimate of outer torques [s] [assumed: 10 Hz]."""
_SINGULAR = 1e-4 * np.eye(6)


class Plant:
    """A twin after its `reset`, driven a millisecond at a time."""

    def __init__(self, twin: Twin, knows_plate: bool = True):
        """Hold the twin's arm where it is.

        Args:
            twin: After its `reset`.
            knows_plate: Whether the plate is part of the robot's own settings, beside its hand. If not, a
                client must declare it as a load, as on a real robot, or the arm sinks under it.

        Raises:
            RuntimeError: The twin was not reset.
        """
        twin.state()
        self.twin = twin
        spec = robot_spec(twin.config.mount)
        self._knows_plate = knows_plate
        if not knows_plate:
            spec.geom("plate").mass = 0.0
        self.model = spec.compile()
        """The arm as the robot knows it: no thing, no laboratory."""
        self.model.opt.gravity[2] = -twin.config.lab.gravity
        self._data = mujoco.MjData(self.model)
        self._link7, self._armature = self.model.body("link7").id, self.model.dof_armature.copy()
        self.limits = Limits.of(self.model)
        self._braking = np.maximum(BRAKING, self.limits.joints.deceleration)
        self.stiffness = np.array(STIFFNESS)
        """[7] of the own controller [Nm/rad]."""
        self.load_mass = 0.0
        """That the robot was told of [kg], and"""
        self.load_centre = np.zeros(3)
        """its centre, flange frame [m]."""
        self.force_point = np.zeros(3)
        """Where outer forces are told, flange frame [m]."""
        self._outer = np.zeros(JOINTS)
        self.torque = twin.torque.copy()
        """[7] of the last millisecond, gravity included [Nm]."""
        self._look()
        self.hold()

    def start_trial(self, thing: CatchObject, launch: Launch, seed: int) -> None:
        """Launch a thing as the twin's `reset` does, but leave the arm where it is and as fast as it is."""
        q, dq = self.q, self.dq
        self.twin.reset(thing, launch, seed)
        self.twin.data.qpos[:JOINTS], self.twin.data.qvel[:JOINTS] = q, dq
        mujoco.mj_forward(self.twin.model, self.twin.data)
        self.twin.torque = self.torque.copy()

    def lead_to(self, q: np.ndarray) -> None:
        """Somebody has led the arm to joints [7] by hand; it rests there."""
        self.twin.data.qpos[:JOINTS], self.twin.data.qvel[:JOINTS] = q, 0.0
        mujoco.mj_forward(self.twin.model, self.twin.data)
        self._look()
        self.hold()

    def hold(self) -> None:
        """From now on the own controller brakes the arm and holds it."""
        self.reference = Reference(self.q, self.dq, np.zeros(JOINTS))

    @property
    def gravity(self) -> np.ndarray:
        """[7] that the robot adds to a client's torques [Nm]."""
        return self._gravity

    def advance_with(self, torque: np.ndarray) -> None:
        """A millisecond under a client's torques [7], without gravity."""
        self.reference = Reference(self.q, np.zeros(JOINTS), np.zeros(JOINTS))
        self._advance(torque + self._gravity)

    def advance_held(self) -> None:
        """A millisecond under the own controller, which brakes or holds."""
        last = self.reference
        slower = np.sign(last.dq) * np.maximum(np.abs(last.dq) - self._braking * TICK_S, 0.0)
        self.advance_to(Reference(last.q + TICK_S * slower, slower, (slower - last.dq) / TICK_S))

    def advance_to(self, reference: Reference) -> None:
        """A millisecond under the own controller, which follows a reference."""
        self.reference = reference
        mujoco.mj_crb(self.model, self._data)
        inertia = np.zeros((JOINTS, JOINTS))
        for column, unit in zip(inertia, np.eye(JOINTS), strict=True):
            mujoco.mj_mulM(self.model, self._data, column, unit)
        damping = 2 * DAMPING_RATIO * np.sqrt(self.stiffness * np.diag(inertia))
        servo = self.stiffness * (reference.q - self.q) + damping * (reference.dq - self.dq)
        self._advance(inertia @ reference.ddq + self._bias + servo)

    def _advance(self, torque: np.ndarray) -> None:
        before = self.dq
        self.twin.advance_with_torque(torque)
        self.torque = self.twin.torque
        acceleration = (self.twin.data.qvel[:JOINTS] - before) / TICK_S
        # What the known arm would have needed for this acceleration, but did not get from its motors.
        self._data.qacc[:] = acceleration
        needed = np.zeros(JOINTS)
        mujoco.mj_rne(self.model, self._data, 1, needed)
        missing = needed + self._load_torque() + self._armature * acceleration - self.torque
        self._outer += TICK_S / (OUTER_FILTER_S + TICK_S) * (missing - self._outer)
        self._look()

    def _look(self) -> None:
        """Ask the known arm about the present state."""
        model, data = self.model, self._data
        self._moment: Moment | None = None
        self.q = self.twin.data.qpos[:JOINTS].copy()
        self.dq = self.twin.data.qvel[:JOINTS].copy()
        data.qpos[:], data.qvel[:] = self.q, 0.0
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        self._gravity, self._bias = np.zeros((2, JOINTS))
        mujoco.mj_rne(model, data, 0, self._gravity)
        data.qvel[:] = self.dq
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 0, self._bias)
        load = self._load_torque()
        self._gravity, self._bias = self._gravity + load, self._bias + load

    def _load_torque(self) -> np.ndarray:
        """[7] that hold the declared load; its inertia is left out."""
        if self.load_mass == 0:
            return np.zeros(JOINTS)
        weight = -self.load_mass * self.model.opt.gravity
        return self._jacobian(FLANGE + self.load_centre)[:3].T @ weight

    def _jacobian(self, point_in_link7: np.ndarray) -> np.ndarray:
        """[6, 7] of a point fixed to link 7: linear, then angular velocity, base frame."""
        data, body = self._data, self._link7
        point = data.xpos[body] + data.xmat[body].reshape(3, 3) @ point_in_link7
        jacobian = np.zeros((6, JOINTS))
        mujoco.mj_jac(self.model, data, jacobian[:3], jacobian[3:], point, body)
        return jacobian

    def flange_pose(self) -> np.ndarray:
        """[4, 4] of the flange, base frame."""
        pose, data = np.eye(4), self._data
        pose[:3, :3] = data.xmat[self._link7].reshape(3, 3)
        pose[:3, 3] = data.xpos[self._link7] + pose[:3, :3] @ FLANGE
        return pose

    @property
    def moment(self) -> Moment:
        """What the robot measures now."""
        if self._moment is None:
            at_flange = self._jacobian(FLANGE)
            at_end = self._jacobian(FLANGE + self.force_point) if self.force_point.any() else at_flange
            # Least squares, damped where the arm is singular: f = (J J^T + e I)^-1 J tau.
            force = np.linalg.solve(at_end @ at_end.T + _SINGULAR, at_end @ self._outer)
            velocity = at_flange[:3] @ self.dq
            speed = math.sqrt(velocity @ velocity)
            self._moment = Moment(self.q, self.dq, self.torque, speed, self._outer.copy(), force)
        return self._moment

    def end_effector(self) -> tuple[float, np.ndarray, np.ndarray]:
        """By the robot's settings: mass [kg], centre [3] and inertia [3, 3] about it, flange frame."""
        return at_flange(self.model, ("hand", "plate") if self._knows_plate else ("hand",))
