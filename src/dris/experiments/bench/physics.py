"""How right the training world is: error against its substep, and against MuJoCo: `dris bench physics`.

The same throws and the same commands (VelTrack's) are run with several substeps and compared with a
run at a fifth of the finest. Balls that a tiny difference sends another way, past the plate's edge for
instance, say nothing of accuracy: the median shows the rule, the share beyond 1 cm how common that is.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import torch

from dris.catching.baselines import VelTrack
from dris.catching.robot_model import robot_model
from dris.catching.settings import TEXT, CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.env import Env, EnvConfig, Observation
from dris.core.rollout import rollout

SUBSTEPS_S = (0.01, 0.005, 0.0025)
REFERENCE_S = 0.0005
"""Finer steps than this add more rounding in float32 than they take away."""
LOOK_S = 0.5
"""Balls are compared at this time: all have met the plate, those caught lie on it."""
MUJOCO_STEP_S = 0.00025


def bench_physics(sets: int = 64, instances: int = 20, mujoco_sets: int = 24) -> dict[str, Any]:
    """Measure errors of both contact presets and of the arm."""
    result: dict[str, Any] = {"settings": {"sets": sets, "instances": instances, "look_s": LOOK_S}}
    for contact in ("averaged", "exact"):
        config = replace(TEXT, contact=contact)  # type: ignore[arg-type]
        env_config = EnvConfig(sets=sets, instances=instances, seed=1)
        commands = _veltrack_commands(config, env_config)
        truth = _run(replace(config, substep_s=REFERENCE_S), env_config, commands)
        rows = {}
        for substep_s in SUBSTEPS_S:
            run = _run(replace(config, substep_s=substep_s), env_config, commands)
            off = (run["ball"] - truth["ball"]).norm(dim=-1)[truth["met"]]
            rows[f"{1000 * substep_s:g} ms"] = {
                "ball_median_mm": 1000 * float(off.median()),
                "ball_beyond_1_cm": float((off > 0.01).float().mean()),
                "joint_rms_mrad": 1000 * float(((run["q"] - truth["q"]) ** 2).mean().sqrt()),
                "seconds": run["seconds"],
            }
        result[contact] = rows
    result["arm_against_mujoco"] = _against_mujoco(mujoco_sets)
    return result


def _veltrack_commands(config: CatchingConfig, env_config: EnvConfig) -> list[torch.Tensor]:
    """Desired joints of every control step, as VelTrack asks for them."""
    task = CatchingTask(config)
    env = Env(task, env_config)
    agent, commands = VelTrack(task, env_config.sets), []

    def act(observation: Observation) -> torch.Tensor:
        action = agent(observation)
        commands.append(task.command(action)[0].clone())
        return action

    for _ in rollout(env, act):
        pass
    return commands


def _run(config: CatchingConfig, env_config: EnvConfig, commands: list[torch.Tensor]) -> dict[str, Any]:
    """Replay commands; joints after every step, balls at LOOK_S and whether they had met the plate."""
    task = CatchingTask(config)
    Env(task, env_config).reset()
    joints = []
    start = time.perf_counter()
    for k, command in enumerate(commands, start=1):
        task.world.advance(command, config.step_s)
        joints.append(task.world.q.clone())
        if k == round(LOOK_S / config.step_s):
            ball, met = task.world.pos.clone(), task.world.impacts > 0
    seconds = time.perf_counter() - start
    return {"q": torch.stack(joints), "ball": ball, "met": met, "seconds": seconds}


def _against_mujoco(sets: int) -> dict[str, float]:
    """The arm under random actions, beside MuJoCo with the same torque law once every 0.25 ms."""
    config = TEXT
    task = CatchingTask(config)
    env = Env(task, EnvConfig(sets=sets, instances=1))
    env.reset()
    generator = torch.Generator().manual_seed(0)
    model = robot_model(TEXT.mount)
    model.opt.timestep = MUJOCO_STEP_S
    model.jnt_limited[:] = 0
    low, high = task.arm.torque_range.T
    oracles = [mujoco.MjData(model) for _ in range(sets)]
    for row, data in enumerate(oracles):
        data.qpos[:] = task.world.q[row].numpy()
    most = task.world.max_position_error.numpy()
    joint_errors, plate_errors = [], []
    for _ in range(task.horizon):
        action = 2 * torch.rand(sets, task.action_size, generator=generator) - 1
        command = task.command(action)[0].double().numpy()
        env.step(action)
        for row, data in enumerate(oracles):
            for _ in range(round(config.step_s / MUJOCO_STEP_S)):
                mujoco.mj_forward(model, data)
                error = np.clip(command[row] - data.qpos, -most, most)
                wish = config.stiffness * error - config.damping * data.qvel
                data.qfrc_applied[:] = np.clip(wish + data.qfrc_bias, low, high)
                mujoco.mj_step(model, data)
            mujoco.mj_kinematics(model, data)
            joint_errors.append(task.world.q[row].numpy() - data.qpos)
            plate_errors.append(np.linalg.norm(task.world.plate_pos[row].numpy() - data.site("plate").xpos))
    by_step = np.array(joint_errors).reshape(task.horizon, sets, -1)
    rms = np.sqrt((by_step**2).mean(axis=0)).max(axis=1)  # [sets] worst joint of each episode
    return {
        "episodes": sets,
        "median_joint_rms_mrad": 1000 * float(np.median(rms)),
        "worst_joint_rms_mrad": 1000 * float(rms.max()),
        "plate_max_mm": 1000 * float(np.max(plate_errors)),
    }


def table(result: dict[str, Any]) -> str:
    """The result as text for a terminal."""
    heads = ("contact", "substep", "ball median", "beyond 1 cm", "joints RMS", "time")
    lines = ["{:>8} {:>8} {:>12} {:>12} {:>11} {:>8}".format(*heads)]
    for contact in ("averaged", "exact"):
        for substep, row in result[contact].items():
            lines.append(
                f"{contact:>8} {substep:>8} {row['ball_median_mm']:>9.3f} mm {row['ball_beyond_1_cm']:>11.1%}"
                f" {row['joint_rms_mrad']:>6.2f} mrad {row['seconds']:>6.3f} s"
            )
    arm = result["arm_against_mujoco"]
    lines.append(
        f"arm against MuJoCo at 0.25 ms, {arm['episodes']} episodes of random actions: worst joint's RMS "
        f"{arm['median_joint_rms_mrad']:.2f} mrad in the median episode, "
        f"{arm['worst_joint_rms_mrad']:.2f} in the worst; plate at most {arm['plate_max_mm']:.2f} mm off"
    )
    return "\n".join(lines)
