"""Gymnasium adapters: `GymVectorEnv` for B sets, `GymEnv` for one.

Observations are dictionaries: the state set (N, S) and, if C > 0, its condition (C,). Needs the extra `gym`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from dris.core.env import Env, EnvConfig, Observation, Step
from dris.core.task import Task


def spaces(task: Task, instances: int) -> tuple[Dict, Box]:
    """Observation and action space of one set."""
    shapes = {"states": (instances, len(task.state_names)), "condition": (task.condition_size,)}
    # Without an empty condition: learners fail on it, Stable-Baselines3 for one.
    boxes = ((name, Box(-np.inf, np.inf, shape, np.float32)) for name, shape in shapes.items() if shape[-1])
    return Dict(list(boxes)), Box(-1.0, 1.0, (task.action_size,), np.float32)


def arrays(observation: Observation) -> dict[str, np.ndarray]:
    """An observation as NumPy arrays."""
    return {name: tensor.numpy() for name, tensor in vars(observation).items() if tensor.shape[-1]}


class GymVectorEnv(VectorEnv):
    """B sets as a Gymnasium vector environment. Sets that end begin anew in the same step.

    The last observation of an ended episode is in `info["final_obs"]`, its success rate over the set
    in `info["success"]`.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(self, task: Task, config: EnvConfig):
        self._task, self._config = task, config
        self._env = Env(task, config)
        self.num_envs = config.sets
        self.single_observation_space, self.single_action_space = spaces(task, config.instances)
        self.observation_space = batch_space(self.single_observation_space, config.sets)
        self.action_space = batch_space(self.single_action_space, config.sets)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Begin an episode in every set; a seed starts the sequence of episodes again."""
        super().reset(seed=seed)
        if seed is not None:
            self._env = Env(self._task, replace(self._config, seed=seed))
        return arrays(self._env.reset()), {}

    def step(self, actions: np.ndarray) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
        """One control step of every set."""
        step = self._env.step(torch.as_tensor(np.asarray(actions), dtype=torch.float32))
        info: dict[str, Any] = {"success": step.success.float().mean(dim=1).numpy()}
        observation = step.observation
        if bool(step.done.any()):
            info["final_obs"] = arrays(observation)
            info["_final_obs"] = step.done.numpy()
            observation = self._env.reset(step.done)
        terminated, truncated = step.terminated.numpy(), step.truncated.numpy()
        return arrays(observation), step.reward.numpy(), terminated, truncated, info


class GymEnv(gymnasium.Env):
    """One set as a Gymnasium environment."""

    metadata = {"render_modes": []}

    def __init__(self, task: Task, config: EnvConfig):
        if config.sets != 1:
            raise ValueError(f"GymEnv is one set, got sets = {config.sets}; use GymVectorEnv")
        self._task, self._config = task, config
        self._env = Env(task, config)
        self.observation_space, self.action_space = spaces(task, config.instances)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Begin an episode; a seed starts the sequence of episodes again."""
        super().reset(seed=seed)
        if seed is not None:
            self._env = Env(self._task, replace(self._config, seed=seed))
        return self._first(self._env.reset()), {}

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict]:
        """One control step."""
        step: Step = self._env.step(torch.as_tensor(action, dtype=torch.float32)[None])
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        info = {"success": float(step.success.float().mean())}
        return self._first(step.observation), float(step.reward[0]), terminated, truncated, info

    @staticmethod
    def _first(observation: Observation) -> dict[str, np.ndarray]:
        return {name: array[0] for name, array in arrays(observation).items()}
