"""Forces that MuJoCo's contact does not give: air on the thing, and its resistance to rolling.

Both act once a control tick (1 ms) and are held for it. Rolling friction inside MuJoCo's elliptic cone
takes from the sliding friction and makes a light ball hop; a torque beside it does neither.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from dris.lab.model import LabConfig
from dris.lab.objects import CatchObject

REST_SPEED = 0.005
"""Rolling resistance fades below this speed of the surface [m/s], so that a ball at rest stays at rest."""


class Forces:
    """Drag, buoyancy and rolling resistance on the thing of a model."""

    def __init__(self, model: mujoco.MjModel, config: LabConfig, thing: CatchObject):
        """Remember where the thing is in the model."""
        self._dof = int(model.joint("thing").dofadr[0])
        self._pad = model.geom("plate").id
        section = math.pi * thing.radius**2
        self._drag = 0.5 * config.air_density * section * thing.drag
        self._lift = config.air_density * 4 / 3 * math.pi * thing.radius**3 * config.gravity
        self._arm = thing.rolling * thing.radius
        self._rest_rate = REST_SPEED / thing.radius

    def normal_force(self, data: mujoco.MjData) -> float:
        """Force of the pad on the thing along its normal in the last step [N].

        To be asked before the next step begins: until then contacts and forces belong together.
        """
        if data.ncon == 0:
            return 0.0
        contact = data.contact
        mine = ((contact.geom == self._pad).any(axis=1)) & (contact.efc_address >= 0)
        return float(data.efc_force[contact.efc_address[mine]].sum())

    def apply(self, data: mujoco.MjData) -> None:
        """Write the forces for the tick that begins now."""
        dof = self._dof
        velocity = data.qvel[dof : dof + 3]
        speed = math.sqrt(velocity @ velocity)
        data.qfrc_applied[dof : dof + 3] = (-self._drag * speed) * velocity
        data.qfrc_applied[dof + 2] += self._lift
        # Against the turning, as strong as the load: -c r N omega / |omega|, in the thing's own axes.
        torque = np.zeros(3)
        if self._arm > 0 and data.ncon > 0:
            rate = data.qvel[dof + 3 : dof + 6]
            resistance = self._arm * self.normal_force(data)
            torque = rate * (-resistance / (math.sqrt(rate @ rate) + self._rest_rate))
        data.qfrc_applied[dof + 3 : dof + 6] = torque
