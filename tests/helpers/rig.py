"""A plate on rails: steps spheres against a plate whose motion is prescribed, without an arm."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from dris.core.process import start_warp
from dris.sim.spheres import step_spheres

GRAVITY = 9.81
HALF_SIZE = (0.12, 0.12, 0.005)


@dataclass
class Spheres:
    """N spheres; vectors [N, 3], scalars [N]."""

    pos: np.ndarray
    vel: np.ndarray
    spin: np.ndarray
    radius: np.ndarray
    static_friction: np.ndarray
    dynamic_friction: np.ndarray
    restitution: np.ndarray
    mode: np.ndarray
    impacts: np.ndarray


def spheres(
    n: int, *, pos, vel, spin=0.0, radius=0.03, friction=0.0, static=None, restitution=0.5
) -> Spheres:
    """Broadcast properties to n spheres."""

    def vector(value):
        return np.broadcast_to(np.asarray(value, np.float64), (n, 3)).astype(np.float32).copy()

    def scalar(value):
        return np.broadcast_to(np.asarray(value, np.float64), (n,)).astype(np.float32).copy()

    return Spheres(
        vector(pos), vector(vel), vector(spin), scalar(radius),
        scalar(friction if static is None else static), scalar(friction), scalar(restitution),
        np.zeros(n, np.int32), np.zeros(n, np.int32),
    )  # fmt: skip


Motion = Callable[[float], tuple]


def still(tilt: float = 0.0, azimuth: float = 0.0) -> Motion:
    """A plate at the origin, tilted about the horizontal axis at `azimuth` [rad]."""
    return moving((0, 0, 0), tilt, azimuth)


def moving(velocity, tilt: float = 0.0, azimuth: float = 0.0) -> Motion:
    """A plate that passes the origin at t = 0 with constant velocity."""
    quat = Rotation.from_rotvec(tilt * np.array([np.cos(azimuth), np.sin(azimuth), 0])).as_quat()
    velocity = np.asarray(velocity, np.float64)
    return lambda t: (velocity * t, quat, velocity, np.zeros(3))


def run(
    balls: Spheres,
    motion: Motion,
    duration: float,
    *,
    h: float = 0.005,
    bounce_speed: float = 0.01,
    start: float = 0.0,
) -> Spheres:
    """Step the spheres (in place) for `duration` seconds under the plate's motion."""
    start_warp()
    steps = round(duration / h)
    samples = [motion(start + k * h) for k in range(steps + 1)]
    columns = [np.array([s[i] for s in samples], np.float32)[None] for i in range(4)]
    columns.append(Rotation.from_quat(columns[1][0]).as_matrix().astype(np.float32)[None])
    kinds = (wp.vec3, wp.quat, wp.vec3, wp.vec3, wp.mat33)

    travel = float(np.linalg.norm(columns[0][0] - columns[0][0, 0], axis=1).max()) + 0.1

    def row(array, dtype):
        return wp.array(array[None], dtype=dtype, device="cpu")

    scalars = (balls.radius, balls.static_friction, balls.dynamic_friction, balls.restitution)
    vectors = (balls.pos, balls.vel, balls.spin)
    counts = (balls.mode, balls.impacts)
    arrays = (
        [row(a, wp.float32) for a in scalars]
        + [row(a, wp.vec3) for a in vectors]
        + [row(a, wp.int32) for a in counts]
    )
    wp.launch(
        step_spheres,
        dim=(1, len(balls.radius)),
        inputs=[
            wp.vec3(*HALF_SIZE), wp.vec3(0, 0, -GRAVITY), bounce_speed, h, steps, 0,
            *[wp.array(c, dtype=k, device="cpu") for c, k in zip(columns, kinds, strict=True)],
            wp.array([travel], dtype=wp.float32, device="cpu"),
            *arrays,
        ],
        device="cpu",
    )  # fmt: skip
    for target, array in zip((*vectors, *counts), arrays[4:], strict=True):
        target[:] = array.numpy()[0]
    return balls


def normal(tilt: float, azimuth: float) -> np.ndarray:
    """Unit normal of a plate tilted by `tilt` about the horizontal axis at `azimuth`."""
    return Rotation.from_rotvec(tilt * np.array([np.cos(azimuth), np.sin(azimuth), 0])).apply([0, 0, 1.0])


def in_plate(points: np.ndarray, tilt: float, azimuth: float) -> np.ndarray:
    """Points [N, 3] in the axes of a still plate."""
    axis = np.array([np.cos(azimuth), np.sin(azimuth), 0])
    return Rotation.from_rotvec(tilt * axis).inv().apply(points)


def energy(balls: Spheres) -> np.ndarray:
    """Energy per unit mass [N]: height, motion and spin of solid spheres."""
    spin = 0.5 * 0.4 * (balls.radius**2) * (balls.spin.astype(np.float64) ** 2).sum(1)
    return GRAVITY * balls.pos[:, 2] + 0.5 * (balls.vel.astype(np.float64) ** 2).sum(1) + spin
