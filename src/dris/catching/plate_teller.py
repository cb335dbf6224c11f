"""Tells an observer where the plate is and how it moves; eyes check their calibration by it."""

from __future__ import annotations

import numpy as np

from dris.catching.control import BallObserver
from dris.catching.kinematics import Kinematics
from dris.perception.plate import Plate

TELL_S = 0.005
"""Between catches the observer is told so often [s]."""
FRESH_S = 0.1
"""What was told longer ago says nothing about a velocity now [s]: two control steps [design]."""


class PlateTeller:
    """Remembers what it told last."""

    def __init__(self, kinematics: Kinematics):
        self._kinematics = kinematics
        self._time_s, self._position = -np.inf, np.zeros(3)

    def tell(self, observer: BallObserver, now_s: float, q: np.ndarray) -> None:
        """The plate at joints q [M], with its mean velocity since it was told last."""
        since_s = now_s - self._time_s
        position, rotation = self._kinematics.plate(q)
        fresh = 0 < since_s < FRESH_S  # or it is long ago, or by another clock
        velocity = (position - self._position) / since_s if fresh else np.zeros(3)
        observer.observe_plate(Plate(now_s, position, rotation[:, 2], velocity, edge_in_base=rotation[:, 0]))
        self._time_s, self._position = now_s, position

    def tell_if_due(self, observer: BallObserver, now_s: float, q: np.ndarray) -> None:
        """Joints and plate, unless they were told just before."""
        if not 0 <= now_s - self._time_s < TELL_S - 1e-9:
            observer.observe_joints(now_s, q)
            self.tell(observer, now_s, q)
