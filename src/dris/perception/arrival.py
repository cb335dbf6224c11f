"""Where and when a flying ball arrives, how fast, and how sure that is: what an approach needs to know."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dris.core.constants import GRAVITY


@dataclass(frozen=True, eq=False)
class Arrival:
    """When and where a flying ball's centre sinks to a height, how fast, and how sure that is."""

    time_s: float
    ball_in_base: np.ndarray
    """[3] [m]"""
    velocity_in_base: np.ndarray
    """[3] [m/s]"""
    time_sigma_s: float = 0.0
    """Standard deviation of the time."""
    place_sigma_m: float = 0.0
    """Standard deviation of the place within the horizontal plane, the worse direction."""
    misfit: float = 0.0
    """RMS distance of the sights from the parabola, in standard deviations of a sight: about 1 if the ball
    flies and each sight is one of it."""


def free_fall(time_s: float, position: np.ndarray, velocity: np.ndarray, height_m: float) -> Arrival | None:
    """The arrival of a ball that flies without air from a state [3], [3]; None if it never sinks there."""
    left_s = sinks_in(float(position[2]) - height_m, float(velocity[2]))
    if left_s is None:
        return None
    after = velocity - (0.0, 0.0, GRAVITY * left_s)
    return Arrival(time_s + left_s, position + 0.5 * (velocity + after) * left_s, after)


def sinks_in(gap_m: float, rise: float, gravity: float = GRAVITY) -> float | None:
    """Time until a ball `gap_m` over a height, rising at `rise` [m/s], sinks to it; None if it never does.

    0 = gap + rise t - g t^2 / 2, the later root.
    """
    square = rise**2 + 2 * gravity * gap_m
    return None if square < 0 else (rise + math.sqrt(square)) / gravity
