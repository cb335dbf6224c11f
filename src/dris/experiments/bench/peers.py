"""The catching scene in general engines: one arm, N free balls that touch the plate only.

Each function simulates one second of a throw and returns the wall time the engine itself took, and
which balls met the plate, so that nobody measures an empty scene. The arm holds its home under the
same gains with the engine's own drives: no Python inside MuJoCo's loop, one call a step in SAPIEN's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from dris.lab.model import damping_ratio
from dris.physx.scene import Ball, Material, PhysxConfig, PhysxScene
from dris.sim.model import SerialArm

BALL_DENSITY = 30.0
"""[kg/m3] foam; light balls disturb the arm least, which only these engines have to pay for."""
SIMULATED_S = 1.0


@dataclass(frozen=True)
class Scene:
    """One throw: where N balls start (all alike) and what each is like."""

    arm: SerialArm
    robot_xml: str
    home: tuple[float, ...]
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    ball_pos: np.ndarray  # [3], base frame
    ball_vel: np.ndarray  # [3]
    radius: np.ndarray  # [N]
    friction: np.ndarray  # [N]
    restitution: np.ndarray  # [N]


CONTROL_STEP_S = 0.05


@dataclass(frozen=True)
class PeerRun:
    """Wall time of one simulated second, and which balls [N] the plate turned upwards."""

    seconds: float
    touched: np.ndarray


MUJOCO_STEP_S = 0.0005
"""Largest step at which MuJoCo's soft contact gives the restitution asked for within about 0.03 at
7 m/s with centimetres of ball: contact lasts pi / w with w dt = 0.2, and sinks in by v / w."""


def _run(advance: Callable[[], None], rises: Callable[[], np.ndarray]) -> PeerRun:
    """Time a second of control steps, and see which balls' vertical velocities [N] rise in one."""
    seconds, before = 0.0, rises()
    touched = np.zeros(len(before), bool)
    for _ in range(round(SIMULATED_S / CONTROL_STEP_S)):
        start = time.perf_counter()
        advance()
        seconds += time.perf_counter() - start
        after = rises()
        touched |= after > before
        before = after
    return PeerRun(seconds, touched)


def run_mujoco(scene: Scene) -> PeerRun:
    """One second in MuJoCo."""
    spec = mujoco.MjSpec.from_file(scene.robot_xml)
    spec.option.timestep = MUJOCO_STEP_S
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    plate = spec.geom("plate")
    plate.contype, plate.conaffinity = 2, 1
    for body in spec.bodies:
        body.gravcomp = 1.0
    for joint, k, d in zip(scene.arm.joint_names, scene.stiffness, scene.damping, strict=True):
        actuator = spec.add_actuator(target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=k, kv=d)
    frequency = 0.2 / MUJOCO_STEP_S
    for r, mu, e in zip(scene.radius, scene.friction, scene.restitution, strict=True):
        ball = spec.worldbody.add_body(pos=scene.ball_pos)
        ball.add_freejoint()
        ball.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[r, 0, 0],
            density=BALL_DENSITY,
            contype=1,
            conaffinity=2,
            priority=1,
            friction=[mu, 0, 0],
            solref=[-(frequency**2), -2 * damping_ratio(e) * frequency],
            solimp=[0.95, 0.95, 0.001, 0.5, 2],
        )
    model = spec.compile()
    data = mujoco.MjData(model)
    joints = len(scene.home)
    data.qpos[:joints] = scene.home
    data.ctrl[:] = scene.home
    data.qvel[joints:].reshape(-1, 6)[:, :3] = scene.ball_vel
    mujoco.mj_forward(model, data)
    rises, steps = data.qvel[joints:].reshape(-1, 6)[:, 2], round(CONTROL_STEP_S / MUJOCO_STEP_S)
    return _run(lambda: mujoco.mj_step(model, data, nstep=steps), rises.copy)


SAPIEN_STEP_S = 0.01
"""ManiSkill's simulation step."""
SAPIEN = PhysxConfig(
    step_s=SAPIEN_STEP_S, ball_density=BALL_DENSITY, contact_offset=0.01, position_iterations=10
)
"""SAPIEN's own offset and iterations, which cost less than ManiSkill's."""


def run_sapien(scene: Scene) -> PeerRun:
    """One second in SAPIEN (PhysX on the CPU). Needs the extra `physx`."""
    plate = Material(0.0, 0.0, 0.2)
    rows = zip(scene.radius, scene.friction, scene.restitution, strict=True)
    balls = [
        Ball(scene.ball_pos, scene.ball_vel, float(r), Material(float(mu), float(mu), float(e)))
        for r, mu, e in rows
    ]
    gains = (scene.stiffness, scene.damping)
    world = PhysxScene(scene.arm, np.array(scene.home), gains, plate, balls, 2.0, SAPIEN)
    steps = round(CONTROL_STEP_S / SAPIEN_STEP_S)
    return _run(lambda: world.advance(steps), lambda: world.ball_velocities[:, 2])


PEERS = {"mujoco": (run_mujoco, MUJOCO_STEP_S), "sapien": (run_sapien, SAPIEN_STEP_S)}
"""How each runs a scene, and its step [s]."""
