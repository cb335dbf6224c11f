"""The paper's case study: a robot with a flat plate catches a thrown ball (Sec. IV and V-A)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from dris.catching.actions import decode, keep_inside, slow_down
from dris.catching.conditions import CONDITIONS
from dris.catching.frames import (
    motion_to_base,
    normal_of_tilt,
    plate_normal,
    quat_multiply,
    quat_of_tilt,
    tilt_of_normal,
    to_motion,
)
from dris.catching.instances import PlateMotion, keep_possible
from dris.catching.joint_limits import JointLimits
from dris.catching.robot_model import robot_model
from dris.catching.settings import CONTROL_IK, DOMAIN, PRESETS, CatchingConfig
from dris.catching.stage import CatchingStage
from dris.catching.success import caught, normal_tangential, other_successes, reward_terms
from dris.catching.throws import Thrown, throw
from dris.core.conditions import Condition
from dris.core.constants import GRAVITY
from dris.core.process import threads
from dris.core.rng import KeyedRng
from dris.core.rollout import MakeAgent
from dris.core.task import Task
from dris.sim.contact import PRESETS as CONTACTS
from dris.sim.model import load_arm
from dris.sim.world import PlateWorld
from dris.sim.world_config import WorldConfig

SPIN_SPREAD = 5.0
"""Deviation of the spin that a belief begins with besides rolling, along each axis [rad/s] [design]."""
FLYING_HEIGHT = 0.06
"""Centre over the plate at which even the largest ball is in flight, for a filter without contact [m]."""


class CatchingTask(Task):
    """Catch a ball on a flat plate.

    State s = (d, v), six numbers per ball: its displacement from the plate's centre and its velocity, both in
    the motion frame, which stays where the plate was at the start and turns its x axis to the ball. Action
    a = (delta, tilt): where the plate's centre should go from where it is, and how the plate should tilt.
    Command: the joint positions that bring it there.

    Randomization: radius, static and dynamic friction, restitution of every ball; the throw and the
    robot's start are drawn per set, and all balls of a set start alike.

    Success: the ball is on the plate and slower than 0.1 m/s; told at 0.2 m/s, too.
    """

    Config = CatchingConfig
    presets = PRESETS
    state_names = ("dx", "dy", "dz", "vx", "vy", "vz")
    action_size = 5
    command_size = 7
    condition_size = 2

    def __init__(self, config: CatchingConfig | None = None):
        self.config = config = config or CatchingConfig()
        self.domain = DOMAIN
        self.noise_scale = (config.noise_position,) * 3 + (config.noise_velocity,) * 3
        self.horizon, self.step_s, self.substep_s = config.horizon, config.step_s, config.substep_s
        self._stage: CatchingStage | None = None
        self.contact = CONTACTS[config.contact]
        model = robot_model(config.mount)
        self.arm = load_arm(model)
        self._limits = JointLimits.of(model, lambda values: torch.tensor(values, dtype=torch.float32))
        self._gains = torch.tensor([config.stiffness, config.damping])
        self.plate_half_length = float(self.arm.plate_half_size[0])  # the paper's l_e

    @classmethod
    def conditions(cls) -> Mapping[str, Condition]:
        """Execution error, unseen restitution and ramps."""
        return CONDITIONS

    @classmethod
    def baselines(cls) -> Mapping[str, MakeAgent]:
        """Stand still, move at random, and VelTrack."""
        from dris.catching.baselines import BASELINES

        return BASELINES

    @classmethod
    def policies(cls) -> Mapping[str, Path]:
        """Trained policies that come with the package; docs/reports/policies.md says how they were made."""
        names = ("e2e", "dris-10", "dris-50", "dris-200", "dris-robot", "belief-robot")
        return {name: Path(__file__).parent / "policies" / f"{name}.safetensors" for name in names}

    def allocate(self, sets: int, instances: int) -> None:
        """Build B arms and B x N balls."""
        config = self.config
        self.world = PlateWorld(
            self.arm,
            config.home,
            sets,
            instances,
            WorldConfig(
                stiffness=config.true_gains[0],
                damping=config.true_gains[1],
                bounce_speed=self.contact.bounce_speed,
                substep_s=config.substep_s,
                joint_speed=config.joint_speed,
                torque_rate=config.torque_rate,
                brakes_in_time=config.brakes_in_time,
                threads=threads(),
                ik=CONTROL_IK,
            ),
        )
        self.home_pos = self.world.plate_pos[0].clone()
        self._home_quat = self.world.plate_quat[0].clone()
        self._box_middle = self.home_pos.repeat(sets, 1)
        self._rotation = motion_to_base(torch.zeros(sets))
        self._start_q = self.world.q.clone()

    def begin(self, sets: torch.Tensor, parameters: torch.Tensor, rng: KeyedRng) -> None:
        """Place the robot, throw the balls, and stop the clock just before they arrive."""
        config = self.config
        error = config.joint_noise * rng.normal(self.command_size)
        if config.start == "home":
            self._place(sets, self.world.home + error)
            thrown = throw(config, rng)
            plate, offset = self.world.plate_pos[sets], thrown.offset
            ball = plate + offset
        else:
            thrown = throw(config, rng)
            self._place(sets, self._meeting(thrown) + error)
            ball = self.home_pos + thrown.offset
            offset = ball - self.world.plate_pos[sets]
        velocity = thrown.velocity
        if config.laid_share > 0:
            laid = rng.uniform(1)[:, 0] < config.laid_share
            resting = self._lay(sets, laid, self.domain.column(parameters, "radius"), rng)
            ball, velocity = torch.where(laid[:, None], resting, ball), velocity * ~laid[:, None]
            offset = ball - self.world.plate_pos[sets]

        # All balls of a set start alike: [R, 3] to [R, N, 3].
        shape = (len(sets), self.world.num_instances, 3)
        column = self.domain.column
        static = self.contact.pair_friction(column(parameters, "static_friction"))
        dynamic = self.contact.pair_friction(column(parameters, "dynamic_friction"))
        self.world.place_spheres(
            sets,
            pos=ball[:, None].expand(shape),
            vel=velocity[:, None].expand(shape),
            radius=column(parameters, "radius"),
            static_friction=static,
            dynamic_friction=torch.minimum(static, dynamic),
            restitution=self.contact.pair_restitution(column(parameters, "restitution")),
        )
        self._rotation[sets] = motion_to_base(torch.atan2(offset[:, 1], offset[:, 0]))
        if config.workspace_around == "start":
            self._box_middle[sets] = self.world.plate_pos[sets]
        self._update_states()

    def _place(self, sets: torch.Tensor, q: torch.Tensor) -> None:
        """Put the arms of some sets [R] at joints q [R, M], at rest."""
        self.world.place_arms(sets, q, torch.zeros_like(q))
        self._start_q[sets] = q

    def _lay(
        self, sets: torch.Tensor, laid: torch.Tensor, radius: torch.Tensor, rng: KeyedRng
    ) -> torch.Tensor:
        """Tilt the plates of those sets [R] of which `laid` [R] says so; where their balls then lie [R, 3].

        Balls of a set start alike, so that the largest (or the real one) touches the plate; smaller ones,
        radius [R, N], fall by the difference. They lie up to 3 cm above the middle, seen down the slope.
        """
        low, high = self.config.laid_tilt
        size, axis = rng.uniform(1, low=low, high=high), rng.uniform(1, high=2 * torch.pi)
        tilt = size * torch.cat((axis.cos(), axis.sin()), dim=1)
        quat = quat_multiply(quat_of_tilt(tilt), self._home_quat)
        place = self.home_pos.expand(len(sets), 3)
        near, _ = self.world.solve_ik(place, quat)
        joints, _ = self.world.solve_ik(place, quat, start=near)
        self._place(sets[laid], joints[laid])
        normal = normal_of_tilt(tilt)
        uphill = torch.tensor([0.0, 0.0, 1.0]) - normal[:, 2:] * normal
        uphill = uphill / uphill.norm(dim=1, keepdim=True).clamp_min(1e-6)
        along = rng.uniform(1, high=0.03)
        touching = radius[:, :1] if self.first_is_real else radius.max(dim=1, keepdim=True).values
        return self.world.plate_pos[sets] + along * uphill + touching * normal

    def _meeting(self, thrown: Thrown) -> torch.Tensor:
        """Joints [R, M] that put the plate where the balls arrive, its normal against their velocity.

        A place out of reach is met as nearly as the joint limits allow.
        """
        against = -thrown.arrival_velocity / thrown.arrival_velocity.norm(dim=-1, keepdim=True)
        quat = quat_multiply(quat_of_tilt(tilt_of_normal(against)), self._home_quat)
        place = self.home_pos + thrown.arrival
        near, _ = self.world.solve_ik(place, quat)
        joints, _ = self.world.solve_ik(place, quat, start=near)  # the pull towards the start is gone
        return joints

    def command(self, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Desired joints for an action: decode, keep in the workspace, inverse kinematics."""
        self._plate_pos_at_command = self.world.plate_pos.clone()
        displacement, tilt, limited = decode(self.config, action)
        # p~ = R_z(phi) delta + p;  R~ turns the level plate by beta about w
        wished = self.world.plate_pos + (self._rotation @ displacement[..., None])[..., 0]
        target = keep_inside(self.config, wished, self._box_middle, self._rotation)
        tilt_in_base = (self._rotation[:, :2, :2] @ tilt[..., None])[..., 0]
        quat = quat_multiply(quat_of_tilt(tilt_in_base), self._home_quat)
        joints, reached = self.world.solve_ik(target, quat, start=self.world.q)
        joints, slowed = self._slow_down(joints)
        return joints, limited | (wished != target).any(dim=1) | ~reached | slowed

    def _slow_down(self, joints: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Joints [B, M] to which the law goes no faster than FCI allows, if speeds are limited."""
        config, q = self.config, self.world.q
        if config.joint_speed is None:
            return slow_down(joints, q, self.world.max_position_error)
        down, up = self._limits.position_error_bounds(q, config.joint_speed, *self._gains)
        return slow_down(joints, q, config.reference_lead * torch.where(joints > q, up, down))

    def draw(self, which: int, ghost: np.ndarray | None = None) -> np.ndarray:
        """The robot and the balls of one set; lost balls are grey, what the policy sees is a wire ball."""
        return self.stage().picture(which, ghost)

    def stage(self) -> CatchingStage:
        """The robot and the balls in 3-D, and throws to choose."""
        self._stage = self._stage or CatchingStage(self)
        return self._stage

    def in_base(self, displacements: torch.Tensor) -> torch.Tensor:
        """Places [B, M, 3] in the base frame of displacements from the plates in the motion frame."""
        return (self._rotation[:, None] @ displacements[..., None])[..., 0] + self.world.plate_pos[:, None]

    def initial_command(self) -> torch.Tensor:
        """Desired joints before the first action: where the robot started."""
        return self._start_q

    def advance(self, command: torch.Tensor, duration_s: float) -> None:
        """Arms under the torque law, balls under gravity and the moving plate."""
        self.world.advance(command, duration_s)
        self._update_states()

    def _update_states(self) -> None:
        """Express what the world holds in the motion frame: s = (d, v), and the plate's normal n."""
        world, rotation = self.world, self._rotation
        displacement = to_motion(world.pos - world.plate_pos[:, None], rotation[:, None])
        velocity = to_motion(world.vel, rotation[:, None])
        self._states = torch.cat((displacement.movedim(-1, 0), velocity.movedim(-1, 0))).movedim(0, -1)
        self.normal = to_motion(plate_normal(world.plate_quat), rotation)

    def read_instances(self) -> torch.Tensor:
        """Position, velocity, spin (base frame), radius, frictions, restitution of all balls [B, N, 13]."""
        return torch.cat([part.reshape(*part.shape[:2], -1) for part in self._parts()], dim=-1)

    def _parts(self) -> tuple[torch.Tensor, ...]:
        """What the world holds of the balls: vectors [B, N, 3], then scalars [B, N]."""
        world = self.world
        vectors = (world.pos, world.vel, world.spin)
        return (*vectors, world.radius, world.static_friction, world.dynamic_friction, world.restitution)

    def write_instances(self, values: torch.Tensor, first: int = 0) -> torch.Tensor:
        """Balls as `read_instances` reads them, from `first` on [B, N - first, 13]; see `keep_possible`."""
        world, lies = self.world, self.world.mode[:, first:] > 0
        parts = (world.plate_pos, plate_normal(world.plate_quat), world.plate_vel, world.plate_omega)
        plate = PlateMotion.of(*(part[:, None] for part in parts))
        possible, changed = keep_possible(values, lies, plate, self.plate_half_length)
        sizes = [3, 3, 3, 1, 1, 1, 1]
        for held, value in zip(self._parts(), possible.split(sizes, dim=-1), strict=True):
            held[:, first:] = value.reshape(held[:, first:].shape)
        self._update_states()
        return changed

    def place_states(self, states: torch.Tensor, first: int = 0) -> torch.Tensor:
        """Balls in flight with states (d, v) in the motion frame [B, N - first, 6]."""
        values = self.read_instances()[:, first:]
        values[..., :3] = self.in_base(states[..., :3])
        values[..., 3:6] = (self._rotation[:, None] @ states[..., 3:, None])[..., 0]
        return self.write_instances(values, first)

    def gather_instances(self, index: torch.Tensor, first: int = 0) -> None:
        """Copies of balls, with their contacts and as many impacts."""
        kept = torch.arange(first).expand(len(index), first)
        self.world.gather(torch.cat((kept, index), dim=1))
        self._update_states()

    def draw_hidden(self, sets: torch.Tensor, states: torch.Tensor, first: int, rng: KeyedRng) -> None:
        """In flight, with spin: as of a ball that rolled the way it flies, in part or wholly, and more."""
        world, count = self.world, self.world.num_instances - first
        world.mode[sets, first:] = 0
        x, y, _ = (self._rotation[:, None] @ states[..., 3:, None])[..., 0].unbind(dim=-1)
        across = torch.stack((-y, x, torch.zeros_like(x)), dim=-1) / world.radius[:, first:, None]
        spin = rng.uniform(count, 1) * across + SPIN_SPREAD * rng.normal(count, 3)
        world.spin[sets, first:] = spin[sets]

    def free_motion(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A ball above the plate falls, one near it keeps its velocity; the plate moved as it did."""
        height, _ = normal_tangential(states[:, :3], self.normal)
        pull = torch.where(
            height[:, None] > FLYING_HEIGHT, torch.tensor((0.0, 0.0, -GRAVITY)), torch.zeros(3)
        )
        moved = to_motion(self.world.plate_pos - self._plate_pos_at_command, self._rotation)
        time = self.step_s
        place = states[:, :3] + time * states[:, 3:] + 0.5 * time**2 * pull - moved
        jacobian = torch.eye(6) + time * torch.diag(torch.ones(3), 3)
        return torch.cat((place, states[:, 3:] + time * pull), dim=1), jacobian

    def save_state(self) -> tuple[torch.Tensor, ...]:
        """Arms, plates and balls."""
        return tuple(tensor.clone() for tensor in self.world.moving())

    def restore_state(self, saved: tuple[torch.Tensor, ...]) -> None:
        """Arms, plates and balls as they were."""
        for tensor, value in zip(self.world.moving(), saved, strict=True):
            tensor.copy_(value)
        self._update_states()

    def states(self) -> torch.Tensor:
        """(d, v) of every ball in the motion frame [B, N, 6]."""
        return self._states.clone()

    def condition(self) -> torch.Tensor:
        """The plate's tilt as it is [B, 2]: the paper's u, as a vector."""
        return tilt_of_normal(self.normal)

    def reward_terms(self) -> dict[str, torch.Tensor]:
        """Slow balls are good, lost balls are bad (paper, Eq. 8)."""
        return reward_terms(self.config, self._states, self.normal[:, None], self.plate_half_length)

    def success(self) -> torch.Tensor:
        """On the plate, and slower than 0.1 m/s [B, N]."""
        return caught(*self._judged, self.config.success_speed)

    def other_successes(self) -> dict[str, torch.Tensor]:
        """On the plate, and slower than the speed in the name, in m/s.

        success_released: within 0.1 m of the centre, at 0.2 m/s, as the released environment tests it.
        within_speed_limits: no joint was faster than allowed, caught or not; where speeds are limited.
        """
        told = other_successes(*self._judged)
        if self.config.joint_speed is not None:
            told["within_speed_limits"] = (self.world.speed_share <= 1)[:, None].expand_as(self.world.radius)
        return told

    @property
    def _judged(self) -> tuple[CatchingConfig, torch.Tensor, torch.Tensor, torch.Tensor, float]:
        return self.config, self._states, self.normal[:, None], self.world.radius, self.plate_half_length
