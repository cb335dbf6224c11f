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

import numpy as np

from dris.core.arrays import namespace_of
from dris.core.covariance import principal


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


def check_observation(observed: Any, deviation: Any, *shape: int) -> None:
    """Refuse what is no observation [..., S] with deviations [..., S] or [S].

    Raises:
        ValueError: A shape is another, or a number makes no observation.
    """
    if not (hasattr(observed, "shape") and hasattr(deviation, "shape")):
        raise ValueError("an observation and its deviations are arrays, NumPy's or torch's")
    xp = namespace_of(observed)
    if tuple(observed.shape) != shape:
        raise ValueError(
            f"an observation has shape {shape}, got {tuple(observed.shape)}: as many numbers as are predicted"
        )
    if not bool(xp.all(xp.isfinite(observed))):
        raise ValueError("an observation is not finite: leave it out, the belief then only predicts")
    if tuple(deviation.shape) not in (shape, shape[-1:]):
        raise ValueError(f"deviations have shape {shape} or {shape[-1:]}, got {tuple(deviation.shape)}")
    if not bool(xp.all((deviation > 0) & xp.isfinite(deviation))):
        raise ValueError(
            f"deviations must be positive and finite, got {deviation.min()} to {deviation.max()}: tell how "
            "exact the sensor is, in the observation's own units"
        )


def whiten(predicted: Any, observed: Any, covariance: Any) -> tuple[Any, Any]:
    """What is predicted [N, S] and observed [S] along the axes of the observation's covariance [S, S].

    Each is then in its own deviation: `ensemble_update(values, *whiten(...), np.ones(S))`.

    Raises:
        ValueError: It is no covariance, an observation cannot be exact along an axis, or sizes differ.
    """
    size = np.shape(covariance)[0] if np.ndim(covariance) else 1
    for what, values in (("an observation", observed), ("what is predicted", predicted)):
        if np.ndim(values) == 0 or np.shape(values)[-1] != size:
            raise ValueError(
                f"a covariance of {size} numbers has shape {(size, size)} and goes with {size} of {what}, "
                f"got {np.shape(values)}"
            )
    to_axes = whitening(covariance, size)
    return predicted @ to_axes, observed @ to_axes


def whitening(covariance: Any, size: int) -> Any:
    """What takes errors [..., S] to the axes of their covariance [S, S], each in its own deviation [S, S].

    Raises:
        ValueError: It is no covariance, or an observation cannot be exact along an axis.
    """
    variances, axes = principal(covariance, size)
    if not variances.min() > 0:
        raise ValueError("an observation is exact along no axis: its covariance must have full rank")
    return axes / np.sqrt(variances)


def ensemble_update(values: Any, predicted: Any, observed: Any, deviation: Any) -> Update:
    """Pull instances towards an observation.

    Args:
        values: [..., N, D] all that is uncertain of each instance.
        predicted: [..., N, S] what each would be seen as.
        observed: [..., S] what was seen.
        deviation: [..., S] or [S] standard deviation of the observation, positive. One with a covariance goes
            through `whiten` before.

    Raises:
        ValueError: There are fewer than two instances, or a shape or number makes no observation.
    """
    if not (hasattr(values, "shape") and hasattr(predicted, "shape")):
        raise ValueError("instances and what they predict are arrays, NumPy's or torch's")
    xp = namespace_of(values)
    *sets, count, size = predicted.shape
    if tuple(values.shape[:-1]) != (*sets, count):
        raise ValueError(
            f"instances {tuple(values.shape)} and what they predict {tuple(predicted.shape)} must agree but "
            "for the last size: every instance predicts"
        )
    for what, found in (("an instance", values), ("what an instance predicts", predicted)):
        if not bool(xp.all(xp.isfinite(found))):
            raise ValueError(f"{what} is not finite: put a copy of another in its place")
    if count < 2:
        raise ValueError(f"an ensemble needs at least 2 instances to have a spread, got {count}: take 50")
    check_observation(observed, deviation, *sets, size)
    # In units of the observation's deviation: R is the identity, and the matrix below is well conditioned.
    scale = xp.astype(deviation, xp.float64)
    h, y = predicted / scale[..., None, :], observed / scale
    updated, surprise, variances = pulled(xp.astype(values, xp.float64, copy=False), h, y)
    volume = xp.sum(xp.log(variances), axis=-1) + 2 * xp.sum(xp.log(scale), axis=-1)
    likelihood = -0.5 * (surprise + volume + size * math.log(2 * math.pi))
    return Update(xp.astype(updated, values.dtype, copy=False), surprise, likelihood)


def pulled(values: Any, h: Any, y: Any) -> tuple[Any, Any, Any]:
    """The update itself, of numbers that are known to be sound: what a robot calls many times a second.

    Args:
        values: [..., N, D] as `ensemble_update` takes them; float64.
        h: [..., N, S] what each instance would be seen as, in deviations of the observation.
        y: [..., S] what was seen, in them.

    Returns:
        The instances after it [..., N, D], the surprise [...], and how much an observation was expected to
        vary [..., S] along axes of its own.
    """
    xp = namespace_of(values)
    count, size = h.shape[-2:]
    both = xp.concat((h, values), axis=-1)  # [..., N, S + D]
    mean = both.sum(axis=-2, keepdims=True) / count
    off = both - mean
    h_off, to_mean = off[..., :size], y[..., None, :] - mean[..., :size]
    covariance = h_off.mT @ off / (count - 1)  # P_hh and P_hx [..., S, S + D]
    variances, axes = _expected(covariance[..., :size])
    along = to_mean @ axes  # [..., 1, S]
    cross = axes.mT @ covariance[..., size:]  # P_hx on these axes
    variance = variances[..., None, :]
    pull = along / variance - h_off @ axes / (variance + xp.sqrt(variance))
    updated = both[..., size:] + pull @ cross
    surprise = (along[..., 0, :] ** 2 / variances).sum(axis=-1)
    return updated, surprise, variances


def _expected(covariance: Any) -> tuple[Any, Any]:
    """Variances [..., S] and axes [..., S, S] of an observation: covariances [..., S, S] plus the identity.

    A single one of two numbers, a camera's sight, in closed form: LAPACK's takes ten times as long.
    """
    size = covariance.shape[-1]
    if type(covariance) is not np.ndarray or covariance.shape != (2, 2):
        xp = namespace_of(covariance)
        return xp.linalg.eigh(covariance + xp.eye(size, dtype=xp.float64))
    (a, b), (_, c) = covariance.tolist()
    centre, off = 1.0 + 0.5 * (a + c), 0.5 * (a - c)
    reach, turn = math.hypot(off, b), 0.5 * math.atan2(b, off)
    cos, sin = math.cos(turn), math.sin(turn)
    least = max(centre - reach, 1.0)  # which it is but for rounding
    return np.array((least, centre + reach)), np.array(((-sin, cos), (cos, sin)))
