"""References for an arm whose own controller is K (q~ - q) - D dq + C, so that it obeys the governed law.

    q~ = q + (S + D dq) / K

makes that controller ask for S + C: S is what `dris.catching.law` computes, which keeps the joints' speeds,
their torques and the torque rate, and brakes in time. When nobody computes it any more, the arm goes on to
the last reference and stays there.
"""

from __future__ import annotations

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.catching.kinematics import Kinematics
from dris.catching.law import LawConfig, TorqueLaw


class Shaper:
    """The governed law as a shaper of references, with its memory of one motion."""

    def __init__(
        self, config: LawConfig, kinematics: Kinematics, limits: JointLimits, torque_limit: np.ndarray
    ):
        """Begin at rest; the arm's gains are those of the law, its limits the connected robot's."""
        self._kinematics = kinematics
        self._law = TorqueLaw(config, limits, torque_limit)
        self._gains = np.array(config.stiffness), np.array(config.damping)
        self._last = np.zeros(len(torque_limit))

    def reference(self, q: np.ndarray, dq: np.ndarray, wished: np.ndarray, tick_s: float) -> np.ndarray:
        """What to tell the arm's controller for a tick [s], to go to joints `wished` [M]."""
        K, D = self._gains
        nothing = np.zeros_like(q)
        inertia = self._kinematics.mass_matrix(q)
        self._last = self._law.torque(
            q, dq, wished, nothing, self._last, lambda impulse: np.linalg.solve(inertia, impulse), tick_s
        )
        return q + (self._last + D * dq) / K
