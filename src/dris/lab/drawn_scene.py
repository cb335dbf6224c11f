"""A small synthetic scene: a shaded ball before a cluttered background, and a calibration board.

The ball is drawn by intersecting every pixel's own ray, lens included, with the sphere: it shares no formula
with the detector or with the correction of a sphere's outline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import cv2
import numpy as np
from numpy.typing import ArrayLike

from dris.perception.camera import Array, CameraModel
from dris.perception.detect import Image

_LIGHT_IN_BASE = np.array([0.3, 0.2, 0.93])
_SUPERSAMPLING = 3


@dataclass(frozen=True, eq=False)
class Scene:
    """What one camera sees: a still background, and a ball wherever it is asked to be drawn."""

    camera: CameraModel
    background: Image
    colour_bgr: tuple[float, float, float] = (20.0, 110.0, 245.0)
    ambient: float = 0.45
    """Light that reaches the ball's dark side, of 1."""

    @cached_property
    def _rays(self) -> Array:
        """Normalised coordinates of every pixel [height, width, 2]."""
        x, y = np.meshgrid(np.arange(self.camera.width), np.arange(self.camera.height))
        return self.camera.to_normalised(np.stack((x, y), axis=-1))

    def draw(self, ball_in_base: ArrayLike, radius_m: float) -> Image:
        """The image with the ball at a place; the background alone if it is out of sight."""
        camera, image = self.camera, self.background.copy()
        centre = camera.to_camera(ball_in_base)
        if not centre[2] > radius_m:
            return image
        middle = camera.to_pixels(centre[:2] / centre[2])
        half = int(np.ceil(1.4 * camera.mean_focal_px * radius_m / (centre[2] - radius_m))) + 3
        left, top = (max(int(value) - half, 0) for value in middle)
        right = min(int(middle[0]) + half + 2, camera.width)
        bottom = min(int(middle[1]) + half + 2, camera.height)
        if right <= left or bottom <= top:
            return image
        patch = image[top:bottom, left:right].astype(np.float64)
        rays = self._rays[top:bottom, left:right]
        total, covered = np.zeros_like(patch), np.zeros(patch.shape[:2])
        steps = (np.arange(_SUPERSAMPLING) + 0.5) / _SUPERSAMPLING - 0.5
        for dy in steps:
            for dx in steps:
                light, hit = self._shade(rays + np.array([dx, dy]) / camera.focal_px, centre, radius_m)
                total += light
                covered += hit
        share = (covered / _SUPERSAMPLING**2)[..., None]
        mixed = patch * (1 - share) + total / _SUPERSAMPLING**2
        image[top:bottom, left:right] = np.rint(np.clip(mixed, 0, 255)).astype(np.uint8)
        return image

    def _shade(self, rays: Array, centre: Array, radius_m: float) -> tuple[Array, Array]:
        """Colour [..., 3] and 1 where rays (x, y, 1) hit the sphere, 0 elsewhere."""
        direction = np.concatenate((rays, np.ones_like(rays[..., :1])), axis=-1)
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        # |s d - c|^2 = r^2: s = d.c - sqrt((d.c)^2 - |c|^2 + r^2)
        along = direction @ centre
        root = along**2 - centre @ centre + radius_m**2
        hit = root > 0
        normal = (direction * (along - np.sqrt(np.where(hit, root, 0.0)))[..., None] - centre) / radius_m
        lamp = self.camera.base_to_camera[:3, :3] @ _LIGHT_IN_BASE
        lambert = np.clip(normal @ lamp, 0.0, None)
        half_way = lamp - direction
        half_way /= np.linalg.norm(half_way, axis=-1, keepdims=True)
        gloss = 60.0 * np.clip((normal * half_way).sum(axis=-1), 0.0, None) ** 30
        level = self.ambient + (1 - self.ambient) * lambert
        light = np.array(self.colour_bgr) * level[..., None] + gloss[..., None]
        return light * hit[..., None], hit.astype(np.float64)


def clutter(camera: CameraModel, generator: np.random.Generator, pieces: int = 40) -> Image:
    """A background of grey gradients and coloured boxes, lines and discs, none of them orange."""
    width, height = camera.width, camera.height
    ramp = np.linspace(60, 130, width)[None, :, None] + np.linspace(-25, 25, height)[:, None, None]
    image = np.repeat(np.clip(ramp, 0, 255), 3, axis=2).astype(np.uint8)
    for _ in range(pieces):
        hue = int(generator.integers(25, 175))  # OpenCV's half degrees: yellow-green to purple-red
        value = [hue, int(generator.integers(20, 230)), int(generator.integers(30, 220))]
        bgr = cv2.cvtColor(np.array([[value]], np.uint8), cv2.COLOR_HSV2BGR)[0, 0]
        colour = tuple(int(v) for v in bgr)
        x, y = int(generator.integers(0, width)), int(generator.integers(0, height))
        w, h = (int(v) for v in generator.integers(8, 110, 2))
        kind = int(generator.integers(0, 3))
        if kind == 0:
            cv2.rectangle(image, (x, y), (x + w, y + h), colour, -1)
        elif kind == 1:
            cv2.line(image, (x, y), (x + 2 * w - 100, y + 2 * h - 100), colour, 2, cv2.LINE_AA)
        else:
            cv2.circle(image, (x, y), w // 3 + 3, colour, -1, cv2.LINE_AA)
    return cv2.GaussianBlur(image, (5, 5), 1.0)  # type: ignore[return-value]


def draw_plate(image: Image, camera: CameraModel, corners_in_base: ArrayLike) -> Image:
    """A copy of an image with a grey quadrilateral, its corners [4, 3] in order."""
    drawn = image.copy()
    pixels = np.rint(camera.project(corners_in_base)).astype(np.int32)
    cv2.fillConvexPoly(drawn, pixels, (70, 72, 75), cv2.LINE_AA)
    return drawn


def draw_board(camera: CameraModel, picture: Image, pixel_m: float, board_to_base: Array) -> Image:
    """A flat picture in front of a camera, seen through its lens.

    Args:
        camera: The camera.
        picture: Grey image of the board; its first pixel's outer corner is the board's origin, x to the
            right, y down.
        pixel_m: Side of one of the picture's pixels on the board.
        board_to_base: Pose of the board [4, 4].
    """
    rays = _dense_rays(camera)
    board_to_camera = camera.base_to_camera @ board_to_base
    # Board (u, v, 0) projects to H (u, v, 1) with H = [r1 r2 t]; its inverse takes rays to the board.
    back = np.linalg.inv(board_to_camera[:, [0, 1, 3]][:3])
    place = rays @ back[:, :2].T + back[:, 2]
    ahead = place[..., 2] > 0
    scale = np.where(ahead, place[..., 2], np.nan)[..., None]
    pixels = (place[..., :2] / scale / pixel_m - 0.5).astype(np.float32)
    pixels = np.nan_to_num(pixels, nan=-1e6)
    large = cv2.remap(picture, pixels[..., 0], pixels[..., 1], cv2.INTER_AREA, borderValue=(150.0,))
    grey = cv2.resize(large, (camera.width, camera.height), interpolation=cv2.INTER_AREA)
    return cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR)  # type: ignore[return-value]


@lru_cache(maxsize=2)
def _dense_rays(camera: CameraModel) -> Array:
    """Two rays per pixel and axis, to be averaged afterwards [2 height, 2 width, 2]."""
    x = np.arange(2 * camera.width) / 2 - 0.25
    y = np.arange(2 * camera.height) / 2 - 0.25
    return camera.to_normalised(np.stack(np.meshgrid(x, y), axis=-1))
