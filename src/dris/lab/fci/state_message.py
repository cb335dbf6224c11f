"""The robot's state as it goes out every millisecond."""

from __future__ import annotations

from typing import Any

import numpy as np

from dris.lab.fci.cabinet import Cabinet
from dris.lab.fci.protocol import ERRORS, ROBOT_STATE, Controller, Generator
from dris.lab.fci.settings import Settings, hand_pose
from dris.lab.twin import TICK_S

ELBOW_STRETCHED = -0.467002423653011
"""Of joint 4 [rad]: beyond it the elbow flips."""


class StateMessage:
    """A cabinet's state, encoded. What seldom changes is written when it does."""

    def __init__(self, cabinet: Cabinet):
        """Write what never changes."""
        self._cabinet = cabinet
        self._record = np.zeros((), ROBOT_STATE)
        mass, centre, inertia = cabinet.plant.end_effector()
        record = self._record
        record["m_ee"], record["F_x_Cee"], record["I_ee"] = mass, centre, inertia.ravel()
        record["F_T_NE"] = hand_pose().T.ravel()
        record["O_ddP_O"] = cabinet.plant.model.opt.gravity  # or clients' gravity is zero
        self._settings: Settings | None = None
        self._errors: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
        self._torque = cabinet.plant.torque
        # Views of what changes every millisecond: to look a field up takes longer than to write it.
        self._field: dict[str, np.ndarray] = {name: record[name] for name in record.dtype.names or ()}

    def encode(self, message_id: int) -> bytes:
        """The datagram of a millisecond."""
        cabinet, plant, write = self._cabinet, self._cabinet.plant, self._write
        if self._settings is not cabinet.settings:
            self._write_settings(cabinet.settings)
        if self._errors != (cabinet.errors, cabinet.last_errors):
            self._write_errors(cabinet.errors, cabinet.last_errors)
        motion = cabinet.motion
        write(message_id, "message_id")
        write(plant.q, "q", "theta")
        write(plant.dq, "dq", "dtheta")
        reference = plant.reference
        write(reference.q, "q_d")
        write(reference.dq, "dq_d")
        write(reference.ddq, "ddq_d")
        write(plant.torque, "tau_J")
        write((plant.torque - self._torque) / TICK_S, "dtau_J")
        self._torque = plant.torque
        write(motion.torque if motion else 0.0, "tau_J_d")
        flange = plant.flange_pose()
        write((flange @ self._flange_to_end).T.ravel(), "O_T_EE", "O_T_EE_d", "O_T_EE_c")
        elbow = plant.q[2], 1.0 if plant.q[3] >= ELBOW_STRETCHED else -1.0
        write(elbow, "elbow", "elbow_d", "elbow_c")
        moment, limits = plant.moment, cabinet.settings.thresholds
        write(moment.outer_torque, "tau_ext_hat_filtered")
        write(moment.outer_force, "O_F_ext_hat_K")
        outer = np.abs(moment.outer_torque)
        write(outer > limits.contact_torque, "joint_contact")
        write(outer > limits.torque, "joint_collision")
        outer = np.abs(moment.outer_force)
        write(outer > limits.contact_force, "cartesian_contact")
        write(outer > limits.force, "cartesian_collision")
        turn = flange[:3, :3] @ self._flange_to_stiffness
        write((moment.outer_force.reshape(2, 3) @ turn).ravel(), "K_F_ext_hat_K")
        write(cabinet.mode, "robot_mode")
        write(motion.generator if motion else Generator.IDLE, "motion_generator_mode")
        write(motion.controller if motion else Controller.OTHER, "controller_mode")
        write(cabinet.success_rate, "control_command_success_rate")
        return self._record.tobytes()

    def _write(self, values: Any, *names: str) -> None:
        """The same values into some fields."""
        for name in names:
            self._field[name][...] = values

    def _write_errors(self, now: tuple[str, ...], last: tuple[str, ...]) -> None:
        self._errors = now, last
        for name, found in (("errors", now), ("reflex_reason", last)):
            self._write([error in found for error in ERRORS], name)

    def _write_settings(self, settings: Settings) -> None:
        record = self._record
        self._settings, self._flange_to_end = settings, settings.flange_to_end()
        self._flange_to_stiffness = settings.flange_to_stiffness()[:3, :3]
        record["F_T_EE"] = self._flange_to_end.T.ravel()
        record["NE_T_EE"], record["EE_T_K"] = (
            settings.end_effector.T.ravel(),
            settings.stiffness_frame.T.ravel(),
        )
        record["m_load"], record["F_x_Cload"] = settings.load_mass, settings.load_centre
        record["I_load"] = settings.load_inertia.ravel()
