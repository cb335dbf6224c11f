"""What is a covariance, and what is none. Without torch: one robot's belief asks it, too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def principal(covariance: Any, size: int) -> tuple[Any, Any]:
    """Variances [S], none negative, and axes [S, S] of a covariance [S, S] of S numbers; NumPy's.

    Raises:
        ValueError: It is none.
    """
    covariance = np.asarray(covariance, np.float64)
    if covariance.shape != (size, size):
        raise ValueError(f"a covariance of {size} numbers has shape {(size, size)}, got {covariance.shape}")
    largest = float(np.abs(covariance).max(initial=0.0))
    if not math.isfinite(largest):
        raise ValueError("a covariance must be finite")
    if np.abs(covariance - covariance.T).max(initial=0.0) > 1e-6 * largest:
        raise ValueError("a covariance is symmetric, and this is not: is it a factor of one, or transposed?")
    variances, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    if variances.min(initial=0.0) < -1e-9 * max(largest, 1e-12):
        raise ValueError(
            f"a covariance has no negative eigenvalue, got {variances.min():.3g}: is it a difference of two?"
        )
    return variances.clip(0.0), axes
