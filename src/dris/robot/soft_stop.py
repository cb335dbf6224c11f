"""How an FR3 is braked softly, and how it is known that it rests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dris.robot.arm import ArmError
from dris.robot.safety_config import TAU_MAX

RAMP_S = 0.02
"""In which the last torque of a motion that is stopped gives way to damping [s], within FCI's rate. In
franky's own 0.2 s an arm that was accelerating goes on to: from 0.75 of a speed limit to beyond it."""
DAMPED_S = 0.6
"""Longest that damping alone brakes [s]: then the robot's own controller brakes the arm and holds it where it
is, which damping never does against a hand that pushes or a load that nobody declared. In the twin, arms at
up to 0.75 of their speed limits rest after 0.21 to 0.43 s [design]."""
SHARE = 0.9
"""Of a joint's largest torque that a soft stop may ask for, with gravity [design]."""
MOST_DAMPING = (30.0, 30.0, 30.0, 30.0, 3.0, 3.0, 3.0)
"""[Nm s/rad] [design]"""
STILL_FASTER = (0.5, 0.5, 0.5, 0.5, 2.0, 2.0, 2.0)
"""A joint may become by so much until it brakes [rad/s], light ones by more [design]."""
RESTS, RESTS_FOR_S = 0.02, 0.05
"""No joint of an arm at rest is faster [rad/s], for so long [s]: one that swings is slow for an instant."""
REST_S = 2.0
"""Longest that the robot's own controller may take to bring the arm to rest [s, wall clock]."""


def stop_damping(dq: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """Of a soft stop, for joints [7] at speeds dq: what their torque limits leave beside gravity [Nm s/rad].

    franky's own, 14 for all, asks a fast wrist for six times what it may give.
    """
    left_over = SHARE * np.array(TAU_MAX) - np.abs(gravity)
    return np.clip(left_over / (np.abs(dq) + STILL_FASTER), 0.0, MOST_DAMPING)


def wait_for_rest(read: Callable[[], Any]) -> None:
    """Until no joint moves, by what the robot measures; that a motion has ended does not say so.

    Args:
        read: The robot's state, as franky tells it.

    Raises:
        ArmError: A joint still moves, or the robot does not tell.
    """
    until_s, still_since_s = time.monotonic() + REST_S, None
    while True:
        try:
            found = read()
        except ArmError as error:
            raise ArmError(f"the arm may still move, {error}; use the robot's own stop") from error
        now_s, fastest = found.time.to_sec(), float(np.abs(found.dq).max())
        if not fastest <= RESTS:
            still_since_s = None
        elif still_since_s is None:
            still_since_s = now_s
        elif now_s - still_since_s >= RESTS_FOR_S:
            return
        if time.monotonic() > until_s:
            raise ArmError(
                f"the arm may still move: braked {REST_S:g} s ago, a joint goes at {fastest:.2f} rad/s; use "
                "the robot's own stop, and look at who pushes the arm and at what it carries"
            )
        time.sleep(0.001)
