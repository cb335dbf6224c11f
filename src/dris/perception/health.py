"""What a track knows about its own health: told with every state, judged by `dris.perception.monitor`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from dris.perception.camera import Array
from dris.perception.motion import Motion
from dris.perception.triangulate import Bearing


@dataclass(frozen=True)
class Health:
    """Signs by which a state can be doubted."""

    rms_px: float = math.nan
    """RMS error of the fit; NaN of a ball that one camera alone sees lying."""
    doubt: float = 0.0
    """How much another velocity [m/s] the ball would have, were its acceleration not assumed but found; 0 if
    that does not explain what was seen better. Large on a ramp, or where something else pushes the ball."""
    radii_m: tuple[float, float] = (math.nan, math.nan)
    """The ball's radius as each camera sees it: median of outline times depth; NaN if it saw none. A wrong
    place, a wrong focal length or another thing makes it differ from the ball's."""
    surprise: int = 0
    """Sights that lie elsewhere than predicted, since the last one that did not."""
    span_s: float = 0.0
    """How long the present motion has been seen."""
    foreseen_s: float = 0.0
    """How long before the state an impact on the plate is taken to have been that no camera has seen yet."""
    anchored: bool = False
    """Whether it began where the motion before it met the plate, so that less of it must be seen."""
    lying: bool | None = None
    """Whether the ball is where one that lies on the plate would be; None if nobody said where that is."""
    apart_m: float = math.inf
    """How far apart two cameras put a ball that is taken to lie there; infinite if not both see it so."""


def sizes_m(sights: Sequence[Bearing], motion: Motion) -> Array:
    """The ball's radius by each sight [n]: outline times depth, the ball being where a motion has it then.

    For all sights at once, because a track asks twice a frame.
    """
    if not sights:
        return np.zeros(0)
    outlines = np.concatenate([sight.outline for sight in sights]).reshape(-1, 5)
    tau = outlines[:, 4] - motion.reference_s
    # axis . (p + v tau + a tau^2 / 2) - offset, times size
    along = (
        outlines[:, :3]
        @ np.array((motion.ball_in_base, motion.velocity_in_base, 0.5 * motion.acceleration_in_base)).T
    )
    sizes: Array = along[:, 0] + tau * (along[:, 1] + tau * along[:, 2]) - outlines[:, 3]
    return sizes


def _medians(sights: Sequence[Bearing], sizes: Sequence[float], motion: Motion) -> tuple[float, float]:
    start_s = motion.reference_s - motion.span_s - 1e-9
    seen: tuple[list[float], list[float]] = ([], [])
    for size, sight in zip(sizes, sights, strict=True):
        if sight.time_s >= start_s:
            seen[sight.camera].append(size)
    first, second = (median(one) if one else math.nan for one in seen)
    return first, second


class Sizes:
    """The ball's radius by the sights of a motion, kept while they stay: a frame asks several times."""

    def __init__(self) -> None:
        self._of: tuple[Motion, int, float] | None = None
        self._sizes: list[float] = []
        self._radius_m: float | None = None

    def _look(self, sights: Sequence[Bearing], motion: Motion) -> list[float]:
        of = motion, len(sights), sights[-1].time_s if sights else 0.0
        if self._of is None or self._of[0] is not motion or self._of[1:] != of[1:]:
            self._of, self._sizes, self._radius_m = of, sizes_m(sights, motion).tolist(), None
        return self._sizes

    def radius_m(self, sights: Sequence[Bearing], motion: Motion) -> float:
        """Median over all sights; 0 without any."""
        sizes = self._look(sights, motion)
        if self._radius_m is None:
            self._radius_m = median(sizes) if sizes else 0.0
        return self._radius_m

    def seen(self, sights: Sequence[Bearing], motion: Motion) -> tuple[float, float]:
        """As each camera sees it, over the sights that the motion was fitted to; NaN if it saw none."""
        return _medians(sights, self._look(sights, motion), motion)
