"""The catching task with PhysX in place of the training world's arm and contact.

Throws, starts, balls, noise, what an action means, reward and success are the training's own code; joints and
balls move by PhysX. One ball a set: in PhysX the balls of a set would push the plate, and so each other.
"""

from __future__ import annotations

import numpy as np
import torch

from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.rng import KeyedRng
from dris.physx.scene import Ball, Material, PhysxConfig, PhysxScene, load_sapien
from dris.sim.contact import ContactPreset


class PhysxTask(CatchingTask):
    """Catch a ball on a flat plate, in PhysX: a scene of its own for every set."""

    def __init__(self, config: CatchingConfig | None = None, physx: PhysxConfig | None = None):
        super().__init__(config)
        if self.config.torque_rate is not None:
            rate = f"{self.config.torque_rate:g} Nm/s"
            raise ValueError(
                f"PhysX's drives know no limit on torque change, the task has {rate}: take --world twin, or "
                "CatchingConfig(torque_rate=None, brakes_in_time=False)"
            )
        load_sapien()
        self.physx = physx or PhysxConfig()
        self.substep_s = self.physx.step_s

    def allocate(self, sets: int, instances: int) -> None:
        """Room for the sets; scenes are built when their episodes begin."""
        if instances != 1:
            raise ValueError(f"PhysX catches one ball at a time, got sets of {instances}: take instances=1")
        super().allocate(sets, instances)
        self._every = torch.arange(sets)
        most = self.world.max_position_error.double().numpy()
        self._lead = None if self.config.joint_speed is None else most
        self.scenes: dict[int, PhysxScene] = {}
        """By the index of the set."""

    def begin(self, sets: torch.Tensor, parameters: torch.Tensor, rng: KeyedRng) -> None:
        """Place robot and ball as the training world does, then build them in PhysX."""
        super().begin(sets, parameters, rng)
        names = ("static_friction", "dynamic_friction", "restitution")
        nominal = torch.stack([self.domain.column(parameters, name)[:, 0] for name in names], dim=1)
        world = self.world
        for k, values in zip(sets.tolist(), nominal.double().tolist(), strict=True):
            static, dynamic, restitution = values
            material = Material(static, min(static, dynamic), restitution)
            start, speed, q = (values[k].double().numpy() for values in (world.pos, world.vel, world.q))
            ball = Ball(start[0], speed[0], float(world.radius[k, 0]), material)
            plate, gains = plate_material(self.contact, material), self.config.true_gains
            bounce_speed = self.contact.bounce_speed
            self.scenes[k] = PhysxScene(self.arm, q, gains, plate, [ball], bounce_speed, self.physx)

    def other_successes(self) -> dict[str, torch.Tensor]:
        """As in the training world, but for joint speeds: PhysX tells them once a control step only."""
        return {k: v for k, v in super().other_successes().items() if k != "within_speed_limits"}

    def advance(self, command: torch.Tensor, duration_s: float) -> None:
        """Every scene for itself; what came of it is written where the training world keeps it."""
        steps = round(duration_s / self.physx.step_s)
        scenes = [self.scenes[k] for k in self._every.tolist()]
        for scene, reference in zip(scenes, command.double().numpy(), strict=True):
            scene.advance(steps, reference, self._lead)
        world = self.world
        joints = np.array([(scene.q, scene.dq) for scene in scenes])
        q, dq = torch.from_numpy(joints).float().unbind(dim=1)
        world.place_arms(self._every, q, dq)  # also finds the plates
        world.pos.copy_(torch.from_numpy(np.array([scene.ball_positions for scene in scenes])))
        world.vel.copy_(torch.from_numpy(np.array([scene.ball_velocities for scene in scenes])))
        self._update_states()


def plate_material(preset: ContactPreset, ball: Material) -> Material:
    """A plate with which PhysX's average acts as the preset says; where that is the ball's own, the same."""
    friction, restitution = preset.plate_friction, preset.plate_restitution
    return Material(
        ball.static_friction if friction is None else friction,
        ball.dynamic_friction if friction is None else friction,
        ball.restitution if restitution is None else restitution,
    )
