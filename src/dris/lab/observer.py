"""How the thing of a trial is seen: what eyes must tell, and the truth as the simplest eyes."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from dris.catching.settings import CatchingConfig
from dris.core.constants import GRAVITY
from dris.lab.twin import State, Twin
from dris.perception.arrival import Arrival, sinks_in


class Sight(Protocol):
    """Eyes on the twin, for one trial."""

    def tick(self, twin: Twin) -> None:
        """Look; called after every millisecond."""

    def tell_plate(self, state: State, plate_velocity: np.ndarray) -> None:
        """Learn where the plate is, as the robot's own joints say.

        Called before every control step, and while the robot approaches.
        """

    def ball(self, twin: Twin) -> tuple[np.ndarray, np.ndarray] | None:
        """Position and velocity [3] in the base frame, now, or None if the thing is out of sight."""

    def arrives_in(self, twin: Twin) -> float | None:
        """Time until the thing is at the plate's height [s], or None if that is not known."""

    def arrival(self, twin: Twin, height_m: float) -> Arrival | None:
        """When and where the thing's centre sinks to a height, or None if that is not known."""

    @property
    def found_share(self) -> float:
        """Share of looks in which something was found."""


class PerfectSight:
    """The truth without delay, or, with noise, the truth as the training's noise model has it."""

    found_share = 1.0

    def __init__(self, noise: float = 0.0, seed: int = 0, config: CatchingConfig | None = None):
        """See.

        Args:
            noise: In multiples of the task's noise scale.
            seed: Of the noise.
            config: Of the task, for its noise scale.
        """
        config = config or CatchingConfig()
        self._sigma = noise * np.array([config.noise_position, config.noise_velocity])
        self._generator = np.random.default_rng(seed)

    def tick(self, twin: Twin) -> None:
        """Nothing to do."""

    def tell_plate(self, state: State, plate_velocity: np.ndarray) -> None:
        """It needs no telling."""

    def ball(self, twin: Twin) -> tuple[np.ndarray, np.ndarray] | None:
        """What is true, and noise."""
        state = twin.state()
        if not self._sigma.any():
            return state.thing_position, state.thing_velocity
        error = self._sigma[:, None] * self._generator.standard_normal((2, 3))
        return state.thing_position + error[0], state.thing_velocity + error[1]

    def arrives_in(self, twin: Twin) -> float | None:
        """By free fall; infinite if it never will."""
        state = twin.state()
        drop = float(state.thing_position[2] - twin.thing.radius - state.plate_position[2])
        left_s = sinks_in(drop, float(state.thing_velocity[2]))
        return math.inf if left_s is None else left_s

    def arrival(self, twin: Twin, height_m: float) -> Arrival | None:
        """By free fall from the true state, once nothing touches the thing."""
        if twin.touched:
            return None
        state = twin.state()
        position, velocity = state.thing_position, state.thing_velocity
        left_s = sinks_in(float(position[2]) - height_m, float(velocity[2]))
        if left_s is None:
            return None
        after = velocity - (0.0, 0.0, GRAVITY * left_s)
        return Arrival(state.time_s + left_s, position + 0.5 * (velocity + after) * left_s, after)
