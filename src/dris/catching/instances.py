"""What a belief may make of balls: kept possible, for many sets (torch) or one robot (NumPy).

A ball in a belief is 13 numbers: position, velocity, spin (base frame), radius, static and dynamic friction,
restitution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dris.catching.success import normal_tangential
from dris.core.arrays import namespace_of

RADII = (0.01, 0.06)
"""Radii are kept within these [m]."""


@dataclass(frozen=True)
class PlateMotion:
    """Where plates are and how they move, base frame, [..., 3] each."""

    position: Any
    normal: Any
    velocity: Any
    omega: Any


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
    radius = values[..., 9].clip(*RADII)
    static = values[..., 10].clip(0.0)
    dynamic = xp.minimum(values[..., 11].clip(0.0), static)
    restitution = values[..., 12].clip(0.0, 1.0)
    scalars = xp.stack((radius, static, dynamic, restitution), axis=-1)
    cut = xp.any(scalars != values[..., 9:], axis=-1)
    arm = pos - plate.position
    height, across = normal_tangential(arm, plate.normal)
    inside = ~lies & (height < radius) & (height > -radius) & (across < plate_half)
    nothing = xp.zeros_like(height)
    lift = xp.where(lies | inside, radius - height, nothing)
    # How fast it leaves a plate that turns: n . (v - v_p - w x r), and n . (w x r) = -r . (w x n).
    leaving = xp.sum((vel - plate.velocity) * plate.normal + arm * _cross(plate.omega, plate.normal), axis=-1)
    pos = pos + lift[..., None] * plate.normal
    vel = vel - xp.where(lies, leaving, nothing)[..., None] * plate.normal
    return xp.concat((pos, vel, spin, scalars), axis=-1), cut | inside


def _cross(a: Any, b: Any) -> Any:
    """Of vectors [..., 3]; for a few of them NumPy's own takes ten times as long."""
    (ax, ay, az), (bx, by, bz) = ([v[..., k] for k in range(3)] for v in (a, b))
    parts = (ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
    return namespace_of(a).stack(parts, axis=-1)
