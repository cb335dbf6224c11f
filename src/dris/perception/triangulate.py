"""From pixels of two cameras to a point: rays, a linear solution, one Gauss-Newton step, covariance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dris.perception.camera import Array, CameraModel, Rig
from dris.perception.detect import Detection


@dataclass(frozen=True, eq=False)
class Bearing:
    """The ray on which one camera saw the ball's centre at one time, as two linear equations.

    With the camera's axes r1, r2, r3 and centre c in the base frame, a point P seen at normalised (x, y)
    satisfies (r1 - x r3) . (P - c) = 0 and (r2 - y r3) . (P - c) = 0, that is rows @ P = values. The error of
    an equation is the error in (x, y) times depth.
    """

    time_s: float
    camera: int
    rows: Array
    """[2, 3]"""
    values: Array
    """[2]"""
    axis: Array
    """The camera's viewing direction [3] and"""
    offset: float
    """its centre along it: depth = axis . P - offset."""
    focal_px: float
    """Pixels per unit of (x, y)."""
    size: float = 0.0
    """Radius of the ball's outline in units of (x, y): times depth, the ball's radius."""

    @cached_property
    def numbers(self) -> Array:
        """For whoever gathers sights, every frame: what is needed of this one in a row [50].

        Rows a, b and the axis; values s, t and the offset; time and focal length. Then what a and b tell of a
        point by a weight's three numbers, a a', b b' and a b' + b a', each row by row of 4: in the last
        column the row's own value, s or t, is in place of the second row.
        """
        (a, b), (s, t) = self.rows.tolist(), self.values.tolist()
        first, second = (*a, s), (*b, t)
        own = (*a, *b, *self.axis.tolist(), s, t, self.offset, self.time_s, self.focal_px)
        both = [p * v + q * u for p, q in zip(a, b, strict=True) for u, v in zip(first, second, strict=True)]
        return np.array(
            (*own, *(p * u for p in a for u in first), *(q * v for q in b for v in second), *both)
        )

    @cached_property
    def outline(self) -> Array:
        """Axis and offset times size, and time [5]: the ball's radius is linear in its place."""
        x, y, z = self.axis.tolist()
        size = self.size
        return np.array((size * x, size * y, size * z, size * self.offset, self.time_s))

    def depth(self, point_in_base: Array) -> float:
        """Distance of a point from the camera along its viewing direction."""
        return float(self.axis @ point_in_base) - self.offset

    def error_px(self, point_in_base: Array) -> Array:
        """From where a point would appear to where the ball was seen [2], undistorted; infinite behind it."""
        depth = self.depth(point_in_base)
        if not depth > 0:
            return np.full(2, np.inf)
        return -self.focal_px * (self.rows @ point_in_base - self.values) / depth


def sight_of(time_s: float, index: int, camera: CameraModel, detection: Detection) -> Bearing:
    """The ray of a detection. The pixel is undistorted, and moved from the outline's centre to the ball's.

    A sphere's outline is an ellipse around (X/Z, Y/Z) / (1 - (r/Z)^2), a little further from the optical axis
    than the sphere's centre. Its shorter half axis is s with s^2 = (r/Z)^2 / (1 - (r/Z)^2), so the sphere's
    centre is the outline's divided by 1 + s^2.
    """
    size = detection.radius_px / camera.mean_focal_px
    x, y = camera.ray_through(detection.centre_px)
    shrink = 1.0 + size * size
    return sight_through(time_s, index, camera, (x / shrink, y / shrink), size)


def sight_through(
    time_s: float, index: int, camera: CameraModel, normalised: tuple[float, float], size: float = 0.0
) -> Bearing:
    """The ray through undistorted normalised coordinates."""
    axes, ahead = camera.base_to_camera[:2, :3], camera.base_to_camera[2, :3]
    rows = axes - np.array(normalised)[:, None] * ahead
    centre = camera.position_in_base
    return Bearing(
        time_s, index, rows, rows @ centre, ahead, float(ahead @ centre), camera.mean_focal_px, size
    )


@dataclass(frozen=True, eq=False)
class TriangulatedPoint:
    """A triangulated ball: position [3], its covariance [3, 3], and the RMS reprojection error."""

    ball_in_base: Array
    covariance: Array
    reprojection_px: float


def triangulate(
    sights: tuple[Bearing, Bearing], sigma_px: float = 0.3, gate_px: float = 2.0
) -> TriangulatedPoint | None:
    """The point that two sights of one moment agree on, or None if they do not.

    Args:
        sights: One of each camera.
        sigma_px: Standard deviation of a detection, along x and y.
        gate_px: Largest RMS reprojection error. Four measurements for three unknowns: a wrong match
            shows only across the epipolar line.

    Raises:
        ValueError: Both sights are of the same camera, or sigma or gate is not positive.
    """
    if sights[0].camera == sights[1].camera:
        raise ValueError(f"both sights are of camera {sights[0].camera}: triangulation needs two cameras")
    if not sigma_px > 0 or not gate_px > 0:
        raise ValueError(f"sigma_px and gate_px must be positive, got {sigma_px}, {gate_px}")
    rows = np.concatenate([sight.rows for sight in sights])
    values = np.concatenate([sight.values for sight in sights])
    # Linear: every equation counts the same, that is, the farther camera counts more per pixel.
    point = np.linalg.lstsq(rows, values, rcond=None)[0]
    depths = [sight.depth(point) for sight in sights]
    if not min(depths) > 0:
        return None
    # Gauss-Newton on pixels: d(x, y)/dP = (r1 - x r3, r2 - y r3) / depth.
    jacobian = np.concatenate([s.focal_px * s.rows / d for s, d in zip(sights, depths, strict=True)])
    error = np.concatenate([sight.error_px(point) for sight in sights])
    information = jacobian.T @ jacobian
    if np.linalg.cond(information) > 1e8:  # rays in line: a point anywhere on them
        return None
    point = point + np.linalg.solve(information, jacobian.T @ error)
    error = np.concatenate([sight.error_px(point) for sight in sights])
    rms = float(np.sqrt(np.mean(error**2)))
    if not rms <= gate_px:
        return None
    return TriangulatedPoint(point, sigma_px**2 * np.linalg.inv(information), rms)


def triangulate_detections(
    rig: Rig, detections: tuple[Detection, Detection], sigma_px: float = 0.3, gate_px: float = 2.0
) -> TriangulatedPoint | None:
    """`triangulate` for one detection of each camera, made at the same moment."""
    first, second = (sight_of(0.0, k, rig[k], detections[k]) for k in (0, 1))
    return triangulate((first, second), sigma_px, gate_px)
