"""Where the plate would be under a joint reference, and how near to what it must not touch."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np

from dris.catching.robot_model import robot_model

FAR = 0.5
"""Distances are measured up to here [m]; beyond, nothing is near."""
MOVING_WITH_PLATE = ("plate", "hand", "link7", "link6")
"""Bodies that hold the plate: nothing to keep away from."""


class Clearance:
    """The arm of fr3.xml with its plate: places and distances, no dynamics."""

    def __init__(self, home: np.ndarray, mount: str):
        """Load the arm; the workspace is told over the plate's place at home [M]."""
        self._model = robot_model(mount)
        self._data = mujoco.MjData(self._model)
        self._site = self._model.site("plate").id
        self._plate = self._model.geom("plate").id
        held = {self._model.body(name).id for name in MOVING_WITH_PLATE}
        self._others = [g for g in range(self._model.ngeom) if int(self._model.geom_bodyid[g]) not in held]
        half = self._model.geom_size[self._plate]
        self._corners = np.array(list(itertools.product((-1, 1), repeat=3))) * half
        self.home_position = self.plate(home)

    def plate(self, q: np.ndarray) -> np.ndarray:
        """Centre [3] of the plate's top face at joints q [M], base frame."""
        self._data.qpos[:] = q
        mujoco.mj_kinematics(self._model, self._data)
        return self._data.site_xpos[self._site].copy()

    def lowest_corner(self) -> float:
        """Height of the plate's lowest corner, at the joints that `plate` was asked for last [m]."""
        rotation = self._data.geom_xmat[self._plate].reshape(3, 3)
        return float((self._corners @ rotation.T)[:, 2].min() + self._data.geom_xpos[self._plate][2])

    def to_robot(self) -> float:
        """Distance from the plate to the robot's base to forearm, at those joints [m]; at most `FAR`."""
        return min(
            mujoco.mj_geomDistance(self._model, self._data, self._plate, other, FAR, None)
            for other in self._others
        )

    def speeds(self, q: np.ndarray, dq: np.ndarray) -> tuple[float, float]:
        """Of the plate's centre and of the flange when joints q [M] move at dq [M] [m/s]."""
        self.plate(q)
        mujoco.mj_comPos(self._model, self._data)
        jacobian = np.zeros((3, self._model.nv))
        mujoco.mj_jacSite(self._model, self._data, jacobian, None, self._site)
        plate = float(np.linalg.norm(jacobian @ dq))
        mujoco.mj_jacBody(self._model, self._data, jacobian, None, self._model.body("hand").id)
        return plate, float(np.linalg.norm(jacobian @ dq))
