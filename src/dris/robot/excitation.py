"""A slow, small motion of one joint after the other, for `dris.robot.identify`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dris.core.validation import check_positive

if TYPE_CHECKING:
    from dris.catching.joint_limits import JointLimits

EDGE_S = 0.25
"""Of a joint's turn that is left out at both ends: smoothing knows less there [s]."""
FASTEST_HZ = 4.0
"""No joint is asked to swing faster [Hz] [design]."""


@dataclass(frozen=True)
class ExcitationConfig:
    """Bounded and slow: what one joint after the other is asked to do about home."""

    frequencies_hz: tuple[float, ...] = (0.3, 1.1, 3.1)
    """Each at the same speed. The slow one tells friction, the fast one inertia, against which K and D are
    weighed [design]."""
    amplitude_rad: float = 0.12
    """No joint is asked to go further from home [design],"""
    speed_share: float = 0.2
    """nor faster than this share of its limit [design]."""
    joint_s: float = 6.0
    """A joint's turn [s]."""
    ramp_s: float = 0.5
    """In which it swells, and fades at the end [s]."""

    def __post_init__(self) -> None:
        """Refuse what tells nothing, or is not slow."""
        check_positive(self, "amplitude_rad", "speed_share", "joint_s", "ramp_s")
        if not self.speed_share <= 0.5 or not self.amplitude_rad <= 0.3:
            raise ValueError(
                "an excitation is slow and small: speed_share at most 0.5 and amplitude_rad at most 0.3, got "
                f"{self.speed_share}, {self.amplitude_rad}"
            )
        if not self.frequencies_hz or not all(0 < f <= FASTEST_HZ for f in self.frequencies_hz):
            raise ValueError(f"frequencies_hz lie in (0, {FASTEST_HZ}] Hz, got {self.frequencies_hz}")
        if self.joint_s < 2 * (self.ramp_s + EDGE_S) + 1:
            raise ValueError(f"joint_s must leave a second between its ramps, got {self.joint_s} s")


class Excitation:
    """Joint references over time: one joint after the other swings about home, the others stay."""

    def __init__(self, config: ExcitationConfig, home: np.ndarray, limits: JointLimits):
        """Choose each joint's swing."""
        self.config, self._home = config, np.asarray(home, dtype=float)
        self._omega = 2 * math.pi * np.array(config.frequencies_hz)
        # Sines of the same speed v / n: their sum is never faster than v; the ramp adds a little.
        unit = 1.0 / (len(self._omega) * self._omega)
        self._per_sine = unit[None] * np.minimum(
            config.speed_share * np.asarray(limits.speed), config.amplitude_rad / unit.sum()
        ).reshape(-1, 1)
        self.duration_s = config.joint_s * len(self._home)

    def at(self, time_s: float) -> np.ndarray:
        """Joints [M] at a time from the beginning."""
        q = self._home.copy()
        if not 0 <= time_s < self.duration_s:
            return q
        joint, t = divmod(time_s, self.config.joint_s)
        edge = min(t, self.config.joint_s - t, self.config.ramp_s) / self.config.ramp_s
        swing = float((self._per_sine[int(joint)] * np.sin(self._omega * t)).sum())
        q[int(joint)] += math.sin(0.5 * math.pi * edge) ** 2 * swing
        return q

    def turns(self) -> list[tuple[float, float]]:
        """When each joint has its turn [s]."""
        each = self.config.joint_s
        return [(each * joint, each * (joint + 1)) for joint in range(len(self._home))]
