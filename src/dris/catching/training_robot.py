"""The training world as one robot with one ball: what the control path drives where policies learned."""

from __future__ import annotations

import numpy as np
import torch

from dris.catching.control import BallEstimate
from dris.catching.task import CatchingTask
from dris.perception.arrival import Arrival, free_fall
from dris.perception.plate import Plate


class TrainingRobot:
    """A `Robot` and, since it knows the truth, a `BallObserver`: the first set of a task that has begun."""

    def __init__(self, task: CatchingTask):
        self._world = task.world
        self._reference = task.initial_command()[:1].clone()
        self.time_s = 0.0

    def joints(self) -> np.ndarray:
        """Joint positions [M]."""
        return self._world.q[0].double().numpy()

    def set_reference(self, q: np.ndarray) -> None:
        """Joints [M] to go to from now on."""
        self._reference = torch.tensor(q, dtype=torch.float32)[None]

    def advance(self, duration_s: float) -> None:
        """Let time pass, a multiple of the world's substep."""
        self._world.advance(self._reference, duration_s)
        self.time_s += duration_s

    @property
    def radius_m(self) -> float:
        """Of the first ball."""
        return float(self._world.radius[0, 0])

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """It needs no telling."""

    def observe_plate(self, plate: Plate) -> None:
        """It needs no telling."""

    def estimate(self, time_s: float) -> BallEstimate:
        """The true state of the first ball."""
        position, velocity = (part[0, 0].double().numpy() for part in (self._world.pos, self._world.vel))
        return BallEstimate(position, velocity)

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """By free fall from the true state."""
        ball = self.estimate(time_s)
        return free_fall(time_s, ball.position, ball.velocity, height_m)
