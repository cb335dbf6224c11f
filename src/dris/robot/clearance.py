"""Where the plate would be under a joint reference, and how near to what it must not touch."""

from __future__ import annotations

import mujoco
import numpy as np

from dris.catching.robot_model import robot_model

FAR = 0.5
"""Distances are measured up to here [m]; beyond, nothing is near."""
LOW = ("plate", "hand", "link7", "link6", "link5")
"""Bodies that are kept above the table."""
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
        self._hand = self._model.body("hand").id
        held = {self._model.body(name).id for name in MOVING_WITH_PLATE}
        self._others = [g for g in range(self._model.ngeom) if int(self._model.geom_bodyid[g]) not in held]
        low = {self._model.body(name).id for name in LOW}
        self._low = [g for g in range(self._model.ngeom) if int(self._model.geom_bodyid[g]) in low]
        self._extents = np.array([self._extent(geom) for geom in self._low])
        half = self._model.geom_size[self._plate]
        self._sides = np.array([(sx * half[0], sy * half[1], 0.0) for sx in (-1, 1) for sy in (-1, 1)])
        self.home_position = self.plate(home)

    def _extent(self, geom: int) -> np.ndarray:
        """Half lengths [3] of a shape along its own axes [m]."""
        size, kind = self._model.geom_size[geom], self._model.geom_type[geom]
        if kind == mujoco.mjtGeom.mjGEOM_BOX:
            return size.copy()
        radius, half = size[:2]
        return np.array([radius, radius, half + (radius if kind == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0)])

    def plate(self, q: np.ndarray) -> np.ndarray:
        """Centre [3] of the plate's top face at joints q [M], base frame."""
        self._data.qpos[:] = q
        mujoco.mj_kinematics(self._model, self._data)
        return self._data.site_xpos[self._site].copy()

    def lowest(self) -> float:
        """Height of the lowest point of plate, hand, wrist and forearm, at the joints asked for last [m].

        Of cylinders and capsules a little lower than it is: half length and radius along the vertical.
        """
        up = np.abs(self._data.geom_xmat[self._low][:, 6:9])  # the vertical in each shape's axes
        return float((self._data.geom_xpos[self._low][:, 2] - (up * self._extents).sum(axis=1)).min())

    def to_robot(self) -> float:
        """Distance from the plate to the robot's base to forearm, at those joints [m]; at most `FAR`."""
        return min(
            mujoco.mj_geomDistance(self._model, self._data, self._plate, other, FAR, None)
            for other in self._others
        )

    def velocity_maps(self, q: np.ndarray) -> np.ndarray:
        """Maps [5, 3, M] from joint speeds at joints q [M] to velocities of the corners and the flange."""
        self.plate(q)
        mujoco.mj_comPos(self._model, self._data)
        moves, turns, flange = np.zeros((3, 3, self._model.nv))
        mujoco.mj_jacSite(self._model, self._data, moves, turns, self._site)
        mujoco.mj_jacBody(self._model, self._data, flange, None, self._hand)
        corners = self._sides @ self._data.site_xmat[self._site].reshape(3, 3).T
        return np.concatenate((moves + _cross_matrices(-corners) @ turns, flange[None]))


def _cross_matrices(vectors: np.ndarray) -> np.ndarray:
    """[C, 3, 3] that take w to the products of vectors [C, 3] with it, v x w."""
    x, y, z = vectors.T
    nothing = np.zeros_like(x)
    rows = ((nothing, -z, y), (z, nothing, -x), (-y, x, nothing))
    return np.array(rows).transpose(2, 0, 1)
