"""The set encoder: a point-set autoencoder that turns the states of N instances into one vector.

Shared per-point layers, feature-wise maximum, decoder; trained to reconstruct the set under the Chamfer
distance (paper, Sec. IV-B). The maximum makes it blind to order, to repetition and to N.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from dris.draws import Draws
from dris.env import Env, EnvConfig
from dris.task import Task


@dataclass(frozen=True)
class EncoderConfig:
    """Shape of the encoder and how it is pre-trained."""

    latent: int = 64
    """d_z, size of the code [paper]."""
    widths: tuple[int, ...] = (64, 128)
    """Shared per-point layers before the code."""
    decoder_widths: tuple[int, ...] = (256, 256)
    points: int = 64
    """Points that the decoder reconstructs."""
    unit: float = 5.0
    """States are measured in this many standard deviations of observation noise, then compressed by
    asinh: linear below the unit, logarithmic above, so that lost instances do not drown the others."""
    episodes: int = 50
    """Episodes of random actions [paper]."""
    sets: int = 128
    """Sets side by side [paper]."""
    instances: int = 200
    """Instances a set [paper]."""
    set_sizes: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 64)
    """Sizes of the sets shown in training, in turn; one size, as in the paper, is a tuple of one."""
    passes: int = 6
    """Gradient steps taken on each batch of sets, each on other instances and sizes."""
    batch: int = 640
    learning_rate: float = 2e-3


class SetEncoder(nn.Module):
    """psi: states [..., N, S] to a code [..., d_z]."""

    def __init__(self, task: Task, config: EncoderConfig):
        super().__init__()
        scale = torch.tensor(task.noise_scale) * config.unit
        self.scale: torch.Tensor
        self.register_buffer("scale", scale)
        sizes = (len(task.state_names), *config.widths, config.latent)
        layers: list[nn.Module] = []
        for before, after in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.points = nn.Sequential(*layers[:-1])

    def normalise(self, states: torch.Tensor) -> torch.Tensor:
        """States in the encoder's own units."""
        return torch.asinh(states / self.scale)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Codes [..., d_z] of sets [..., N, S]."""
        return self.points(self.normalise(states)).amax(dim=-2)


class SetAutoencoder(nn.Module):
    """The encoder with the decoder that teaches it."""

    def __init__(self, task: Task, config: EncoderConfig):
        super().__init__()
        self.encoder = SetEncoder(task, config)
        self.shape = (config.points, len(task.state_names))
        sizes = (config.latent, *config.decoder_widths)
        layers: list[nn.Module] = []
        for before, after in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.decoder = nn.Sequential(*layers, nn.Linear(sizes[-1], config.points * self.shape[1]))

    def loss(self, states: torch.Tensor) -> torch.Tensor:
        """Mean Chamfer distance of sets [B, N, S] to their reconstructions, in the encoder's units."""
        rebuilt = self.decoder(self.encoder(states)).unflatten(-1, self.shape)
        return chamfer(self.encoder.normalise(states), rebuilt).mean()


def chamfer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Chamfer distance [B] of point sets [B, N, S] and [B, K, S] (paper, Eq. 9).

    Mean over each set of the squared distance to the other set's nearest point, both ways.
    """
    square = (a * a).sum(-1)[:, :, None] + (b * b).sum(-1)[:, None] - 2 * a @ b.transpose(1, 2)
    square = square.clamp_min(0.0)
    return square.amin(dim=2).mean(dim=1) + square.amin(dim=1).mean(dim=1)


def random_episodes(task: Task, config: EncoderConfig, seed: int) -> Iterator[torch.Tensor]:
    """States [T * B, N, S] of one episode after another under random actions."""
    env = Env(task, EnvConfig(sets=config.sets, instances=config.instances, seed=seed))
    every = torch.arange(config.sets)
    for episode in range(config.episodes):
        draws = Draws(seed + 1, every, torch.full_like(every, episode), torch.zeros_like(every))
        actions = draws.uniform(task.horizon, task.action_size, low=-1.0, high=1.0)
        seen = [env.reset().states]
        for t in range(task.horizon - 1):
            step = env.step(actions[:, t])
            seen.append(step.observation.states)
            if bool(step.terminated.any()):
                env.reset(step.terminated.nonzero()[:, 0])
        yield torch.cat(seen)
