"""The crane of own_task.py with the sensors of a crane: what a belief observes need not be the state.

The rail's encoder and the rope's angle are measured; the trolley's velocity and the swing's rate are not.

    dris check examples/own_sensor.py:EncoderCrane
"""

import torch

from dris import KeyedRng
from own_task import CraneTask


class EncoderCrane(CraneTask):
    """A policy behind a belief sees all four components of the state, of which two are inferred."""

    observation_scale = (0.01, 0.01)  # [m], [rad]

    def observed(self) -> torch.Tensor:
        return self.state[..., [0, 2]]

    def draw_start(self, instances: int, rng: KeyedRng) -> torch.Tensor:
        # Anywhere on the rail, moving and swinging a little.
        largest = torch.tensor([2.0, 0.3, self.config.swing, 0.3])
        return largest * rng.uniform(instances, 4, low=-1.0, high=1.0)
