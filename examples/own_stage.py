"""The crane of own_task.py in 3-D: what `dris view` needs of a task.

dris view still --task examples/own_stage.py:ShownCrane
"""

import numpy as np
import torch

from dris.core.stage import Scene, Shape, Stage
from own_task import CraneTask


class CraneStage(Stage):
    """A rail, the trolley on it, and a ball for every load."""

    shapes = (
        Shape(0, "box", (2.5, 0.02, 0.02), colour=(0.6, 0.6, 0.65)),
        Shape(1, "box", (0.12, 0.08, 0.05), colour=(0.2, 0.4, 0.7)),
    )
    charted = ("load from the origin [m]", "load speed [m/s]")
    camera = ((0.0, -4.5, 0.6), (0.0, 0.0, -0.5))
    close_up = ((0.0, -2.5, -0.2), (0.0, 0.0, -0.6))

    def __init__(self, task: CraneTask) -> None:
        self.task = task

    def points_of(self, which: int, states: torch.Tensor) -> np.ndarray:
        x, _, angle, _ = states.unbind(dim=-1)
        rope = self.task.rope[which, : len(states)]
        return torch.stack((x + rope * angle.sin(), 0 * x, -rope * angle.cos()), dim=-1).numpy()

    def scene(self, which: int) -> Scene:
        states = self.task.state[which]
        x, v, angle, rate = states[0].tolist()
        rope = float(self.task.rope[which, 0])
        place, speed = x + rope * np.sin(angle), v + rope * rate * np.cos(angle)
        count = len(states)
        return Scene(
            positions=np.array([[0.0, 0.0, 0.0], [x, 0.0, 0.0]]),
            quaternions=np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)),
            points=self.points_of(which, states),
            radii=np.full(count, 0.05),
            lost=np.zeros(count, dtype=bool),
            figures={self.charted[0]: abs(place), self.charted[1]: abs(speed)},
        )


class ShownCrane(CraneTask):
    """The crane, with a stage and an agent that does nothing."""

    def stage(self) -> CraneStage:
        return CraneStage(self)

    @classmethod
    def baselines(cls):
        return {"still": lambda task, sets: lambda observation: torch.zeros(sets, 1)}
