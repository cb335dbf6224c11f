"""The paper's case study: a robot with a flat plate catches a thrown ball (Sec. IV and V-A)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from dris.catching.frames import (
    motion_to_base,
    plate_normal,
    quat_multiply,
    quat_of_tilt,
    tilt_of_normal,
    to_motion,
)
from dris.catching.robot_model import robot_model
from dris.catching.settings import CONTROL_IK, DOMAIN, PRESETS, CatchingConfig
from dris.core.constants import GRAVITY
from dris.core.rng import Draws
from dris.core.task import Task
from dris.sim.contact import PRESETS as CONTACTS
from dris.sim.model import load_arm
from dris.sim.world import PlateWorld, WorldConfig


class CatchingTask(Task):
    """Catch a ball on a flat plate.

    State s = (d, v), six numbers per ball: its displacement from the plate's centre and its velocity,
    both in the motion frame, which stays where the plate was at the start and turns its x axis to the
    ball. Action a = (delta, tilt): where the plate's centre should go from where it is, and how the
    plate should tilt. Command: the joint positions that bring it there.

    Randomization: radius, static and dynamic friction, restitution of every ball; the throw and the
    robot's start are drawn per set, and all balls of a set start alike.

    Success: the ball is on the plate and slower than 0.1 m/s; told at 0.2 m/s, too.
    """

    presets = tuple(PRESETS)
    state_names = ("dx", "dy", "dz", "vx", "vy", "vz")
    action_size = 5
    command_size = 7
    condition_size = 2

    def __init__(self, config: CatchingConfig | None = None):
        self.config = config = config or CatchingConfig()
        self.domain = DOMAIN
        self.noise_scale = (config.noise_position,) * 3 + (config.noise_velocity,) * 3
        self.horizon, self.step_s, self.substep_s = config.horizon, config.step_s, config.substep_s
        self.preset = CONTACTS[config.contact]
        self.arm = load_arm(robot_model(config.mount))
        self.plate_half_length = float(self.arm.plate_half_size[0])  # the paper's l_e

    @classmethod
    def from_preset(cls, preset: str = "") -> CatchingTask:
        """The task in one of its variants; without a name, as in the paper's figures (`released`)."""
        if preset and preset not in PRESETS:
            return super().from_preset(preset)  # type: ignore[return-value]  # raises
        return cls(PRESETS[preset] if preset else None)

    def changed(self, **values: Any) -> CatchingTask:
        """The task with other values of its configuration."""
        return type(self)(replace(self.config, **values))

    def allocate(self, sets: int, instances: int) -> None:
        """Build B arms and B x N balls."""
        config = self.config
        self.world = PlateWorld(
            self.arm,
            config.home,
            sets,
            instances,
            WorldConfig(
                stiffness=config.stiffness,
                damping=config.damping,
                bounce_speed=self.preset.bounce_speed,
                substep_s=config.substep_s,
                joint_speed=config.joint_speed,
                torque_rate=config.torque_rate,
                threads=config.threads,
                ik=CONTROL_IK,
            ),
        )
        self.home_pos = self.world.plate_pos[0].clone()
        self._home_quat = self.world.plate_quat[0].clone()
        # The box of plate positions: middle [B, 3], and bounds in its own axes.
        self._box_middle = self.home_pos.repeat(sets, 1)
        self._low, self._high = torch.tensor(config.workspace_low), torch.tensor(config.workspace_high)
        self._rotation = motion_to_base(torch.zeros(sets))
        self._start_q = self.world.q.clone()

    def begin(self, sets: torch.Tensor, parameters: torch.Tensor, draws: Draws) -> None:
        """Place the robot, throw the balls, and stop the clock just before they arrive."""
        config = self.config
        error = config.joint_noise * draws.normal(self.command_size)
        if config.start == "home":
            self._place(sets, self.world.home + error)
            thrown = throw(config, draws)
            plate, offset = self.world.plate_pos[sets], thrown.offset
            ball = plate + offset
        else:
            thrown = throw(config, draws)
            self._place(sets, self._meeting(thrown) + error)
            ball = self.home_pos + thrown.offset
            offset = ball - self.world.plate_pos[sets]

        # All balls of a set start alike: [R, 3] to [R, N, 3].
        shape = (len(sets), self.world.num_instances, 3)
        column = self.domain.column
        static = self.preset.pair_friction(column(parameters, "static_friction"))
        dynamic = self.preset.pair_friction(column(parameters, "dynamic_friction"))
        self.world.place_spheres(
            sets,
            pos=ball[:, None].expand(shape),
            vel=thrown.velocity[:, None].expand(shape),
            radius=column(parameters, "radius"),
            static_friction=static,
            dynamic_friction=torch.minimum(static, dynamic),
            restitution=self.preset.pair_restitution(column(parameters, "restitution")),
        )
        self._rotation[sets] = motion_to_base(torch.atan2(offset[:, 1], offset[:, 0]))
        if config.workspace_around == "start":
            self._box_middle[sets] = self.world.plate_pos[sets]
        self._look()

    def _place(self, sets: torch.Tensor, q: torch.Tensor) -> None:
        """Put the arms of some sets [R] at joints q [R, M], at rest."""
        self.world.place_arms(sets, q, torch.zeros_like(q))
        self._start_q[sets] = q

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
        displacement, tilt, limited = self.decode(action)
        # p~ = R_z(phi) delta + p;  R~ turns the level plate by beta about w
        wished = self.world.plate_pos + (self._rotation @ displacement[..., None])[..., 0]
        target = self._inside(wished)
        tilt_in_base = (self._rotation[:, :2, :2] @ tilt[..., None])[..., 0]
        quat = quat_multiply(quat_of_tilt(tilt_in_base), self._home_quat)
        joints, reached = self.world.solve_ik(target, quat, start=self.world.q)
        joints, slowed = self._slow_down(joints)
        return joints, limited | (wished != target).any(dim=1) | ~reached | slowed

    def _inside(self, wished: torch.Tensor) -> torch.Tensor:
        """Plate positions [B, 3] cut to the workspace."""
        if self.config.workspace_around == "home":
            low, high = self._box_middle + self._low, self._box_middle + self._high
            return torch.minimum(torch.maximum(wished, low), high)
        turned = to_motion((wished - self._box_middle)[:, None], self._rotation)[:, 0]
        cut = torch.minimum(torch.maximum(turned, self._low), self._high)
        back = (self._rotation @ cut[..., None])[..., 0]
        # Positions inside stay what they are, to the bit: turning there and back would not.
        return torch.where((cut == turned).all(dim=1, keepdim=True), wished, self._box_middle + back)

    def _slow_down(self, joints: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Shorten the way to desired joints [B, M] until no joint is asked to exceed its speed limit.

        The world cuts each joint's error for itself; doing it for all together keeps the direction.
        """
        way = joints - self.world.q
        share = (self.world.max_position_error / way.abs().clamp_min(1e-9)).amin(dim=1, keepdim=True)
        return self.world.q + share.clamp_max(1.0) * way, share[:, 0] < 1.0

    def decode(self, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Displacement [B, 3] and tilt [B, 2] in the motion frame, and where the tilt was cut [B].

        Tilt is proportional to the action: it brakes a rolling ball, and braking should grow with speed from
        the start. Displacement is, too, or goes with the action's signed square: a robot that starts at home
        must travel before the impact and move finely after it.
        """
        config = self.config
        displacement = config.displacement * action[:, :3]
        if config.displacement_curve == "square":
            displacement = displacement * action[:, :3].abs()
        tilt = config.max_tilt * action[:, 3:]
        size = tilt.norm(dim=-1, keepdim=True)
        inside = tilt * (config.max_tilt / size.clamp_min(config.max_tilt))
        return displacement, inside, size[:, 0] > config.max_tilt

    def encode(self, displacement: torch.Tensor, tilt: torch.Tensor) -> torch.Tensor:
        """The action [B, 5] that asks for a displacement [B, 3] and tilt [B, 2]: inverse of decode."""
        travel = displacement / self.config.displacement
        if self.config.displacement_curve == "square":
            travel = travel.sign() * travel.abs().sqrt()
        return torch.cat((travel, tilt / self.config.max_tilt), dim=-1).clamp(-1.0, 1.0)

    def hold(self) -> torch.Tensor:
        """Desired joints before the first action: where the robot started."""
        return self._start_q

    def advance(self, command: torch.Tensor, duration_s: float) -> None:
        """Arms under the torque law, balls under gravity and the moving plate."""
        self.world.advance(command, duration_s)
        self._look()

    def _look(self) -> None:
        """Express what the world holds in the motion frame: s = (d, v), and the plate's normal n."""
        world, rotation = self.world, self._rotation
        displacement = to_motion(world.pos - world.plate_pos[:, None], rotation)
        velocity = to_motion(world.vel, rotation)
        self._states = torch.cat((displacement.movedim(-1, 0), velocity.movedim(-1, 0))).movedim(0, -1)
        self.normal = to_motion(plate_normal(world.plate_quat)[:, None], rotation)[:, 0]

    def states(self) -> torch.Tensor:
        """(d, v) of every ball in the motion frame [B, N, 6]."""
        return self._states.clone()

    def condition(self) -> torch.Tensor:
        """The plate's tilt as it is [B, 2]: the paper's u, as a vector."""
        return tilt_of_normal(self.normal)

    def contract(self) -> dict[str, Any]:
        """What actions mean and how the arm answers: a policy trained on other values will not catch.

        Limits on speed and torque rate and the robot's start are left out: to try a policy inside them, or
        from elsewhere, is a fair question.
        """
        arm = ("step_s", "mount", "home", "stiffness", "damping")
        action = ("displacement", "displacement_curve", "max_tilt")
        names = (*arm, *action, "workspace_around", "workspace_low", "workspace_high")
        return {name: getattr(self.config, name) for name in names}

    def reward_terms(self) -> dict[str, torch.Tensor]:
        """Slow balls are good, lost balls are bad (paper, Eq. 8)."""
        return self.reward_terms_of(self._states)

    def reward_terms_of(
        self, states: torch.Tensor, normal: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        """The reward's terms for any states [B, N, 6], over plates of a normal [B, 3] or as they are."""
        normal = self.normal if normal is None else normal
        height, off_centre = split(states[..., :3], normal)
        rise, sideways = split(states[..., 3:], normal)
        eta = self.config.decay
        slow = 0.5 * torch.exp(-((sideways / eta) ** 2)) + 0.5 * torch.exp(
            -((rise.clamp_min(-self.config.slack) / eta) ** 2)
        )
        lost = (height < 0) | (off_centre > self.plate_half_length)
        return {"velocity": slow, "lost": -lost.float()}

    def success(self) -> torch.Tensor:
        """On the plate, and slower than 0.1 m/s [B, N]."""
        return self._slower_than(self.config.success_speed)

    def other_successes(self) -> dict[str, torch.Tensor]:
        """The same at other speeds."""
        speeds = self.config.other_success_speeds
        return {f"success_{speed:g}": self._slower_than(speed) for speed in speeds}

    def _slower_than(self, speed: float) -> torch.Tensor:
        height, off_centre = split(self._states[..., :3], self.normal)
        gap = height - self.world.radius
        on_plate = (height > 0) & (gap < self.config.success_gap) & (off_centre <= self.plate_half_length)
        vx, vy, vz = self._states[..., 3:].unbind(dim=-1)
        return on_plate & (vx * vx + vy * vy + vz * vz < speed**2)


@dataclass(frozen=True)
class Thrown:
    """Throws as they are first seen and as they arrive, [R, 3] each; positions from the region's middle."""

    offset: torch.Tensor
    velocity: torch.Tensor
    arrival: torch.Tensor
    arrival_velocity: torch.Tensor


def split(vectors: torch.Tensor, normal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Parts of vectors [B, N, 3] along normals [B, 3] (signed) and across them (length)."""
    x, y, z = vectors.unbind(dim=-1)
    nx, ny, nz = normal[:, None].unbind(dim=-1)
    along = x * nx + y * ny + z * nz
    square = (x - along * nx) ** 2 + (y - along * ny) ** 2 + (z - along * nz) ** 2
    return along, square.sqrt()


def throw(config: CatchingConfig, draws: Draws) -> Thrown:
    """Throws, each seen shortly before it arrives.

    A ball leaves at some distance, direction and height, such that after its flight it meets a point
    of the catching region; the rest of the flight is `lead_s`. No air: the parabola is closed form.
    """

    def uniform(bounds: tuple[float, float]) -> torch.Tensor:
        return draws.uniform(1, low=bounds[0], high=bounds[1])[:, 0]

    distance, direction = uniform(config.distance), uniform(config.incoming)
    height, flight, lead = (
        uniform(config.spawn_height),
        uniform(config.flight_s),
        uniform(config.lead_s),
    )
    radius = config.region_radius * draws.uniform(1)[:, 0].sqrt()  # uniform over the disc
    angle = uniform((0.0, 2 * torch.pi))
    zero = torch.zeros_like(radius)
    release = torch.stack((distance * direction.cos(), distance * direction.sin(), height), dim=-1)
    arrival = torch.stack((radius * angle.cos(), radius * angle.sin(), zero), dim=-1)
    gravity = torch.tensor([0.0, 0.0, -GRAVITY])
    # arrival = release + v T + g T^2 / 2, then back from the arrival by the lead time
    launch = (arrival - release) / flight[:, None] - 0.5 * gravity * flight[:, None]
    velocity = launch + gravity * (flight - lead)[:, None]
    offset = arrival - velocity * lead[:, None] - 0.5 * gravity * lead[:, None] ** 2
    return Thrown(offset, velocity, arrival, velocity + gravity * lead[:, None])
