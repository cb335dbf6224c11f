"""The training world: B arms, each moving a plate, and N spheres per plate that only feel it.

State lives in torch tensors that the Warp kernels share without a copy. Rows are sets; nothing
computed for one set depends on another, so they can be split over threads without changing a bit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
import warp as wp

from dris.core.process import start_warp
from dris.sim.arm import arm_kernel, choose_steps, clip_rounds
from dris.sim.chain import chain_functions, upload
from dris.sim.ik import ik_kernel
from dris.sim.model import SerialArm
from dris.sim.spheres import step_spheres
from dris.sim.world_config import WorldConfig

# What the arm kernel tells the sphere kernel of a plate at each substep: numbers, Warp type.
_SAMPLES = {
    "pos": (3, wp.vec3),
    "quat": (4, wp.quat),
    "vel": (3, wp.vec3),
    "omega": (3, wp.vec3),
    "axes": (9, wp.mat33),
}

_FAR = 1e6
"""Stands for an unlimited position error [rad]."""


def _refuse(what: str, values: torch.Tensor, good: torch.Tensor, must: str) -> None:
    """Raise for the first value that is not good, and say where it stands."""
    if not bool(good.all()):
        bad = (~good).nonzero()[0].tolist()
        value = float(values.expand_as(good)[tuple(bad)])
        raise ValueError(f"{what} must {must}, got {value} at index {bad}")


class PlateWorld:
    """B arms and B x N spheres. See the module's docstring; shapes are in the attributes.

    Attributes:
        q, dq, torque: [B, M] joint positions, velocities and last torques.
        pos, vel, spin: [B, N, 3] sphere centres, velocities and angular velocities, base frame.
        radius, static_friction, dynamic_friction, restitution: [B, N] of the pair sphere and plate.
        mode: [B, N] 0 in flight, 1 slipping on the plate, 2 rolling or resting on it.
        impacts: [B, N] impacts since the sphere was placed.
        torque_clips: [B] joint steps at a torque limit since the arm was placed.
        speed_share: [B] largest joint speed since then, at the ends of substeps, over what is allowed at the
            joint's position.
    """

    def __init__(
        self,
        arm: SerialArm,
        home: tuple[float, ...],
        sets: int,
        instances: int,
        config: WorldConfig,
    ):
        """Allocate B = sets arms at `home` and N = instances spheres each, far below the plates."""
        m = arm.num_joints
        for name, values in (
            ("home", home),
            ("stiffness", config.stiffness),
            ("damping", config.damping),
        ):
            if len(values) != m:
                raise ValueError(f"{name} has {len(values)} values for an arm of {m} joints")
        if sets < 1 or instances < 1:
            raise ValueError(f"a world needs at least 1 set of 1 instance, got {sets} x {instances}")
        start_warp()
        self.arm, self.config, self.num_sets, self.num_instances = arm, config, sets, instances
        self._chain = upload(arm, config.device)
        self._functions = chain_functions(m)
        self._arm_kernel, self._ik_kernel = arm_kernel(m), ik_kernel(m)
        self._half = wp.vec3(*arm.plate_half_size)
        self._pool = ThreadPoolExecutor(config.threads) if config.threads > 1 else None

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.zeros(*shape, dtype=dtype, device=config.device)

        vec = self._functions.vec
        self.home = torch.tensor(home, dtype=torch.float32, device=config.device)
        gains = torch.tensor([config.stiffness, config.damping], dtype=torch.float32)
        self._gains = [wp.from_torch(row[None].to(config.device), dtype=vec) for row in gains]
        self._home = wp.from_torch(self.home[None], dtype=vec)
        self.arm_steps = config.arm_steps or choose_steps(
            arm, config.damping, config.substep_s, config.torque_rate is not None, config.brakes_in_time
        )
        self._rounds = clip_rounds(arm, self.arm_steps)
        self.max_position_error = self._speed_error()
        self._max_position_error = wp.from_torch(self.max_position_error[None], dtype=vec)

        self.q, self.dq, self.torque, self._desired = (zeros(sets, m) for _ in range(4))
        self.torque_clips, self.speed_share = zeros(sets, dtype=torch.int32), zeros(sets)
        self.pos, self.vel, self.spin = (zeros(sets, instances, 3) for _ in range(3))
        self.radius, self.static_friction = zeros(sets, instances), zeros(sets, instances)
        self.dynamic_friction, self.restitution = zeros(sets, instances), zeros(sets, instances)
        self.mode = zeros(sets, instances, dtype=torch.int32)
        self.impacts = zeros(sets, instances, dtype=torch.int32)
        self._share_arms(vec)
        self._share_spheres()
        self._allocate_samples(1)
        every = torch.arange(sets, device=config.device)
        self.radius.fill_(0.01)
        self.pos[..., 2] = -10.0
        self.place_arms(every, self.home.expand(sets, m), torch.zeros(sets, m, device=config.device))

    def _speed_error(self) -> torch.Tensor:
        """[M] position error at which the torque law drives each joint at its speed limit: v D / K."""
        config = self.config
        stiffness, damping = torch.tensor([config.stiffness, config.damping])
        speed = torch.tensor(self.arm.velocity_limit, dtype=torch.float32) * (config.joint_speed or 1.0)
        error = torch.nan_to_num(speed * damping / stiffness, nan=_FAR, posinf=_FAR).clamp_max(_FAR)
        return error if config.joint_speed is not None else torch.full_like(error, _FAR)

    def _share_arms(self, vec) -> None:
        self._arm_arrays = [
            wp.from_torch(t, dtype=vec) for t in (self._desired, self.q, self.dq, self.torque)
        ] + [wp.from_torch(t) for t in (self.torque_clips, self.speed_share)]

    def _share_spheres(self) -> None:
        scalars = (self.radius, self.static_friction, self.dynamic_friction, self.restitution)
        vectors = (self.pos, self.vel, self.spin)
        self._sphere_arrays = (
            [wp.from_torch(t) for t in scalars]
            + [wp.from_torch(t, dtype=wp.vec3) for t in vectors]
            + [wp.from_torch(t) for t in (self.mode, self.impacts)]
        )

    def _allocate_samples(self, substeps: int) -> None:
        """Room for plate poses and velocities at the ends of `substeps` substeps."""
        shape = (self.num_sets, substeps + 1)
        self._samples = {
            name: torch.zeros(*shape, size, device=self.config.device) for name, (size, _) in _SAMPLES.items()
        }
        self._sample_arrays = [
            wp.from_torch(tensor.unflatten(2, (3, 3)) if kind is wp.mat33 else tensor, dtype=kind)
            for tensor, (_, kind) in zip(self._samples.values(), _SAMPLES.values(), strict=True)
        ] + [wp.zeros(self.num_sets, dtype=wp.float32, device=self.config.device)]
        self._substeps = substeps

    @property
    def plate_pos(self) -> torch.Tensor:
        """[B, 3] centre of the plate's top face, base frame."""
        return self._samples["pos"][:, -1]

    @property
    def plate_quat(self) -> torch.Tensor:
        """[B, 4] plate orientation (x, y, z, w), base frame."""
        return self._samples["quat"][:, -1]

    @property
    def plate_vel(self) -> torch.Tensor:
        """[B, 3] velocity of the plate's centre, base frame."""
        return self._samples["vel"][:, -1]

    @property
    def plate_omega(self) -> torch.Tensor:
        """[B, 3] angular velocity of the plate, base frame."""
        return self._samples["omega"][:, -1]

    def place_arms(self, sets: torch.Tensor, q: torch.Tensor, dq: torch.Tensor) -> None:
        """Put the arms of some sets [R] at q, dq [R, M]."""
        _refuse("joint positions [rad]", q, q.isfinite(), "be finite")
        _refuse("joint velocities [rad/s]", dq, dq.isfinite(), "be finite")
        self.q[sets], self.dq[sets] = q.float(), dq.float()
        self.torque_clips[sets], self.speed_share[sets] = 0, 0.0
        self._allocate_samples(self._substeps)
        torque = self.torque.clone()
        self._launch_arms(0, 0, self.num_sets)  # no substep: only writes plate states, torque at rest
        torque[sets] = self.torque[sets]
        self.torque.copy_(torque)
        for sample in self._samples.values():
            sample[:, -1] = sample[:, 0]

    def place_spheres(
        self,
        sets: torch.Tensor,
        *,
        pos: torch.Tensor,
        vel: torch.Tensor,
        radius: torch.Tensor,
        static_friction: torch.Tensor,
        dynamic_friction: torch.Tensor,
        restitution: torch.Tensor,
        spin: torch.Tensor | float = 0.0,
    ) -> None:
        """Put the spheres of some sets [R] at pos, vel, spin [R, N, 3] with properties [R, N]."""
        spin = torch.as_tensor(spin)
        for name, values in (("position [m]", pos), ("velocity [m/s]", vel), ("spin [rad/s]", spin)):
            _refuse(f"a sphere's {name}", values, values.isfinite(), "be finite")
        _refuse("a radius [m]", radius, (radius > 0) & radius.isfinite(), "be positive and finite")
        _refuse("a restitution", restitution, (restitution >= 0) & (restitution <= 1), "lie in [0, 1]")
        _refuse("static friction", static_friction, static_friction.isfinite(), "be finite")
        held = (dynamic_friction >= 0) & (dynamic_friction <= static_friction)
        _refuse("dynamic friction", dynamic_friction, held, "lie in [0, static friction]")
        self.pos[sets], self.vel[sets], self.spin[sets] = pos, vel, spin
        self.radius[sets], self.restitution[sets] = radius, restitution
        self.static_friction[sets], self.dynamic_friction[sets] = static_friction, dynamic_friction
        self.mode[sets] = 0
        self.impacts[sets] = 0

    def moving(self) -> list[torch.Tensor]:
        """All that `advance` changes, as it lies in memory: copy it to save, write it to go back."""
        plates = [sample[:, -1] for sample in self._samples.values()]
        arms = [self.q, self.dq, self.torque, self.torque_clips, self.speed_share]
        return [*arms, self.pos, self.vel, self.spin, self.mode, self.impacts, *plates]

    def gather(self, index: torch.Tensor) -> None:
        """Replace instance i of each set by instance index[b, i] [B, N]: permute or resample."""
        numbers = (self.radius, self.static_friction, self.dynamic_friction, self.restitution)
        for tensor in (self.pos, self.vel, self.spin, *numbers, self.mode, self.impacts):
            tensor.copy_(tensor.gather(1, index[..., None].expand(-1, -1, 3) if tensor.dim() == 3 else index))

    def advance(self, desired: torch.Tensor, duration_s: float) -> None:
        """Let every set evolve for `duration_s` under desired joint positions [B, M]."""
        substeps = round(duration_s / self.config.substep_s)
        if substeps < 1 or abs(substeps * self.config.substep_s - duration_s) > 1e-9:
            raise ValueError(
                f"duration_s must be a multiple of the substep, {self.config.substep_s} s, got {duration_s}"
            )
        if substeps != self._substeps:
            self._allocate_samples(substeps)
        _refuse("desired joint positions [rad]", desired, desired.isfinite(), "be finite")
        self._desired.copy_(desired)
        if self._pool is None:
            self._advance_rows(0, self.num_sets)
            return
        shards = min(self.config.threads, self.num_sets)
        bounds = [self.num_sets * k // shards for k in range(shards + 1)]
        list(self._pool.map(self._advance_rows, bounds[:-1], bounds[1:]))

    def _advance_rows(self, first: int, last: int) -> None:
        self._launch_arms(self._substeps, first, last)
        self._launch_spheres(first, last)

    def _launch_spheres(self, first: int, last: int) -> None:
        wp.launch(
            step_spheres,
            dim=(last - first, self.num_instances),
            inputs=[
                self._half, self._chain.gravity, self.config.bounce_speed, self.config.substep_s,
                self._substeps, first, *self._sample_arrays, *self._sphere_arrays,
            ],
            device=self.config.device,
        )  # fmt: skip

    def _launch_arms(self, substeps: int, first: int, last: int) -> None:
        rate = -1.0 if self.config.torque_rate is None else self.config.torque_rate
        braking = self.config.joint_speed if self.config.brakes_in_time else 0.0
        wp.launch(
            self._arm_kernel,
            dim=last - first,
            inputs=[
                self._chain, *self._gains, self._max_position_error, rate, braking, self.config.substep_s,
                substeps, self.arm_steps, self._rounds, first, *self._arm_arrays, *self._sample_arrays,
            ],
            device=self.config.device,
        )  # fmt: skip

    def solve_ik(
        self,
        plate_pos: torch.Tensor,
        plate_quat: torch.Tensor,
        start: torch.Tensor | None = None,
        retries: int = 0,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Joint positions that bring the plate to a pose, as near as limits allow.

        Args:
            plate_pos: [R, 3] centre of the top face, base frame.
            plate_quat: [R, 4] orientation (x, y, z, w); yaw is kept only where it costs nothing.
            start: [R, M] where to start looking; home if None.
            retries: How often to push an answer that misses off its saddle; far answers may result.

        Returns:
            Joint positions [R, M], always inside the limits, and whether the pose is reached [R].
        """
        rows, vec, ik = len(plate_pos), self._functions.vec, self.config.ik
        if start is None:
            start = self.home.expand(rows, -1)
        answer = torch.zeros(rows, self.arm.num_joints, device=self.config.device)
        error = torch.zeros(rows, 2, device=self.config.device)
        wp.launch(
            self._ik_kernel,
            dim=rows,
            inputs=[
                self._chain, self._home, ik.tilt_weight, ik.yaw_weight, ik.home_weight, ik.stay_weight,
                0.5 * ik.position_tolerance, 0.5 * ik.tilt_tolerance, ik.iterations, retries, 0,
                wp.from_torch(plate_pos.float().contiguous(), dtype=wp.vec3),
                wp.from_torch(plate_quat.float().contiguous(), dtype=wp.quat),
                wp.from_torch(start.float().contiguous(), dtype=vec),
                wp.from_torch(answer, dtype=vec), wp.from_torch(error, dtype=wp.vec2),
            ],
            device=self.config.device,
        )  # fmt: skip
        reached = (error[:, 0] <= ik.position_tolerance) & (error[:, 1] <= ik.tilt_tolerance)
        return answer, reached
