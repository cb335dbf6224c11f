"""Tells an observer where the plate is while no catch loop does: eyes check their calibration by it."""

from __future__ import annotations

import numpy as np

from dris.catching.control import BallObserver
from dris.catching.kinematics import Kinematics
from dris.perception.plate import Plate

TELL_S = 0.005
"""The observer is told so often [s]."""


class PlateTeller:
    """Remembers what it told last."""

    def __init__(self, kinematics: Kinematics):
        self._kinematics = kinematics
        self._time_s, self._position = -np.inf, np.zeros(3)

    def tell(self, observer: BallObserver, now_s: float, q: np.ndarray) -> None:
        """Joints [M] and plate now, with its mean velocity since it was told, if that was just before."""
        since_s = now_s - self._time_s
        if 0 <= since_s < TELL_S - 1e-9:
            return
        position, rotation = self._kinematics.plate(q)
        just_before = 0 < since_s < 10 * TELL_S  # or it is long ago, or by another clock
        velocity = (position - self._position) / since_s if just_before else np.zeros(3)
        observer.observe_joints(now_s, q)
        observer.observe_plate(Plate(now_s, position, rotation[:, 2], velocity, edge_in_base=rotation[:, 0]))
        self._time_s, self._position = now_s, position
