"""What is good: the reward's terms and the success of a catch, for many sets (torch) or one robot (NumPy)."""

from __future__ import annotations

from typing import Any

from dris.catching.settings import CatchingConfig
from dris.core.arrays import at_least, namespace_of

RELEASED_DISC, RELEASED_SPEED = 0.10, 0.2
"""The released environment's own test: this near to the plate's centre [m], no faster [m/s] [released]. The
text says on the plate, whose inner disc has 0.12 m [paper]."""


def normal_tangential(vectors: Any, normal: Any) -> tuple[Any, Any]:
    """Parts of vectors [..., 3] along unit normals [..., 3] (signed) and across them (length)."""
    along = dot(vectors, normal)
    return along, length_across(vectors, normal, along)


def dot(a: Any, b: Any) -> Any:
    """Of vectors [..., 3]."""
    (ax, ay, az), (bx, by, bz) = ([v[..., k] for k in range(3)] for v in (a, b))
    return ax * bx + ay * by + az * bz


def length_across(vectors: Any, normal: Any, along: Any) -> Any:
    """Of vectors [..., 3], across unit normals [..., 3], given how far they reach along them [...]."""
    (x, y, z), (nx, ny, nz) = ([v[..., k] for k in range(3)] for v in (vectors, normal))
    square = (x - along * nx) ** 2 + (y - along * ny) ** 2 + (z - along * nz) ** 2
    return namespace_of(vectors).sqrt(square)


def reward_terms(config: CatchingConfig, states: Any, normal: Any, plate_half: float) -> dict[str, Any]:
    """Slow balls are good, lost balls are bad (paper, Eq. 8).

    Args:
        config: Of the task.
        states: (d, v) of balls [..., 6], in any frame.
        normal: Of the plate [..., 3], in that frame.
        plate_half: Half the plate's length [m], the paper's l_e.
    """
    xp = namespace_of(states)
    height, off_centre = normal_tangential(states[..., :3], normal)
    rise, sideways = normal_tangential(states[..., 3:], normal)
    eta, upwards = config.decay, at_least(rise, -config.slack)
    slow = 0.5 * xp.exp(-((sideways / eta) ** 2)) + 0.5 * xp.exp(-((upwards / eta) ** 2))
    lost = (height < 0) | (off_centre > plate_half)
    return {"velocity": slow, "lost": -xp.astype(lost, states.dtype)}


def caught(
    config: CatchingConfig, states: Any, normal: Any, radius: Any, plate_half: float, speed: float
) -> Any:
    """Which balls [...] lie on the disc inside the plate and are slower than a speed [m/s].

    Args:
        config: Of the task.
        states: (d, v) of balls [..., 6], in any frame.
        normal: Of the plate [..., 3], in that frame.
        radius: Of the balls [...] [m].
        plate_half: Half the plate's length [m].
        speed: The limit.
    """
    height, off_centre = normal_tangential(states[..., :3], normal)
    gap = height - radius
    on_plate = (height > 0) & (gap < config.success_gap) & (off_centre <= plate_half)
    vx, vy, vz = (states[..., k] for k in range(3, 6))
    return on_plate & (vx * vx + vy * vy + vz * vz < speed**2)


def other_successes(
    config: CatchingConfig, states: Any, normal: Any, radius: Any, plate_half: float
) -> dict[str, Any]:
    """Success by other measures than the task's own, by name; arguments as those of `caught`.

    At other speeds (success_0.2), and by the released environment's own test (success_released); none where
    no other speeds are asked for.
    """
    speeds = config.other_success_speeds
    told = {f"success_{v:g}": caught(config, states, normal, radius, plate_half, v) for v in speeds}
    if told:
        told["success_released"] = caught(config, states, normal, radius, RELEASED_DISC, RELEASED_SPEED)
    return told
