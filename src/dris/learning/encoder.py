"""The set encoder: a point-set autoencoder that turns the states of N instances into one vector.

Shared per-point layers, feature-wise maximum, decoder; trained to reconstruct the set under the Chamfer
distance (paper, Sec. IV-B). The maximum makes it blind to order, to repetition and to N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from dris.core.env import Env, EnvConfig
from dris.core.rng import KeyedRng
from dris.core.task import Task


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
    set_sizes: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 64)
    """Sizes of the sets shown in training, in turn; one size, as in the paper, is a tuple of one."""
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
        if max(self.set_sizes) > self.instances:
            raise ValueError(
                f"set_sizes must not exceed the {self.instances} instances a set, got {self.set_sizes}"
            )
        for name in ("widths", "decoder_widths"):
            if min(getattr(self, name), default=1) < 1:
                raise ValueError(f"{name} must be at least 1 each, got {getattr(self, name)}")
        for name in ("unit", "learning_rate", "code_spread"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")


PORTION = 6400
"""Instances whose features (64 and 128 numbers each) stay in a core's cache between the layers."""


def code_size(task: Task, config: EncoderConfig) -> int:
    """d_z: `latent`, or two moments of every component of the state."""
    return config.latent if config.pooling == "max" else 2 * len(task.state_names)


class SetEncoder(nn.Module):
    """psi: states [..., N, S] to a code [..., d_z]."""

    def __init__(self, task: Task, config: EncoderConfig):
        super().__init__()
        scale = torch.tensor(task.noise_scale) * config.unit
        self.scale: torch.Tensor
        self.centre: torch.Tensor
        self.spread: torch.Tensor
        code = code_size(task, config)
        self.register_buffer("scale", scale)
        self.register_buffer("centre", torch.zeros(code))
        self.register_buffer("spread", torch.ones(code))
        self._code_spread = config.code_spread
        self.points: nn.Sequential | None = None
        if config.pooling == "moments":
            return
        sizes = (len(task.state_names), *config.widths, config.latent)
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

    def in_portions(self, states: torch.Tensor) -> torch.Tensor:
        """Codes of many sets [B, N, S], a portion that fits the cache at a time: twice as fast, same bits."""
        portion = max(1, PORTION // states.shape[1])
        return torch.cat([self(part) for part in states.split(portion)])

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


def random_episodes(
    task: Task, config: EncoderConfig, seed: int, first: int = 0, last: int | None = None
) -> Iterator[torch.Tensor]:
    """States [T * B, N, S] of one episode after another under random actions, one in memory at a time."""
    env = Env(task, EnvConfig(sets=config.sets, instances=config.instances, seed=seed))
    every = torch.arange(config.sets)
    for episode in range(first, config.episodes if last is None else last):
        rng = KeyedRng(seed + 1, every, torch.full_like(every, episode), torch.zeros_like(every))
        actions = rng.uniform(task.horizon, task.action_size, low=-1.0, high=1.0)
        env.episodes.fill_(episode)
        seen = [env.reset().states]
        for t in range(task.horizon - 1):
            step = env.step(actions[:, t])
            seen.append(step.observation.states)
            if bool(step.terminated.any()):
                env.restart(step.terminated)
        yield torch.cat(seen)


@dataclass(frozen=True)
class Pretraining:
    """State of pre-training after an episode of data: everything needed to go on."""

    model: SetAutoencoder
    optimizer: torch.optim.Adam
    episode: int
    loss: float


def pretrain(
    make_task: Callable[[], Task], config: EncoderConfig, seed: int, resume: Pretraining | None = None
) -> Iterator[Pretraining]:
    """Pre-train an autoencoder on random episodes; yields its state after each of them.

    Every random number depends on the seed and the episode alone, so that going on from any yielded state
    gives the bits of a run that never stopped.
    """
    task = make_task()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = SetAutoencoder(task, config) if resume is None else resume.model
    optimizer = torch.optim.Adam(model.parameters()) if resume is None else resume.optimizer
    first = 0 if resume is None else resume.episode
    for episode, data in enumerate(random_episodes(task, config, seed, first), start=first):
        losses = []
        with torch.random.fork_rng():
            torch.manual_seed(seed * 1_000_003 + episode + 1)
            for part in range(config.passes):
                # One cosine from the full rate to nothing over the whole of pre-training.
                done = (episode * config.passes + part) / (config.episodes * config.passes)
                for group in optimizer.param_groups:
                    group["lr"] = config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
                losses += _one_pass(model, optimizer, data, config, first_batch=part)
        yield Pretraining(model, optimizer, episode + 1, sum(losses) / len(losses))


def _one_pass(
    model: SetAutoencoder,
    optimizer: torch.optim.Adam,
    data: torch.Tensor,
    config: EncoderConfig,
    first_batch: int,
) -> list[float]:
    """A gradient step on each batch of sets, each batch with its size and its own choice of instances."""
    losses = []
    for k, rows in enumerate(torch.randperm(len(data)).split(config.batch)):
        size = config.set_sizes[(first_batch + k) % len(config.set_sizes)]
        columns = torch.randint(0, data.shape[1], (len(rows), size))
        loss = model.loss(torch.gather(data[rows], 1, columns[..., None].expand(-1, -1, data.shape[2])))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def held_out_episode(make_task: Callable[[], Task], config: EncoderConfig, seed: int) -> torch.Tensor:
    """Sets [T * B, N, S] of an episode that pre-training never sees."""
    return next(random_episodes(make_task(), config, seed, config.episodes, config.episodes + 1))


def report_sizes(sets: torch.Tensor) -> tuple[int, ...]:
    """Set sizes that codes and errors are looked at for: 1, 10, 50 and the largest there is."""
    return tuple(sorted({size for size in (1, 10, 50, sets.shape[1]) if size <= sets.shape[1]}))


def reconstruction_error(model: SetAutoencoder, sets: torch.Tensor) -> dict[int, float]:
    """Chamfer distance by set size."""
    with torch.no_grad():
        return {size: float(model.loss(sets[:, :size])) for size in report_sizes(sets)}
