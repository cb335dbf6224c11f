"""A belief as the observer of the twin's ball: behind its cameras, or behind the truth with noise."""

from __future__ import annotations

import numpy as np

from dris.belief.config import BeliefConfig
from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.belief_observer import BeliefObserver, Believing, beside_one_robot
from dris.catching.control import BallEstimate, LookingObserver
from dris.catching.eyes_observer import EyesObserver
from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.lab.observer import TruthObserver


class TruthBelief(Believing):
    """A belief behind the truth, with or without noise: each state that is asked for pulls it."""

    def __init__(
        self,
        inner: TruthObserver,
        kinematics: Kinematics,
        belief: BallBeliefConfig | None = None,
        config: CatchingConfig | None = None,
        seed: int = 0,
    ):
        """See `Believing`; `config` has the task's noise scale."""
        super().__init__(inner, kinematics, belief, seed)
        config, floor = config or CatchingConfig(), BeliefConfig().noise_floor
        scale = np.array((config.noise_position,) * 3 + (config.noise_velocity,) * 3)
        self._deviation = np.maximum(np.repeat(inner.sigma, 3), floor * scale)

    def _told(self, time_s: float, seen: BallEstimate) -> None:
        belief, state = self.belief, np.concatenate((seen.position, seen.velocity))
        self._follow_clock(time_s)
        if belief.time_s is not None and not belief.is_stale(time_s):
            if time_s <= belief.time_s:  # asked twice
                return
            belief.see_state(time_s, state, self._deviation)
            if not belief.refused:
                return
            self.refused += 1
            self.restarts += 1
        belief.begin(time_s, state, np.diag(self._deviation**2), self.radius_m)


def with_belief(
    observer: LookingObserver, belief: BeliefConfig, config: CatchingConfig, kinematics: Kinematics, seed: int
) -> LookingObserver:
    """An observer with a policy's belief behind it, if it has one.

    Raises:
        ValueError: No robot has such a belief, or the observer none to pull it with.
    """
    believed = beside_one_robot(belief)
    if believed is None:
        return observer
    if isinstance(observer, EyesObserver):
        return BeliefObserver(observer, kinematics, believed, seed)
    if isinstance(observer, TruthObserver):
        return TruthBelief(observer, kinematics, believed, config, seed)
    raise ValueError(f"a belief needs cameras or the truth to look with, got {type(observer).__name__}")
