"""Ways of the joints over time, which a session follows: home, slowly, or any other that begins at home."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from ruckig import InputParameter, Result, Ruckig, RuckigError, Trajectory

from dris.catching.joint_limits import JointLimits
from dris.robot.arm import ArmError

HOME_SHARE = 0.15
"""Of the joints' speeds on the way home [design]."""
HOME_ACCELERATION, HOME_JERK = 1.0, 5.0
"""[rad/s2], [rad/s3]; FCI's motion generators may have 10 and 5000 [design]."""


class Path(Protocol):
    """Where the joints should be, and when."""

    @property
    def duration_s(self) -> float:
        """From the beginning to the end."""

    def at(self, time_s: float) -> np.ndarray:
        """Joints [M] at a time from the beginning."""


class WayHome:
    """Slowly, all joints arriving together."""

    def __init__(self, q: np.ndarray, home: np.ndarray, limits: JointLimits):
        """Plan it.

        Raises:
            ArmError: There is no way.
        """
        joints = len(q)
        plan = InputParameter(joints)
        plan.current_position, plan.target_position = list(q), list(home)
        plan.max_velocity = list(HOME_SHARE * np.asarray(limits.speed))
        plan.max_acceleration, plan.max_jerk = [HOME_ACCELERATION] * joints, [HOME_JERK] * joints
        self._trajectory = Trajectory(joints)
        try:
            result = Ruckig(joints).calculate(plan, self._trajectory)
        except RuckigError as error:  # joints that are no numbers
            raise ArmError(f"there is no way home from {np.round(q, 3).tolist()}: {error}") from error
        if result not in (Result.Working, Result.Finished):
            raise ArmError(f"there is no way home from {np.round(q, 3).tolist()}: {result}")
        self.duration_s = float(self._trajectory.duration)

    def at(self, time_s: float) -> np.ndarray:
        """Joints [M] at a time from the beginning."""
        return np.array(self._trajectory.at_time(min(max(time_s, 0.0), self.duration_s))[0])
