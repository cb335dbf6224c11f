"""Throws with a known path, for measuring how well the ball is seen: parabolas, bounces, rest on a plate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from dris.catching.settings import TEXT
from dris.catching.throws import throw
from dris.core.rng import KeyedRng
from dris.perception.camera import Array
from dris.perception.motion import GRAVITY_IN_BASE

PLATE_IN_BASE = np.array([0.69, 0.0, 0.56])
"""Centre of the plate at its home [m]."""
PLATE_HALF_M = 0.12
REST_SPEED = 0.25
"""Slower impacts do not bounce [m/s]: a hop of 3 mm."""

SEEN = replace(TEXT, incoming=(-np.pi / 3, np.pi / 3))
"""Throws that the laboratory's two cameras see all the way: the training's go from -90 to 90 degrees."""

Kind = Literal["training", "ramp"]


@dataclass(frozen=True, eq=False)
class Piece:
    """Motion under constant acceleration from a time on."""

    start_s: float
    ball_in_base: Array
    velocity_in_base: Array
    on_plate: bool

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Position and velocity at a time."""
        tau = time_s - self.start_s
        pull = np.zeros(3) if self.on_plate else GRAVITY_IN_BASE
        return (
            self.ball_in_base + self.velocity_in_base * tau + 0.5 * pull * tau**2,
            self.velocity_in_base + pull * tau,
        )


@dataclass(frozen=True, eq=False)
class Throw:
    """A ball's whole path. Time 0 is the first impact."""

    radius_m: float
    pieces: tuple[Piece, ...]

    def piece(self, time_s: float) -> Piece:
        """The piece that a time falls into."""
        return next((p for p in reversed(self.pieces) if p.start_s <= time_s), self.pieces[0])

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Position and velocity at a time."""
        return self.piece(time_s).at(time_s)

    @property
    def impacts_s(self) -> list[float]:
        """Times of all impacts; the last one ends on the plate."""
        return [piece.start_s for piece in self.pieces[1:]]


def make_throw(kind: Kind, generator: np.random.Generator) -> Throw:
    """A throw at the plate's home that bounces there and comes to rest.

    `training`: the training's throws, 1 to 2 m in 1 to 1.5 s, arriving at 4.7 to 7.5 m/s, but for those from
    the sides (`SEEN`). `ramp`: 2.4 m/s down and 1.3 to 2 m/s ahead.

    Radius 2 to 4 cm. An impact keeps 0.2 to 0.45 of the vertical speed, which is what the
    contact preset `averaged` makes of its restitutions and less, and 0.02 to 0.1 of the horizontal speed: a
    still plate stands for one that moves along, and the ball stays on it.
    """
    radius = generator.uniform(0.02, 0.04)
    spot = PLATE_IN_BASE + np.array([*generator.uniform(-0.05, 0.05, 2), radius])
    if kind == "training":
        first = torch.zeros(1, dtype=torch.long)
        thrown = throw(SEEN, KeyedRng(int(generator.integers(2**31)), first, first, first))
        velocity = thrown.arrival_velocity[0].double().numpy()
    else:
        heading, ahead, down = generator.uniform(-0.35, 0.35), generator.uniform(1.3, 2.0), 2.4
        velocity = np.array([-ahead * np.cos(heading), -ahead * np.sin(heading), -down])
    restitution, kept = generator.uniform(0.2, 0.45), generator.uniform(0.02, 0.1)
    pieces = [Piece(0.0, spot, velocity, False)]
    time_s = 0.0
    while True:
        spot, velocity = pieces[-1].at(time_s)
        after = velocity * (kept, kept, -restitution)
        if after[2] < REST_SPEED:
            pieces.append(Piece(time_s, spot, after * (1, 1, 0), True))
            return Throw(radius, tuple(pieces))
        pieces.append(Piece(time_s, spot, after, False))
        time_s += 2 * after[2] / 9.81
        kept = 1.0  # later impacts keep the horizontal speed
