"""Pre-training of the set encoder: a point-set autoencoder on episodes of random actions.

A decoder learns to reconstruct each set from its code under the Chamfer distance (paper, Sec. IV-B); what
remains of it is the encoder, and the error on an episode that training never saw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from dris.core.env import Env, EnvConfig
from dris.core.rng import KeyedRng
from dris.core.rollout import replay, rollout
from dris.core.task import Task
from dris.learning.config import EncoderConfig
from dris.learning.encoder import SetEncoder, layers


class SetAutoencoder(nn.Module):
    """The encoder with the decoder that teaches it."""

    def __init__(self, state_size: int, scale: Sequence[float], config: EncoderConfig = EncoderConfig()):
        """Make an untrained one; the arguments are those of `SetEncoder`."""
        super().__init__()
        self.encoder = SetEncoder(state_size, scale, config)
        self.shape = (config.points, state_size)
        sizes = (config.latent, *config.decoder_widths)
        self.decoder = nn.Sequential(*layers(sizes), nn.Linear(sizes[-1], config.points * state_size))

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
        seen: list[torch.Tensor] = []
        for transition in rollout(env, replay(actions.unbind(dim=1)), max(task.horizon - 1, 1)):
            seen += [] if seen else [transition.observation.states]
            seen.append(transition.step.observation.states)
        yield torch.cat(seen[: task.horizon])


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
        model = SetAutoencoder(len(task.state_names), task.noise_scale, config)
    if resume is not None:
        model = resume.model
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
        size = config.sizes[(first_batch + k) % len(config.sizes)]
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
