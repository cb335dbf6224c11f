"""The same throws in the training world and in the twin, with perfect sight: what the worlds disagree on.

Throws, starting joints and each ball's radius, friction and restitution are the training world's, drawn
by its own code from the same seed. What differs is the twin's: soft contact with no threshold for bouncing,
two-way coupling, joint friction, torque rate, latency, 1 kHz control, its own inverse kinematics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

from dris.catching.task import CatchingTask
from dris.env import Env, EnvConfig
from dris.evaluate import EVALUATION_SEED, Condition
from dris.names import agent_maker, conditions
from dris.stats import wilson
from dris.twin.drives import drive
from dris.twin.launch import Placed
from dris.twin.objects import SOLID, Thing, ball
from dris.twin.trial import PerfectSight, Player, make_player, run_trial
from dris.twin.twin import Twin

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

    def row(self) -> dict[str, float]:
        """Rates: success by the twin with Wilson's interval (95 %), and what stands beside it."""
        episodes = len(self.twin)
        low, high = wilson(sum(self.twin), episodes)
        pairs = list(zip(self.training, self.twin, strict=True))
        inside = [k and s <= 1 for k, s in zip(self.kept, self.speed_share, strict=True)]
        return {
            "episodes": episodes,
            "success": sum(self.twin) / episodes,
            "low": low,
            "high": high,
            "training_success": sum(self.training) / episodes,
            "same_outcome": sum(a == b for a, b in pairs) / episodes,
            "on_plate": sum(self.kept) / episodes,
            "on_plate_within_speed_limits": sum(inside) / episodes,
        }


def training_ball(radius: float, restitution: float, friction: float) -> Thing:
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
        drag=0.0,
    )


def training_episodes(
    name: str, episodes: int, seed: int, drive_name: str, noise: float
) -> tuple[list[tuple[Thing, Placed]], tuple[bool, ...], Player]:
    """Starts of the training world's episodes, its own outcomes, and the policy."""
    player = make_player(name)
    law = drive(drive_name, player[0])
    maker, task = agent_maker(name)[1], CatchingTask(player[0])
    task = task.changed(torque_rate=law.torque_rate, stiffness=law.stiffness, damping=law.damping)
    env = Env(task, EnvConfig(sets=episodes, instances=1, seed=seed, noise=noise))
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
    return starts, outcomes, player


def evaluate_in_twin(
    name: str,
    episodes: int = 100,
    seed: int = EVALUATION_SEED,
    drive_name: str = "ideal",
    noise: float = 0.0,
    duration_s: float = 1.0,
) -> Comparison:
    """Run a policy on the training's throws in both worlds.

    The training world holds to the drive's gains and torque rate; of joint friction and latency it knows
    nothing. There is no air in either.

    Args:
        name: Of the policy.
        episodes: How many.
        seed: Of throws, balls and noise.
        drive_name: What stands between reference and torque, in the twin.
        noise: Observation noise in multiples of the task's scale; drawn anew in each world.
        duration_s: Of the twin's trials [s]; the training's are one second long.
    """
    starts, training, player = training_episodes(name, episodes, seed, drive_name, noise)
    chosen = drive(drive_name, player[0])
    twin = Twin(replace(chosen, lab=replace(chosen.lab, air_density=0.0)))
    trials = [
        run_trial(
            player, thing, placed, seed, twin, PerfectSight(noise, seed + k, player[0]), duration_s=duration_s
        )
        for k, (thing, placed) in enumerate(starts)
    ]
    return Comparison(
        training,
        tuple(trial.settled for trial in trials),
        tuple(trial.caught for trial in trials),
        tuple(trial.speed_share for trial in trials),
    )


def noise_of(condition: str) -> float:
    """Observation noise of a condition by its name.

    Raises:
        ValueError: The condition is more than that.
    """
    known = conditions().get(condition)
    if known is None or known != Condition(noise=known.noise):
        raise ValueError(f"the twin knows noise alone, not '{condition}': use clean, noise-1 to noise-4")
    return known.noise


def score_in_twin(name: str, condition: str, episodes: int, seed: int, drive_name: str) -> dict[str, Any]:
    """Outcome of a policy in the twin under a condition by its name, beside the training world's."""
    noise = noise_of(condition)
    row = evaluate_in_twin(name, episodes, seed, drive_name, noise).row()
    return {"condition": condition, "world": "twin", "drive": drive_name, "seed": seed, **row}
