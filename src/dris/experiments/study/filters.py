"""How good a belief is as a filter: is it as sure as it should be, how many instances, which noise is told.

In the task itself, with a policy that acts on the belief; and in two small problems with a known answer: a
linear one, where the Kalman filter is exact, and a ball that bounces with a restitution nobody knows, where
100,000 particles are nearly.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from dris.belief.config import BeliefConfig
from dris.belief.ensemble import ensemble_update
from dris.belief.env import BeliefEnv, belief_env
from dris.core.conditions import Condition
from dris.core.rollout import rollout, run_episodes, single_instances
from dris.core.schema import Count, Figure, Positive, Rate, header
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.learning.run_folder import versions

SIZES = (5, 10, 20, 50, 100, 200)
TOLD = (0.5, 1.0, 2.0, 4.0, 8.0)
INSIDE = 0.9
"""Share of the instances between the bounds that the truth is looked for in."""
LINEAR_SIZES = (10, 30, 100, 300, 1000, 3000)
PARTICLES = 100_000


@dataclass(frozen=True)
class FiltersConfig:
    """Effort of the measurements."""

    policy: str = "e2e"
    noise: Positive = 2.0
    """Of the sensor, in the task's noise scales."""
    episodes: Count = 1000
    seed: int = 60_013
    repeats: Count = 200
    """Of the small problems."""


class _Point(Struct, frozen=True):
    value: Positive
    success: Rate
    error: Positive
    """Root mean square of the belief's mean less the truth, in noise scales."""
    inside: Rate
    """How often the truth lies in the belief's middle 90 %, over all components and steps."""


class _Against(Struct, frozen=True):
    sizes: Annotated[list[Count], Meta(min_length=2)]
    mean: list[Positive]
    """Root mean square distance of the ensemble's mean from the exact one, in its standard deviations."""
    spread: list[Figure]
    """The ensemble's standard deviation over the exact one, in the mean."""


class Filters(Struct, frozen=True):
    """filters.json: what `measure_filters` finds."""

    config: FiltersConfig
    sizes: list[_Point]
    told: list[_Point]
    linear: _Against
    linear_power: Figure
    bounce: _Against


def quality(policy: PolicyHandle, belief: BeliefConfig, config: FiltersConfig) -> dict[str, float]:
    """Success, error and calibration of a belief before a policy."""
    condition = Condition(noise=config.noise)
    make_env = partial(belief_env, belief=belief)
    asked = condition, config.episodes, config.seed, make_env
    found = run_episodes(policy.make_task, policy.make_agent, *asked).score()
    env = single_instances(policy.make_task(), *asked)
    assert isinstance(env, BeliefEnv)
    scale, squares, inside = np.array(env.task.noise_scale), [], []
    low, high = 0.5 - INSIDE / 2, 0.5 + INSIDE / 2
    for _ in rollout(env, policy.make_agent(env.task, config.episodes)):
        states = env.task.states().double().numpy()
        truth, believed = states[:, 0], states[:, 1:]
        squares.append(np.square((believed.mean(axis=1) - truth) / scale).mean())
        below, above = np.quantile(believed, (low, high), axis=1)
        inside.append(((below <= truth) & (truth <= above)).mean())
    return {
        "success": found.success, "error": float(np.sqrt(np.mean(squares))), "inside": float(np.mean(inside))
    }  # fmt: skip


def linear_case(size: int, repeats: int, seed: int, steps: int = 20) -> tuple[float, float]:
    """An ensemble beside the Kalman filter: a point at constant velocity, pushed at random, seen with noise.

    Returns:
        Root mean square distance of the means at the end, in the exact standard deviations, and the mean
        ratio of the standard deviations.
    """
    generator = np.random.default_rng((seed, size))
    h, push, sigma = 0.1, 0.5, 0.2
    way, force = np.array([[1.0, h], [0.0, 1.0]]), np.array([0.5 * h * h, h]) * push
    truth = generator.standard_normal((repeats, 2))
    ensemble = generator.standard_normal((repeats, size, 2))
    mean, covariance = np.zeros((repeats, 2)), np.eye(2)
    for _ in range(steps):
        truth = truth @ way.T + generator.standard_normal((repeats, 1)) * force
        ensemble = ensemble @ way.T + generator.standard_normal((repeats, size, 1)) * force
        mean, covariance = mean @ way.T, way @ covariance @ way.T + np.outer(force, force)
        seen = truth[:, :1] + sigma * generator.standard_normal((repeats, 1))
        ensemble = ensemble_update(ensemble, ensemble[..., :1], seen, np.array([sigma])).values
        gain = covariance[:, 0] / (covariance[0, 0] + sigma**2)
        mean = mean + gain * (seen - mean[:, :1])
        covariance = covariance - np.outer(gain, covariance[0])
    exact = np.sqrt(np.diag(covariance))
    off = (ensemble.mean(axis=1) - mean) / exact
    return float(np.sqrt(np.mean(off**2))), float((ensemble.std(axis=1, ddof=1) / exact).mean())


def bounce(z: np.ndarray, v: np.ndarray, restitution: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Heights and speeds of balls after a time h; one bounce at most, at the moment of contact."""
    g = 9.81
    falls = z + v * h - 0.5 * g * h * h < 0
    meets = (v + np.sqrt(np.maximum(v * v + 2 * g * z, 0.0))) / g
    up, left = restitution * (g * meets - v), h - meets
    z_after = np.where(falls, up * left - 0.5 * g * left**2, z + v * h - 0.5 * g * h * h)
    return np.maximum(z_after, 0.0), np.where(falls, up - g * left, v - g * h)


def bounce_case(sizes: tuple[int, ...], repeats: int, seed: int) -> list[tuple[float, float]]:
    """Ensembles of several sizes beside 100,000 particles: a dropped ball, seen around its first bounce.

    Height, speed and restitution (0.4 to 0.8) are unknown; the height is seen every 20 ms.

    Returns:
        By size, as `linear_case`, at 0.1 s after the bounce, for height, speed and restitution together.
    """
    generator = np.random.default_rng(seed)
    h, sigma, steps = 0.02, 0.01, 20
    off: list[list[np.ndarray]] = [[] for _ in sizes]
    ratio: list[list[np.ndarray]] = [[] for _ in sizes]
    for _ in range(repeats):

        def draw(count: int) -> np.ndarray:  # [count, 3]: prior of height, speed, restitution
            drawn = [generator.normal(0.5, 0.02, count), generator.normal(0.0, 0.1, count)]
            return np.stack([*drawn, generator.uniform(0.4, 0.8, count)], axis=1)

        truth, particles = draw(1), draw(PARTICLES)
        ensembles, weight = [draw(size) for size in sizes], np.zeros(PARTICLES)
        for _ in range(steps):
            for balls in (truth, particles, *ensembles):
                balls[:, 0], balls[:, 1] = bounce(balls[:, 0], balls[:, 1], balls[:, 2], h)
            seen = truth[:, 0] + sigma * generator.standard_normal(1)
            weight -= 0.5 * ((particles[:, 0] - seen) / sigma) ** 2
            ensembles = [ensemble_update(e, e[:, :1], seen, np.array([sigma])).values for e in ensembles]
        share = np.exp(weight - weight.max())
        share /= share.sum()
        mean = share @ particles
        exact = np.sqrt(share @ (particles - mean) ** 2)
        for k, balls in enumerate(ensembles):
            off[k].append((balls.mean(axis=0) - mean) / exact)
            ratio[k].append(balls.std(axis=0, ddof=1) / exact)
    pairs = zip(off, ratio, strict=True)
    return [(float(np.sqrt(np.mean(np.square(o)))), float(np.mean(r))) for o, r in pairs]


def measure_filters(config: FiltersConfig) -> dict[str, Any]:
    """All of it."""
    policy, ensemble = find_policy(config.policy), BeliefConfig()
    linear = [linear_case(size, config.repeats, config.seed) for size in LINEAR_SIZES]
    bounced = bounce_case(SIZES, max(config.repeats // 4, 2), config.seed)
    power = float(np.polyfit(np.log(LINEAR_SIZES), np.log([mean for mean, _ in linear]), 1)[0])
    return {
        **header("filters"),
        "config": asdict(config),
        "versions": versions(),
        "sizes": [{"value": n, **quality(policy, replace(ensemble, instances=n), config)} for n in SIZES],
        "told": [{"value": x, **quality(policy, replace(ensemble, told_noise=x), config)} for x in TOLD],
        "linear": _against(LINEAR_SIZES, linear),
        "linear_power": power,
        "bounce": _against(SIZES, bounced),
    }


def _against(sizes: tuple[int, ...], found: list[tuple[float, float]]) -> dict[str, list[float]]:
    mean, spread = zip(*found, strict=True)
    return {"sizes": list(sizes), "mean": list(mean), "spread": list(spread)}
