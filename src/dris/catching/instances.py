"""What a belief may make of balls: kept possible, for many sets (torch) or one robot (NumPy).

A ball in a belief is 13 numbers: position, velocity, spin (base frame), radius, static and dynamic friction,
restitution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dris.catching.success import dot, length_across
from dris.core.arrays import namespace_of

RADII = (0.01, 0.06)
"""Radii are kept within these [m]."""
_BOUNDS = np.array((RADII[0], 0.0, 0.0, 0.0)), np.array((RADII[1], np.inf, np.inf, 1.0))


@dataclass(frozen=True)
class PlateMotion:
    """Where plates are and how they move, base frame, [..., 3] each."""

    position: Any
    normal: Any
    velocity: Any
    normal_rate: Any
    """How the normal changes: omega x normal."""

    @classmethod
    def of(cls, position: Any, normal: Any, velocity: Any, omega: Any) -> PlateMotion:
        """Of plates with angular velocities omega."""
        return cls(position, normal, velocity, _cross(omega, normal))


def keep_possible(values: Any, lies: Any, plate: PlateMotion, plate_half: float) -> tuple[Any, Any]:
    """Balls [..., N, 13] as they can be; and which [..., N] had to be changed.

    Parameters are kept in their ranges; a ball that lies stays on the plate and moves with it along its
    normal; one that flies is not inside the plate.

    Args:
        values: As a belief has them.
        lies: [..., N] which are in contact.
        plate: With shapes [..., 1, 3].
        plate_half: Half the plate's length [m].
    """
    xp = namespace_of(values)
    pos, vel, spin = values[..., :3], values[..., 3:6], values[..., 6:9]
    scalars, cut = possible_parameters(values[..., 9:])
    radius, arm = scalars[..., 0], pos - plate.position
    height = dot(arm, plate.normal)
    inside = ~lies & (abs(height) < radius)
    if inside.any():
        inside = inside & (length_across(arm, plate.normal, height) < plate_half)
    lift = xp.where(lies | inside, radius - height, 0.0)
    # How fast it leaves a plate that turns: n . (v - v_p - w x r), and n . (w x r) = -r . (w x n).
    leaving = ((vel - plate.velocity) * plate.normal + arm * plate.normal_rate).sum(axis=-1)
    pos = pos + lift[..., None] * plate.normal
    vel = vel - xp.where(lies, leaving, 0.0)[..., None] * plate.normal
    return xp.concat((pos, vel, spin, scalars), axis=-1), cut | inside


def possible_parameters(values: Any) -> tuple[Any, Any]:
    """Radius, static and dynamic friction, restitution [..., 4] in their ranges; and which [...] were not."""
    xp = namespace_of(values)
    least, most = _BOUNDS if xp is np else (xp.asarray(b, dtype=values.dtype) for b in _BOUNDS)
    kept = xp.minimum(xp.maximum(values, least), most)
    kept[..., 2] = xp.minimum(kept[..., 2], kept[..., 1])
    return kept, (kept != values).any(axis=-1)


def _cross(a: Any, b: Any) -> Any:
    """Of vectors [..., 3]; for a few of them NumPy's own takes ten times as long."""
    (ax, ay, az), (bx, by, bz) = ([v[..., k] for k in range(3)] for v in (a, b))
    parts = (ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
    return namespace_of(a).stack(parts, axis=-1)
