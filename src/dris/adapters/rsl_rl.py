"""rsl_rl adapter: B sets as its `VecEnv`."""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from dris.core.env import Env, Observation


class RslVecEnv(VecEnv):
    """B sets for rsl_rl. Sets that end begin anew in the same step; time-outs are reported as such.

    Observation groups: `states` [B, N, S] and `condition` [B, C].
    """

    def __init__(self, env: Env):
        self.env = env
        self.num_envs, self.num_actions = env.config.sets, env.task.action_size
        self.max_episode_length = env.task.horizon
        self.device, self.cfg = "cpu", env.config
        self._observation = self._tensors(env.reset())

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
        self._observation = self._tensors(observation)
        return self._observation, step.reward, step.done, extras

    def _tensors(self, observation: Observation) -> TensorDict:
        return TensorDict(vars(observation).copy(), batch_size=[self.num_envs])
