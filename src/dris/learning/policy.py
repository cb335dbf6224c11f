"""The FiLM-conditioned actor and critic, as models of rsl_rl's PPO, and the policy they become.

E2E and DRIS are one network: what differs is whether the encoder is given, frozen, and run once per step
by the caller (`encoder="frozen"`), or belongs to the model and learns with it (`encoder="learned"`).
`FilmModel` has the constructor of rsl_rl's models, so that any of its runners can build it by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

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
        for name, known in (("visible", ("set", "first")), ("conditioning", ("film", "concat"))):
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

    The baseline "concat" has z~ = (z, u). lambda starts at one and mu at zero.

    Of the groups in its observation set, `state_group` holds states [B, N, S], which an encoder of the
    model's own turns into the code z and learns to (E2E), or, if it has two dimensions, codes [B, d_z] made
    outside (DRIS). All others, [B, C_i] each, are the condition u. In a runner's configuration:
    `class_name: "dris.learning.policy:FilmModel"`.
    """

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        hidden_dims: tuple[int, ...] | list[int] = (128, 128),
        activation: str = "elu",
        obs_normalization: bool = False,
        distribution_cfg: dict | None = None,
        state_group: str = "states",
        scale: Sequence[float] | None = None,
        encoder: dict[str, Any] | None = None,
        film_width: int = 64,
        conditioning: Literal["film", "concat"] = "film",
    ):
        """Build the model; arguments up to `distribution_cfg` are rsl_rl's.

        Args:
            obs: Observations of B sets, of which only shapes count.
            obs_groups: Names of the groups in each observation set.
            obs_set: This model's observation set.
            output_dim: Actions, or one value.
            hidden_dims: Widths of the MLP.
            activation: Of the MLP.
            obs_normalization: Whether to normalise the condition; states have their `scale`.
            distribution_cfg: Distribution of the actions; None for a critic.
            state_group: The group of states or codes.
            scale: [S] one standard deviation of observation noise, in the states' units; codes need none.
            encoder: Values of `EncoderConfig` other than its defaults.
            film_width: Hidden units of lambda(u) and mu(u).
            conditioning: How the condition enters.
        """
        if conditioning not in ("film", "concat"):
            raise ValueError(f"conditioning must be 'film' or 'concat', got '{conditioning}'")
        if state_group not in obs_groups[obs_set] or obs[state_group].dim() not in (2, 3):
            found = {group: tuple(obs[group].shape) for group in obs_groups[obs_set]}
            raise ValueError(
                f"'{obs_set}' needs a group '{state_group}' (state_group) of states [B, N, S] or codes "
                f"[B, d_z], got {found}"
            )
        self._state_group = state_group
        config, size = EncoderConfig(**encoder or {}), obs[state_group].shape[-1]
        encodes = obs[state_group].dim() == 3
        code = code_size(size, config) if encodes else size
        _, condition = self._get_obs_dim(obs, obs_groups, obs_set)
        self._input_size = code + condition if conditioning == "concat" else code
        normalised = obs_normalization and condition > 0
        super().__init__(
            obs, obs_groups, obs_set, output_dim, hidden_dims, activation, normalised, distribution_cfg
        )
        self.encoder = SetEncoder(size, () if scale is None else scale, config) if encodes else None
        self.film = None
        if condition and conditioning == "film":
            last = nn.Linear(film_width, 2 * code)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            self.film = nn.Sequential(nn.Linear(condition, film_width), nn.ELU(), last)

    def get_latent(self, obs: TensorDict, masks=None, hidden_state=None) -> torch.Tensor:
        """FiLM(z, u)."""
        condition = super().get_latent(obs) if self.obs_dim else None
        return self.modulated(obs[self._state_group], condition)

    def modulated(self, states: torch.Tensor, condition: torch.Tensor | None) -> torch.Tensor:
        """FiLM(z, u) of states [B, N, S] or codes [B, d_z] and of conditions [B, C], if there are any."""
        code = states if self.encoder is None else self.encoder(states)
        if condition is None:
            return code
        if self.film is None:
            return torch.cat((code, condition), dim=-1)
        scale, shift = self.film(condition).chunk(2, dim=-1)
        return (1 + scale) * code + shift

    def _get_obs_dim(self, obs: TensorDict, obs_groups: dict, obs_set: str) -> tuple[list[str], int]:
        """Groups and size of the condition."""
        condition = [group for group in obs_groups[obs_set] if group != self._state_group]
        return super()._get_obs_dim(obs, {obs_set: condition}, obs_set)

    def _get_latent_dim(self) -> int:
        return self._input_size


class Policy:
    """A policy to act with: observations of B sets of any size in, actions [B, A] out."""

    def __init__(self, task: Task, encoder: EncoderConfig, config: PolicyConfig):
        self.config = config
        self.task_config = task.config
        state_size = len(task.state_names)
        self.encoder = SetEncoder(state_size, task.noise_scale, encoder).eval().requires_grad_(False)
        shape = Observation(torch.zeros(1, 1, state_size), torch.zeros(1, task.condition_size))
        self._shape, self._scale, self._encoder = self.inputs(shape), task.noise_scale, asdict(encoder)
        self.actor = self.model(task.action_size, config.first_std)

    def model(self, outputs: int, std: float | None = None) -> FilmModel:
        """A new actor, whose actions have this standard deviation, or, without one, a critic."""
        gaussian = {"class_name": "GaussianDistribution", "init_std": std, "std_type": "log"}
        config, group = self.config, "states" if self.config.encoder == "learned" else "code"
        return FilmModel(
            self._shape, {"all": [group, "condition"]}, "all", outputs, config.hidden,
            distribution_cfg=None if std is None else gaussian, state_group=group, scale=self._scale,
            encoder=self._encoder, film_width=config.film_width, conditioning=config.conditioning,
        )  # fmt: skip

    def inputs(self, observation: Observation) -> TensorDict:
        """What actor and critic see: the set's code, or, end to end, its states."""
        states = observation.states if self.config.visible == "set" else observation.states[:, :1]
        if self.config.encoder == "learned":
            tensors = {"states": states}
        else:
            with torch.no_grad():
                tensors = {"code": self.encoder.encode_chunked(states)}
        return TensorDict(
            {**tensors, "condition": observation.condition}, batch_size=[len(observation.states)]
        )

    def __call__(self, observation: Observation) -> torch.Tensor:
        """Actions [B, A], the mean of the policy's distribution."""
        with torch.inference_mode():
            return self.actor(self.inputs(observation))

    def act(self, observation: Observation) -> torch.Tensor:
        """Actions [B, A] within [-1, 1], as a robot is given them; `Env` clips by itself and counts it."""
        return self(observation).clamp(-1.0, 1.0)
