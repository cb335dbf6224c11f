"""The torque law of one robot, inside what FCI allows.

    tau = K e - D dq' + bias,    e = q~ - q cut to what drives a joint no faster than it may be

*Governed*, K e - D dq' changes and grows no further than a share of FCI's torque rate and of the joints'
torques. *Braking in time*, dq' is the speed that the joints will have once their torques S have been taken
back at that rate, dq + M^-1 S |S| / (2 rate): all joints together, for where the elbow is slowed the shoulder
would still drive it on.

The twin's robot computes torques with it (bias = C + g). On a real arm whose controller computes
K (q~ - q) - D dq + C by itself, `dris.robot.shaping` turns them into references.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dris.catching.joint_limits import SAFE_SHARE, JointLimits

FCI_TORQUE_RATE = 1000.0
"""Largest change of torque that FCI accepts [Nm/s]."""
LARGEST_RATE_SHARE = 0.99
"""Of it that a governed drive asks for at most."""
TICK_S = 0.001
"""The robot's control cycle [s]."""
REACTION_S = np.array([0.10, 0.13, 0.10, 0.06, 0.03, 0.04, 0.03])
"""How fast a joint may be is asked for where it will be after this time [s]: the law changes its speed within
M / D, which is 0.05 to 0.17 s at home with the softest gains, and most of it is enough [design]. Training
takes the M / D of its own gains, which are stiffer in preset `fr3`: there it slows down later."""

Gain = Callable[[np.ndarray], np.ndarray]
"""M^-1 times impulses [M]: changes of joint speeds."""


@dataclass(frozen=True)
class LawConfig:
    """Of M joints."""

    stiffness: tuple[float, ...]
    """K [Nm/rad]"""
    damping: tuple[float, ...]
    """D [Nm s/rad]"""
    joint_speed: float | None = None
    """Share of the joints' speed limits that the law drives at; None: without such a limit."""
    governor: float | None = None
    """Share of FCI's torque rate and of the torque limits that it keeps to; None: no such limit."""
    brakes_in_time: bool = False


class TorqueLaw:
    """The law with its memory: the torques of the last tick."""

    def __init__(self, config: LawConfig, limits: JointLimits, torque_limit: np.ndarray):
        """Begin at rest.

        Args:
            config: Gains and shares.
            limits: Of the joints.
            torque_limit: [M] [Nm]
        """
        self.config, self._limits, self._torque_limit = config, limits, torque_limit
        self._gains = np.array(config.stiffness), np.array(config.damping)
        self._servo = np.zeros(len(torque_limit))
        self.governed = False
        """Whether the governor held the law back in the last tick."""

    def torque(
        self,
        q: np.ndarray,
        dq: np.ndarray,
        reference: np.ndarray,
        bias: np.ndarray,
        last: np.ndarray,
        gain: Gain,
        tick_s: float = TICK_S,
    ) -> np.ndarray:
        """Torques [M] of the next tick.

        Args:
            q: Joints [M].
            dq: Their speeds.
            reference: Where they should go.
            bias: Added to K e - D dq'.
            last: Torques of the last tick, bias included.
            gain: M^-1.
            tick_s: Until the next torques [s].
        """
        config, (K, D) = self.config, self._gains
        speed = dq + self._to_come(gain) if config.brakes_in_time else dq
        error = reference - q
        if (share := config.joint_speed) is not None:
            near_end = share if share and config.brakes_in_time else SAFE_SHARE
            down, up = self._limits.position_error_bounds(q + REACTION_S * speed, share, K, D, near_end)
            error = np.minimum(np.maximum(error, -down), up)
        wished = K * error - D * speed + bias
        if config.governor is None:
            return wished
        governed = self._govern(wished, bias, last, tick_s)
        self.governed = governed.tolist() != wished.tolist()
        return governed

    def remember(self, servo: np.ndarray) -> None:
        """Torques without bias [M] that were really asked for, where others had a say."""
        self._servo = servo.copy()

    def _to_come(self, gain: Gain) -> np.ndarray:
        """What joint speeds [M] still gain while the law's torques are taken back."""
        rate = (self.config.governor or 1.0) * FCI_TORQUE_RATE
        return gain(self._servo * np.abs(self._servo) / (2 * rate))

    def _govern(self, wished: np.ndarray, bias: np.ndarray, last: np.ndarray, tick_s: float) -> np.ndarray:
        """Torques [M] near those wished for whose part without the bias changes and grows within limits."""
        share = self.config.governor or 1.0
        step, most = share * FCI_TORQUE_RATE * tick_s, share * self._torque_limit
        # Minima and maxima: np.clip takes four times as long for so few numbers.
        inside = np.minimum(np.maximum(wished, -most), most) - bias
        self._servo = np.minimum(np.maximum(inside, self._servo - step), self._servo + step)
        # C + g of a fast arm can change faster than the rest allows: then their sum is held back.
        most_change = LARGEST_RATE_SHARE * FCI_TORQUE_RATE * tick_s
        return np.minimum(np.maximum(self._servo + bias, last - most_change), last + most_change)
