"""The throws of the training."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dris.catching.settings import CatchingConfig
from dris.core.constants import GRAVITY
from dris.core.rng import KeyedRng


@dataclass(frozen=True)
class Thrown:
    """Throws as they are first seen and as they arrive, [R, 3] each; positions from the region's middle."""

    offset: torch.Tensor
    velocity: torch.Tensor
    arrival: torch.Tensor
    arrival_velocity: torch.Tensor


def throw(config: CatchingConfig, rng: KeyedRng) -> Thrown:
    """Throws, each seen shortly before it arrives.

    A ball leaves at some distance, direction and height, such that after its flight it meets a point
    of the catching region; the rest of the flight is `lead_s`. No air: the parabola is closed form.
    """

    def uniform(bounds: tuple[float, float]) -> torch.Tensor:
        return rng.uniform(1, low=bounds[0], high=bounds[1])[:, 0]

    distance, direction = uniform(config.distance), uniform(config.incoming)
    height, flight, lead = uniform(config.spawn_height), uniform(config.flight_s), uniform(config.lead_s)
    radius = config.region_radius * rng.uniform(1)[:, 0].sqrt()  # uniform over the disc
    angle = uniform((0.0, 2 * torch.pi))
    zero = torch.zeros_like(radius)
    release = torch.stack((distance * direction.cos(), distance * direction.sin(), height), dim=-1)
    arrival = torch.stack((radius * angle.cos(), radius * angle.sin(), zero), dim=-1)
    gravity = torch.tensor([0.0, 0.0, -GRAVITY])
    # arrival = release + v T + g T^2 / 2, then back from the arrival by the lead time
    launch = (arrival - release) / flight[:, None] - 0.5 * gravity * flight[:, None]
    velocity = launch + gravity * (flight - lead)[:, None]
    offset = arrival - velocity * lead[:, None] - 0.5 * gravity * lead[:, None] ** 2
    return Thrown(offset, velocity, arrival, velocity + gravity * lead[:, None])
