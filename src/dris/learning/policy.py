"""The FiLM-conditioned actor and critic, as models of rsl_rl's PPO, and the policy they become.

E2E and DRIS are one network: what differs is whether the encoder is given, frozen, and run once per step
by the caller (`encoder="frozen"`), or belongs to the model and learns with it (`encoder="learned"`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict
from torch import nn

from dris.core.env import Observation
from dris.core.task import Task
from dris.learning.encoder import EncoderConfig, SetEncoder, code_size


@dataclass(frozen=True)
class PolicyConfig:
    """Shape of actor and critic."""

    encoder: Literal["frozen", "learned"] = "frozen"
    """frozen: the pre-trained set encoder (DRIS); learned: end to end from the states (E2E)."""
    view: Literal["set", "first"] = "set"
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
        for name, known in (("view", ("set", "first")), ("conditioning", ("film", "concat"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got '{getattr(self, name)}'")
        if not self.hidden or min(self.hidden) < 1 or self.film_width < 1:
            raise ValueError(f"hidden and film_width must be positive, got {self.hidden}, {self.film_width}")
        if self.encoder not in ("frozen", "learned"):
            raise ValueError(f"encoder must be 'frozen' or 'learned', got '{self.encoder}'")
        if not 0 < self.first_std < math.inf:
            raise ValueError(f"first_std must be positive and finite, got {self.first_std}")


class FilmModel(MLPModel):
    """z~ = lambda(u) * z + mu(u), then an MLP (paper, Sec. IV-C); without a condition, z~ = z.

    The baseline "concat" has z~ = (z, u).

    Inputs: `code` [B, d_z] if the encoder is frozen, `states` [B, N, S] if it is learned; `condition`
    [B, C]. lambda starts at one and mu at zero.
    """

    def __init__(
        self,
        inputs: TensorDict,
        outputs: int,
        task: Task,
        encoder: EncoderConfig,
        config: PolicyConfig,
        std: float | None,
    ):
        code = code_size(task, encoder)
        self._concat = config.conditioning == "concat"
        self._input_size = code + task.condition_size if self._concat else code
        gaussian = {"class_name": "GaussianDistribution", "init_std": std, "std_type": "log"}
        groups = {"all": ["condition"]}
        super().__init__(
            inputs, groups, "all", outputs, config.hidden, "elu", False, None if std is None else gaussian
        )
        self.encoder = SetEncoder(task, encoder) if config.encoder == "learned" else None
        self.film = None
        if task.condition_size and not self._concat:
            last = nn.Linear(config.film_width, 2 * code)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            self.film = nn.Sequential(nn.Linear(task.condition_size, config.film_width), nn.ELU(), last)

    def get_latent(self, obs: TensorDict, masks=None, hidden_state=None) -> torch.Tensor:
        """FiLM(z, u)."""
        code = obs["code"] if self.encoder is None else self.encoder(obs["states"])
        if self._concat:
            return torch.cat((code, obs["condition"]), dim=-1)
        if self.film is None:
            return code
        scale, shift = self.film(obs["condition"]).chunk(2, dim=-1)
        return (1 + scale) * code + shift

    def _get_latent_dim(self) -> int:
        return self._input_size


class Policy:
    """A policy to act with: observations of B sets of any size in, actions [B, A] out."""

    def __init__(self, task: Task, encoder: EncoderConfig, config: PolicyConfig):
        self.config = config
        self.task_config = task.config
        self.encoder = SetEncoder(task, encoder).eval().requires_grad_(False)
        condition = torch.zeros(1, task.condition_size)
        states = torch.zeros(1, 1, len(task.state_names))
        inputs = self.inputs(Observation(states, condition))
        self.actor = FilmModel(inputs, task.action_size, task, encoder, config, config.first_std)

    def inputs(self, observation: Observation) -> TensorDict:
        """What actor and critic see: the set's code, or, end to end, its states."""
        states = observation.states if self.config.view == "set" else observation.states[:, :1]
        if self.config.encoder == "learned":
            tensors = {"states": states}
        else:
            with torch.no_grad():
                tensors = {"code": self.encoder.in_portions(states)}
        return TensorDict(
            {**tensors, "condition": observation.condition}, batch_size=[len(observation.states)]
        )

    def __call__(self, observation: Observation) -> torch.Tensor:
        """Actions [B, A], the mean of the policy's distribution."""
        with torch.inference_mode():
            return self.actor(self.inputs(observation))
