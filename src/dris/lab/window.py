"""A window of a camera's picture, and what it cannot show: that need not be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import mujoco
import numpy as np

from dris.lab.cameras import CameraConfig
from dris.lab.model import HIDDEN

WINDOW = 176
"""Side of a window of a picture [pixels]."""
SPARE = 4
"""Shapes that come so near to a window are drawn, too [pixels]."""


def outside(
    model: mujoco.MjModel, data: mujoco.MjData, camera: CameraConfig, window: tuple[int, int]
) -> np.ndarray:
    """Which shapes [G] a window of a camera cannot show: their bounding spheres lie beyond one of its edges.

    Args:
        model: With the camera.
        data: After `mj_kinematics`.
        camera: Its name and lens.
        window: Left and top of it [pixels].
    """
    index, reach = model.camera(camera.name).id, model.geom_rbound
    seen = (data.geom_xpos - data.cam_xpos[index]) @ data.cam_xmat[index].reshape(3, 3)  # y up, z back
    ahead, found = -seen[:, 2], np.zeros(len(reach), dtype=bool)
    sides = ((seen[:, 0], window[0] - 0.5 * camera.width), (-seen[:, 1], window[1] - 0.5 * camera.height))
    for across, first in sides:
        low, high = (first - SPARE) / camera.focal, (first + WINDOW + SPARE) / camera.focal
        found |= (low * ahead - across) / math.hypot(1.0, low) > reach
        found |= (across - high * ahead) / math.hypot(1.0, high) > reach
    return found & (reach > 0)  # a plane has no end


@contextmanager
def hiding(model: mujoco.MjModel, shapes: np.ndarray) -> Iterator[None]:
    """Leave shapes [G] out of scenes that are made meanwhile."""
    groups = model.geom_group.copy()
    model.geom_group[shapes] = HIDDEN
    try:
        yield
    finally:
        model.geom_group[:] = groups
