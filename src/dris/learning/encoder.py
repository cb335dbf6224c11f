"""The set encoder: shared per-point layers and a feature-wise maximum turn N states into one vector.

The maximum makes it blind to order, to repetition and to N (paper, Sec. IV-B). `pretraining` teaches it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

DEFAULT_SET_SIZES = (1, 2, 5, 10, 20, 50, 64)


@dataclass(frozen=True)
class EncoderConfig:
    """Shape of the encoder and how it is pre-trained."""

    pooling: Literal["max", "moments"] = "max"
    """max: learned features, the largest over the set, as in the paper; moments: mean and standard
    deviation of the states over the set, with nothing to learn, as a baseline."""
    latent: int = 64
    """d_z, size of the code [paper]."""
    widths: tuple[int, ...] = (64, 128)
    """Shared per-point layers before the code."""
    decoder_widths: tuple[int, ...] = (256, 256)
    points: int = 64
    """Points that the decoder reconstructs."""
    unit: float = 30.0
    """States are measured in this many standard deviations of observation noise, then compressed by
    asinh: linear below the unit, logarithmic above, so that lost instances do not drown the others."""
    episodes: int = 50
    """Episodes of random actions [paper]."""
    sets: int = 128
    """Sets side by side [paper]."""
    instances: int = 200
    """Instances a set [paper]."""
    set_sizes: tuple[int, ...] = DEFAULT_SET_SIZES
    """Sizes of the sets shown in training, in turn; one size, as in the paper, is a tuple of one. The default
    list counts as far as `instances` goes (`sizes`); others must not exceed it."""
    passes: int = 6
    """Times each episode's sets are gone through, each time with other instances and set sizes."""
    batch: int = 640
    """Sets in a gradient step."""
    learning_rate: float = 2e-3
    code_spread: float = 0.3
    """Standard deviation of each feature of the finished code. Smaller codes make for gentler policies,
    which pass on less noise: docs/literal.md."""

    def __post_init__(self) -> None:
        """Refuse shapes and efforts that make no encoder."""
        for name in ("latent", "points", "episodes", "sets", "instances", "passes", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.pooling not in ("max", "moments"):
            raise ValueError(f"pooling must be 'max' or 'moments', got '{self.pooling}'")
        if not self.set_sizes or min(self.set_sizes) < 1:
            raise ValueError(f"set_sizes must be positive, got {self.set_sizes}")
        if self.set_sizes != DEFAULT_SET_SIZES and max(self.set_sizes) > self.instances:
            raise ValueError(
                f"set_sizes must not exceed the {self.instances} instances a set, got {self.set_sizes}"
            )
        for name in ("widths", "decoder_widths"):
            if min(getattr(self, name), default=1) < 1:
                raise ValueError(f"{name} must be at least 1 each, got {getattr(self, name)}")
        for name in ("unit", "learning_rate", "code_spread"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Set sizes of training: those of `set_sizes` that `instances` allows."""
        return tuple(size for size in self.set_sizes if size <= self.instances)


CHUNK = 6400
"""Instances whose features (64 and 128 numbers each) stay in a core's cache between the layers."""


def code_size(state_size: int, config: EncoderConfig) -> int:
    """d_z: `latent`, or two moments of every component of the state."""
    return config.latent if config.pooling == "max" else 2 * state_size


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
        sizes = (state_size, *config.widths, config.latent)
        layers: list[nn.Module] = []
        for before, after in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.points = nn.Sequential(*layers[:-1])

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
