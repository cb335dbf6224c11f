"""One arm with its plate and free balls in PhysX, as ManiSkill sets it up.

The arm is an articulation whose joints have PhysX's own drives: K (q~ - q) - D dq, implicit and cut at the
torque limits; gravity and Coriolis terms are added to that, uncut. Restitution and friction of a pair are the
averages of its materials: PhysX's default, which SAPIEN keeps. Balls touch the plate and nothing else.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np

from dris.core.validation import check_extra, check_positive
from dris.sim.model import SerialArm


@dataclass(frozen=True)
class PhysxConfig:
    """How PhysX is stepped. [released]: by the laboratory's environment; [maniskill]: by default there."""

    step_s: float = 0.01
    """Simulation step [s] [released]."""
    ball_density: float = 0.5
    """[kg/m3] [released]: 57 mg at a radius of 3 cm, so that a ball does not disturb the arm. SAPIEN makes no
    moment of inertia smaller than 1e-6 kg m2, fifty times that of this ball: it slides and hardly spins."""
    contact_offset: float = 0.02
    """Distance at which contacts are made ready, of each of the two [m] [maniskill]. There is no other guard
    against tunnelling: a ball of 2 cm can pass through the plate if it moves further than 6.5 cm in a step
    (the two offsets, its radius and half the plate); at half the offset many balls do."""
    position_iterations: int = 15
    """Of the solver [maniskill]."""
    velocity_iterations: int = 1
    """Of the solver [maniskill]."""

    def __post_init__(self) -> None:
        """Refuse values that PhysX cannot take."""
        check_positive(self, "step_s", "ball_density", "contact_offset", "position_iterations")


class Material(NamedTuple):
    """What a surface is like."""

    static_friction: float
    dynamic_friction: float
    restitution: float


class Ball(NamedTuple):
    """A ball where it starts, base frame."""

    position: np.ndarray
    """[3] [m]"""
    velocity: np.ndarray
    """[3] [m/s]"""
    radius: float
    """[m]"""
    material: Material


def load_sapien() -> Any:
    """The package `sapien`.

    Raises:
        ImportError: It is not installed; the message says how to.
    """
    check_extra("sapien", "physx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for Vulkan, which physics does not need
        import sapien
    return sapien


class PhysxScene:
    """An arm at rest under its drives, and balls on their way. `advance` lets time pass."""

    def __init__(
        self,
        arm: SerialArm,
        joints: np.ndarray,
        gains: tuple[tuple[float, ...], tuple[float, ...]],
        plate: Material,
        balls: list[Ball],
        bounce_speed: float,
        config: PhysxConfig,
    ):
        """Build the scene.

        Args:
            arm: Of hinges about the z axes of their bodies.
            joints: [M] where it starts, which is also its first reference [rad].
            gains: K [Nm/rad] and D [Nm s/rad] of the drives, one value per joint.
            plate: Of what the plate is.
            balls: Any number.
            bounce_speed: Impacts slower than this do not bounce [m/s].
            config: How it is stepped.
        """
        sapien = load_sapien()
        # SAPIEN keeps these for the process; what is built next takes them.
        scene = sapien.physx.PhysxSceneConfig()
        scene.bounce_threshold, scene.gravity = bounce_speed, arm.gravity.astype(np.float32)
        sapien.physx.set_scene_config(scene)
        shape = sapien.physx.PhysxShapeConfig()
        shape.contact_offset = config.contact_offset
        sapien.physx.set_shape_config(shape)
        body = sapien.physx.PhysxBodyConfig()
        body.solver_position_iterations = config.position_iterations
        body.solver_velocity_iterations = config.velocity_iterations
        sapien.physx.set_body_config(body)
        self._world = sapien.Scene([sapien.physx.PhysxCpuSystem()])
        self._world.set_timestep(config.step_s)
        self._arm = _add_arm(sapien, self._world, arm, gains, plate)
        self._joints = self._arm.get_active_joints()
        self._arm.set_qpos(np.asarray(joints, np.float32))
        self._low, self._high = arm.joint_range.T
        self._balls = [_add_ball(sapien, self._world, ball, config.ball_density) for ball in balls]
        self._aim(np.asarray(joints, float))

    def _aim(self, reference: np.ndarray) -> None:
        for joint, target in zip(self._joints, np.clip(reference, self._low, self._high), strict=True):
            joint.set_drive_target(float(target))

    def advance(
        self, steps: int, reference: np.ndarray | None = None, lead: np.ndarray | None = None
    ) -> None:
        """Let `steps` steps pass.

        Args:
            steps: How many.
            reference: [M] joints to go to, kept inside the joint limits; the last ones if None.
            lead: [M] largest position error that the drives act on [rad]; None leaves it unlimited.
        """
        if reference is not None and lead is None:
            self._aim(reference)
        for _ in range(steps):
            if reference is not None and lead is not None:
                self._aim(self.q + np.clip(reference - self.q, -lead, lead))
            self._arm.set_qf(self._arm.compute_passive_force(gravity=True, coriolis_and_centrifugal=True))
            self._world.step()

    @property
    def q(self) -> np.ndarray:
        """[M] joint positions [rad]."""
        return self._arm.get_qpos()

    @property
    def dq(self) -> np.ndarray:
        """[M] joint velocities [rad/s]."""
        return self._arm.get_qvel()

    @property
    def ball_positions(self) -> np.ndarray:
        """[N, 3] centres of the balls [m]."""
        return np.array([ball.entity_pose.p for ball in self._balls])

    @property
    def ball_velocities(self) -> np.ndarray:
        """[N, 3] velocities of the balls [m/s]."""
        return np.array([ball.linear_velocity for ball in self._balls])


def _add_ball(sapien: Any, world: Any, ball: Ball, density: float) -> Any:
    builder = world.create_actor_builder()
    material = sapien.physx.PhysxMaterial(*ball.material)
    builder.add_sphere_collision(radius=ball.radius, material=material, density=density)
    builder.collision_groups = [1, 2, 0, 0]
    builder.set_initial_pose(sapien.Pose(list(ball.position)))
    body = builder.build().find_component_by_type(sapien.physx.PhysxRigidDynamicComponent)
    body.set_linear_velocity(list(ball.velocity))
    return body


def _add_arm(sapien: Any, world: Any, arm: SerialArm, gains: tuple, plate: Material) -> Any:
    """The arm as a PhysX articulation with drives; SAPIEN turns joints about their frame's x axis."""
    if arm.friction.any() or (arm.torque_range[:, 0] != -arm.torque_range[:, 1]).any():
        raise ValueError("PhysX's drives know neither joint friction nor torque limits that differ by side")
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
    top = sapien.Pose(arm.plate_pos.tolist(), arm.plate_quat.tolist())
    centre = top * sapien.Pose([0.0, 0.0, -float(arm.plate_half_size[2])])
    material = sapien.physx.PhysxMaterial(*plate)
    link.add_box_collision(centre, arm.plate_half_size.tolist(), material, density=0.0)
    link.collision_groups = [2, 1, 0, 0]
    robot = builder.build(fix_root_link=True)
    rows = zip(robot.get_active_joints(), *gains, arm.torque_range[:, 1], arm.armature, strict=True)
    for joint, stiffness, damping, limit, armature in rows:
        joint.set_drive_properties(stiffness, damping, float(limit))
        joint.set_armature(np.array([armature], np.float32))
        joint.set_friction(0.0)  # SAPIEN's default of 0.05 would hold a soft arm back
    return robot
