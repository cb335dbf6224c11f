"""How fast each joint of an FR3 may be where it is, and what drives it no faster.

FCI allows min(dq_max, -offset + sqrt(2 deceleration (distance to the end of the range))): nearer to the end,
less. Arrays are torch's for many sets in training or NumPy's for one robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np

from dris.core.arrays import at_least, namespace_of

SAFE_SHARE = 0.95
"""Of the speed at which an FR3 stops, wherever its joints are, that they are driven at [design]."""


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Of M joints, as arrays [M]."""

    low: Any
    """Ends of the ranges [rad]."""
    high: Any
    speed: Any
    """Largest speed anywhere [rad/s]."""
    offset: Any
    """Of the speed near an end [rad/s]."""
    deceleration: Any
    """[rad/s2]"""

    @classmethod
    def of(cls, model: mujoco.MjModel, array: Callable[[np.ndarray], Any] = np.asarray) -> JointLimits:
        """Those of fr3.xml, as arrays of the kind that `array` makes."""
        low, high = model.jnt_range.T.copy()
        names = ("joint_velocity_limit", "velocity_offset", "deceleration_limit")
        return cls(*map(array, (low, high, *(model.numeric(name).data.copy() for name in names))))

    def slowed(self, share: float) -> JointLimits:
        """The same joints, but no faster than a share of their speeds."""
        return replace(self, speed=share * self.speed)

    def margin(self, speed: float) -> Any:
        """Distance [M] from the end of a range at which a speed is allowed [rad]."""
        return (speed + self.offset) ** 2 / (2 * self.deceleration)

    def speeds_at(self, q: Any) -> tuple[Any, Any]:
        """Largest speeds [..., M] down and up that are allowed at joints q [..., M], both positive."""
        xp = namespace_of(q)
        if xp is np:  # to stack seven numbers takes longer than to compute with them
            return self._speeds(np, q - self.low), self._speeds(np, self.high - q)
        down, up = self._speeds(xp, xp.stack((q - self.low, self.high - q)))
        return down, up

    def _speeds(self, xp: Any, distance: Any) -> Any:
        """Largest speeds [..., M] so far from the end of a range."""
        near_end = xp.sqrt(2 * self.deceleration * at_least(distance, 0.0)) - self.offset
        return xp.minimum(at_least(near_end, 0.0), self.speed)

    def position_error_bounds(
        self, q: Any, share: float, stiffness: Any, damping: Any, near_end: float = SAFE_SHARE
    ) -> tuple[Any, Any]:
        """Position errors [..., M] down and up, both positive, that drive joints no faster than allowed.

        K e = D dq: a larger error e would drive the joint faster than dq, a share of its speed limit and no
        more than another share of what is left of it near the end of the range.

        Args:
            q: Where the joints are [..., M].
            share: Of the speed limits.
            stiffness: K [M] [Nm/rad]
            damping: D [M] [Nm s/rad]
            near_end: Of what is left.
        """
        xp = namespace_of(q)
        per_speed = damping / at_least(stiffness, 1e-9)
        down, up = (
            per_speed * xp.minimum(share * self.speed, near_end * allowed) for allowed in self.speeds_at(q)
        )
        return down, up
