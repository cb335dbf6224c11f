"""Episodes: an agent acts on sets of a task, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from dris.core.conditions import Condition
from dris.core.env import Env, EnvConfig, Observation
from dris.core.task import Task

Agent = Callable[[Observation], torch.Tensor]
"""Maps an observation of B sets to actions [B, A]."""

EVALUATION_SEED = 10_007
"""Seed of evaluation episodes; training seeds are small, so that they never meet."""

VALIDATION_SEED = 20_011
"""Seed of the evaluations during training: whatever is chosen by them is reported on other episodes."""


@dataclass(frozen=True)
class Score:
    """Outcome of `episodes` single-instance episodes; reward is the mean per step and episode."""

    episodes: int
    success: float
    reward: float
    other_successes: dict[str, float] = field(default_factory=dict)
    """By the task's other measures."""


@dataclass(frozen=True)
class Outcomes:
    """What became of each of E episodes."""

    success: dict[str, torch.Tensor]
    """[E] whether it counts at its last step, by measure: `success` and the task's others."""
    reward: torch.Tensor
    """[E] mean per step."""

    def score(self) -> Score:
        """The means."""
        rates = {name: float(caught.float().mean()) for name, caught in self.success.items()}
        return Score(len(self.reward), rates.pop("success"), float(self.reward.mean()), rates)


def make_env(task: Task, condition: Condition, episodes: int, seed: int) -> Env:
    """Sets of one instance each under a condition; the task belongs to them from now on."""
    if condition.task:
        task = task.changed(**dict(condition.task))
    shifts = {name: (low, high) for name, low, high in condition.domain}
    config = EnvConfig(
        sets=episodes,
        instances=1,
        seed=seed,
        noise=condition.noise,
        noise_correlation=condition.noise_correlation,
        dropout=condition.dropout,
        execution_error=condition.execution_error,
        delay_s=(condition.delay_s, condition.delay_s),
    )
    return Env(task, config, domain=task.domain.shifted(**shifts))


def run_episodes(
    make_task: Callable[[], Task],
    make_agent: Callable[[Task, int], Agent],
    condition: Condition,
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
) -> Outcomes:
    """Run single-instance episodes, all at once, and judge success at each one's last step.

    Args:
        make_task: Builds a fresh task.
        make_agent: Builds the agent for a task and a number of sets.
        condition: What makes it harder.
        episodes: How many, each in a set of one instance.
        seed: Of throws, physics and noise.
    """
    env = make_env(make_task(), condition, episodes, seed)
    task = env.task
    observation = env.reset()
    agent = make_agent(task, episodes)
    running = torch.ones(episodes, dtype=torch.bool)
    success: dict[str, torch.Tensor] = {}
    total, steps = torch.zeros(episodes), torch.zeros(episodes)
    for _ in range(task.horizon):
        step = env.step(agent(observation))
        total += running * step.reward
        steps += running
        for name, caught in {"success": step.success, **task.other_successes()}.items():
            success.setdefault(name, torch.zeros(episodes, dtype=torch.bool))[running] = caught[running, 0]
        running &= ~step.done
        if not bool(running.any()):
            break
        observation = env.reset(step.terminated) if bool(step.terminated.any()) else step.observation
    return Outcomes(success, total / steps)
