"""A room without cameras, for `--rig.cameras rooms.py:empty`: gets rig and clock, and gives frames."""

import time
from functools import cache

import numpy as np

from dris.perception.sources import Frame


@cache
def pictures(rig, low=80, high=101):
    """By camera; grey, each a little other: a camera's noise."""
    shapes = [(rig[camera].height, rig[camera].width, 3) for camera in (0, 1)]
    return [
        [np.random.default_rng((k, camera)).integers(low, high, shape, np.uint8) for k in range(24)]
        for camera, shape in enumerate(shapes)
    ]


def empty(rig, clock):
    """Both cameras look at nothing; frames come 5 ms after their stamps."""
    shown, k = pictures(rig), 0
    while True:
        time.sleep(0.0125)
        for camera in (0, 1):
            yield Frame(clock() - 0.005, camera, shown[camera][k % 24])
        k += 1
