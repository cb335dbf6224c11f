"""How good a policy is: success and reward on a single instance, under named conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch

from dris.env import Env, EnvConfig, Observation
from dris.task import Task

Agent = Callable[[Observation], torch.Tensor]
"""Maps an observation of B sets to actions [B, A]."""

EVALUATION_SEED = 10_007
"""Seed of evaluation episodes; training seeds are small, so that they never meet."""

VALIDATION_SEED = 20_011
"""Seed of the evaluations during training: whatever is chosen by them is reported on other episodes."""


@dataclass(frozen=True)
class Condition:
    """One way to make the world harder, all in one place.

    Attributes:
        noise: Observation noise in multiples of the task's noise scale.
        execution_error: Half width of the uniform error on commands.
        delay_s: Time from observation to the moment its command acts [s].
        noise_correlation: Of the noise from one control step to the next, an AR(1) of the same deviation.
        dropout: Probability that an observation is missing; the last one then stands in for it.
        domain: Ranges that differ from the training's, by parameter.
        task: Values of the task that differ from the training's, for `Task.changed`.
    """

    noise: float = 0.0
    execution_error: float = 0.0
    delay_s: float = 0.0
    noise_correlation: float = 0.0
    dropout: float = 0.0
    domain: tuple[tuple[str, float, float], ...] = ()
    task: tuple[tuple[str, Any], ...] = ()


CONDITIONS: dict[str, Condition] = {
    "clean": Condition(),
    **{f"noise-{k}": Condition(noise=k) for k in (1, 2, 3, 4)},
    "execution": Condition(execution_error=0.05),  # [paper] uniform [rad]; ours: drawn anew each step
    "restitution": Condition(domain=(("restitution", 0.7, 0.8),)),  # [paper] trained on 0.4 to 0.7
    **{f"delay-{ms}": Condition(delay_s=ms / 1000) for ms in (20, 40, 60)},
    # Errors of a tracker last from frame to frame.
    **{f"correlated-{k}": Condition(noise=k, noise_correlation=0.8) for k in (1, 2, 3, 4)},
    **{f"dropout-{percent}": Condition(dropout=percent / 100) for percent in (20, 40)},
}


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


def evaluate(
    make_task: Callable[[], Task],
    make_agent: Callable[[Task, int], Agent],
    condition: Condition,
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
) -> Score:
    """Rates and mean reward of single-instance episodes: see `run_episodes`."""
    return run_episodes(make_task, make_agent, condition, episodes, seed).score()


def worst_case(
    make_task: Callable[[], Task],
    make_agent: Callable[[Task, int], Agent],
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
) -> tuple[Score, dict[str, float]]:
    """The lowest success on a grid over the domain, and where it is.

    The grid holds the lowest, middle and highest value of every parameter in all combinations; the
    episodes are the same at each of its points.
    """
    domain = make_task().domain
    values = [(r.low, 0.5 * (r.low + r.high), r.high) for r in domain.values()]
    found: list[tuple[Score, dict[str, float]]] = []
    for point in product(*values):
        exactly = tuple((name, value, value) for name, value in zip(domain, point, strict=True))
        score = evaluate(make_task, make_agent, Condition(domain=exactly), episodes, seed)
        found.append((score, dict(zip(domain, point, strict=True))))
    return min(found, key=lambda entry: entry[0].success)
