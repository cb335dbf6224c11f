"""One camera and a rig of two: where a point of the base frame falls in an image, and back to a ray.

The camera frame is OpenCV's: x to the right, y down, z ahead. A pixel's centre has integer coordinates.
Lenses follow the Brown model with (k1, k2, p1, p2, k3), in OpenCV's order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CameraModel:
    """Intrinsics, lens distortion and pose of one camera."""

    name: str
    width: int
    height: int
    focal_px: tuple[float, float]
    """Focal lengths along x and y."""
    centre_px: tuple[float, float]
    """Where the optical axis meets the image."""
    camera_to_base: Array
    """Rigid transform [4, 4]: base = camera_to_base @ camera."""
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)
    reprojection_px: float = 0.0
    """RMS error of the calibration that this came from; 0 for a synthetic camera."""
    serial: str = ""
    """What the device calls itself (`dris.perception.devices`); empty if nobody wrote it down."""
    base_to_camera: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Keep own, read-only copies, and the inverse of the pose."""
        pose = np.array(self.camera_to_base, dtype=np.float64)
        if pose.shape != (4, 4):
            raise ValueError(f"camera_to_base of '{self.name}' has shape {pose.shape}, expected (4, 4)")
        inverse = np.eye(4)
        inverse[:3, :3] = pose[:3, :3].T
        inverse[:3, 3] = -pose[:3, :3].T @ pose[:3, 3]
        for value in (pose, inverse):
            value.setflags(write=False)
        object.__setattr__(self, "camera_to_base", pose)
        object.__setattr__(self, "base_to_camera", inverse)

    @property
    def position_in_base(self) -> Array:
        """The optical centre [3]."""
        return self.camera_to_base[:3, 3]

    @property
    def matrix(self) -> Array:
        """The intrinsic matrix [3, 3]."""
        (fx, fy), (cx, cy) = self.focal_px, self.centre_px
        return np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])

    @property
    def mean_focal_px(self) -> float:
        """Pixels per unit of normalised image coordinates, averaged over x and y."""
        return 0.5 * (self.focal_px[0] + self.focal_px[1])

    def to_camera(self, points_in_base: ArrayLike) -> Array:
        """Points [..., 3] in the camera frame."""
        points = np.asarray(points_in_base, dtype=np.float64)
        return points @ self.base_to_camera[:3, :3].T + self.base_to_camera[:3, 3]

    def project(self, points_in_base: ArrayLike) -> Array:
        """Pixels [..., 2] of points [..., 3]; NaN for a point that is not in front of the camera."""
        points = self.to_camera(points_in_base)
        depth = np.where(points[..., 2:] > 0, points[..., 2:], np.nan)
        return self.to_pixels(points[..., :2] / depth)

    def pixel_of(self, point_in_base: Array) -> tuple[float, float] | None:
        """`project` of one point [3] in plain numbers: for every frame; None if it is not in front."""
        x, y, z = (self.base_to_camera[:3, :3] @ point_in_base + self.base_to_camera[:3, 3]).tolist()
        if not z > 0:
            return None
        bent_x, bent_y = self._bent(x / z, y / z)
        return bent_x * self.focal_px[0] + self.centre_px[0], bent_y * self.focal_px[1] + self.centre_px[1]

    def to_pixels(self, normalised: ArrayLike) -> Array:
        """Pixels [..., 2] of normalised coordinates (x/z, y/z) [..., 2]."""
        return self._distort(np.asarray(normalised, dtype=np.float64)) * self.focal_px + self.centre_px

    def to_normalised(self, pixels: ArrayLike) -> Array:
        """Undistorted normalised coordinates [..., 2] of pixels [..., 2]: the inverse of `to_pixels`."""
        bent = (np.asarray(pixels, dtype=np.float64) - self.centre_px) / self.focal_px
        straight = bent.copy()
        if not any(self.distortion):
            return straight
        # Fixed point of straight = bent - (distort(straight) - straight). It converges because a lens
        # that `calibration.check_camera` accepts bends by less than the distance to the centre.
        for _ in range(30):
            step = bent - self._distort(straight)
            straight += step
            if float(np.nanmax(np.abs(step), initial=0.0)) < 1e-10:
                break
        return straight

    def ray_through(self, pixel: tuple[float, float]) -> tuple[float, float]:
        """`to_normalised` of one pixel in plain numbers: for every sight, in a tenth of the time."""
        (cx, cy), (fx, fy) = self.centre_px, self.focal_px
        x, y = bent_x, bent_y = (pixel[0] - cx) / fx, (pixel[1] - cy) / fy
        for _ in range(30 if any(self.distortion) else 0):
            now_x, now_y = self._bent(x, y)
            step_x, step_y = bent_x - now_x, bent_y - now_y
            x, y = x + step_x, y + step_y
            if max(abs(step_x), abs(step_y)) < 1e-10:
                break
        return x, y

    def _distort(self, normalised: Array) -> Array:
        return np.stack(self._bent(normalised[..., 0], normalised[..., 1]), axis=-1)

    def _bent(self, x: Any, y: Any) -> tuple[Any, Any]:
        k1, k2, p1, p2, k3 = self.distortion
        r2 = x * x + y * y
        radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
        # Brown's tangential part: 2 p1 x y + p2 (r^2 + 2 x^2), and p1 (r^2 + 2 y^2) + 2 p2 x y
        bent_x = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
        bent_y = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
        return bent_x, bent_y

    def sees(self, points_in_base: ArrayLike) -> NDArray[np.bool_]:
        """Which points [..., 3] fall into the image."""
        pixels = self.project(points_in_base)
        inside = (pixels > -0.5) & (pixels < np.array([self.width, self.height]) - 0.5)
        return np.asarray(inside.all(axis=-1))


@dataclass(frozen=True)
class Rig:
    """The two cameras; index 0 and 1 wherever a camera is meant by number."""

    cameras: tuple[CameraModel, CameraModel]
    calibrated: datetime | None = None
    """When, with its time zone; None if nobody wrote it down."""

    def __post_init__(self) -> None:
        """Refuse anything but two cameras, and dates that are not the same everywhere."""
        if len(self.cameras) != 2:
            raise ValueError(f"a rig has 2 cameras, got {len(self.cameras)}")
        if self.calibrated is not None and self.calibrated.tzinfo is None:
            raise ValueError(f"calibrated is {self.calibrated}: give it a time zone, datetime.now(UTC)")

    def __getitem__(self, index: int) -> CameraModel:
        return self.cameras[index]

    @property
    def baseline_m(self) -> float:
        """Distance between the optical centres."""
        return float(np.linalg.norm(self[0].position_in_base - self[1].position_in_base))


def look_at(camera_in_base: ArrayLike, target_in_base: ArrayLike) -> Array:
    """camera_to_base [4, 4] of a camera that looks at a target, its image upright."""
    eye = np.asarray(camera_in_base, dtype=np.float64)
    ahead = np.asarray(target_in_base, dtype=np.float64) - eye
    right = np.cross(ahead, (0.0, 0.0, 1.0))
    if np.linalg.norm(right) < 1e-9 * max(float(np.linalg.norm(ahead)), 1e-9):
        raise ValueError("a camera that looks straight up or down has no upright image: move the target")
    ahead, right = ahead / np.linalg.norm(ahead), right / np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, :3] = np.stack((right, np.cross(ahead, right), ahead), axis=1)
    pose[:3, 3] = eye
    return pose


def laboratory_rig(**changes: Any) -> Rig:
    """Two 640 x 480 cameras ahead of the robot, 2 m from the plate and 2.4 m apart: for tests and studies.

    Args:
        changes: Fields of both `CameraModel`s to set otherwise.
    """
    lens = (-0.12, 0.06, 0.0004, -0.0003, 0.0)
    values: dict[str, Any] = {"width": 640, "height": 480, "focal_px": (600.0, 600.0), "distortion": lens}
    values |= {"centre_px": (322.0, 238.0), **changes}
    target = (0.69, 0.0, 0.85)  # above the plate's home, where the last tenths of a second of flight are
    left = CameraModel(name="left", camera_to_base=look_at((2.2, 1.2, 1.35), target), **values)
    right = CameraModel(name="right", camera_to_base=look_at((2.2, -1.2, 1.35), target), **values)
    return Rig((left, right))
