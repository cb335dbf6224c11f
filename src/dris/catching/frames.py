"""The motion frame, and tilts of the plate. Quaternions are (x, y, z, w); rows are sets.

A tilt is the vector beta (cos alpha, sin alpha): the plate turned by beta about the horizontal axis
w = (cos alpha, sin alpha, 0) of the paper. Unlike (alpha, beta) it has no singularity when level.
"""

from __future__ import annotations

import torch


def motion_to_base(angle: torch.Tensor) -> torch.Tensor:
    """R_z(phi) [B, 3, 3] for angles phi [B]."""
    c, s, o, i = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack((c, -s, o, s, c, o, o, o, i), dim=-1).reshape(-1, 3, 3)


def to_motion(vectors: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    """R_z(phi)^T applied to base-frame vectors [B, N, 3]; rotation [B, 3, 3]."""
    c, s = rotation[:, None, 0, 0], rotation[:, None, 1, 0]
    x, y, z = vectors.unbind(dim=-1)
    # Component by component, and stored so: far faster on a CPU than a batched product, here and later.
    return torch.stack((c * x + s * y, c * y - s * x, z)).movedim(0, -1)


def plate_normal(quat: torch.Tensor) -> torch.Tensor:
    """The plate's unit normal [B, 3]: its z axis."""
    x, y, z, w = quat.unbind(-1)
    return torch.stack((2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)), dim=-1)


def tilt_of_normal(normal: torch.Tensor) -> torch.Tensor:
    """Tilt vector [B, 2] of a unit normal [B, 3]; n = (sin a sin b, -cos a sin b, cos b)."""
    sine = normal[:, :2].norm(dim=-1)
    beta = torch.atan2(sine, normal[:, 2])
    axis = torch.stack((-normal[:, 1], normal[:, 0]), dim=-1)
    return axis * (beta / sine.clamp_min(1e-9))[:, None]


def normal_of_tilt(tilt: torch.Tensor) -> torch.Tensor:
    """Unit normal [B, 3] of a tilt vector [B, 2]."""
    beta = tilt.norm(dim=-1)
    ratio = torch.sinc(beta / torch.pi)[:, None]  # sin(beta) / beta
    return torch.cat((tilt[:, 1:] * ratio, -tilt[:, :1] * ratio, beta.cos()[:, None]), dim=-1)


def quat_of_tilt(tilt: torch.Tensor) -> torch.Tensor:
    """Rotation [B, 4] by |tilt| about the horizontal axis along tilt [B, 2] (Rodrigues)."""
    beta = tilt.norm(dim=-1)
    ratio = 0.5 * torch.sinc(0.5 * beta / torch.pi)[:, None]  # sin(beta / 2) / beta
    return torch.cat((tilt * ratio, torch.zeros_like(beta)[:, None], (0.5 * beta).cos()[:, None]), -1)


def quat_multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The rotation b followed by a, [..., 4] each."""
    a, b = torch.broadcast_tensors(a, b)
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = aw * bv + bw * av + torch.linalg.cross(av, bv)
    return torch.cat((vector, aw * bw - (av * bv).sum(-1, keepdim=True)), dim=-1)
