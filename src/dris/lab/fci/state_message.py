"""The robot's state as it goes out every millisecond."""

from __future__ import annotations

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
        self._torque = cabinet.plant.torque

    def encode(self, message_id: int) -> bytes:
        """The datagram of a millisecond."""
        cabinet, plant, record = self._cabinet, self._cabinet.plant, self._record
        if self._settings is not cabinet.settings:
            self._write_settings(cabinet.settings)
        motion = cabinet.motion
        record["message_id"] = message_id
        record["q"], record["dq"] = record["theta"], record["dtheta"] = plant.q, plant.dq
        reference = plant.reference
        record["q_d"], record["dq_d"], record["ddq_d"] = reference.q, reference.dq, reference.ddq
        record["tau_J"], record["dtau_J"] = plant.torque, (plant.torque - self._torque) / TICK_S
        self._torque = plant.torque
        record["tau_J_d"] = motion.torque if motion else 0.0
        flange = plant.flange_pose()
        pose = (flange @ self._flange_to_end).T.ravel()
        record["O_T_EE"] = record["O_T_EE_d"] = record["O_T_EE_c"] = pose
        record["elbow"] = record["elbow_d"] = record["elbow_c"] = (
            plant.q[2],
            1.0 if plant.q[3] >= ELBOW_STRETCHED else -1.0,
        )
        moment = plant.moment
        record["tau_ext_hat_filtered"], record["O_F_ext_hat_K"] = moment.outer_torque, moment.outer_force
        outer, limits = np.abs(moment.outer_torque), cabinet.settings.thresholds
        record["joint_contact"], record["joint_collision"] = (
            outer > limits.contact_torque,
            outer > limits.torque,
        )
        outer = np.abs(moment.outer_force)
        record["cartesian_contact"] = outer > limits.contact_force
        record["cartesian_collision"] = outer > limits.force
        turn = flange[:3, :3] @ self._flange_to_stiffness
        record["K_F_ext_hat_K"] = (moment.outer_force.reshape(2, 3) @ turn).ravel()
        record["robot_mode"] = cabinet.mode
        record["motion_generator_mode"] = motion.generator if motion else Generator.IDLE
        record["controller_mode"] = motion.controller if motion else Controller.OTHER
        record["control_command_success_rate"] = cabinet.success_rate
        for name, found in (("errors", cabinet.errors), ("reflex_reason", cabinet.last_errors)):
            record[name] = False
            for error in found:
                record[name][ERRORS.index(error)] = True
        return record.tobytes()

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
