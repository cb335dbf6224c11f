"""What an arm must be before it begins and while it moves, whoever looks: preflight or session."""

from __future__ import annotations

import math
import sys

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.robot.arm import Arm, ArmError, ArmState

STILL = 0.05
"""An arm that moves faster is being guided, or pushed [rad/s]."""
FROZEN_S = 0.1
"""An arm that tells no later time for so long is not heard any more [s]."""


def why_not(state: ArmState) -> str:
    """What keeps an arm from beginning; nothing: no error stops it, and it rests."""
    if state.error:
        return f"{state.error}; look at why, clear it at the robot, and begin anew"
    fastest = float(np.abs(state.dq).max(initial=0.0))
    if not fastest <= STILL:
        return f"a joint moves at {fastest:.2f} rad/s: let go of the robot"
    return "it still obeyed references of before: look at why, and begin anew" if state.moving else ""


def why_not_now(arm: Arm, state: ArmState) -> str:
    """As `why_not`; an arm that still obeys is stopped, for a session in fault is taken for stopped."""
    if state.moving:
        arm.stop()
    return why_not(state)


def at_end(q: np.ndarray, limits: JointLimits, margin: np.ndarray | float = 1e-3) -> str:
    """Which joint is within a margin [rad] of the end of its range, and what to do; nothing: none is."""
    inside = (q > limits.low + margin) & (q < limits.high - margin)  # a number that is none is not
    if inside.all():
        return ""
    joint = int(np.argmin(inside)) + 1
    return f"joint {joint} is at the end of its range: guide it away by hand"


def stricter(told: JointLimits, published: JointLimits) -> JointLimits:
    """Of what a robot tells and what Franka publishes, joint by joint, what allows less.

    A robot's model may be edited, or another arm's; the policy, the filter's tests and the model know the
    published one.

    Raises:
        ArmError: A limit is not finite.
    """
    found = JointLimits(
        np.maximum(told.low, published.low),
        np.minimum(told.high, published.high),
        np.minimum(told.speed, published.speed),
        np.maximum(told.offset, published.offset),
        np.minimum(told.deceleration, published.deceleration),
    )
    if wrong := [name for name, values in vars(found).items() if not np.isfinite(values).all()]:
        raise ArmError(f"the robot tells limits that are not finite ({', '.join(wrong)}): look at its model")
    return found


def cleared(arm: Arm, error: str) -> str:
    """Clear an error, and say so; what was cleared, or nothing, if it does not clear."""
    if not arm.recover():
        return ""
    said = f"cleared, as it was asked to: {error}"
    print(f"dris: {said}", file=sys.stderr, flush=True)
    return said


def begins_at(arm: Arm, limits: JointLimits) -> np.ndarray:
    """Joints [M] where an arm may begin to move.

    Raises:
        ArmError: It may not: something has stopped it, it moves, or it is at the end of its range.
    """
    state = arm.state()
    if why := why_not(state) or at_end(state.q, limits):
        raise ArmError(f"the arm does not begin: {why}")
    return state.q


class Heard:
    """Whether an arm's time goes on."""

    def __init__(self, now_s: float):
        self._since_s, self._latest_s = now_s, -math.inf

    def frozen(self, told_s: float, now_s: float) -> bool:
        """Whether the arm, whose clock tells `told_s`, has told no later time for too long.

        A time that stands still, goes back or is no number is not later.
        """
        if told_s > self._latest_s:
            self._since_s, self._latest_s = now_s, told_s
        return not now_s - self._since_s <= FROZEN_S
