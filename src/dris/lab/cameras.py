"""The two cameras: where they stand, and which pixel shows a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CameraConfig:
    """A pinhole camera that looks at a point with its image's vertical upright."""

    name: str
    position: tuple[float, float, float]
    """Base frame [m]."""
    target: tuple[float, float, float]
    """Point on the optical axis, base frame [m]."""
    width: int = 640
    height: int = 480
    """[pixels]"""
    focal: float = 520.0
    """Focal length [pixels]; pixels are square and the axis meets the image's middle."""

    def __post_init__(self) -> None:
        """Refuse cameras that see nothing."""
        for name in ("width", "height", "focal"):
            if not getattr(self, name) > 0:
                raise ValueError(f"camera {self.name}: {name} must be positive, got {getattr(self, name)}")
        if np.linalg.norm(np.subtract(self.target, self.position)[:2]) < 1e-6:
            raise ValueError(f"camera {self.name} must not look straight up or down: move its target")

    def axes(self) -> np.ndarray:
        """Rotation [3, 3] from the camera (x right, y up, z backwards) to the base frame."""
        back = np.subtract(self.position, self.target)
        back = back / np.linalg.norm(back)
        right = np.cross((0.0, 0.0, 1.0), back)
        right = right / np.linalg.norm(right)
        return np.stack((right, np.cross(back, right), back), axis=1)

    def project(self, points: np.ndarray) -> np.ndarray:
        """Pixels [K, 2] (column, row; the image's middle is (width - 1) / 2, ...) of points [K, 3].

        Points behind the camera give NaN.
        """
        seen = (np.atleast_2d(points) - self.position) @ self.axes()
        depth = np.where(seen[:, 2] < 0, -seen[:, 2], np.nan)
        column = 0.5 * (self.width - 1) + self.focal * seen[:, 0] / depth
        row = 0.5 * (self.height - 1) - self.focal * seen[:, 1] / depth
        return np.stack((column, row), axis=1)


# Left and right of where the ball comes from, 4 m apart and 3.3 m from the plate: rays cross at a right
# angle, and the view holds the plate's workspace, the ramps, and the last 0.25 s and more of every throw.
# They look down on the plate by 30 degrees, so that a plate tilted as far does not hide what lies on it
# [assumed: the paper has none].
_LOOK_AT = (0.5, 0.0, 1.3)
CAMERAS = (
    CameraConfig("left", (2.5, 2.0, 2.2), _LOOK_AT),
    CameraConfig("right", (2.5, -2.0, 2.2), _LOOK_AT),
)
