"""The robot: a Franka FR3 that holds a plate, in one of two ways. `assets/fr3.xml` is the arm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

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


def at_flange(model: mujoco.MjModel, bodies: tuple[str, ...]) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass [kg], centre [3] and inertia [3, 3] about it of bodies beyond the flange, in the flange's frame.

    The flange has the last link's axes and is where the hand begins.
    """
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    axes, origin = data.body("link7").xmat.reshape(3, 3), data.body("hand").xpos
    parts = []
    for name in bodies:
        body = model.body(name).id
        turn = axes.T @ data.ximat[body].reshape(3, 3)
        own = turn @ np.diag(model.body_inertia[body]) @ turn.T
        parts.append((float(model.body_mass[body]), axes.T @ (data.xipos[body] - origin), own))
    mass = sum(part[0] for part in parts)
    centre = sum(part[0] * part[1] for part in parts) / mass
    inertia = np.zeros((3, 3))
    for part_mass, part_centre, own in parts:
        arm = part_centre - centre
        inertia += own + part_mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return mass, centre, inertia
