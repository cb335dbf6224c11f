"""The balls of a belief beside one robot, in memory that NumPy and Warp share."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from dris.catching.plate_past import KEPT_S
from dris.core.constants import GRAVITY
from dris.sim.contact import EXACT
from dris.sim.spheres import step_spheres

SUBSTEP_S = 0.005
"""Longest step between the plate's samples [s]: that of training."""


class Balls:
    """N balls and the plate's samples in memory that Warp shares."""

    def __init__(self, count: int, plate_half_size: tuple[float, float, float]):
        longest = round(KEPT_S / SUBSTEP_S) + 2

        def zeros(*shape: int, dtype: type = np.float32) -> np.ndarray:
            return np.zeros((1, *shape), dtype)

        self.pos, self.vel, self.spin = (zeros(count, 3) for _ in range(3))
        self.radius, self.static_friction, self.dynamic_friction, self.restitution = (
            zeros(count) for _ in range(4)
        )
        self.mode, self.impacts = (zeros(count, dtype=np.int32) for _ in range(2))
        self.plate = {"pos": zeros(longest, 3), "quat": zeros(longest, 4), "vel": zeros(longest, 3)}
        self.plate |= {"omega": zeros(longest, 3), "axes": zeros(longest, 3, 3)}
        self._travel = zeros()
        kinds = {"quat": wp.quat, "axes": wp.mat33}
        plate: list[Any] = [
            wp.array(v, dtype=kinds.get(k, wp.vec3), copy=False) for k, v in self.plate.items()
        ]
        scalars = (self.radius, self.static_friction, self.dynamic_friction, self.restitution)
        balls: list[Any] = [wp.array(v, dtype=wp.float32, copy=False) for v in scalars]
        balls += [wp.array(v, dtype=wp.vec3, copy=False) for v in (self.pos, self.vel, self.spin)]
        balls += [wp.array(v, dtype=wp.int32, copy=False) for v in (self.mode, self.impacts)]
        travel: Any = wp.array(self._travel, dtype=wp.float32, copy=False)
        self._step = wp.launch(
            step_spheres,
            dim=(1, count),
            inputs=[
                wp.vec3(*plate_half_size), wp.vec3(0.0, 0.0, -GRAVITY), EXACT.bounce_speed, SUBSTEP_S, 1, 0,
                *plate, travel, *balls,
            ],
            device="cpu",
            record_cmd=True,
        )  # fmt: skip

    def parts(self) -> tuple[np.ndarray, ...]:
        """All that is uncertain of the balls, in the order of `dris.catching.instances`."""
        scalars = (self.radius, self.static_friction, self.dynamic_friction, self.restitution)
        return (self.pos, self.vel, self.spin, *(part[..., None] for part in scalars))

    def copy(self, other: Balls) -> None:
        """Become like another."""
        for mine, theirs in zip((*self.parts(), self.mode), (*other.parts(), other.mode), strict=True):
            mine[:] = theirs

    def advance(self, plate: dict[str, np.ndarray], duration_s: float) -> None:
        """Let the balls evolve over a duration, cut evenly by n + 1 samples of the plate."""
        count = len(plate["pos"])
        for name, values in plate.items():
            self.plate[name][0, :count] = values
        self._travel[0] = np.abs(np.diff(plate["pos"], axis=0)).sum() + 0.01  # a bound is enough
        self._step.set_param_by_name("h", duration_s / (count - 1))
        self._step.set_param_by_name("substeps", count - 1)
        self._step.launch()
