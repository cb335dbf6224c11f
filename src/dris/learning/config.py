"""What a training run is: every value that decides its outcome. Defaults are the paper's recipe.

Here without torch, so that a command line is read quickly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import tyro

from dris.belief.config import BeliefConfig
from dris.core.validation import check_at_least_one, check_choices, check_positive, check_seed

DEFAULT_SET_SIZES = (1, 2, 5, 10, 20, 50, 64)
LARGEST_WIDTH = 2**16
"""Of a layer; more is a mistake, or a damaged file."""


def _check_widths(name: str, widths: tuple[int, ...], of: str = "") -> None:
    """Refuse layers that cannot be."""
    if not all(1 <= width <= LARGEST_WIDTH for width in widths):
        raise ValueError(f"{name} must be at least 1 {of}and at most {LARGEST_WIDTH}, got {widths}")


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
    which pass on less noise: docs/reports/literal.md."""

    def __post_init__(self) -> None:
        """Refuse shapes and efforts that make no encoder."""
        counts = ("latent", "points", "episodes", "sets", "instances", "passes", "batch")
        check_at_least_one(**{name: getattr(self, name) for name in counts})
        check_choices(self)
        check_positive(self, "unit", "learning_rate", "code_spread")
        if not self.set_sizes or min(self.set_sizes) < 1:
            raise ValueError(f"set_sizes must be positive, got {self.set_sizes}")
        if self.set_sizes != DEFAULT_SET_SIZES and max(self.set_sizes) > self.instances:
            raise ValueError(
                f"set_sizes must not exceed the {self.instances} instances a set, got {self.set_sizes}"
            )
        for name in ("widths", "decoder_widths"):
            _check_widths(name, getattr(self, name), of="each ")
        _check_widths("latent and points", (self.latent, self.points))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Set sizes of training: those of `set_sizes` that `instances` allows."""
        return tuple(size for size in self.set_sizes if size <= self.instances)


@dataclass(frozen=True)
class PolicyConfig:
    """Shape of actor and critic."""

    encoder: Literal["frozen", "learned"] = "frozen"
    """frozen: the pre-trained set encoder (DRIS); learned: end to end from the states (E2E)."""
    visible: Literal["set", "first"] = "set"
    """What the policy sees of a set: all of it, or, as a baseline, its first instance only; the reward
    is the mean of the set either way."""
    conditioning: Literal["film", "concat"] = "film"
    """How the condition enters: FiLM as in the paper, or, as a baseline, beside the code."""
    hidden: tuple[int, ...] = (128, 128)
    film_width: int = 64
    """Hidden units of lambda(u) and mu(u)."""
    first_std: float = 0.3
    """Standard deviation of the first actions."""

    def __post_init__(self) -> None:
        """Refuse shapes that make no network."""
        check_choices(self)
        check_positive(self, "first_std")
        if not self.hidden:
            raise ValueError("hidden needs at least one layer, got ()")
        _check_widths("hidden and film_width", (*self.hidden, self.film_width))


LARGEST_ADAPTED_RATE = 1e-2
"""That rsl_rl comes to."""


@dataclass(frozen=True)
class PpoConfig:
    """How the policy learns; what the paper leaves open was tuned here (docs/reports/policies.md)."""

    learning_rate: float = 3e-3
    """At the start; falls linearly with the iterations."""
    min_lr_fraction: float = 0.2
    """Share of the learning rate that it does not fall below; `ema_window` takes out the last jitter."""
    desired_kl: float | None = None
    """How far an update should move the policy, as the mean divergence of its actions' distributions: beyond
    twice of it the learning rate falls step by step, below half of it the rate rises again, up to the
    schedule's. None: the schedule alone. For a run that goes on from another: it explores little, and the
    same step of the weights changes its actions more, in their standard deviations
    (docs/reports/policies.md)."""
    last_std: float = 0.1
    """The actions' standard deviation is kept below a curve that falls geometrically to this,"""
    least_std: float = 0.0
    """and above this: a policy that explores less learns less from an iteration."""
    epochs: int = 5
    """Passes through an iteration's steps."""
    mini_batches: int = 4
    gamma: float = 0.95
    """Discount."""
    gae_lambda: float = 0.9
    """lambda of the advantage estimate"""
    clip: float = 0.2
    """Of the ratio of probabilities."""
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
        check_positive(self, "learning_rate", "last_std", "epochs", "mini_batches", "clip", "max_grad_norm")
        if not 0 <= self.least_std <= self.last_std:
            raise ValueError(f"least_std must lie in [0, last_std {self.last_std}], got {self.least_std}")
        if not 0 <= self.min_lr_fraction <= 1:
            raise ValueError(f"min_lr_fraction must lie in [0, 1], got {self.min_lr_fraction}")
        if self.desired_kl is not None and not 0 < self.desired_kl < math.inf:
            raise ValueError(f"desired_kl must be None or positive and finite, got {self.desired_kl}")
        if self.desired_kl is not None and self.learning_rate > LARGEST_ADAPTED_RATE:
            raise ValueError(
                f"with desired_kl learning_rate is at most {LARGEST_ADAPTED_RATE}, got {self.learning_rate}"
            )
        if not 0 <= self.ema_window < 1:
            raise ValueError(f"ema_window must lie in [0, 1), got {self.ema_window}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay must be 0 or more and finite, got {self.weight_decay}")


LITERAL_PPO = PpoConfig(weight_decay=0.07, decay_encoder=False)
"""As it was tuned on the paper's text taken literally (docs/reports/literal.md)."""


BEGAN_FROM = ("encoder_from", "policy_from")
"""Values of a run that are paths: no part of what decides."""


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
    least_noise: float | None = None
    """Every episode's noise lies between this and `noise`, drawn evenly; None: it is `noise`."""
    randomize: tuple[tuple[str, float, float], ...] = ()
    """Ranges of domain parameters in training that differ from the task's: name, low, high. Evaluation keeps
    the task's."""
    delay_s: tuple[float, float] = (0.0, 0.0)
    """Range of the time from observation to the moment its command acts, drawn per episode [s]."""
    belief: BeliefConfig = field(default_factory=lambda: BeliefConfig("none"))
    """What stands between what is seen and the policy, in training and afterwards. With one, a set is one
    true instance and the belief's; `instances` does not count."""
    threads: int = 2
    """Of this process: of torch, and of the world. Part of what a run is: other sums round otherwise."""
    evaluate_every: int = 50
    """Iterations between evaluations on single instances."""
    evaluate_episodes: int = 1000
    evaluate_on: tuple[str, ...] = ("clean", "noise-2")
    """Conditions of these evaluations; the best of them is kept as best.safetensors."""
    save_every: int = 25
    """Iterations between checkpoints; after a minute there is one anyway. An interrupted run goes on from the
    last one, to the same bits."""
    encoder_from: Path | None = None
    """Take the encoder of another run instead of pre-training one."""
    policy_from: Path | None = None
    """Begin with what another run has learned: its averaged actor, its critic and its encoder."""
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)

    def __post_init__(self) -> None:
        """Refuse runs that could not be."""
        check_at_least_one(sets=self.sets, instances=self.instances, iterations=self.iterations)
        check_at_least_one(threads=self.threads, save_every=self.save_every)
        check_at_least_one(evaluate_every=self.evaluate_every, evaluate_episodes=self.evaluate_episodes)
        check_seed(self.seed)
        if self.ppo.least_std > self.policy.first_std:
            least, first = self.ppo.least_std, self.policy.first_std
            raise ValueError(f"exploration begins at policy.first_std {first}, below ppo.least_std {least}")
        if not 0 <= self.noise < math.inf:
            raise ValueError(f"noise must be 0 or more and finite, got {self.noise}")
        if not self.evaluate_on:
            raise ValueError("evaluate_on needs at least one condition, for instance clean")
