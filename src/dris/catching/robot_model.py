"""The robot: a Franka FR3 that holds a plate, in one of two ways. `assets/fr3.xml` is the arm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco

ROBOT_XML = Path(__file__).parent / "assets" / "fr3.xml"


@dataclass(frozen=True)
class Mount:
    """Where the plate's body (the centre of its box) sits in the hand's frame, whose z points out of it."""

    position: tuple[float, float, float]
    """[m]"""
    quaternion: tuple[float, float, float, float]
    """(w, x, y, z)"""


MOUNTS: dict[str, Mount] = {
    # The hand points down and its fingers hold the plate by an edge, so that the plate lies beside it. A
    # pitch error turns the plate about a point near it and hardly moves it: white noise of 0.1 rad on the
    # pitch moves it vertically at 0.05 m/s, on the level mount at 0.17 m/s [released].
    "down": Mount((0.13, 0.0, 0.1034), (0.0, 1.0, 0.0, 0.0)),
    # The hand is level and the plate lies ahead of it, as fr3.xml has it [design].
    "level": Mount((0.0, 0.0, 0.22), (0.0, 0.5**0.5, 0.0, 0.5**0.5)),
}


def robot_spec(mount: str) -> mujoco.MjSpec:
    """The arm with its plate, to be completed and compiled.

    Raises:
        ValueError: There is no such mount.
    """
    if mount not in MOUNTS:
        raise ValueError(f"there is no mount '{mount}'; known: {', '.join(MOUNTS)}")
    spec = mujoco.MjSpec.from_file(str(ROBOT_XML))
    plate = spec.body("plate")
    plate.pos, plate.quat = MOUNTS[mount].position, MOUNTS[mount].quaternion
    return spec


def robot_model(mount: str) -> mujoco.MjModel:
    """The arm with its plate, compiled."""
    return robot_spec(mount).compile()
