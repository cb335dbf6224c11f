"""The set encoder: shared per-point layers and a feature-wise maximum turn N states into one vector.

The maximum makes it blind to order, to repetition and to N (paper, Sec. IV-B). `pretraining` teaches it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from dris.learning.config import EncoderConfig

CHUNK = 6400
"""Instances whose features (64 and 128 numbers each) stay in a core's cache between the layers."""


def code_size(state_size: int, config: EncoderConfig) -> int:
    """d_z: `latent`, or two moments of every component of the state."""
    return config.latent if config.pooling == "max" else 2 * state_size


def layers(sizes: Sequence[int]) -> list[nn.Module]:
    """Linear layers from each size to the next, a ReLU after each."""
    return [layer for size in pairwise(sizes) for layer in (nn.Linear(*size), nn.ReLU())]


class SetEncoder(nn.Module):
    """psi: states [..., N, S] to a code [..., d_z]."""

    def __init__(self, state_size: int, scale: Sequence[float], config: EncoderConfig = EncoderConfig()):
        """Make an untrained encoder.

        Args:
            state_size: S.
            scale: [S] one standard deviation of observation noise, in the state's units.
            config: Layers, code and unit.
        """
        super().__init__()
        if len(scale) != state_size or not all(0 < value < math.inf for value in scale):
            raise ValueError(f"scale must be {state_size} positive numbers, one a component, got {scale}")
        self.scale: torch.Tensor
        self.centre: torch.Tensor
        self.spread: torch.Tensor
        code = code_size(state_size, config)
        self.register_buffer("scale", torch.tensor(tuple(scale)) * config.unit)
        self.register_buffer("centre", torch.zeros(code))
        self.register_buffer("spread", torch.ones(code))
        self._code_spread = config.code_spread
        self.points: nn.Sequential | None = None
        if config.pooling == "moments":
            return
        self.points = nn.Sequential(*layers((state_size, *config.widths, config.latent))[:-1])

    def normalise(self, states: torch.Tensor) -> torch.Tensor:
        """States in the encoder's own units."""
        x = states / self.scale
        # asinh, written out: torch's own is several times slower on a CPU.
        return x.sign() * (x.abs() + (x * x + 1).sqrt()).log()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Codes [..., d_z] of sets [..., N, S]."""
        x = self.normalise(states)
        if self.points is None:
            code = torch.cat((x.mean(dim=-2), x.std(dim=-2, correction=0)), dim=-1)
        else:
            code = self.points(x).amax(dim=-2)
        return (code - self.centre) / self.spread

    def encode_chunked(self, states: torch.Tensor) -> torch.Tensor:
        """Codes of many sets [B, N, S], a chunk that fits the cache at a time: twice as fast, same bits."""
        return torch.cat([self(chunk) for chunk in states.split(max(1, CHUNK // states.shape[1]))])

    def standardise(self, sets: torch.Tensor, sizes: tuple[int, ...]) -> None:
        """Give each feature of the code mean 0 and one spread, over sets [B, N, S] cut to some sizes.

        Done once, after pre-training. A norm that looked at each code by itself would blow up the small
        differences between quiet sets, and with them the observation noise.
        """
        with torch.no_grad():
            codes = torch.cat([self(sets[:, :size]) for size in sizes])
            self.centre += codes.mean(dim=0) * self.spread
            # A feature that never moves stays quiet.
            self.spread *= (codes.std(dim=0) + 1e-3) / self._code_spread
