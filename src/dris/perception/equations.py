"""The equations that sights make for a motion's unknowns, gathered once and weighed as often as a fit needs.

A sight's rows a, b ask for the point P of its time: a . P = s, b . P = t. Weighed by an inverse covariance
((w0, w2), (w2, w1)) it tells of P the information w0 a a' + w1 b b' + w2 (a b' + b a'), linear in the weight.
The ball is at p + v tau + a tau^2 / 2, so the normal equations of (p, v) or (p, v, a) hold nothing but sums
of information times 1, tau, tau^2, ... over the sights: one product of two matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dris.perception.camera import Array
from dris.perception.triangulate import Bearing


@dataclass(frozen=True, eq=False)
class Anchor:
    """A place that the ball is known to have been at, for instance where it left the plate."""

    time_s: float
    ball_in_base: Array
    sigma_m: float


class Sights(NamedTuple):
    """Some sights as arrays, for several fits to the same."""

    camera: list[int]
    time_s: Array
    lines: Array
    """Both equations' rows and the viewing direction [n, 3, 3]."""
    values: Array
    """Both equations' values and the offset [n, 3]: lines @ P - values are two errors and a depth."""
    focal_px: Array
    products: Array
    """What the rows a, b tell of a point by a weight's three numbers: a a', b b', a b' + b a' [n, 3, 12].

    Row by row of 4: in the last column a row's own value is in place of the second row.
    """

    @classmethod
    def of(cls, sights: Sequence[Bearing]) -> Sights:
        """Those of a sequence."""
        if not sights:
            return cls(
                [], np.zeros(0), np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3, 12))
            )
        numbers = np.concatenate([sight.numbers for sight in sights]).reshape(len(sights), -1)
        return cls(
            camera=[sight.camera for sight in sights],
            time_s=numbers[:, 12],
            lines=numbers[:, :9].reshape(-1, 3, 3),
            values=numbers[:, 9:12],
            focal_px=numbers[:, 13],
            products=numbers[:, 14:].reshape(-1, 3, 12),
        )


_SHARE = (1.0, 1.0, 0.5)
"""p, v and a are multiplied by 1, tau and tau^2 / 2."""


@lru_cache(maxsize=16)
def _assembly(pulls_bytes: bytes, parts: int) -> Array:
    """From sums to normal equations and a right side for every acceleration [60, m m + k m], m = 3 parts.

    The sums are of information and values [3, 4] times the powers of tau, one after the other. A known
    acceleration has moved each point by a tau^2 / 2, which its right side does without.
    """
    size, pulls = 3 * parts, np.frombuffer(pulls_bytes).reshape(-1, 3)
    normal = np.zeros((5, 3, 4, parts, 3, parts, 3))
    right = np.zeros((5, 3, 4, len(pulls), parts, 3))
    for i in range(3):
        for one in range(parts):
            for other in range(parts):
                for j in range(3):
                    normal[one + other, i, j, one, i, other, j] = _SHARE[one] * _SHARE[other]
            right[one, i, 3, :, one, i] = _SHARE[one]
            right[one + 2, i, :3, :, one, i] = -0.5 * _SHARE[one] * pulls.T
    return np.concatenate((normal.reshape(60, size * size), right.reshape(60, -1)), axis=1)


class Equations:
    """Those of some sights, and of a place that is known, under k accelerations [k, 3] or one to be found."""

    def __init__(self, sights: Sights, tau: Array, pulls: Array, free: bool, sigma_s: float):
        """Gather.

        Args:
            sights: n of them.
            tau: Their times after the reference [n].
            pulls: Known accelerations [k, 3].
            free: Whether there is an unknown one besides.
            sigma_s: Standard deviation of a time stamp.
        """
        self._pulls, self._values, self.unknowns = pulls, sights.values[..., None], 9 if free else 6
        count = len(tau)
        powers = np.ones((count, 5))
        powers[:, 1] = tau
        powers[:, 2] = square = tau * tau
        powers[:, 3], powers[:, 4] = square * tau, square * square
        spread = sights.products[:, :, None, :] * powers[:, None, :, None]  # [n, 3, 5, 12]
        self._parts = spread.reshape(3 * count, 60)
        self._assembly = _assembly(pulls.tobytes(), self.unknowns // 3)
        # From p, v and a to a place, and to a way during a stamp's deviation.
        self._motion = np.zeros((count, 3, 2))
        self._motion[:, 0, 0], self._motion[:, 1, 0], self._motion[:, 2, 0] = 1.0, tau, 0.5 * square
        self._motion[:, 1, 1], self._motion[:, 2, 1] = sigma_s, sigma_s * tau
        self._lines = sights.lines.reshape(3 * count, 3)
        self._place: tuple[Array, Array] | None = None

    def know(self, anchor: Anchor, reference_s: float) -> None:
        """Three equations more, over the anchor's deviation: p + v tau (+ a tau^2 / 2) is its place."""
        tau = anchor.time_s - reference_s
        gain = np.array((1.0, tau, 0.5 * tau * tau))[: self.unknowns // 3]
        rows = np.concatenate([one * np.eye(3) for one in gain], axis=1) / anchor.sigma_m
        self._place = rows, (anchor.ball_in_base - 0.5 * self._pulls * tau**2) / anchor.sigma_m

    def normal(self, weight: Array) -> tuple[list[Array], list[Array]]:
        """Normal equations [m, m] and right side [m, 1] for each acceleration.

        Args:
            weight: w0, w1 and w2 of each sight under each acceleration, or under all [k or 1, n, 3].
        """
        size, count = self.unknowns, len(self._pulls)
        sums = weight.reshape(len(weight), -1) @ self._parts @ self._assembly
        of = [sums[k if len(sums) > 1 else 0] for k in range(count)]
        normal = [one[: size * size].reshape(size, size) for one in of]
        right = [one[size * (size + k) : size * (size + k + 1), None] for k, one in enumerate(of)]
        if self._place is not None:
            rows, values = self._place
            normal = [one + rows.T @ rows for one in normal]
            right = [one + (value @ rows)[:, None] for one, value in zip(right, values, strict=True)]
        return normal, right

    def residuals(self, solutions: list[Array]) -> tuple[Array, Array, Array]:
        """What solutions [m, 1] make of sights: errors [k, n, 2], depths [k, n], ways [k, n, 2].

        An error's way is how far it goes while a stamp's deviation passes.
        """
        vectors = np.empty((3, len(solutions), 3))  # x, y, z; of p, v, a
        for k, solution in enumerate(solutions):
            vectors[:, k, : self.unknowns // 3] = solution.reshape(-1, 3).T
        if self.unknowns == 6:
            vectors[:, :, 2] = self._pulls.T
        along = (self._lines @ vectors.reshape(3, -1)).reshape(len(self._motion), -1, 3)
        seen = (along @ self._motion).reshape(len(along), 3, -1, 2)
        places = (seen[..., 0] - self._values).transpose(2, 0, 1)
        return places[..., :2], places[..., 2], seen[:, :2, :, 1].transpose(2, 0, 1)

    def squares(self, weight: Array, errors: Array, solutions: list[Array]) -> list[float]:
        """Of all errors over their deviations, summed, for each acceleration."""
        first, second = errors[..., 0], errors[..., 1]
        inner = weight[..., 0] * first + 2.0 * weight[..., 2] * second
        found: list[float] = (inner * first + weight[..., 1] * second * second).sum(axis=1).tolist()
        if self._place is not None:
            rows, values = self._place
            for k, solution in enumerate(solutions):
                found[k] += float(((rows @ solution[:, 0] - values[k]) ** 2).sum())
        return found


def pixel_weight(depth: Array, way: Array, focal_px: Array, sigma_px: float) -> Array:
    """Inverse covariance of sights' equations [k, n, 3]: w0, w1 and w2.

    In deviations of a detection a sight's covariance is I + u u', u being its way during a stamp's deviation.
    By Sherman and Morrison the inverse is I - u u' / (1 + u'u), that is
    ((1 + u1^2, -u0 u1), (-u0 u1, 1 + u0^2)) / (1 + u0^2 + u1^2).

    Args:
        depth: [k, n]
        way: Of the equations' errors during a stamp's deviation [k, n, 2].
        focal_px: [n]
        sigma_px: Standard deviation of a detection.
    """
    per_m = focal_px / sigma_px / depth
    across, down = way[..., 0] * per_m, way[..., 1] * per_m
    above, below = 1.0 + across * across, 1.0 + down * down
    share = per_m * per_m / (above + below - 1.0)
    weight = np.empty((*depth.shape, 3))
    weight[..., 0] = share * below
    weight[..., 1] = share * above
    weight[..., 2] = -share * across * down
    return weight
