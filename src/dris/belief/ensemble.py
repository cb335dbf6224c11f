"""The ensemble Kalman update: an observation pulls N instances, by their own covariance.

    S = P_hh + R,  with P the ensemble's covariances of instances x and of what they predict, h
    mean      <- mean + P_xh S^-1 (y - mean h)
    anomalies <- anomalies - P_xh S^-1/2 (S^1/2 + R^1/2)^-1 (anomalies of h)

The second is the square root of Whitaker and Hamill (2002): it leaves the ensemble the very covariance of the
Kalman filter's update, with no perturbed observations. Where all is linear and Gaussian this is the Kalman
filter but for the draw of N instances; it needs no derivative of h. Arrays are torch's for many sets in
training or NumPy's for one robot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dris.core.arrays import namespace_of


@dataclass(frozen=True)
class Update:
    """What an observation did to beliefs."""

    values: Any
    """[..., N, D] the instances after it."""
    surprise: Any
    """[...] squared distance of the observation from what was predicted, in its expected deviations: about
    the size of the observation where the belief is right."""
    log_likelihood: Any
    """[...] of the observation."""


def ensemble_update(values: Any, predicted: Any, observed: Any, deviation: Any) -> Update:
    """Pull instances towards an observation.

    Args:
        values: [..., N, D] all that is uncertain of each instance.
        predicted: [..., N, S] what each would be seen as.
        observed: [..., S] what was seen.
        deviation: [..., S] or [S] standard deviation of the observation, positive. One with a covariance R =
            L L^T is whitened before: L^-1 times what is predicted and observed, deviation 1.

    Raises:
        ValueError: There are fewer than two instances, or a shape or number makes no observation.
    """
    xp = namespace_of(values)
    *sets, count, size = predicted.shape
    if count < 2:
        raise ValueError(f"an ensemble needs at least 2 instances to have a spread, got {count}")
    if tuple(observed.shape) != (*sets, size):
        raise ValueError(f"an observation has shape {(*sets, size)}, got {tuple(observed.shape)}")
    if not bool(xp.all(xp.isfinite(observed))):
        raise ValueError("an observation is not finite: leave it out, the belief then only predicts")
    if not bool(xp.all((deviation > 0) & xp.isfinite(deviation))):
        raise ValueError(
            f"deviations must be positive and finite, got {deviation.min()} to {deviation.max()}"
        )
    # In units of the observation's deviation: R is the identity, and the matrix below is well conditioned.
    scale = xp.astype(deviation, xp.float64)
    h, y = predicted / scale[..., None, :], observed / scale
    both = xp.concat((h, xp.astype(values, xp.float64)), axis=-1)  # [..., N, S + D]
    mean = xp.sum(both, axis=-2, keepdims=True) / count
    h_off = h - mean[..., :size]
    covariance = xp.matrix_transpose(h_off) @ (both - mean) / (count - 1)  # P_hh and P_hx [..., S, S + D]
    variances, axes = xp.linalg.eigh(covariance[..., :size] + xp.eye(size, dtype=xp.float64))
    along = (y[..., None, :] - mean[..., :size]) @ axes  # [..., 1, S]
    cross = xp.matrix_transpose(axes) @ covariance[..., size:]  # P_hx on these axes
    variance = variances[..., None, :]
    pull = along / variance - h_off @ axes / (variance + xp.sqrt(variance))
    updated = both[..., size:] + pull @ cross
    surprise = xp.sum(along[..., 0, :] ** 2 / variances, axis=-1)
    volume = xp.sum(xp.log(variances), axis=-1) + 2 * xp.sum(xp.log(scale), axis=-1)
    likelihood = -0.5 * (surprise + volume + size * math.log(2 * math.pi))
    return Update(xp.astype(updated, values.dtype), surprise, likelihood)
