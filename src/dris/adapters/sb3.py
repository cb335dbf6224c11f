"""Stable-Baselines3 adapter: B sets as its `VecEnv`. Needs the extra `sb3`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv

from dris.adapters.gym import arrays, spaces
from dris.core.env import Env, EnvConfig
from dris.core.task import Task


class Sb3VecEnv(VecEnv):
    """B sets for Stable-Baselines3 and its "MultiInputPolicy"; `VecMonitor` around it logs the episodes.

    Observations are dictionaries: `states` [B, N, S] and, if C > 0, `condition` [B, C]. Sets that end begin
    anew in the same step; their `infos` have the `terminal_observation`, whether time was up
    (`TimeLimit.truncated`), and as `is_success` the share of the set's instances that succeeded.
    """

    render_mode = None

    def __init__(self, task: Task, config: EnvConfig):
        self._task, self._config = task, config
        self.env = Env(task, config)
        super().__init__(config.sets, *spaces(task, config.instances))

    def reset(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        """Begin an episode in every set; after `seed`, the sequence of episodes starts again."""
        if self._seeds[0] is not None:  # the sets' numbers tell their draws apart: one seed does for all
            self.env = Env(self._task, replace(self._config, seed=self._seeds[0]))
        self._reset_seeds()
        self._reset_options()
        return arrays(self.env.reset())

    def step_async(self, actions: np.ndarray) -> None:
        """Note the actions [B, A]."""
        self._actions = torch.as_tensor(actions, dtype=torch.float32)

    def step_wait(self) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, list[dict]]:  # type: ignore[override]
        """One control step of every set under the actions noted."""
        step = self.env.step(self._actions)
        observation = arrays(step.observation)
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": bool(late)} for late in step.truncated]
        if bool(step.done.any()):
            success = step.success.float().mean(dim=1)
            for row in step.done.nonzero()[:, 0].tolist():
                last = {name: array[row] for name, array in observation.items()}
                infos[row] |= {"terminal_observation": last, "is_success": float(success[row])}
            observation = arrays(self.env.reset(step.done))
        return observation, step.reward.numpy(), step.done.numpy(), infos

    def close(self) -> None:
        """Nothing to free."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of this object, once for each set asked for."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: SB3 asks for this method, but the sets are one environment and have no attributes each."""
        raise NotImplementedError(f"sets have no {attr_name} of their own: all are one `Sb3VecEnv.env`")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Refused for the same reason: no set can be called by itself."""
        raise NotImplementedError(f"sets have no {method_name} of their own: all are one `Sb3VecEnv.env`")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """No set is wrapped."""
        return [False for _ in self._get_indices(indices)]
