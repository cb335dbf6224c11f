"""References for an arm whose own controller is K (q~ - q) - D dq + C, so that it obeys the governed law.

    q~ = q + (S + D dq) / K

makes that controller ask for S + C: S is what `dris.catching.law` computes, which keeps the joints' speeds,
their torques and the torque rate, and brakes in time. The robot adds gravity g by itself: a joint's torque
limit is one of S + C + g, FCI's rate one of S + C. When nobody computes S any more, the arm goes on to the
last reference and stays there.
"""

from __future__ import annotations

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.catching.kinematics import Dynamics
from dris.catching.law import LawConfig, TorqueLaw


class Shaper:
    """The governed law as a shaper of references, with its memory of one motion."""

    def __init__(self, config: LawConfig, limits: JointLimits, torque_limit: np.ndarray):
        """Begin at rest; the arm's gains are those of the law, its limits the connected robot's."""
        self._law = TorqueLaw(config, limits, torque_limit)
        self._gains = np.array(config.stiffness), np.array(config.damping)
        self._last = np.zeros(len(torque_limit))  # S + C

    def reference(
        self, q: np.ndarray, dq: np.ndarray, wished: np.ndarray, tick_s: float, arm: Dynamics
    ) -> np.ndarray:
        """What to tell the arm's controller for a tick [s], to go to joints `wished` [M].

        Args:
            q: Joints [M].
            dq: Their speeds.
            wished: Where they should go.
            tick_s: Until the next reference [s].
            arm: Its dynamics at q and dq.
        """
        K, D = self._gains
        gain = lambda impulse: np.linalg.solve(arm.inertia, impulse)  # noqa: E731
        torque = self._law.torque(q, dq, wished, arm.bias, self._last + arm.gravity, gain, tick_s)
        self._last = torque - arm.gravity
        return q + (torque - arm.bias + D * dq) / K

    def correct(self, arm: Dynamics, asked: np.ndarray) -> None:
        """Take note of torques S + C + g [M] that the arm's controller computes instead, where the arm is.

        For when a filter has changed the reference, or it has stood for longer than a tick.
        """
        self._law.remember(asked - arm.bias)
        self._last = asked - arm.gravity
