"""What is true in the twin at one moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dris.lab.model import PLATE_HALF


@dataclass(frozen=True)
class State:
    """What is true now; base frame, SI units."""

    time_s: float
    q: np.ndarray
    dq: np.ndarray
    torque: np.ndarray
    """[7] of the last tick, gravity included."""
    thing_position: np.ndarray
    thing_velocity: np.ndarray
    thing_spin: np.ndarray
    plate_position: np.ndarray
    """Centre of the top face."""
    plate_rotation: np.ndarray
    """[3, 3], columns are the plate's axes; the last is its normal."""

    def on_plate(self, reach: float, gap: float = 0.01) -> bool:
        """Whether the thing is over the square plate and no further than `gap` from lying on it.

        Args:
            reach: Distance of its centre from the plate when it lies there, at most [m].
            gap: [m], as the training's success has it.
        """
        local = self.plate_rotation.T @ (self.thing_position - self.plate_position)
        return bool(np.abs(local[:2]).max() <= PLATE_HALF and 0 < local[2] < reach + gap)
