"""The same throws in the training world and in the twin, with perfect sight: what the worlds disagree on.

Throws, starting joints and each ball's radius, friction and restitution are the training world's, drawn
by its own code from the same seed. What differs is the twin's: soft contact with no threshold for bouncing,
two-way coupling, joint friction, torque rate, latency, 1 kHz control, its own inverse kinematics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from dris.belief.env import belief_env
from dris.catching.settings import CatchingConfig
from dris.catching.success import other_successes, reward_terms
from dris.catching.task import CatchingTask
from dris.core.conditions import Condition, find_condition
from dris.core.constants import EVALUATION_SEED
from dris.core.rollout import Outcomes, run_episodes, single_instances
from dris.evaluation.registry import PolicyHandle
from dris.evaluation.scores import score_beside
from dris.lab.drives import drive
from dris.lab.launch import Placed
from dris.lab.model import PLATE_HALF
from dris.lab.objects import CatchObject, training_ball
from dris.lab.observer import TruthObserver
from dris.lab.trial import Trial, catching_config, is_settled, run_trial
from dris.lab.twin import Twin

Started = tuple[CatchObject, Placed]
"""A ball, and where it and the robot start."""


@dataclass(frozen=True)
class Comparison:
    """Outcomes of the same E episodes in both worlds."""

    training: Outcomes
    """By the training world."""
    twin: Outcomes
    """By the training's measures, in the twin."""
    kept: tuple[bool, ...]
    """On the plate to the end of the twin's trial."""
    speed_share: tuple[float, ...]
    """Fastest joint over its FCI limit in each of the twin's trials."""

    def row(self, condition: str, seed: int) -> dict[str, Any]:
        """Rates by the twin, and what stands beside them."""
        inside = [k and s <= 1 for k, s in zip(self.kept, self.speed_share, strict=True)]
        return score_beside(condition, seed, self.twin, self.training) | {
            "on_plate": sum(self.kept) / len(self.kept),
            "on_plate_within_speed_limits": sum(inside) / len(self.kept),
        }


def training_starts(task: CatchingTask, condition: Condition, episodes: int, seed: int) -> list[Started]:
    """Balls and starts of the training world's episodes."""
    env = single_instances(task, condition, episodes, seed)
    env.reset()
    world = env.task.world  # type: ignore[attr-defined]  # a catching task's
    balls = torch.stack((world.radius, world.restitution, world.dynamic_friction), dim=2)[:, 0].tolist()
    starts = zip(world.pos[:, 0].tolist(), world.vel[:, 0].tolist(), world.q.tolist(), strict=True)
    placed = [Placed(*map(tuple, start)) for start in starts]
    return [(training_ball(*values), start) for values, start in zip(balls, placed, strict=True)]


def judge(trial: Trial, thing: CatchObject, config: CatchingConfig) -> tuple[dict[str, bool], float]:
    """Success by the training's measures after one second of a trial, and the mean reward of its steps."""
    states = trial.states[1 : config.horizon + 1]  # after each control step
    success = {"success": is_settled(states[-1], thing, config)}
    seen = np.array([(*(s.thing_position - s.plate_position), *s.thing_velocity) for s in states])
    normals = np.array([s.plate_rotation[:, 2] for s in states])
    others = other_successes(config, seen[-1], normals[-1], thing.reach, PLATE_HALF)
    success |= {name: bool(caught) for name, caught in others.items()}
    terms = reward_terms(config, seen, normals, PLATE_HALF)
    return success, float(sum(terms.values()).mean())


def evaluate_in_twin(
    policy: PolicyHandle,
    condition: Condition,
    episodes: int = 100,
    seed: int = EVALUATION_SEED,
    drive_name: str = "ideal",
) -> Comparison:
    """Run an agent on the training's throws in both worlds.

    The training world holds to the drive's gains and torque rate; of joint friction and latency it knows
    nothing. There is no air in either. Balls that miss go on falling, in the twin as far as its floor.

    Args:
        policy: Who acts.
        condition: One of noise, execution error and other balls; errors are drawn anew in each world.
        episodes: How many.
        seed: Of throws, balls and noise.
        drive_name: What stands between reference and torque, in the twin.
    """
    config = catching_config(policy)
    law = drive(drive_name, config)
    limits = {"torque_rate": law.torque_rate, "stiffness": law.stiffness, "damping": law.damping}
    limits["brakes_in_time"] = config.brakes_in_time and law.brakes_in_time

    def in_training() -> CatchingTask:
        return CatchingTask(replace(config, **limits))  # type: ignore[arg-type]

    make_env = partial(belief_env, belief=policy.belief)
    training = run_episodes(in_training, policy.make_agent, condition, episodes, seed, make_env)
    twin = Twin(replace(law, lab=replace(law.lab, air_density=0.0)))
    found, trials = [], []
    for k, (thing, placed) in enumerate(training_starts(in_training(), condition, episodes, seed)):
        trial = run_trial(
            policy, thing, placed, seed + k, twin, TruthObserver(twin, condition.noise, seed + k, config),
            config.horizon * config.step_s, execution_error=condition.execution_error, until_lost=False,
        )  # fmt: skip
        found.append(judge(trial, thing, config))
        trials.append(trial)
    caught = {name: torch.tensor([success[name] for success, _ in found]) for name in found[0][0]}
    in_twin = Outcomes(caught, torch.tensor([reward for _, reward in found]))
    kept, shares = zip(*((trial.caught, trial.speed_share) for trial in trials), strict=True)
    return Comparison(training, in_twin, kept, shares)


def twin_condition(name: str) -> Condition:
    """A condition by its name.

    Raises:
        ValueError: The twin does not have it.
    """
    found = find_condition(name, CatchingTask.conditions())
    if found != Condition(noise=found.noise, execution_error=found.execution_error, domain=found.domain):
        known = "clean, noise-1 to noise-4, execution and restitution"
        raise ValueError(f"the twin knows {known}, not '{name}': take --world training or physx for that")
    return found


def score_in_twin(
    policy: PolicyHandle, condition: str, episodes: int, seed: int, drive_name: str
) -> dict[str, Any]:
    """Outcome of an agent in the twin under a condition by its name, beside the training world's."""
    found = evaluate_in_twin(policy, twin_condition(condition), episodes, seed, drive_name)
    return found.row(condition, seed) | {"world": "twin", "drive": drive_name}
