"""A session by the robot's own clock: for simulated robots, whose time goes as slowly as a machine needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dris.robot.arm import Arm, ArmState


class OwnClock:
    """An arm that remembers when it was, by its own clock; has the methods of `dris.robot.arm.Arm`.

    Not for a real robot: a session by this clock does not notice that its arm tells the same state for ever.
    """

    def __init__(self, arm: Arm):
        """Ask an arm for its time."""
        self._arm = arm
        self._now_s = arm.state().time_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arm, name)

    def exchange(self, reference: np.ndarray) -> ArmState:
        """Hand a reference [M] on; the state that comes back tells the time."""
        state = self._arm.exchange(reference)
        self._now_s = state.time_s
        return state

    def clock(self) -> float:
        """When the arm was asked last [s]."""
        return self._now_s
