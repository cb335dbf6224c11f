"""Policies that need no training: stand still, move at random, and VelTrack, the paper's baseline."""

from __future__ import annotations

import torch

from dris.catching.actions import encode
from dris.catching.frames import tilt_of_normal
from dris.catching.task import CatchingTask
from dris.core.constants import GRAVITY
from dris.core.env import Observation
from dris.core.rollout import Agent, MakeAgent


def still(task: CatchingTask, sets: int) -> Agent:
    """Keep the plate level and where it is."""
    return lambda observation: torch.zeros(sets, task.action_size)


def random(task: CatchingTask, sets: int, seed: int = 0) -> Agent:
    """Actions uniform in [-1, 1]."""
    generator = torch.Generator().manual_seed(seed)
    return lambda observation: 2 * torch.rand(sets, task.action_size, generator=generator) - 1


class VelTrack:
    """Face the incoming ball until it hits, then follow it horizontally with a level plate.

    The paper describes its hand-made baseline in one sentence; what it leaves open is done simply:
    until the first impact the plate goes below the point where the ball will arrive, and the impact
    is seen as a rise of the vertical velocity that gravity cannot explain. Made for one episode.
    """

    IMPACT_JUMP = 1.0
    """[m/s] more upward than free fall over one control step."""

    def __init__(self, task: CatchingTask, sets: int):
        self._task = task
        self._hit = torch.zeros(sets, dtype=torch.bool)
        self._last_rise = torch.full((sets,), float("inf"))
        self._steps_left = task.horizon

    def __call__(self, observation: Observation) -> torch.Tensor:
        """Actions [B, 5] from the mean of each set."""
        if self._steps_left == 0:
            raise RuntimeError("a VelTrack agent remembers its episode: make a new one for the next")
        self._steps_left -= 1
        ball = observation.states.mean(dim=1)
        offset, velocity = ball[:, :3], ball[:, 3:]
        step_s = self._task.step_s
        self._hit |= velocity[:, 2] > self._last_rise - GRAVITY * step_s + self.IMPACT_JUMP
        self._last_rise = velocity[:, 2].clone()

        facing = tilt_of_normal(-velocity / velocity.norm(dim=-1, keepdim=True).clamp_min(1e-6))
        limit = self._task.config.max_tilt
        facing = facing * (limit / facing.norm(dim=-1, keepdim=True).clamp_min(limit))
        tilt = torch.where(self._hit[:, None], torch.zeros_like(facing), facing)

        # Free fall to the plate's height: 0 = z + v t - g t^2 / 2; one step ahead once it has hit.
        fall, drop = velocity[:, 2], offset[:, 2].clamp_min(0.0)
        arrival_s = (fall + (fall**2 + 2 * GRAVITY * drop).sqrt()) / GRAVITY
        ahead_s = torch.where(self._hit, torch.full_like(fall, step_s), arrival_s)
        displacement = torch.zeros_like(offset)
        displacement[:, :2] = offset[:, :2] + velocity[:, :2] * ahead_s[:, None]
        return encode(self._task.config, displacement, tilt)


BASELINES: dict[str, MakeAgent] = {"still": still, "random": random, "veltrack": VelTrack}
"""Agents by name."""
