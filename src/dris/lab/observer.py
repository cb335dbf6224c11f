"""The truth as the simplest observer of the twin's ball."""

from __future__ import annotations

import numpy as np

from dris.catching.control import BallEstimate
from dris.catching.settings import CatchingConfig
from dris.lab.twin import Twin
from dris.perception.arrival import Arrival, free_fall
from dris.perception.plate import Plate


class TruthObserver:
    """The truth without delay, or, with noise, the truth as the training's noise model has it."""

    found_share = 1.0

    def __init__(self, twin: Twin, noise: float = 0.0, seed: int = 0, config: CatchingConfig | None = None):
        """See.

        Args:
            twin: Whose ball.
            noise: In multiples of the task's noise scale.
            seed: Of the noise.
            config: Of the task, for its noise scale.
        """
        config = config or CatchingConfig()
        self._twin = twin
        self.sigma = noise * np.array([config.noise_position, config.noise_velocity])
        """[2] deviation of positions and velocities."""
        self._generator = np.random.default_rng(seed)

    @property
    def radius_m(self) -> float:
        """The ball's own."""
        return self._twin.thing.radius

    def tick(self) -> None:
        """Nothing to do."""

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """It needs no telling."""

    def observe_plate(self, plate: Plate) -> None:
        """It needs no telling."""

    def estimate(self, time_s: float) -> BallEstimate | None:
        """What is true, and noise."""
        state = self._twin.state()
        if not self.sigma.any():
            return BallEstimate(state.thing_position, state.thing_velocity)
        error = self.sigma[:, None] * self._generator.standard_normal((2, 3))
        return BallEstimate(state.thing_position + error[0], state.thing_velocity + error[1])

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """By free fall from the true state, once nothing touches the ball."""
        if self._twin.touched:
            return None
        state = self._twin.state()
        return free_fall(state.time_s, state.thing_position, state.thing_velocity, height_m)
