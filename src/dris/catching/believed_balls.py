"""The balls of a belief beside one robot, in memory that NumPy and Warp share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import warp as wp

from dris.catching.plate_past import KEPT_S, SAMPLE
from dris.core.constants import GRAVITY
from dris.sim.contact import EXACT
from dris.sim.spheres import step_spheres

SUBSTEP_S = 0.005
"""Longest step between the plate's samples [s]: that of training."""
STATE, PHYSICS, DRAG = slice(0, 6), slice(6, 13), 13
"""Columns of `Balls.values`: position and velocity; spin and what `dris.catching.instances` says; drag."""

_ARGUMENTS = [argument.label for argument in step_spheres.adj.args]
_H, _SUBSTEPS = _ARGUMENTS.index("h"), _ARGUMENTS.index("substeps")


class Balls:
    """N balls and the plate's samples in memory that Warp shares.

    Attributes:
        values: [N, 14] all that is uncertain of the balls, in the order of `dris.catching.instances`, then
            drag [1/m]. `pos`, `vel` and so on [1, N, ...] are its columns, as Warp has them: a copy or an
            update of all balls is one call.
        contact: [2, N] their mode and how many impacts they had; `mode` and `impacts` [1, N] are its rows.
    """

    def __init__(self, count: int, plate_half_size: tuple[float, float, float]):
        self.values = np.zeros((count, 14), np.float32)
        self.contact = np.zeros((2, count), np.int32)
        columns = self.values[None]
        self.pos, self.vel, self.spin = (columns[..., k : k + 3] for k in (0, 3, 6))
        self.radius, self.static_friction, self.dynamic_friction, self.restitution = (
            columns[..., k] for k in (9, 10, 11, 12)
        )
        self.drag = self.values[:, DRAG]
        self.mode, self.impacts = self.contact[0:1], self.contact[1:2]
        self._plate = np.zeros((round(KEPT_S / SUBSTEP_S) + 2, sum(SAMPLE.values())), np.float32)
        # How far the plate travels would only spare a ball that is far away a look at every sample.
        self._travel = np.full(1, math.inf, np.float32)
        self._step = self._launch(plate_half_size)

    def _launch(self, plate_half_size: tuple[float, float, float]) -> Any:
        """The kernel on this memory, to be launched again and again."""

        def shared(values: np.ndarray, dtype: Any) -> Any:
            return wp.array(values, dtype=dtype, copy=False)

        plate, first = [], 0
        for size in SAMPLE.values():
            part = self._plate[None, :, first : first + size]
            kind = {3: wp.vec3, 4: wp.quat, 9: wp.mat33}[size]
            plate.append(shared(part.reshape(1, -1, 3, 3) if size == 9 else part, kind))
            first += size
        scalars = (self.radius, self.static_friction, self.dynamic_friction, self.restitution)
        balls = [shared(part, wp.float32) for part in scalars]
        balls += [shared(part, wp.vec3) for part in (self.pos, self.vel, self.spin)]
        balls += [shared(part, wp.int32) for part in (self.mode, self.impacts)]
        return wp.launch(
            step_spheres,
            dim=(1, len(self.values)),
            inputs=[
                wp.vec3(*plate_half_size), wp.vec3(0.0, 0.0, -GRAVITY), EXACT.bounce_speed, SUBSTEP_S, 1, 0,
                *plate, shared(self._travel, wp.float32), *balls,
            ],
            device="cpu",
            record_cmd=True,
        )  # fmt: skip

    def copy(self, other: Balls) -> None:
        """Become like another."""
        self.values[:] = other.values
        self.contact[:] = other.contact

    def advance(self, plate: np.ndarray, duration_s: float) -> None:
        """Let the balls evolve over a duration, cut evenly by n + 1 samples of the plate [n + 1, 22]."""
        steps = len(plate) - 1
        self._plate[: steps + 1] = plate
        self._step.set_param_at_index_from_ctype(_H, duration_s / steps)
        self._step.set_param_at_index_from_ctype(_SUBSTEPS, steps)
        # Air takes half of its due before and half after, so that places feel it, too.
        drag_s = self.drag * (0.5 * duration_s)
        self._slow(drag_s)
        self._step.launch()
        self._slow(drag_s)

    def _slow(self, drag_s: np.ndarray) -> None:
        """Drag times duration [N]: v' = -c v^2, so v = v0 / (1 + c v0 t)."""
        mode, velocity = self.mode[0], self.vel[0]
        lying = np.count_nonzero(mode)
        if lying == len(mode):
            return
        lost = np.sqrt(np.vecdot(velocity, velocity))
        lost *= drag_s
        if lying:
            lost *= mode == 0
        lost += 1.0
        velocity /= lost[:, None]
