"""What an action means: decode, workspace and speed limit, for many sets (torch) or one robot (NumPy)."""

from __future__ import annotations

from typing import Any

from dris.catching.frames import to_motion
from dris.catching.settings import CatchingConfig
from dris.core.arrays import at_least, namespace_of


def decode(config: CatchingConfig, action: Any) -> tuple[Any, Any, Any]:
    """Displacement [..., 3] and tilt [..., 2] in the motion frame that an action [..., 5] asks for.

    Tilt is proportional to the action: it brakes a rolling ball, and braking should grow with speed from the
    start. Displacement is, too, or goes with the action's signed square: a robot that starts at home must
    travel before the impact and move finely after it.

    Args:
        config: Of the task.
        action: Inside [-1, 1].

    Returns:
        Displacement, tilt, and whether the tilt was cut to its disc [...].
    """
    xp = namespace_of(action)
    displacement = config.displacement * action[..., :3]
    if config.displacement_curve == "square":
        displacement = displacement * abs(action[..., :3])
    tilt = config.max_tilt * action[..., 3:]
    size = xp.linalg.vector_norm(tilt, axis=-1, keepdims=True)
    inside = tilt * (config.max_tilt / at_least(size, config.max_tilt))
    return displacement, inside, size[..., 0] > config.max_tilt


def encode(config: CatchingConfig, displacement: Any, tilt: Any) -> Any:
    """The action [..., 5] that asks for a displacement [..., 3] and tilt [..., 2]: inverse of decode."""
    xp = namespace_of(displacement)
    travel = displacement / config.displacement
    if config.displacement_curve == "square":
        travel = xp.sign(travel) * xp.sqrt(abs(travel))
    return xp.concat((travel, tilt / config.max_tilt), axis=-1).clip(-1.0, 1.0)


def keep_inside(config: CatchingConfig, wished: Any, middle: Any, motion_to_base: Any) -> Any:
    """Plate positions [..., 3] cut to the workspace.

    Args:
        config: Of the task: the box's bounds, and whether its axes are the base's or the motion frame's.
        wished: In the base frame.
        middle: Of the box [..., 3].
        motion_to_base: [..., 3, 3]
    """
    xp = namespace_of(wished)
    low, high = (
        xp.asarray(bound, dtype=wished.dtype) for bound in (config.workspace_low, config.workspace_high)
    )
    if config.workspace_around == "home":
        return xp.minimum(xp.maximum(wished, middle + low), middle + high)
    turned = to_motion(wished - middle, motion_to_base)
    cut = xp.minimum(xp.maximum(turned, low), high)
    back = (motion_to_base @ cut[..., None])[..., 0]
    # Positions inside stay what they are, to the bit: turning there and back would not.
    return xp.where(xp.all(cut == turned, axis=-1, keepdims=True), wished, middle + back)


def slow_down(joints: Any, q: Any, max_position_error: Any) -> tuple[Any, Any]:
    """Shorten the way from joints q to others, [..., M] each, until no position error is too large.

    The torque law drives a joint no faster than its position error allows. Each joint's error could be cut
    for itself; doing it for all together keeps the direction.

    Returns:
        Joints, and whether they were changed [...].
    """
    xp = namespace_of(joints)
    way = joints - q
    share = xp.min(max_position_error / at_least(abs(way), 1e-9), axis=-1, keepdims=True)
    return q + share.clip(None, 1.0) * way, share[..., 0] < 1.0
