"""What a track knows about its own health: told with every state, judged by `dris.perception.monitor`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
    anchored: bool = False
    """Whether it began where the motion before it met the plate, so that less of it must be seen."""
    lying: bool | None = None
    """Whether the ball is where one that lies on the plate would be; None if nobody said where that is."""


def seen_radii(sights: Sequence[Bearing], motion: Motion) -> tuple[float, float]:
    """The ball's radius as each camera sees it, over the sights that a motion was fitted to."""
    start_s = motion.reference_s - motion.span_s - 1e-9
    sizes: tuple[list[float], list[float]] = ([], [])
    for sight in sights:
        if sight.time_s >= start_s:
            sizes[sight.camera].append(sight.size * sight.depth(motion.at(sight.time_s)[0]))
    first, second = (float(np.median(values)) if values else math.nan for values in sizes)
    return first, second
