"""A room without cameras, for `--rig.cameras rooms.py:empty`: gets rig and clock, and gives frames."""

import time
from functools import cache

import cv2
import numpy as np

from dris.perception.plate_view import corners_in_base
from dris.perception.sources import Frame


@cache
def pictures(rig, low=80, high=101):
    """By camera; grey, each a little other: a camera's noise."""
    shapes = [(rig[camera].height, rig[camera].width, 3) for camera in (0, 1)]
    return [
        [np.random.default_rng((k, camera)).integers(low, high, shape, np.uint8) for k in range(24)]
        for camera, shape in enumerate(shapes)
    ]


@cache
def with_plate(rig, plate, low=80, high=101):
    """The same with the plate, lighter than the room, where a rig sees it."""
    shown = [[picture.copy() for picture in one] for one in pictures(rig, low, high)]
    for camera, one in zip(rig.cameras, shown, strict=True):
        corners = np.rint(camera.project(corners_in_base(plate, plate.time_s))).astype(np.int32)
        for picture in one:
            lighter = np.zeros(picture.shape, np.uint8)
            cv2.fillConvexPoly(lighter, corners, (90, 90, 90))
            picture += lighter
    return shown


def empty(rig, clock):
    """Both cameras look at nothing; frames come 5 ms after their stamps."""
    shown, k = pictures(rig), 0
    while True:
        time.sleep(0.0125)
        for camera in (0, 1):
            # Turned both ways, or the same pictures would come again: after 26 s, if by columns alone.
            yield Frame(clock() - 0.005, camera, np.roll(shown[camera][k % 24], (k // 24, k), axis=(0, 1)))
        k += 1
