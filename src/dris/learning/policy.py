"""The FiLM-conditioned actor and critic, as models of rsl_rl's PPO, and the policy they become.

E2E and DRIS are one network: what differs is whether the encoder is given, frozen, and run once per step
by the caller (`encoder="frozen"`), or belongs to the model and learns with it (`encoder="learned"`).
`FilmModel` has the constructor of rsl_rl's models, so that any of its runners can build it by name.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict
from torch import nn

from dris.belief.config import BeliefConfig
from dris.core.env import Observation
from dris.core.task import Task
from dris.learning.config import EncoderConfig, PolicyConfig
from dris.learning.encoder import SetEncoder, code_size


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
        self._state_group, self.state_shape = state_group, obs[state_group].shape[1:]
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

    def as_onnx(self, verbose: bool = False) -> nn.Module:
        """States (or codes) and condition in, mean actions out: what rsl_rl's runner exports."""
        return _Exported(self)

    def as_jit(self) -> nn.Module:
        """The same, traced."""
        exported = _Exported(self)
        return torch.jit.trace(exported, exported.get_dummy_inputs())

    def _get_obs_dim(self, obs: TensorDict, obs_groups: dict, obs_set: str) -> tuple[list[str], int]:
        """Groups and size of the condition."""
        condition = [group for group in obs_groups[obs_set] if group != self._state_group]
        return super()._get_obs_dim(obs, {obs_set: condition}, obs_set)

    def _get_latent_dim(self) -> int:
        return self._input_size


class _Exported(nn.Module):
    """A copy of a FilmModel whose inputs are tensors; N is that of the observations it was built with."""

    is_recurrent = False
    output_names = ["actions"]

    def __init__(self, model: FilmModel):
        super().__init__()
        known: dict[int, nn.Module] = {}  # a distribution remembers a gradient's graph, which has no copy
        if model.distribution is not None:
            known[id(model.distribution)] = model.distribution.as_deterministic_output_module()
        self.model = copy.deepcopy(model, known)
        self.input_names = ["states", "condition"] if model.obs_dim else ["states"]

    def forward(self, states: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        """Mean actions [B, A]."""
        if condition is not None:
            condition = self.model.obs_normalizer(condition)
        output = self.model.mlp(self.model.modulated(states, condition))
        return output if self.model.distribution is None else self.model.distribution(output)

    def get_dummy_inputs(self) -> tuple[torch.Tensor, ...]:
        """One set."""
        inputs = torch.zeros(1, *self.model.state_shape), torch.zeros(1, self.model.obs_dim)
        return inputs[: len(self.input_names)]


class Policy:
    """A policy to act with: observations of B sets of any size in, actions [B, A] out."""

    def __init__(self, task: Task, encoder: EncoderConfig, config: PolicyConfig):
        self.config = config
        self.task = task
        self.belief = BeliefConfig("none")
        """What it was trained behind, for `dris.belief_env`; `load_policy` sets it."""
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
        return TensorDict({**tensors, "condition": observation.condition}, batch_size=[len(states)])

    def __call__(self, observation: Observation) -> torch.Tensor:
        """Actions [B, A], the mean of the policy's distribution."""
        with torch.inference_mode():
            return self.actor(self.inputs(observation))

    def act(self, observation: Observation) -> torch.Tensor:
        """Actions [B, A] within [-1, 1], as a robot is given them; `Env` clips by itself and counts it.

        Raises:
            ValueError: The observation has another shape than the task's, or holds what is not finite.
        """
        states, condition, task = observation.states, observation.condition, self.task
        if states.dim() != 3 or states.shape[2] != len(task.state_names) or states.shape[1] < 1:
            raise ValueError(
                f"states must be [B, N, {len(task.state_names)}] ({', '.join(task.state_names)}), got "
                f"{list(states.shape)}"
            )
        if tuple(condition.shape) != (len(states), task.condition_size):
            expected = [len(states), task.condition_size]
            raise ValueError(f"the condition must be {expected}, got {list(condition.shape)}")
        if not bool(states.isfinite().all() and condition.isfinite().all()):
            raise ValueError("the observation is not finite: do not act on it")
        return self(observation).clamp(-1.0, 1.0)
