"""A belief before a policy: instance 0 of a set is real, the others follow what is seen of it.

The others run on in the same world under the same commands, each with its own physics, and every observation
pulls them. The policy sees their mean. With nothing observed this is the paper's set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from dris.belief.ensemble import ensemble_update
from dris.belief.particles import log_likelihood, systematic_resample
from dris.core.env import Env, Observation
from dris.core.rng import KeyedRng
from dris.core.rollout import Agent

_KEY = 0xBE11EF
"""Tells the belief's random numbers from the environment's."""


@dataclass(frozen=True)
class Belief:
    """A filter of N instances."""

    update: Literal["ensemble", "particles"] = "ensemble"
    """How an observation changes the instances: ensemble Kalman, which is far better with few of them, or a
    particle filter."""
    instances: int = 50
    noise_floor: float = 0.3
    """The observation counts as no better than this [noise scales], however exact it is: the instances' own
    physics is not exact either, and a filter that is too sure stops listening [design]."""
    jitter: float = 0.02
    """Added to every instance's state at an update [noise scales], so that they never become one [design].
    Copies of particles need more; 0.3 for them was not tuned [design]."""

    def __post_init__(self) -> None:
        """Refuse what makes no filter."""
        if self.update not in ("ensemble", "particles"):
            raise ValueError(f"update must be ensemble or particles, got '{self.update}'")
        if self.instances < 2:
            raise ValueError(
                f"instances must be at least 2 for a belief to have a spread, got {self.instances}"
            )
        for name in ("noise_floor", "jitter"):
            if not 0 < getattr(self, name) < 100:
                raise ValueError(f"{name} must lie in (0, 100) noise scales, got {getattr(self, name)}")

    def before(self, agent: Agent, env: Env) -> Agent:
        """An agent that is shown the belief's mean, for one episode of every set of an environment."""
        return _Believer(self, agent, env)


BELIEFS = {"ensemble": Belief(), "particles": Belief("particles", jitter=0.3)}
"""Beliefs by name."""


class _Believer:
    """The belief of one episode."""

    def __init__(self, config: Belief, agent: Agent, env: Env):
        self._config, self._agent, self._env = config, agent, env
        scale = torch.tensor(env.task.noise_scale)
        self._jitter = config.jitter * scale
        self._deviation = max(env.config.noise, config.noise_floor) * scale
        self._begun = False
        self.surprise: list[torch.Tensor] = []
        """[B] at every update of an ensemble."""
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
            before = task.read_instances()[:, 1:]
            values = self._pulled(before, task.states()[:, 1:], seen, rng)
            if env.missing is not None:  # what was not seen pulls nothing
                values = torch.where(env.missing[:, None, None], before, values)
            self.repaired += int(task.write_instances(values, 1).sum())
            self.repaired += int(task.place_states(task.states()[:, 1:] + self._jitter * spread, 1).sum())
        mean = task.states()[:, 1:].mean(dim=1, keepdim=True)
        return self._agent(Observation(mean, observation.condition))

    def _pulled(
        self, before: torch.Tensor, predicted: torch.Tensor, seen: torch.Tensor, rng: KeyedRng
    ) -> torch.Tensor:
        """Instances [B, N, D] after an observation [B, S]."""
        if self._config.update == "ensemble":
            update = ensemble_update(before, predicted, seen, self._deviation)
            self.surprise.append(update.surprise)
            return update.values
        weights = log_likelihood(predicted, seen, self._deviation)
        index = systematic_resample(weights, rng.uniform(1)[:, 0])
        return torch.gather(before, 1, index[..., None].expand_as(before))
