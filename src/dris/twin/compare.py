"""The same throws in the training world and in the twin, with perfect sight: what the worlds disagree on.

Throws, starting joints and each ball's radius, friction and restitution are the training world's, drawn
by its own code from the same seed. What differs is the twin's: soft contact with no threshold for bouncing,
two-way coupling, joint friction, torque rate, latency, 1 kHz control, its own inverse kinematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.env import Env, EnvConfig
from dris.evaluate import EVALUATION_SEED, Agent
from dris.names import agent_maker
from dris.stats import wilson
from dris.twin.control import run_trial
from dris.twin.launch import Placed
from dris.twin.objects import SOLID, Thing, ball
from dris.twin.twin import Twin, TwinConfig

BALL_DENSITY = 100.0
"""[kg/m3] of the training's balls, which have no mass there [assumed]: 11 g at a radius of 3 cm."""


@dataclass(frozen=True)
class Comparison:
    """Outcomes of the same episodes in both worlds."""

    training: tuple[bool, ...]
    """Training's success, by the training world."""
    twin: tuple[bool, ...]
    """Training's success (one second, on the plate and slow), by the twin."""
    kept: tuple[bool, ...]
    """On the plate to the end of the twin's trial."""
    speed_share: tuple[float, ...]
    """Fastest joint over its FCI limit in each of the twin's trials."""

    def lines(self) -> list[str]:
        """A summary with 95 % intervals."""
        trials = len(self.twin)
        rows = []
        for name, outcomes in (
            ("training world", self.training),
            ("twin", self.twin),
            ("twin, kept", self.kept),
        ):
            low, high = wilson(sum(outcomes), trials)
            rows.append(
                f"{name}: {sum(outcomes)} / {trials} = {sum(outcomes) / trials:.2f} [{low:.2f}, {high:.2f}]"
            )
        inside = sum(kept and share <= 1 for kept, share in zip(self.kept, self.speed_share, strict=True))
        rows.append(f"kept with no joint beyond its FCI speed limit: {inside} / {trials}")
        return rows


def training_ball(radius: float, restitution: float, friction: float, drag: float = 0.0) -> Thing:
    """A ball of the training world, with a mass."""
    mass = BALL_DENSITY * 4 / 3 * math.pi * radius**3
    return ball(
        f"r{radius:.4f}",
        radius=radius,
        mass=mass,
        inertia_factor=SOLID,
        restitution=restitution,
        friction=friction,
        rolling=0.0,
        drag=drag,
    )


def training_episodes(
    name: str, episodes: int, seed: int, **task_values: object
) -> tuple[list[tuple[Thing, Placed]], tuple[bool, ...], tuple[CatchingConfig, Callable[[], Agent]]]:
    """Starts of the training world's episodes, its own outcomes, and the agent.

    Args:
        name: Of the policy.
        episodes: How many.
        seed: Of throws and balls.
        task_values: Values of the task to change, such as `torque_rate=1000.0`.
    """
    make_task, maker = agent_maker(name)
    task = make_task()
    if not isinstance(task, CatchingTask):
        raise ValueError(f"'{name}' was trained on {type(task).__name__}; the twin catches")
    config = task.config
    task = task.changed(**task_values)
    env = Env(task, EnvConfig(sets=episodes, instances=1, seed=seed))
    observation = env.reset()
    world = task.world
    starts = [
        (
            training_ball(
                float(world.radius[k, 0]), float(world.restitution[k, 0]), float(world.dynamic_friction[k, 0])
            ),
            Placed(
                tuple(world.pos[k, 0].tolist()), tuple(world.vel[k, 0].tolist()), tuple(world.q[k].tolist())
            ),
        )
        for k in range(episodes)
    ]
    agent = maker(task, episodes)
    for _ in range(task.horizon):
        with torch.inference_mode():
            step = env.step(agent(observation))
        observation = step.observation
    outcomes = tuple(step.success[:, 0].tolist())
    longer = task.changed(horizon=1000)
    return starts, outcomes, (config, lambda: maker(longer, 1))


def evaluate_in_twin(
    name: str,
    episodes: int = 100,
    seed: int = EVALUATION_SEED,
    config: TwinConfig | None = None,
    duration_s: float = 1.0,
    **task_values: object,
) -> Comparison:
    """Run a policy on the training's throws in both worlds.

    Args:
        name: Of the policy.
        episodes: How many.
        seed: Of throws and balls.
        config: Of the twin.
        duration_s: Of the twin's trials [s]; the training's are one second long.
        task_values: Values of the training task to change, such as `torque_rate=1000.0`.
    """
    starts, training, policy = training_episodes(name, episodes, seed, **task_values)
    twin = Twin(config)
    trials = [
        run_trial(policy, thing, placed, seed, twin, lead_s=None, duration_s=duration_s)
        for thing, placed in starts
    ]
    return Comparison(
        training,
        tuple(trial.settled for trial in trials),
        tuple(trial.caught for trial in trials),
        tuple(trial.speed_share for trial in trials),
    )
