"""What an attempt in the twin looks like: for the page, and for replays of trials."""

from __future__ import annotations

import numpy as np

from dris.catching.belief_observer import Believing
from dris.catching.control import BallEstimate, LookingObserver
from dris.catching.stage import RobotStage
from dris.core.stage import Frame
from dris.lab.objects import CatchObject
from dris.lab.twin import Twin


def physics_of(thing: CatchObject) -> dict[str, float]:
    """A ball's numbers as the training's domain names them."""
    friction = {"static_friction": thing.friction, "dynamic_friction": thing.friction}
    return {"radius": thing.radius, **friction, "restitution": thing.restitution}


class Shown:
    """A twin, after its `reset`, as frames: the real thing, drawn as a ball, and those of a belief."""

    def __init__(self, twin: Twin):
        self.stage = RobotStage(twin.config.mount, twin.model)
        self._twin = twin
        self._touched = False

    def tick(self) -> None:
        """To be called after every millisecond: notes whether anything has touched the thing."""
        self._touched |= self._twin.touched

    def frame(self, observer: LookingObserver, seen: BallEstimate | None) -> Frame:
        """The present moment.

        Args:
            observer: Whose belief is shown, if it has one.
            seen: What the policy saw last.
        """
        state = self._twin.state()
        balls, velocities = state.thing_position[None], state.thing_velocity[None]
        physics = {name: np.array([value]) for name, value in physics_of(self._twin.thing).items()}
        if isinstance(observer, Believing) and observer.belief.time_s is not None:
            balls = np.concatenate((balls, observer.belief.places))
            own = observer.belief.physics
            physics = {name: np.concatenate((value, own[name])) for name, value in physics.items()}
        place, normal = state.plate_position, state.plate_rotation[:, 2]
        scene = self.stage.seen(state.q, balls, velocities, place, normal, physics, self._touched)
        return Frame(state.time_s, scene, None if seen is None else seen.position.copy())
