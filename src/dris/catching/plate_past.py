"""Where the plate was, is and will be, from measured joints: poses and velocities at any time of late."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Quaternion = tuple[float, float, float, float]
KEPT_S = 0.3
"""So long a past is kept, and so far the plate is carried on [s]."""
SAMPLE = {"pos": 3, "quat": 4, "vel": 3, "omega": 3, "axes": 9}
"""The plate at one time, a row of 22 numbers: where its centre is, how it is turned, how both change, and its
axes, the columns of a matrix that is told row by row."""


_FIRST, _SECOND = np.array([(0, 1, 2, 3, 0, 0, 1, 3, 3, 3), (0, 1, 2, 3, 1, 2, 2, 0, 1, 2)])
_ROTATION = np.array(
    [
        (1, 0, 0, 0, -1, 0, 0, 0, -1),  # xx
        (-1, 0, 0, 0, 1, 0, 0, 0, -1),  # yy
        (-1, 0, 0, 0, -1, 0, 0, 0, 1),  # zz
        (1, 0, 0, 0, 1, 0, 0, 0, 1),  # ww
        (0, 2, 0, 2, 0, 0, 0, 0, 0),  # xy
        (0, 0, 2, 0, 0, 0, 2, 0, 0),  # xz
        (0, 0, 0, 0, 0, 2, 0, 2, 0),  # yz
        (0, 0, 0, 0, 0, -2, 0, 2, 0),  # wx
        (0, 0, 2, 0, 0, 0, -2, 0, 0),  # wy
        (0, -2, 0, 2, 0, 0, 0, 0, 0),  # wz
    ],
    dtype=float,
)
"""Products of a unit quaternion's parts (x, y, z, w) in the entries of its rotation, row by row."""


_ONE = np.eye(3)


class PlatePast:
    """Where the plate was, as its joints say, and where it will be if it goes on as it does."""

    def __init__(self) -> None:
        self._rows = np.zeros((0, 14))  # time, position, quaternion, velocity, angular velocity

    def add(self, time_s: float, position: np.ndarray, rotation: np.ndarray) -> None:
        """Take in a measured pose; one that is not later than the last is left out.

        One that is older than all that is kept comes from a clock that began again: then all is forgotten.

        Raises:
            ValueError: A shape is another, a number is not finite, or that is no rotation.
        """
        if (found := (np.shape(position), np.shape(rotation))) != ((3,), (3, 3)):
            raise ValueError(f"a plate has a place (3,) and a rotation (3, 3), got {found[0]} and {found[1]}")
        if not math.isfinite(time_s + position.sum() + rotation.sum()):
            raise ValueError(f"the plate is at {position} at {time_s} s: joints must be finite")
        right = np.abs(rotation @ rotation.T - _ONE).max() < 1e-3
        if not (right and np.linalg.det(rotation) > 0):
            raise ValueError(
                f"the plate is turned by {rotation.tolist()} at {time_s} s, which is no rotation"
            )
        row = np.array((time_s, *position.tolist(), *quaternion_of(rotation), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        rows = self._rows[:-1]  # without what lies ahead
        if len(rows) and time_s < rows[-1, 0] - KEPT_S:
            rows = rows[:0]
        if len(rows):
            last = rows[-1]
            if time_s <= last[0]:
                return
            if row[4:8] @ last[4:8] < 0:
                row[4:8] *= -1.0
            # A difference is the velocity of its middle; the plate is taken to speed up evenly.
            rate = _rate(last, row)
            row[8:] = rate
            if len(rows) > 1:
                share = (last[0] - rows[-2, 0]) / (time_s - rows[-2, 0])
                last[8:] = share * rate + (1 - share) * _rate(rows[-2], last)
        ahead = row.copy()
        ahead[0] += KEPT_S
        ahead[1:4] += KEPT_S * row[8:11]
        ahead[4:8] += 0.5 * KEPT_S * np.array(_product((*row[11:].tolist(), 0.0), row[4:8].tolist()))
        self._rows = np.concatenate((rows[rows[:, 0] > time_s - KEPT_S - 0.1], (row, ahead)))

    def between(self, start_s: float, end_s: float, count: int) -> np.ndarray:
        """Poses and velocities at `count` times, evenly from start to end: [count, 22], see `SAMPLE`.

        Raises:
            ValueError: Nothing has been measured yet.
        """
        rows = self._rows
        if not len(rows):
            raise ValueError("the plate has not been measured yet: call track_plate before a ball is seen")
        times = start_s + np.arange(count) * ((end_s - start_s) / max(count - 1, 1))
        index = rows[1:-1, 0].searchsorted(times)  # without the ends: there is always a row before and after
        before = rows.take(index, axis=0)
        change = rows.take(index + 1, axis=0) - before
        share = (times - before[:, 0]) / change[:, 0]
        if start_s < rows[0, 0] or end_s > rows[-1, 0]:
            share = share.clip(0.0, 1.0)
        change *= share[:, None]
        before += change
        quat = before[:, 4:8]
        quat /= np.sqrt(np.vecdot(quat, quat))[:, None]
        return np.concatenate((before[:, 1:], _matrices(quat)), axis=1)


def _rate(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Velocity and angular velocity [6] between two poses (time, position, quaternion) a moment apart."""
    x, y, z, w = before[4:8].tolist()
    rx, ry, rz, _ = _product(after[4:8].tolist(), (-x, -y, -z, w))
    rate = np.array((0.0, 0.0, 0.0, 2.0 * rx, 2.0 * ry, 2.0 * rz))
    rate[:3] = after[1:4] - before[1:4]
    return rate / (after[0] - before[0])


def _product(a: Sequence[float], b: Sequence[float]) -> Quaternion:
    """`dris.catching.frames.quat_multiply` of two, as plain numbers: in a twentieth of the time."""
    (ax, ay, az, aw), (bx, by, bz, bw) = a, b
    return (
        aw * bx + bw * ax + (ay * bz - az * by),
        aw * by + bw * ay + (az * bx - ax * bz),
        aw * bz + bw * az + (ax * by - ay * bx),
        aw * bw - (ax * bx + ay * by + az * bz),
    )


def quaternion_of(rotation: np.ndarray) -> Quaternion:
    """(x, y, z, w) of a rotation [3, 3], computed as SciPy does, in a tenth of its time."""
    m = rotation.tolist()
    diagonal = (m[0][0], m[1][1], m[2][2])
    trace = m[0][0] + m[1][1] + m[2][2]
    i = max(range(3), key=diagonal.__getitem__)
    if trace >= diagonal[i]:
        parts = [m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1], 1.0 + trace]
    else:  # by the largest part: nothing cancels
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = [0.0] * 4
        parts[i] = 1.0 - trace + 2.0 * m[i][i]
        parts[j], parts[k] = m[j][i] + m[i][j], m[k][i] + m[i][k]
        parts[3] = m[k][j] - m[j][k]
    x, y, z, w = parts
    size = math.sqrt(x * x + y * y + z * z + w * w)
    return x / size, y / size, z / size, w / size


def _matrices(quat: np.ndarray) -> np.ndarray:
    """Rotations [n, 9] of unit quaternions [n, 4]; SciPy's takes several times as long for so few."""
    return (quat.take(_FIRST, axis=1) * quat.take(_SECOND, axis=1)) @ _ROTATION
