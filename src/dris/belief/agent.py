"""A belief before a policy: instance 0 of a set is real, the others follow what is seen of it.

The others run on in the same world under the same commands, each with its own physics, and every observation
pulls them (`ensemble`). The policy sees their mean. With nothing observed this is the paper's set.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dris.belief.ensemble import ensemble_update
from dris.core.env import Env, Observation
from dris.core.rng import KeyedRng
from dris.core.rollout import Agent

_KEY = 0xBE11EF
"""Tells the belief's random numbers from the environment's."""


@dataclass(frozen=True)
class EnsembleBelief:
    """An ensemble Kalman filter of N instances."""

    instances: int = 50
    noise_floor: float = 0.3
    """The observation counts as no better than this [noise scales], however exact it is: the instances' own
    physics is not exact either, and a filter that is too sure stops listening [design]."""
    jitter: float = 0.02
    """Added to every instance's state at an update [noise scales], so that they never become one [design]."""

    def __post_init__(self) -> None:
        """Refuse what makes no ensemble."""
        if self.instances < 2:
            raise ValueError(f"instances must be at least 2 for an ensemble, got {self.instances}")
        for name in ("noise_floor", "jitter"):
            if not 0 < getattr(self, name) < 100:
                raise ValueError(f"{name} must lie in (0, 100) noise scales, got {getattr(self, name)}")

    def before(self, agent: Agent, env: Env) -> Agent:
        """An agent that is shown the belief's mean, for one episode of every set of an environment."""
        return _Believer(self, agent, env)


class _Believer:
    """The belief of one episode."""

    def __init__(self, config: EnsembleBelief, agent: Agent, env: Env):
        self._config, self._agent, self._env = config, agent, env
        scale = torch.tensor(env.task.noise_scale)
        self._jitter = config.jitter * scale
        self._deviation = max(env.config.noise, config.noise_floor) * scale
        self._begun = False
        self.surprise: list[torch.Tensor] = []
        """[B] at every update."""
        self.repaired = 0
        """Instances that an update put where physics cannot be."""

    def __call__(self, observation: Observation) -> torch.Tensor:
        """Actions [B, A]."""
        task, env = self._env.task, self._env
        seen = observation.states[:, 0]
        sets = torch.arange(len(seen))
        rng = KeyedRng(env.config.seed ^ _KEY, env.config.first_set + sets, env.episodes, env.steps)
        spread = rng.normal(self._config.instances, seen.shape[1])
        if not self._begun:
            self._begun = True
            self.repaired += int(task.place_states(seen[:, None] + self._deviation * spread, 1).sum())
        else:
            before, predicted = task.read_instances()[:, 1:], task.states()[:, 1:]
            update = ensemble_update(before, predicted, seen, self._deviation)
            values = update.values
            if env.missing is not None:  # what was not seen pulls nothing
                values = torch.where(env.missing[:, None, None], before, values)
            self.surprise.append(update.surprise)
            self.repaired += int(task.write_instances(values, 1).sum())
            self.repaired += int(task.place_states(task.states()[:, 1:] + self._jitter * spread, 1).sum())
        mean = task.states()[:, 1:].mean(dim=1, keepdim=True)
        return self._agent(Observation(mean, observation.condition))
