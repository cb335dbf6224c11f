"""How fast the training world is, beside MuJoCo and SAPIEN: `dris bench world`."""

from __future__ import annotations

import importlib.util
import platform
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from dris.catching.robot_model import ROBOT_XML
from dris.catching.settings import DOMAIN, TEXT
from dris.catching.task import CatchingTask
from dris.core.env import Env, EnvConfig
from dris.core.process import set_threads, threads
from dris.core.rollout import replay, rollout
from dris.experiments.bench.peers import PEERS, SIMULATED_S, PeerRun, Scene

AIMED = replace(TEXT, region_radius=0.1)
"""The paper's throws, aimed so that they meet a plate that stays at home: contact is what costs."""


def bench_world(
    instances: tuple[int, ...] = (1, 10, 50, 200), sets: int = 128, repeats: int = 5
) -> dict[str, Any]:
    """Measure all worlds, one thread each, on the paper's throws; the mean of `repeats` runs.

    Rates are instances x simulated seconds per second of wall time, arm included, so that worlds with
    different steps compare. Peers run one set at a time, which is how they are used on a CPU.
    """
    peers = [name for name in PEERS if importlib.util.find_spec(name) is not None]
    before = threads()
    set_threads(1)
    rows: dict[str, dict[str, dict[str, float]]] = {name: {} for name in ("dris", *peers)}
    for n in instances:
        rows["dris"][str(n)] = _ours(n, sets, repeats)
        scenes = _scenes(n, repeats)
        for name in peers:
            run, step_s = PEERS[name]
            rows[name][str(n)] = _peer([run(scene) for scene in scenes], n, step_s)
    rollout = {str(n): _rollout(n, sets, repeats) for n in (instances[0], instances[-1])}
    set_threads(before)

    def ratios(peer: str) -> dict[str, float] | None:
        if peer not in rows:
            return None
        rate = "instance_seconds_per_second"
        return {n: rows["dris"][n][rate] / rows[peer][n][rate] for n in rows["dris"]}

    return {
        "machine": {"processor": platform.machine(), "python": platform.python_version()},
        "settings": {"sets": sets, "repeats": repeats, "threads": 1, "simulated_s": SIMULATED_S},
        "worlds": rows,
        "ratio_to_mujoco": ratios("mujoco"),
        "ratio_to_sapien": ratios("sapien"),
        "rollout": rollout,
    }


def _ours(instances: int, sets: int, repeats: int) -> dict[str, float]:
    """Arms and balls of the training world, for one second of throws."""
    task = CatchingTask(AIMED)
    env = Env(task, EnvConfig(sets=sets, instances=instances))
    runs = []
    for _ in range(repeats + 1):
        env.reset()
        hold = task.initial_command().clone()
        start = time.perf_counter()
        for _ in range(task.horizon):
            task.world.advance(hold, task.step_s)
        runs.append(time.perf_counter() - start)
        touched = float((task.world.impacts > 0).float().mean())
    return _rates(float(np.mean(runs[1:])), sets * instances, task.substep_s, touched)  # the first compiles


def _peer(runs: list[PeerRun], instances: int, step_s: float) -> dict[str, float]:
    """Rates of a peer over its throws, each weighing the same."""
    touched = float(np.mean([run.touched.mean() for run in runs]))
    return _rates(float(np.mean([run.seconds for run in runs])), instances, step_s, touched)


def _rates(seconds: float, instances: int, step_s: float, touched: float) -> dict[str, float]:
    """Of a world whose instances took some seconds for `SIMULATED_S`."""
    rate = instances * SIMULATED_S / seconds
    return {
        "seconds": seconds,
        "step_s": step_s,
        "instance_steps_per_second": rate / step_s,
        "instance_seconds_per_second": rate,
        "touched": touched,
    }


def _scenes(instances: int, count: int) -> list[Scene]:
    """The first throws of the catching task, for the peers."""
    task = CatchingTask(AIMED)
    Env(task, EnvConfig(sets=count, instances=instances)).reset()
    world, config = task.world, task.config
    nominal = np.random.default_rng(0).uniform(
        [r.low for r in DOMAIN.values()], [r.high for r in DOMAIN.values()], (instances, len(DOMAIN))
    )
    columns = dict(zip(DOMAIN, nominal.T, strict=True))
    return [
        Scene(
            arm=task.arm,
            robot_xml=str(ROBOT_XML),
            home=config.home,
            stiffness=config.stiffness,
            damping=config.damping,
            ball_pos=(task.home_pos + world.pos[k, 0] - world.plate_pos[k]).double().numpy(),
            ball_vel=world.vel[k, 0].double().numpy(),
            radius=columns["radius"],
            friction=columns["dynamic_friction"],
            restitution=columns["restitution"],
        )
        for k in range(count)
    ]


def _rollout(instances: int, sets: int, repeats: int) -> dict[str, float]:
    """A whole episode of the environment with random actions: also IK, states, reward.

    The world's own threads are what varies: torch's would only spin beside them on tensors this small.
    """
    result = {}
    for count in (1, 2):
        set_threads(count)
        task = CatchingTask(AIMED)
        env = Env(task, EnvConfig(sets=sets, instances=instances))
        torch.set_num_threads(1)
        generator = torch.Generator().manual_seed(0)
        actions = 2 * torch.rand(task.horizon, sets, task.action_size, generator=generator) - 1
        runs = []
        for _ in range(repeats):
            start = time.perf_counter()
            for _ in rollout(env, replay(actions)):
                pass
            runs.append(time.perf_counter() - start)
        result[f"seconds_{count}_threads"] = float(np.mean(runs))
    return result


def table(result: dict[str, Any]) -> str:
    """The result as text for a terminal."""
    worlds = result["worlds"]
    lines = [
        f"{'N':>5} {'world':>8} {'step':>8} {'instance-steps/s':>17} {'instance-s/s':>13} {'dris is':>9}"
    ]
    for n in worlds["dris"]:
        for name, rows in worlds.items():
            row = rows[n]
            ratio = "" if name == "dris" else f"{result[f'ratio_to_{name}'][n]:.1f} x"
            lines.append(
                f"{n:>5} {name:>8} {1000 * row['step_s']:>5.1f} ms {row['instance_steps_per_second']:>17,.0f}"
                f" {row['instance_seconds_per_second']:>13,.0f} {ratio:>9}"
            )
    for n, row in result["rollout"].items():
        lines.append(
            f"rollout of {result['settings']['sets']} sets x {n} x 20 steps, all included: "
            f"{row['seconds_1_threads']:.3f} s on one core, {row['seconds_2_threads']:.3f} s on two"
        )
    if result["ratio_to_sapien"] is None:
        lines.append('SAPIEN is not installed: pip install "dris[bench]" adds its column')
    return "\n".join(lines)
