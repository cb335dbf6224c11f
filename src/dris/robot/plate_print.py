"""The plate with its grip as a solid to print, from the numbers of fr3.xml and its mounts.

The fingers hold the grip, a block that reaches from the plate's edge to the underside of the hand, where it
leans on: friction of the fingers alone would not keep a plate of 0.35 kg level. Notches leave room for the
fingers. Everything is made of boxes along the plate's axes, so its surface is found cell by cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from dris.catching.robot_model import robot_model

GRIP = 0.02
"""Between the fingers [m]; Franka's hand opens by 0.08 m [design]."""
FINGER = 0.025
"""Room for a finger beyond the grip, across the plate [m], and"""
PLAY = 0.002
"""around what the model has for the fingers [m] [design]."""


@dataclass(frozen=True, eq=False)
class Box:
    """Along the axes."""

    low: np.ndarray
    """[3] [m]"""
    high: np.ndarray

    def moved(self, turn: np.ndarray, origin: np.ndarray) -> Box:
        """In the frame whose axes are the columns of a turn by right angles, from an origin."""
        corners = (np.stack((self.low, self.high)) - origin) @ turn
        return Box(corners.min(axis=0), corners.max(axis=0))


@dataclass(frozen=True, eq=False)
class Parts:
    """Boxes in the plate's frame: origin in the middle of its top face, z along its normal."""

    plate: Box
    grip: Box
    notches: tuple[Box, Box]

    def surface(self) -> np.ndarray:
        """Triangles [T, 3, 3] of plate and grip without the notches, seen counterclockwise from outside."""
        return surface((self.plate, self.grip), self.notches)


def plate_parts(mount: str, cover_m: float = 0.0) -> Parts:
    """Plate, grip and notches of a mount.

    Args:
        mount: Its name.
        cover_m: Thickness of what is glued onto the plate afterwards; the print is thinner by it.

    Raises:
        ValueError: Nothing would be left to print.
    """
    model = robot_model(mount)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    hand, site = data.body("hand"), data.site("plate")
    axes = hand.xmat.reshape(3, 3)
    turn = np.round(axes.T @ site.xmat.reshape(3, 3))  # mounts turn by right angles
    origin = axes.T @ (site.xpos - hand.xpos)
    half = model.geom("plate").size
    if not 0 <= cover_m < 2 * half[2]:
        raise ValueError(f"the cover must be thinner than the plate's {2 * half[2]:g} m, got {cover_m}")
    plate = Box(np.array([-half[0], -half[1], -2 * half[2]]), np.array([half[0], half[1], -cover_m]))
    first = int(model.body("hand").geomadr[0])
    (body, fingers) = (
        Box(model.geom_pos[k] - model.geom_size[k], model.geom_pos[k] + model.geom_size[k])
        for k in (first, first + 1)
    )
    in_hand = plate.moved(turn.T, -turn.T @ origin)
    # From the hand's underside to the plate's, beside it, or, where the plate lies ahead, to its edge.
    beside = abs(turn[2, 2]) == 1
    low = np.array([body.low[0], -0.5 * GRIP, body.high[2]])
    high = np.array([body.high[0], 0.5 * GRIP, in_hand.low[2]])
    if beside:
        high[0], high[2] = in_hand.low[0], in_hand.high[2]
    notches = []
    for side in (-1, 1):
        ends = sorted((side * 0.5 * GRIP, side * (0.5 * GRIP + FINGER)))
        room = Box(
            np.array([fingers.low[0] - PLAY, ends[0], body.high[2]]),
            np.array([fingers.high[0] + PLAY, ends[1], fingers.high[2] + PLAY]),
        )
        notches.append(room.moved(turn, origin))
    return Parts(plate, Box(low, high).moved(turn, origin), (notches[0], notches[1]))


def surface(solid: Sequence[Box], removed: Sequence[Box] = ()) -> np.ndarray:
    """Triangles [T, 3, 3] around a union of boxes without others, seen counterclockwise from outside.

    Space is cut by the planes of all faces; between a cell that is filled and one that is not there are two
    triangles.
    """
    every = (*solid, *removed)
    planes = [
        np.unique(np.round([v for box in every for v in (box.low[k], box.high[k])], 9)) for k in range(3)
    ]
    middles = np.stack(np.meshgrid(*[0.5 * (p[1:] + p[:-1]) for p in planes], indexing="ij"), -1)
    inside = lambda box: ((middles > box.low) & (middles < box.high)).all(axis=-1)  # noqa: E731
    filled = np.any([inside(box) for box in solid], axis=0)
    for box in removed:
        filled &= ~inside(box)
    padded = np.pad(filled, 1)
    triangles = []
    for axis in range(3):
        others = [(axis + 1) % 3, (axis + 2) % 3]
        for sign in (-1, 1):
            free = ~np.roll(padded, -sign, axis)[1:-1, 1:-1, 1:-1]
            for cell in np.argwhere(filled & free):
                u, v = (planes[k][cell[k] : cell[k] + 2] for k in others)
                corners = np.empty((4, 3))
                corners[:, axis] = planes[axis][cell[axis] + (sign > 0)]
                corners[:, others] = [(u[0], v[0]), (u[1], v[0]), (u[1], v[1]), (u[0], v[1])]
                corners = corners if sign > 0 else corners[::-1]
                triangles += [corners[[0, 1, 2]], corners[[0, 2, 3]]]
    return np.array(triangles)


def volume(triangles: np.ndarray) -> float:
    """Of the solid inside a closed surface [m3]: the divergence theorem, a tetrahedron a triangle."""
    a, b, c = triangles.transpose(1, 0, 2)
    return float(np.einsum("ti,ti->", a, np.cross(b, c)) / 6)


def write_stl(path: Path, triangles: np.ndarray) -> None:
    """A binary STL file in millimetres, as slicers expect."""
    record = np.zeros(len(triangles), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("unused", "<u2")])
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    record["normal"] = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    record["corners"] = 1e3 * triangles
    header = b"plate and grip of dris, in millimetres".ljust(80)
    path.write_bytes(header + np.uint32(len(triangles)).astype("<u4").tobytes() + record.tobytes())
