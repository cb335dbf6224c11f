"""Where a camera sees the robot's plate, against where its calibration says it should: a check of the rig.

The robot knows its plate from its joints. The plate's four edges are looked for around where they should be,
by brightness that changes across them, whatever the colours are. A camera that was moved, exchanged or
calibrated wrongly sees them elsewhere; nothing else tells when both cameras are wrong alike.
"""

from __future__ import annotations

import cv2
import numpy as np

from dris.perception.camera import Array, CameraModel
from dris.perception.detect import Image
from dris.perception.plate import Plate

REACH_PX = 32
"""How far around its place the plate is looked for. 2 degrees are 18 px at f = 520 px."""
STEP_PX = 2
"""In steps of so much."""
STEEPEST = 60.0
"""Changes of brightness count no further [of 255 per pixel]: a bright edge elsewhere is not four edges."""
DISTINCT = 1.25
"""The best place must explain so many times more than the best one elsewhere, and"""
FAINTEST = 4.0
"""the edges must be so steep on average."""


def corners_in_base(plate: Plate, time_s: float) -> Array | None:
    """The plate's corners [4, 3] at a time, in order; None if nobody said how it is turned."""
    if plate.edge_in_base is None:
        return None
    along = plate.half_length_m * plate.edge_in_base
    across = np.cross(plate.normal_in_base, along)
    centre = plate.centre_in_base + plate.velocity_in_base * (time_s - plate.time_s)
    return centre + np.array([along + across, along - across, -along - across, across - along])


def plate_shift(image: Image, camera: CameraModel, plate: Plate, time_s: float) -> float | None:
    """How far [px] a camera sees the plate from where it should; None if it cannot be made out.

    Args:
        image: Of the whole view, BGR.
        camera: As calibrated.
        plate: As the robot's joints say.
        time_s: Of the image.
    """
    corners = corners_in_base(plate, time_s)
    pixels = None if corners is None else camera.project(corners)
    if pixels is None or not np.isfinite(pixels).all():
        return None
    margin = REACH_PX + 3
    left, top = np.floor(pixels.min(axis=0)).astype(int) - margin
    right, bottom = np.ceil(pixels.max(axis=0)).astype(int) + margin
    if left < 0 or top < 0 or right >= camera.width or bottom >= camera.height:
        return None
    grey = cv2.GaussianBlur(cv2.cvtColor(image[top:bottom, left:right], cv2.COLOR_BGR2GRAY), (3, 3), 0)
    slope = np.stack(
        [cv2.Sobel(grey, cv2.CV_32F, *order, ksize=3, scale=1 / 8) for order in ((1, 0), (0, 1))]
    )
    shifts = np.arange(-REACH_PX, REACH_PX + 1, STEP_PX)
    score = np.zeros((len(shifts), len(shifts)))  # rows: down, columns: to the right
    for start, end in zip(pixels, np.roll(pixels, -1, axis=0), strict=True):
        length = float(np.linalg.norm(end - start))
        if length < 4:  # seen edge-on
            return None
        (dx, dy), count = (end - start) / length, max(int(length), 4)
        steep = np.minimum(np.abs(slope[1] * dx - slope[0] * dy), STEEPEST)
        places = start + (np.arange(count)[:, None] + 0.5) / count * (end - start) - (left, top)
        along = np.zeros(score.shape)
        for x, y in np.rint(places).astype(int).tolist():  # one gather of them all takes a third longer
            along += steep[
                y - REACH_PX : y + REACH_PX + 1 : STEP_PX, x - REACH_PX : x + REACH_PX + 1 : STEP_PX
            ]
        score += along / count / 4
    row, column = np.unravel_index(score.argmax(), score.shape)
    elsewhere = np.hypot(shifts[:, None] - shifts[row], shifts[None] - shifts[column]) > 8
    if score.max() < max(FAINTEST, DISTINCT * score[elsewhere].max()):
        return None
    return float(np.hypot(shifts[row], shifts[column]))
