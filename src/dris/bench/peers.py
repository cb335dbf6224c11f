"""The catching scene in general engines: one arm, N free balls that touch the plate only.

Each function simulates one second of a throw and returns the wall time the engine itself took, and
which balls met the plate, so that nobody measures an empty scene. The arm holds its home under the
same gains with the engine's own drives: no Python inside MuJoCo's loop, one call a step in SAPIEN's.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

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


def damping_ratio(restitution: float) -> float:
    """Damping ratio of a one-sided spring-damper that returns `restitution`, by bisection.

    e = exp(-z / sqrt(1 - z^2) * atan2(2 z sqrt(1 - z^2), 2 z^2 - 1)) for a spring that cannot pull.
    """
    low, high = 1e-6, 1.0 - 1e-6
    for _ in range(60):
        z = 0.5 * (low + high)
        root = math.sqrt(1 - z * z)
        e = math.exp(-z / root * math.atan2(2 * z * root, 2 * z * z - 1))
        low, high = (z, high) if e > restitution else (low, z)
    return 0.5 * (low + high)


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
    rises = data.qvel[joints:].reshape(-1, 6)[:, 2]
    seconds, touched = 0.0, np.zeros(len(scene.radius), bool)
    for _ in range(round(SIMULATED_S / CONTROL_STEP_S)):
        before = rises.copy()
        start = time.perf_counter()
        mujoco.mj_step(model, data, nstep=round(CONTROL_STEP_S / MUJOCO_STEP_S))
        seconds += time.perf_counter() - start
        touched |= rises > before
    return PeerRun(seconds, touched)


SAPIEN_STEP_S = 0.01
"""ManiSkill's simulation step."""


def run_sapien(scene: Scene) -> PeerRun:
    """One second in SAPIEN (PhysX on the CPU). Needs the extra `bench`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for Vulkan, which physics does not need
        import sapien

    config = sapien.physx.PhysxSceneConfig()
    config.enable_tgs = True
    config.bounce_threshold = 2.0
    sapien.physx.set_scene_config(config)
    world = sapien.Scene([sapien.physx.PhysxCpuSystem()])
    world.set_timestep(SAPIEN_STEP_S)
    robot = _sapien_arm(sapien, world, scene)
    balls = []
    for r, mu, e in zip(scene.radius, scene.friction, scene.restitution, strict=True):
        builder = world.create_actor_builder()
        material = sapien.physx.PhysxMaterial(float(mu), float(mu), float(e))
        builder.add_sphere_collision(radius=float(r), material=material, density=BALL_DENSITY)
        builder.collision_groups = [1, 2, 0, 0]
        builder.set_initial_pose(sapien.Pose(scene.ball_pos.tolist()))
        body = builder.build().find_component_by_type(sapien.physx.PhysxRigidDynamicComponent)
        body.set_linear_velocity(scene.ball_vel.tolist())
        balls.append(body)
    seconds, touched = 0.0, np.zeros(len(balls), bool)
    rises = np.full(len(balls), scene.ball_vel[2])
    for _ in range(round(SIMULATED_S / CONTROL_STEP_S)):
        start = time.perf_counter()
        for _ in range(round(CONTROL_STEP_S / SAPIEN_STEP_S)):
            # Gravity and Coriolis terms of the torque law, as ManiSkill compensates them.
            robot.set_qf(robot.compute_passive_force(gravity=True, coriolis_and_centrifugal=True))
            world.step()
        seconds += time.perf_counter() - start
        before, rises = rises, np.array([ball.linear_velocity[2] for ball in balls])
        touched |= rises > before
    return PeerRun(seconds, touched)


def _sapien_arm(sapien: Any, world: Any, scene: Scene) -> Any:
    """The arm as a PhysX articulation with drives; SAPIEN turns joints about their frame's x axis."""
    arm = scene.arm
    builder = world.create_articulation_builder()
    link = builder.create_link_builder()
    link.set_name("base")
    to_x = sapien.Pose(q=[math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0])  # its x axis is our z axis
    for i, name in enumerate(arm.joint_names):
        link = builder.create_link_builder(link)
        link.set_name(f"link{i}")
        link.set_joint_name(name)
        in_parent = sapien.Pose(arm.body_pos[i].tolist(), arm.body_quat[i].tolist())
        link.set_joint_properties("revolute", [arm.joint_range[i].tolist()], in_parent * to_x, to_x, 0.0, 0.0)
        moments, axes = np.linalg.eigh(arm.inertia[i])
        if np.linalg.det(axes) < 0:
            axes[:, 0] *= -1
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, axes.ravel())
        link.set_mass_and_inertia(
            float(arm.mass[i]), sapien.Pose(arm.com[i].tolist(), quat.tolist()), moments.tolist()
        )
    plate = sapien.Pose(arm.plate_pos.tolist(), arm.plate_quat.tolist())
    centre = plate * sapien.Pose([0.0, 0.0, -float(arm.plate_half_size[2])])
    material = sapien.physx.PhysxMaterial(0.0, 0.0, 0.2)
    link.add_box_collision(centre, arm.plate_half_size.tolist(), material, density=0.0)
    link.collision_groups = [2, 1, 0, 0]
    robot = builder.build(fix_root_link=True)
    robot.set_qpos(np.array(scene.home, np.float32))
    gains = zip(robot.get_active_joints(), scene.stiffness, scene.damping, scene.home, strict=True)
    for index, (joint, k, d, target) in enumerate(gains):
        joint.set_drive_properties(k, d, float(arm.torque_limit[index]))
        joint.set_drive_target(target)
        joint.set_armature(np.array([arm.armature[index]], np.float32))
    return robot
