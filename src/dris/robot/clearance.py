"""Where the plate would be under a joint reference, and how near the arm to what it must not touch."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from dris.catching.robot_model import robot_model

FAR = 0.5
"""Distances are measured up to here [m]; beyond, nothing is near."""
LOW = ("plate", "hand", "link7", "link6", "link5")
"""Bodies that are kept above the table."""
HELD = ("plate", "hand", "link7", "link6")
"""Bodies beyond the forearm, which are kept away from the robot; the plate from the forearm, too."""
FOREARM = ("link4", "link5")
"""The wrist is held by these: only the plate is kept away from them."""


class Clearance:
    """The arm of fr3.xml with its plate: places and distances, no dynamics."""

    def __init__(self, home: np.ndarray, mount: str):
        """Load the arm; the workspace is told over the plate's place at home [M]."""
        self._model = robot_model(mount)
        self._data = mujoco.MjData(self._model)
        self._site = self._model.site("plate").id
        self._plate = self._model.geom("plate").id
        self._hand = self._model.body("hand").id
        # A chain's shapes are numbered from its base to its end; views into the data cost nothing to read.
        low, held = slice(self._first(LOW), None), self._first(HELD)
        self._held, self._robot = self._data.geom_xpos[held:], self._data.geom_xpos[:held]
        self._spheres = self._model.geom_rbound[held:, None] + self._model.geom_rbound[:held]
        self._spheres[: self._plate - held, self._first(FOREARM) :] = -np.inf  # never near
        self._extents = np.array([self._extent(geom) for geom in range(self._model.ngeom)[low]])
        self._place = self._data.site_xpos[self._site]
        self._heights, self._verticals = self._data.geom_xpos[low, 2], self._data.geom_xmat[low, 6:9]
        half = self._model.geom_size[self._plate]
        self._sides = np.array([(sx * half[0], sy * half[1], 0.0) for sx in (-1, 1) for sy in (-1, 1)])
        self.home = np.array(home, dtype=float)
        self.home_position = self.plate(self.home)

    def _first(self, bodies: tuple[str, ...]) -> int:
        """The first shape of bodies that are the last of the chain."""
        held = {self._model.body(name).id for name in bodies}
        return min(g for g, body in enumerate(self._model.geom_bodyid.tolist()) if body in held)

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
        return self._place.copy()

    def lowest(self) -> float:
        """Height of the lowest point of plate, hand, wrist and forearm, at the joints asked for last [m].

        Of cylinders and capsules a little lower than it is: half length and radius along the vertical.
        """
        # The vertical in each shape's axes, times its half lengths.
        below = np.einsum("gk,gk->g", np.abs(self._verticals), self._extents)
        return min((self._heights - below).tolist())

    def to_robot(self, within: float = FAR) -> float:
        """Distance of plate, hand and wrist from base to upper arm, of the plate from the forearm, too [m].

        At the joints asked for last; `within` or more if nothing is nearer. Measured only between shapes
        whose bounding spheres are no further apart than that: others cannot be nearer.
        """
        way = self._held[:, None] - self._robot
        apart = np.sqrt(np.einsum("hrk,hrk->hr", way, way)) - self._spheres
        near = ~(apart > within)
        if not near.any():
            return within
        first, model, data = len(self._robot), self._model, self._data
        pairs = np.argwhere(near).tolist()
        return min(
            mujoco.mj_geomDistance(model, data, first + held, other, FAR, None) for held, other in pairs
        )

    def velocity_maps(self, q: np.ndarray) -> VelocityMaps:
        """How joint speeds at joints q [M] move plate and flange."""
        self.plate(q)
        mujoco.mj_comPos(self._model, self._data)
        jacobian = np.zeros((9, self._model.nv))
        mujoco.mj_jacSite(self._model, self._data, jacobian[:3], jacobian[3:6], self._site)
        mujoco.mj_jacBody(self._model, self._data, jacobian[6:], None, self._hand)
        return VelocityMaps(jacobian, self._sides @ self._data.site_xmat[self._site].reshape(3, 3).T)


class VelocityMaps:
    """From joint speeds to velocities of the plate's corners and the flange, at one place of the arm."""

    def __init__(self, jacobian: np.ndarray, corners: np.ndarray):
        """Of one place.

        Args:
            jacobian: [9, M] of the plate's centre, of its angular velocity, and of the flange.
            corners: [4, 3] from the plate's centre, base frame [m].
        """
        self._jacobian, self._corners = jacobian, corners.tolist()

    def fastest(self, speeds: np.ndarray) -> float:
        """Speed of the fastest of corners and flange under joint speeds [M] [m/s]."""
        vx, vy, vz, wx, wy, wz, fx, fy, fz = (self._jacobian @ speeds).tolist()
        squares = [fx * fx + fy * fy + fz * fz]
        for x, y, z in self._corners:  # v + w x r
            cx, cy, cz = vx + wy * z - wz * y, vy + wz * x - wx * z, vz + wx * y - wy * x
            squares.append(cx * cx + cy * cy + cz * cz)
        return math.sqrt(max(squares))
