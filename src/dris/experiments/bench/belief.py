"""What a belief costs, beside one robot and in training: `dris bench belief`."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from dris.belief.config import BeliefConfig
from dris.catching.ball_belief import BallBelief
from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.belief_observer import GIVE_UP
from dris.core.constants import GRAVITY
from dris.experiments.bench.train import time_iteration
from dris.perception.camera import laboratory_rig
from dris.perception.triangulate import sight_through

SIGHTS = 1200
"""Of one ball, 160 a second from two cameras in turn: bounces and rest."""
EVERY_S, PLATE_EVERY_S, AHEAD_S = 1 / 160, 0.005, 0.04
PLATE, HALF = np.array([0.6, 0.0, 0.5]), (0.12, 0.12, 0.005)
RADIUS, RESTITUTION = 0.03, 0.6
NOISE = 4.0
"""Of the sensor in training, with which a belief has something to do."""


def bench_belief(instances: tuple[int, ...] = (10, 50, 200), repeats: int = 5) -> dict[str, Any]:
    """Time a robot's belief at several sizes, and an iteration with one in the loop beside one of DRIS.

    Args:
        instances: Sizes.
        repeats: Iterations of training.
    """
    robot = {str(n): time_robot(n) for n in instances}
    training = {}
    for n in instances:
        believes = {"belief": BeliefConfig(instances=n), "noise": NOISE, "least_noise": 0.0}
        seconds = [time_iteration(repeats, instances=n), time_iteration(repeats, instances=1, **believes)]
        dris, loop = (row["iteration"] for row in seconds)
        training[str(n)] = {"dris_s": dris, "belief_s": loop, "ratio": loop / dris}
    return {"settings": {"sights": SIGHTS, "ahead_s": AHEAD_S}, "robot": robot, "training": training}


def time_robot(instances: int, sights: int = SIGHTS) -> dict[str, float]:
    """Medians and 99th percentiles of an update by a sight, and of a look ahead [ms]."""
    belief, rig = BallBelief(HALF, BallBeliefConfig(instances)), laboratory_rig()
    draw, spent = np.random.default_rng(0), np.zeros((2, sights))
    belief.track_plate(-PLATE_EVERY_S, PLATE, np.eye(3))
    _begin(belief, 0.0)
    for k in range(1, sights + 1):
        now_s = k * EVERY_S
        belief.track_plate(now_s, PLATE, np.eye(3))
        camera = rig[k % 2]
        point = camera.to_camera(_ball(now_s)) + 5e-4 * draw.standard_normal(3)
        sight = sight_through(now_s, k % 2, camera, (point[0] / point[2], point[1] / point[2]), RADIUS)
        start = time.perf_counter()
        belief.see(sight, 0.5)
        seen = time.perf_counter()
        belief.at(now_s + AHEAD_S)
        spent[:, k - 1] = 1e3 * (seen - start), 1e3 * (time.perf_counter() - seen)
        if belief.refused >= GIVE_UP:  # as beside a robot: few instances go astray
            _begin(belief, now_s)
    rows = {"update": spent[0], "ahead": spent[1], "together": spent.sum(axis=0)}
    return {
        f"{name}_{word}_ms": float(np.quantile(values, share))
        for name, values in rows.items()
        for word, share in (("median", 0.5), ("p99", 0.99))
    }


def _begin(belief: BallBelief, time_s: float) -> None:
    """Believe in the ball where it is."""
    velocity = (_ball(time_s + 1e-4) - _ball(time_s)) / 1e-4
    covariance = np.diag([1e-5] * 3 + [1e-3] * 3)
    belief.begin(time_s, np.concatenate((_ball(time_s), velocity)), covariance, RADIUS)


def _ball(time_s: float) -> np.ndarray:
    """Where a ball is that fell 0.3 m onto a level plate at rest and bounces there, until it lies."""
    speed = math.sqrt(2 * GRAVITY * 0.3)
    height, left_s = 0.3 - 0.5 * GRAVITY * time_s**2, time_s - speed / GRAVITY
    while left_s > 0 and speed > 0.05:
        speed *= RESTITUTION
        hop_s = 2 * speed / GRAVITY
        height = speed * left_s - 0.5 * GRAVITY * left_s**2
        left_s -= hop_s
    lift = 0.0 if left_s > 0 else max(height, 0.0)
    return PLATE + (0.0, 0.0, RADIUS + lift)


def table(result: dict[str, Any]) -> str:
    """The result as text for a terminal."""
    lines = [
        f"{'N':>5} {'update':>18} {'look ahead':>18} {'together':>18}   median and 99 %, beside one robot"
    ]
    for n, row in result["robot"].items():
        parts = (
            f"{row[f'{p}_median_ms']:.2f} {row[f'{p}_p99_ms']:.2f} ms"
            for p in ("update", "ahead", "together")
        )
        lines.append(f"{n:>5} " + " ".join(f"{part:>18}" for part in parts))
    lines.append(f"{'N':>5} {'DRIS':>18} {'belief':>18} {'ratio':>18}   an iteration of training")
    for n, row in result["training"].items():
        lines.append(f"{n:>5} {row['dris_s']:>16.2f} s {row['belief_s']:>16.2f} s {row['ratio']:>18.2f}")
    return "\n".join(lines)
