"""Episodes: an agent acts on sets of a task, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from dris.core.conditions import Condition
from dris.core.constants import EVALUATION_SEED
from dris.core.domain import Domain
from dris.core.env import Env, EnvConfig, Observation, Step
from dris.core.task import Task

Agent = Callable[[Observation], torch.Tensor]
"""Maps an observation of B sets to actions [B, A]."""
MakeAgent = Callable[[Any, int], Agent]
"""Makes the agent for a task and a number of sets B; it serves one episode."""


MakeEnv = Callable[[Task, EnvConfig, Domain], Env]
"""Makes an environment: `Env`, or one with a belief between what is seen and the agent (`dris.belief`)."""


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a success rate (Wilson's score interval)."""
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Score:
    """Outcome of `episodes` single-instance episodes; reward is the mean per step and episode."""

    episodes: int
    success: float
    reward: float
    other_successes: dict[str, float] = field(default_factory=dict)
    """By the task's other measures."""
    notes: dict[str, float] = field(default_factory=dict)
    """What else the environment told, by name, in the mean: `Env.notes`."""

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval (Wilson) of `success`: lowest and highest."""
        return wilson(round(self.success * self.episodes), self.episodes)

    @property
    def other_intervals(self) -> dict[str, tuple[float, float]]:
        """The same of `other_successes`."""
        return {
            n: wilson(round(rate * self.episodes), self.episodes) for n, rate in self.other_successes.items()
        }


@dataclass(frozen=True)
class Outcomes:
    """What became of each of E episodes."""

    success: dict[str, torch.Tensor]
    """[E] whether it counts at its last step, by measure: `success` and the task's others."""
    reward: torch.Tensor
    """[E] mean per step."""
    notes: dict[str, torch.Tensor] = field(default_factory=dict)
    """[E] what else the environment told of it, by name."""

    def score(self) -> Score:
        """The means."""
        rates = {name: float(caught.float().mean()) for name, caught in self.success.items()}
        notes = {name: float(values.mean()) for name, values in self.notes.items()}
        return Score(len(self.reward), rates.pop("success"), float(self.reward.mean()), rates, notes)


def single_instances(
    task: Task, condition: Condition, episodes: int, seed: int, make_env: MakeEnv = Env
) -> Env:
    """Sets of one instance each under a condition: see `sets_under`."""
    return sets_under(task, condition, episodes, 1, seed, make_env)


def sets_under(
    task: Task, condition: Condition, sets: int, instances: int, seed: int, make_env: MakeEnv = Env
) -> Env:
    """Sets under a condition; the task, or the one that the condition makes of it, belongs to them.

    Args:
        task: Whatever is to be done.
        condition: What makes it harder.
        sets: How many.
        instances: Of each.
        seed: Of the episodes.
        make_env: Makes the environment.
    """
    if condition.task:
        task = task.with_config(**dict(condition.task))
    shifts = {name: (low, high) for name, low, high in condition.domain}
    config = EnvConfig(
        sets=sets,
        instances=instances,
        seed=seed,
        noise=condition.noise,
        noise_correlation=condition.noise_correlation,
        dropout=condition.dropout,
        execution_error=condition.execution_error,
        delay_s=(condition.delay_s, condition.delay_s),
    )
    return make_env(task, config, task.domain.shifted(**shifts))


@dataclass(frozen=True)
class Transition:
    """One control step: what was seen, what was done [B, A], what came of it."""

    observation: Observation
    action: torch.Tensor
    step: Step


def rollout(env: Env, agent: Agent, steps: int | None = None) -> Iterator[Transition]:
    """Begin an episode in every set and act; sets that terminate begin anew.

    Args:
        env: The sets.
        agent: Acts.
        steps: Control steps; by default the task's horizon.
    """
    observation = env.reset()
    for _ in range(env.task.horizon if steps is None else steps):
        action = agent(observation)
        step = env.step(action)
        yield Transition(observation, action, step)
        observation = env.restart(step.terminated) if bool(step.terminated.any()) else step.observation


def replay(actions: Iterable[torch.Tensor]) -> Agent:
    """An agent that gives actions [B, A] in turn, whatever it sees."""
    waiting = iter(actions)
    return lambda observation: next(waiting)


def run_episodes(
    make_task: Callable[[], Task],
    make_agent: MakeAgent,
    condition: Condition,
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
    make_env: MakeEnv = Env,
) -> Outcomes:
    """Run single-instance episodes, all at once, and judge success at each one's last step.

    Args:
        make_task: Builds a fresh task.
        make_agent: Builds the agent for a task and a number of sets.
        condition: What makes it harder.
        episodes: How many, each in a set of one instance.
        seed: Of throws, physics and noise.
        make_env: Makes the environment.
    """
    env = single_instances(make_task(), condition, episodes, seed, make_env)
    agent = make_agent(env.task, episodes)
    running = torch.ones(episodes, dtype=torch.bool)
    success: dict[str, torch.Tensor] = {}
    notes: dict[str, torch.Tensor] = {}
    total, steps = torch.zeros(episodes), torch.zeros(episodes)
    for transition in rollout(env, agent):
        step = transition.step
        total += running * step.rewards[:, 0]
        steps += running
        for name, caught in {"success": step.success, **env.task.other_successes()}.items():
            success.setdefault(name, torch.zeros(episodes, dtype=torch.bool))[running] = caught[running, 0]
        if bool((ended := running & step.done).any()):  # before those that ended begin anew
            for name, values in env.notes().items():
                notes.setdefault(name, torch.zeros(episodes, dtype=torch.float64))[ended] = values[ended]
        running &= ~step.done
        if not bool(running.any()):
            break
    return Outcomes(success, total / steps, notes)
