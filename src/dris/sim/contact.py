"""Contact presets: how the nominal numbers of ball and plate act when they meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ContactPreset:
    """Combination of ball and plate, and the slowest impact that bounces.

    Attributes:
        name: Results always name their preset.
        bounce_speed: Impacts slower than this do not bounce [m/s].
        plate_restitution: Averaged with the ball's; None leaves the ball's own.
        plate_friction: Averaged with the ball's, static and dynamic; None leaves the ball's own.
    """

    name: str
    bounce_speed: float
    plate_restitution: float | None
    plate_friction: float | None

    def pair_restitution(self, ball: torch.Tensor) -> torch.Tensor:
        """Restitution of the pair from the ball's nominal value."""
        return ball if self.plate_restitution is None else 0.5 * (ball + self.plate_restitution)

    def pair_friction(self, ball: torch.Tensor) -> torch.Tensor:
        """Friction of the pair from the ball's nominal value."""
        return ball if self.plate_friction is None else 0.5 * (ball + self.plate_friction)


# The paper's text taken literally: Newton's restitution with the ball's own value.
EXACT = ContactPreset(
    name="exact",
    # A hop from 1 cm/s is lower than 6 micrometres: only here does a bouncing ball come to rest.
    bounce_speed=0.01,
    plate_restitution=None,
    plate_friction=None,
)
# PhysX as ManiSkill sets it up (average of materials, bounce threshold 2 m/s), with the plate material
# of the laboratory's released environment.
AVERAGED = ContactPreset(name="averaged", bounce_speed=2.0, plate_restitution=0.2, plate_friction=0.0)
PRESETS = {preset.name: preset for preset in (AVERAGED, EXACT)}
