"""Episodes of random actions, and what they are compared by: the tools of the promises."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable

import numpy as np
import torch

from dris.core.env import Env, EnvConfig
from dris.core.errors import DrisError
from dris.core.rng import KeyedRng
from dris.core.task import Task

MakeTask = Callable[[], Task]

NOT_OFFERED = "the task does not offer it"
"""How the detail of a promise begins that is about something optional."""

_GLOBAL: dict[str, Callable[[], object]] = {
    "torch": lambda: torch.get_rng_state().tolist(),
    "numpy.random": np.random.get_state,
    "random": random.getstate,
}
"""States of the generators that a whole process shares."""


class TaskError(DrisError, AssertionError):
    """A task broke a promise; the message says which and how."""


def require(condition: bool | torch.Tensor, message: str) -> None:
    """Raise unless a condition holds."""
    if not bool(condition):
        raise TaskError(message)


def actions(task: Task, sets: int, seed: int = 0) -> torch.Tensor:
    """[T, B, A] actions uniform in [-1, 1]; those of a set do not depend on B."""
    index = torch.arange(sets)
    rng = KeyedRng(seed, index, torch.zeros_like(index), torch.zeros_like(index))
    return rng.uniform(task.horizon, task.action_size, low=-1.0, high=1.0).transpose(0, 1)


def outcome(task: Task) -> torch.Tensor:
    """All that a task says of its instances [B, N, ...]: states, reward terms, success, condition."""
    states = task.states()
    scalars = (*task.reward_terms().values(), task.success().float())
    parts = [states, *(scalar[..., None] for scalar in scalars)]
    if task.condition_size:
        parts.append(task.condition()[:, None].expand(-1, states.shape[1], -1))
    return torch.cat(parts, dim=-1)


def gap(a: list[torch.Tensor], b: list[torch.Tensor]) -> str:
    """Where two paths first differ and by how much; nothing if they agree bit for bit as far as both go."""
    for step, (x, y) in enumerate(zip(a, b, strict=False)):
        if not torch.equal(x, y):
            return f"first at step {step}, by up to {float((x - y).abs().max()):.2g}"
    return ""


def episode(make: MakeTask, sets: int, instances: int, seed: int = 7) -> list[torch.Tensor]:
    """Outcomes at the start and after every step of an episode with random actions."""
    task = make()
    env = Env(task, EnvConfig(sets=sets, instances=instances, seed=seed))
    return go_on(env, actions(task, sets))


def go_on(env: Env, actions: torch.Tensor) -> list[torch.Tensor]:
    """Outcomes of a new episode of all sets, until one of them ends."""
    task = env.task
    env.reset()
    path = [outcome(task)]
    for action in actions:
        step = env.step(action)
        path.append(outcome(task))
        if bool(step.done.any()):
            break
    return path


def global_draws(run: Callable[[], object]) -> list[str]:
    """Which global generators something changes: a task that keeps to its rng changes none."""

    def states() -> dict[str, bytes]:
        return {name: pickle.dumps(state()) for name, state in _GLOBAL.items()}

    _ = torch.rand(1), np.random.random(), random.random()  # seeding would leave the same state each time
    before = states()
    run()
    return [name for name, state in states().items() if state != before[name]]
