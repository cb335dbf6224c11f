"""What a belief over one ball beside one robot takes for granted, every value of it."""

from __future__ import annotations

from dataclasses import dataclass

from dris.core.validation import check_positive

BELIEVED_S = 0.2
"""A belief that has seen nothing for longer is not acted on: older sights stop an arm [s] [design]."""


@dataclass(frozen=True)
class BallBeliefConfig:
    """What is believed before anything is seen, and how well it is seen."""

    instances: int = 50
    static_friction: tuple[float, float] = (0.0, 0.5)
    """Wider than in training, as things are [design]; dynamic friction is a share of it."""
    restitution: tuple[float, float] = (0.2, 0.9)
    drag: tuple[float, float] = (0.0, 0.2)
    """Deceleration in air over the square of the speed [1/m]: 0.13 for a ping-pong ball, 0.01 for rubber."""
    radius_sigma: float = 0.001
    """Deviation of the radius from what the eyes are told [m] [design]."""
    spin_sigma: float = 5.0
    """Deviation of the spin about any axis, besides that of a ball that rolled [rad/s] [design]."""
    speed_walk: float = 0.3
    """What else changes the velocity, such as air, as a random walk [m/s per square root of a second]
    [design]."""
    bounce_walk: float = 0.6
    """The same within `contact_s` of a bounce: a real one lasts some milliseconds, sometimes 50 [design]."""
    jitter_m: float = 0.0003
    """Added to positions at every sight, so that instances never become one [m] [design]."""
    contact_s: float = 0.1
    """For so long after a ball has touched the plate, sights tell of spin, friction and restitution; at other
    times they do not, and what they seem to tell of them by chance would make the belief too sure [s]
    [design]."""
    restitution_walk: float = 0.03
    """Deviation of restitution from one impact to the next: it depends on speed [design]."""
    gate: float = 40.0
    """A sight that surprises more is not of this ball, or the belief is wrong: it pulls nothing. In squared
    expected deviations, per component two in a picture [design]."""

    def __post_init__(self) -> None:
        """Refuse what makes no belief."""
        if not isinstance(self.instances, int) or self.instances < 2:
            raise ValueError(
                f"a belief needs at least 2 instances to have a spread, got {self.instances}: take 50"
            )
        check_positive(self, "radius_sigma", "spin_sigma", "speed_walk", "bounce_walk", "jitter_m")
        check_positive(self, "contact_s", "restitution_walk", "gate")
        for name in ("static_friction", "restitution", "drag"):
            low, high = getattr(self, name)
            if not 0 <= low <= high <= 1:
                raise ValueError(f"{name} must be a range in [0, 1], got ({low}, {high})")
