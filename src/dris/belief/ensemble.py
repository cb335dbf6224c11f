"""The ensemble Kalman update: an observation pulls N instances, by their own covariance.

    gain  G = P_xh (P_hh + R)^-1,  with P the ensemble's covariances of instances x and what they predict, h
    mean     <- mean + G (y - mean h)
    anomalies <- anomalies - G (anomalies of h) / 2      (deterministic: Sakov and Oke 2008)

It is the Kalman filter's update where both are Gaussian and N is large, and needs no derivative of h.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Update:
    """What an observation did to B beliefs."""

    values: torch.Tensor
    """[B, N, D] the instances after it."""
    surprise: torch.Tensor
    """[B] squared distance of the observation from what was predicted, in its expected deviations: about the
    size of the observation where the belief is right."""
    log_likelihood: torch.Tensor
    """[B] of the observation."""


def ensemble_update(
    values: torch.Tensor, predicted: torch.Tensor, observed: torch.Tensor, deviation: torch.Tensor
) -> Update:
    """Pull instances towards an observation.

    Args:
        values: [B, N, D] all that is uncertain of each instance.
        predicted: [B, N, S] what each would be seen as.
        observed: [B, S] what was seen.
        deviation: [B, S] or [S] standard deviation of the observation, positive.

    Raises:
        ValueError: There are fewer than two instances, or a shape or number makes no observation.
    """
    sets, count, size = predicted.shape
    if count < 2:
        raise ValueError(f"an ensemble needs at least 2 instances to have a spread, got {count}")
    if tuple(observed.shape) != (sets, size):
        raise ValueError(f"an observation has shape {(sets, size)}, got {tuple(observed.shape)}")
    if not bool(observed.isfinite().all()):
        raise ValueError("an observation is not finite: leave it out, the belief then only predicts")
    if not bool(((deviation > 0) & deviation.isfinite()).all()):
        raise ValueError(
            f"deviations must be positive and finite, got {deviation.min()} to {deviation.max()}"
        )
    x, h = values.double(), predicted.double() / deviation.double()[..., None, :]
    y = observed.double() / deviation.double()
    x_mean, h_mean = x.mean(dim=1, keepdim=True), h.mean(dim=1, keepdim=True)
    x_off, h_off = x - x_mean, h - h_mean
    # In units of the observation's deviation: R is the identity, and the matrix below is well conditioned.
    matrix = h_off.transpose(1, 2) @ h_off / (count - 1) + torch.eye(size, dtype=torch.float64)
    factor = torch.linalg.cholesky(matrix)
    cross = h_off.transpose(1, 2) @ x_off / (count - 1)  # [B, S, D]
    gain = torch.cholesky_solve(cross, factor)  # G^T
    off = y[:, None] - h_mean
    updated = x_mean + off @ gain + x_off - 0.5 * h_off @ gain
    surprise = (off * torch.cholesky_solve(off.transpose(1, 2), factor).transpose(1, 2)).sum(dim=(1, 2))
    volume = 2 * factor.diagonal(dim1=1, dim2=2).log().sum(dim=1) + 2 * deviation.double().log().sum(dim=-1)
    likelihood = -0.5 * (surprise + volume + size * torch.log(torch.tensor(2 * torch.pi)))
    return Update(updated.to(values.dtype), surprise, likelihood)
