"""One formula for torch's tensors and NumPy's arrays: whose functions to call."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace


def namespace_of(*values: Any) -> Any:
    """The functions for some arrays; NumPy's own at once, for a robot asks a thousand times a second."""
    for value in values:
        if type(value) is not np.ndarray:
            return array_namespace(*values)
    return np


def at_least(values: Any, least: float) -> Any:
    """Values, and `least` in place of those below it."""
    return np.maximum(values, least) if type(values) is np.ndarray else values.clip(least)
