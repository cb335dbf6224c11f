"""The motion frame, and tilts of the plate. Quaternions are (x, y, z, w).

A tilt is the vector beta (cos alpha, sin alpha): the plate turned by beta about the horizontal axis
w = (cos alpha, sin alpha, 0) of the paper. Unlike (alpha, beta) it has no singularity when level.

Arrays are torch's for many sets in training or NumPy's for one robot; leading dimensions are free.
"""

from __future__ import annotations

import math
from typing import Any

from dris.core.arrays import at_least, namespace_of


def motion_to_base(angle: Any) -> Any:
    """R_z(phi) [..., 3, 3] for angles phi [...]."""
    xp = namespace_of(angle)
    c, s, o, i = xp.cos(angle), xp.sin(angle), xp.zeros_like(angle), xp.ones_like(angle)
    return xp.reshape(xp.stack((c, -s, o, s, c, o, o, o, i), axis=-1), (*angle.shape, 3, 3))


def to_motion(vectors: Any, rotation: Any) -> Any:
    """R_z(phi)^T applied to base-frame vectors [..., 3]; rotation [..., 3, 3]."""
    xp = namespace_of(vectors)
    c, s = rotation[..., 0, 0], rotation[..., 1, 0]
    x, y, z = (vectors[..., k] for k in range(3))
    # Component by component, and stored so: far faster on a CPU than a batched product, here and later.
    return xp.moveaxis(xp.stack((c * x + s * y, c * y - s * x, z)), 0, -1)


def plate_normal(quat: Any) -> Any:
    """The plate's unit normal [..., 3]: its z axis."""
    xp = namespace_of(quat)
    x, y, z, w = (quat[..., k] for k in range(4))
    return xp.stack((2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)), axis=-1)


def tilt_of_normal(normal: Any) -> Any:
    """Tilt vector [..., 2] of a unit normal [..., 3]; n = (sin a sin b, -cos a sin b, cos b)."""
    xp = namespace_of(normal)
    sine = xp.linalg.vector_norm(normal[..., :2], axis=-1)
    beta = xp.atan2(sine, normal[..., 2])
    axis = xp.stack((-normal[..., 1], normal[..., 0]), axis=-1)
    return axis * (beta / at_least(sine, 1e-9))[..., None]


def normal_of_tilt(tilt: Any) -> Any:
    """Unit normal [..., 3] of a tilt vector [..., 2]."""
    xp = namespace_of(tilt)
    beta = xp.linalg.vector_norm(tilt, axis=-1, keepdims=True)
    ratio = xp.sinc(beta / math.pi)  # sin(beta) / beta
    return xp.concat((tilt[..., 1:] * ratio, -tilt[..., :1] * ratio, xp.cos(beta)), axis=-1)


def quat_of_tilt(tilt: Any) -> Any:
    """Rotation [..., 4] by |tilt| about the horizontal axis along tilt [..., 2] (Rodrigues)."""
    xp = namespace_of(tilt)
    beta = xp.linalg.vector_norm(tilt, axis=-1, keepdims=True)
    ratio = 0.5 * xp.sinc(0.5 * beta / math.pi)  # sin(beta / 2) / beta
    return xp.concat((tilt * ratio, xp.zeros_like(beta), xp.cos(0.5 * beta)), axis=-1)


def quat_multiply(a: Any, b: Any) -> Any:
    """The rotation b followed by a, [..., 4] each."""
    xp = namespace_of(a, b)
    a, b = xp.broadcast_arrays(a, b)
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = aw * bv + bw * av + xp.linalg.cross(av, bv)
    return xp.concat((vector, aw * bw - xp.sum(av * bv, axis=-1, keepdims=True)), axis=-1)
