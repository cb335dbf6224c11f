"""The stage of any task that has an MJCF: its bodies in 3-D, and one of them for every instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from dris.core.stage import Kind, Scene, Shape, Stage

_KINDS: dict[int, Kind] = {
    mujoco.mjtGeom.mjGEOM_BOX: "box",
    mujoco.mjtGeom.mjGEOM_SPHERE: "sphere",
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: "ellipsoid",
    mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
    mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
    mujoco.mjtGeom.mjGEOM_MESH: "mesh",
}
"""Planes and height fields are not drawn: the page has its own floor."""
LAST_SHOWN_GROUP = 2
"""MuJoCo's own viewer shows groups 0 to 2; models keep what only collides in the others."""
_NUMBERS = {"box": 3, "sphere": 1, "ellipsoid": 3, "capsule": 2, "cylinder": 2, "mesh": 0}


def shapes_of(model: mujoco.MjModel) -> tuple[Shape, ...]:
    """The visible geoms of a model, on its bodies."""
    found = []
    for geom in range(model.ngeom):
        kind = _KINDS.get(int(model.geom_type[geom]))
        hidden = model.geom_rgba[geom, 3] == 0 or model.geom_group[geom] > LAST_SHOWN_GROUP
        if kind is None or hidden:
            continue
        vertices = faces = None
        if kind == "mesh":
            mesh = int(model.geom_dataid[geom])
            first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
            vertices = model.mesh_vert[first : first + count].copy()
            first, count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
            faces = model.mesh_face[first : first + count].copy()
        x, y, z = model.geom_pos[geom].tolist()
        qw, qx, qy, qz = model.geom_quat[geom].tolist()
        red, green, blue, _ = model.geom_rgba[geom].tolist()
        found.append(
            Shape(
                int(model.geom_bodyid[geom]), kind, tuple(model.geom_size[geom, : _NUMBERS[kind]].tolist()),
                (x, y, z), (qw, qx, qy, qz), (red, green, blue), vertices, faces,
            )
        )  # fmt: skip
    return tuple(found)


class MjcfStage(Stage):
    """Bodies of a model as the first instance has them, and a ball where each has one of them."""

    def __init__(
        self,
        model: mujoco.MjModel,
        qpos: Callable[[int], Any],
        follow: str | None = None,
        radius: float = 0.02,
    ):
        """Look at a task.

        Args:
            model: The MJCF, compiled.
            qpos: Joint positions of a set, [nq] or one row an instance [N, nq].
            follow: Name of the body that is drawn as a ball for each instance; None: the last.
            radius: Of those balls [m].
        """
        self.model, self._data, self._qpos, self._radius = model, mujoco.MjData(model), qpos, radius
        self.shapes = shapes_of(model)
        self._follow = model.nbody - 1 if follow is None else model.body(follow).id
        middle, extent = model.stat.center, 2.0 * model.stat.extent
        away = middle + extent * np.array([0.6, -0.6, 0.4])
        self.camera = (_triple(away), _triple(middle))
        self.close_up = (_triple(middle + 0.4 * (away - middle)), _triple(middle))

    def scene(self, which: int) -> Scene:
        """One set as it is now."""
        rows = np.atleast_2d(np.asarray(self._qpos(which), dtype=float))
        places = [self.poses(row) for row in rows]
        points = np.array([positions[self._follow] for positions, _ in places])
        count = len(rows)
        return Scene(*places[0], points, np.full(count, self._radius), np.zeros(count, dtype=bool))

    def poses(self, qpos: Any) -> tuple[np.ndarray, np.ndarray]:
        """Positions [K, 3] and quaternions [K, 4] of all bodies for joints [nq]."""
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self._data)
        return self._data.xpos.copy(), self._data.xquat.copy()


def _triple(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return x, y, z
