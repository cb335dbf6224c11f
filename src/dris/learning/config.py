"""What a training run is: every value that decides its outcome. Defaults are the paper's recipe."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from dris.core.validation import check_at_least_one, check_seed
from dris.learning.encoder import EncoderConfig
from dris.learning.policy import PolicyConfig


@dataclass(frozen=True)
class PpoConfig:
    """How the policy learns; what the paper leaves open was tuned here (docs/policies.md)."""

    learning_rate: float = 3e-3
    """At the start; falls linearly with the iterations."""
    min_lr_fraction: float = 0.2
    """Share of the learning rate that it does not fall below; `ema_window` takes out the last jitter."""
    last_std: float = 0.1
    """The actions' standard deviation is kept below a curve that falls geometrically to this."""
    epochs: int = 5
    mini_batches: int = 4
    gamma: float = 0.95
    """Discount."""
    gae_lambda: float = 0.9
    """lambda of the advantage estimate"""
    clip: float = 0.2
    max_grad_norm: float = 1.0
    weight_decay: float = 0.2
    """Pull on the weights of the actor's MLP, per unit of learning rate. It keeps the policy smooth, and a
    smooth policy passes on less observation noise."""
    decay_encoder: bool = True
    """Whether a learned encoder's weights decay, too: without it E2E undoes the decay there."""

    ema_window: float = 0.2
    """The policy that is evaluated and kept is a running mean of the learner's weights over about this share
    of the run: the jitter of single updates averages out. 0: the learner itself."""

    def __post_init__(self) -> None:
        """Refuse values PPO has no meaning for."""
        if not (0 < self.gamma < 1 and 0 <= self.gae_lambda <= 1):
            found = f"got {self.gamma} and {self.gae_lambda}"
            raise ValueError(f"gamma must lie in (0, 1) and gae_lambda in [0, 1], {found}")
        for name in ("learning_rate", "last_std", "epochs", "mini_batches", "clip", "max_grad_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if not 0 <= self.min_lr_fraction <= 1:
            raise ValueError(f"min_lr_fraction must lie in [0, 1], got {self.min_lr_fraction}")
        if not 0 <= self.ema_window < 1:
            raise ValueError(f"ema_window must lie in [0, 1), got {self.ema_window}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay must be 0 or more and finite, got {self.weight_decay}")


LITERAL_PPO = PpoConfig(weight_decay=0.07, decay_encoder=False)
"""As it was tuned on the paper's text taken literally (docs/literal.md)."""


@dataclass(frozen=True)
class TrainConfig:
    """A whole run. Defaults are the paper's recipe."""

    task: tyro.conf.Suppress[str] = ""
    """package.module:Class or path/file.py:Class."""
    task_config: tyro.conf.Suppress[Any] = None
    """The task's own configuration, an instance of its `Config`; None means its default."""
    sets: int = 128
    """B, over all processes."""
    instances: int = 200
    """N; E2E is one instance with `--policy.encoder learned`."""
    iterations: int = 1000
    """Each one an episode of every set and an update."""
    seed: int = 0
    noise: float = 0.0
    """Observation noise in training, in multiples of the task's noise scale; the paper has none."""
    threads: int = 2
    """Of this process: of torch, and of the world."""
    evaluate_every: int = 50
    evaluate_episodes: int = 1000
    evaluate_on: tuple[str, ...] = ("clean", "noise-2")
    save_every: int = 25
    encoder_from: Path | None = None
    """Take the encoder of another run instead of pre-training one."""
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)

    def __post_init__(self) -> None:
        """Refuse runs that could not be."""
        counts = (
            "sets",
            "instances",
            "iterations",
            "threads",
            "evaluate_every",
            "evaluate_episodes",
            "save_every",
        )
        check_at_least_one(**{name: getattr(self, name) for name in counts})
        check_seed(self.seed)
        if not 0 <= self.noise < math.inf:
            raise ValueError(f"noise must be 0 or more and finite, got {self.noise}")
        if not self.evaluate_on:
            raise ValueError("evaluate_on needs at least one condition, for instance clean")
