"""Conditions that only the catching task has: joint errors, balls and throws it was not trained on."""

from __future__ import annotations

import math

from dris.core.conditions import Condition
from dris.core.constants import GRAVITY

DROP = 0.3
"""Height of the ramp's end over the plate [m]."""
FALL_S = math.sqrt(2 * DROP / GRAVITY)
"""Time to fall it [s]; the ball then comes down at 2.4 m/s, against 4.7 to 7.5 in training."""
AIM_RADIUS = 0.05
"""A ramp's balls meet the plate's height this close to one point [m]. Over the whole disc of the training's
throws (0.2 m) what decides is where they land: beyond the centre nobody catches so flat a ball."""


def ramp(speed: float, noise: float = 0.0) -> Condition:
    """A ball that leaves a ramp horizontally [m/s]; caught if it is still on the plate after ten seconds.

    Slower and flatter than any throw in training; the success is that of the paper's trials on the robot.
    """
    return Condition(
        noise=noise,
        task=(
            ("distance", (speed * FALL_S, speed * FALL_S)),
            ("flight_s", (FALL_S, FALL_S)),
            ("spawn_height", (DROP, DROP)),
            ("region_radius", AIM_RADIUS),
            ("horizon", 200),
            ("success_speed", math.inf),
            ("other_success_speeds", ()),
        ),
    )


CONDITIONS: dict[str, Condition] = {
    "execution": Condition(execution_error=0.05),  # [paper] uniform [rad]; ours: drawn anew each step
    "restitution": Condition(domain=(("restitution", 0.7, 0.8),)),  # [paper] trained on 0.4 to 0.7
    "friction": Condition(domain=(("static_friction", 0.1, 0.2), ("dynamic_friction", 0.1, 0.2))),
    "radius": Condition(domain=(("radius", 0.04, 0.05),)),  # trained on 0.02 to 0.04
    "soft-gains": Condition(task=(("gain_scale", 0.8),)),
    "stiff-gains": Condition(task=(("gain_scale", 1.2),)),
    "balancing": Condition(task=(("laid_share", 1.0), ("laid_tilt", (math.radians(30.0),) * 2))),
    "ramp-1.3": ramp(1.3),
    "ramp-2.0": ramp(2.0),
    "ramp-1.3-noise-2": ramp(1.3, noise=2),
    "ramp-2.0-noise-2": ramp(2.0, noise=2),
}
