"""rsl_rl adapter: B sets as its `VecEnv`, for its own runners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from dris.core.env import Env, Observation


class RslVecEnv(VecEnv):
    """B sets for rsl_rl. Sets that end begin anew in the same step; time-outs are reported as such.

    Observation groups: `states` [B, N, S] and `condition` [B, C], for `dris.learning.policy:FilmModel`; on
    demand `flat` [B, N * S + C], both in one for rsl_rl's own models, and `code` [B, d_z].
    """

    def __init__(
        self, env: Env, flat: bool = False, encode: Callable[[torch.Tensor], torch.Tensor] | None = None
    ):
        """Begin an episode in every set.

        Args:
            env: The sets.
            flat: Whether to offer the group `flat`.
            encode: States to the group `code`, for instance `SetEncoder.encode_chunked`; None: no such group.
        """
        self.env, self._flat, self._encode = env, flat, encode
        self.num_envs, self.num_actions = env.config.sets, env.task.action_size
        self.max_episode_length = env.task.horizon
        self.device, self.cfg = "cpu", env.config
        self._observation = self._groups(env.reset())

    @property
    def episode_length_buf(self) -> torch.Tensor:  # type: ignore[override]
        """[B] control steps since each episode began."""
        return self.env.steps

    @episode_length_buf.setter
    def episode_length_buf(self, steps: torch.Tensor) -> None:
        """rsl_rl spreads the first episodes' ends this way (`init_at_random_ep_len`)."""
        self.env.steps = steps.clone()

    def get_observations(self) -> TensorDict:
        """What each set shows now."""
        return self._observation

    @torch.inference_mode(False)  # the runner's mode would leave tensors that nobody may change after it
    @torch.no_grad()
    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        """One control step of every set."""
        step = self.env.step(actions)
        extras: dict[str, Any] = {
            "time_outs": step.truncated,
            "log": {f"/reward/{name}": term.mean() for name, term in step.terms.items()},
        }
        observation = step.observation
        if bool(step.done.any()):
            extras["log"]["/success"] = step.success[step.done].float().mean()
            observation = self.env.reset(step.done)
        self._observation = self._groups(observation)
        return self._observation, step.reward, step.done, extras

    def _groups(self, observation: Observation) -> TensorDict:
        groups = vars(observation).copy()
        if self._flat:
            groups["flat"] = torch.cat((observation.states.flatten(1), observation.condition), dim=1)
        if self._encode is not None:
            with torch.no_grad():
                groups["code"] = self._encode(observation.states)
        return TensorDict(groups, batch_size=[self.num_envs])
