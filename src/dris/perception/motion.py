"""Fit a motion with known acceleration to sights of unsynchronised cameras, all at once.

P(t) = p + v tau + a tau^2 / 2 with tau = t - reference. Every sight gives two equations that are linear in
(p, v) at its own time, so nothing needs to be paired or interpolated, and a camera that missed a frame still
helps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dris.perception.arrival import Arrival, sinks_in
from dris.perception.camera import Array
from dris.perception.track_config import TrackerConfig
from dris.perception.triangulate import Bearing

GRAVITY_IN_BASE = np.array([0.0, 0.0, -9.81])
"""[m/s2]; the base frame's z is up."""
NONE = np.zeros(3)
_ACROSS = np.eye(2)
FALLS_OR_ROLLS = np.stack((GRAVITY_IN_BASE, NONE))
"""What a ball that nobody pushes does."""


@dataclass(frozen=True, eq=False)
class Motion:
    """A fitted motion: position and velocity at `reference_s`, under a constant acceleration."""

    reference_s: float
    ball_in_base: Array
    velocity_in_base: Array
    acceleration_in_base: Array
    covariance: Array
    """Of (position, velocity) [6, 6], given the assumed standard deviation of a detection."""
    chi_square: float
    """Sum of squared errors over their deviations; about 2 n - 6 if model and deviations are right."""
    rms_px: float
    """RMS error; what a stamp's deviation adds along the way of a fast ball does not count."""
    span_s: float
    """Time between the first and the last sight."""
    doubt: float = 0.0
    """How far the velocity would be from this one if the acceleration were found too, and better [m/s]."""

    def at(self, time_s: float | Array) -> tuple[Array, Array]:
        """Position and velocity [3] at a time, or [n, 3] at times [n, 1]."""
        tau = time_s - self.reference_s
        mean_velocity = self.velocity_in_base + 0.5 * self.acceleration_in_base * tau
        return (
            self.ball_in_base + mean_velocity * tau,
            self.velocity_in_base + self.acceleration_in_base * tau,
        )

    def covariance_at(self, time_s: float) -> Array:
        """Covariance of (position, velocity) [6, 6] at a time."""
        carry = np.eye(6)
        carry[:3, 3:] = (time_s - self.reference_s) * np.eye(3)
        return carry @ self.covariance @ carry.T


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
    rows: Array
    """[n, 2, 3]"""
    values: Array
    """[n, 2]"""
    axis: Array
    """[n, 3]"""
    offset: Array
    focal_px: Array

    @classmethod
    def of(cls, sights: Sequence[Bearing]) -> Sights:
        """Those of a sequence."""
        names = ("time_s", "rows", "values", "axis", "offset", "focal_px")
        arrays = (np.array([getattr(sight, name) for sight in sights], np.float64) for name in names)
        return cls([sight.camera for sight in sights], *arrays)


def fit_motion(
    sights: Sequence[Bearing] | Sights,
    acceleration_in_base: Array | None,
    sigma_px: float,
    reference_s: float | None = None,
    anchor: Anchor | None = None,
    sigma_s: float = 0.0,
) -> Motion | None:
    """Weighted linear least squares for (p, v), or None where the sights do not determine them.

    Args:
        sights: At least two of each camera, at different times; with an anchor, one of each after it.
        acceleration_in_base: Known acceleration [3]: gravity in flight, zero on a plate. None: it is found as
            well, which needs three sights of each camera and makes the velocity 3.7 times less certain.
        sigma_px: Standard deviation of a detection, along x and y.
        reference_s: Time that position and velocity are meant for; the last sight's if None.
        anchor: A known place, if there is one.
        sigma_s: Standard deviation of a time stamp: the faster the ball, the less a sight says of where along
            its way it is, and no less of where across.
    """
    pulls = None if acceleration_in_base is None else np.asarray(acceleration_in_base, np.float64)[None]
    return fit_motions(sights, pulls, sigma_px, reference_s, anchor, sigma_s)[0]


def fit_motions(
    sights: Sequence[Bearing] | Sights,
    accelerations_in_base: Array | None,
    sigma_px: float,
    reference_s: float | None = None,
    anchor: Anchor | None = None,
    sigma_s: float = 0.0,
) -> list[Motion | None]:
    """`fit_motion` under several accelerations [k, 3] at once, in little more than the time of one."""
    free = accelerations_in_base is None
    pulls = NONE[None] if accelerations_in_base is None else accelerations_in_base
    nothing: list[Motion | None] = [None] * len(pulls)
    sights = sights if isinstance(sights, Sights) else Sights.of(sights)
    if not _determined(sights, anchor, 3 if free else 2):
        return nothing
    times, rows, focal = sights.time_s, sights.rows, sights.focal_px
    reference = float(times.max()) if reference_s is None else reference_s
    tau = times - reference
    # rows (p + v tau) = values - rows a tau^2 / 2; an unknown a is three unknowns more
    powers = _powers(tau, 3 if free else 2)
    fallen = (0.5 * tau**2)[:, None] * pulls[:, None]  # [k, n, 3]
    target = sights.values - (rows @ fallen[..., None])[..., 0]
    known = _known(anchor, reference, pulls, powers.shape[1])
    # First with equal depths and exact stamps, then with depths and speeds found: equation errors become
    # pixel errors, each over its deviation.
    weight = ((focal / sigma_px) ** 2)[:, None, None] * _ACROSS
    try:
        for _ in range(2):
            normal, right = _normal(rows, target, weight, powers, known)
            solution: Array = np.linalg.solve(normal, right[..., None])[..., 0].astype(
                np.float64, copy=False
            )  # [k, 6 or 9]
            points = powers @ solution.reshape(len(pulls), -1, 3) + fallen
            depth = np.einsum("knj,nj->kn", points, sights.axis) - sights.offset
            if not (depth > 0).all():
                if len(pulls) == 1:
                    return nothing
                arguments = sigma_px, reference_s, anchor, sigma_s
                return [fit_motions(sights, pull[None], *arguments)[0] for pull in pulls]
            per_px = focal / depth
            pull = solution[:, None, 6:] if free else pulls[:, None]
            way = (rows @ (solution[:, None, 3:6] + tau[:, None] * pull)[..., None])[..., 0]
            weight = _weight(per_px / sigma_px, way * per_px[..., None], sigma_s / sigma_px)
        normal, _ = _normal(rows, target, weight, powers, known)
        covariance: Array = np.linalg.inv(normal).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return nothing
    error = (rows @ points[..., None])[..., 0] - sights.values
    squares = ((error[..., None, :] @ weight)[..., 0, :] * error).sum(axis=(1, 2)) + known.squares(solution)
    count, span_s = 2 * len(tau) + known.equations, float(times.max() - times.min())
    return [
        Motion(
            reference_s=reference,
            ball_in_base=solution[k, :3],
            velocity_in_base=solution[k, 3:6],
            acceleration_in_base=solution[k, 6:] if free else pulls[k],
            covariance=covariance[k, :6, :6],
            chi_square=float(squares[k]),
            rms_px=sigma_px * math.sqrt(squares[k] / count),
            span_s=span_s,
        )
        for k in range(len(pulls))
    ]


class _Known(NamedTuple):
    """An anchor as three equations for p, v (and a) over its deviation: p + v tau = anchor - a tau^2 / 2."""

    rows: Array
    """[3, 6 or 9]"""
    values: Array
    """[k, 3]"""
    equations: int = 3

    def squares(self, solution: Array) -> Array:
        """Of the errors that solutions [k, 6 or 9] make, summed [k]."""
        return ((solution @ self.rows.T - self.values) ** 2).sum(axis=1)


def _known(anchor: Anchor | None, reference_s: float, accelerations_in_base: Array, unknowns: int) -> _Known:
    if anchor is None:
        return _Known(np.zeros((0, 3 * unknowns)), np.zeros((len(accelerations_in_base), 0)), 0)
    tau = anchor.time_s - reference_s
    rows: Array = (
        np.kron(_powers(np.array([tau]), unknowns), np.eye(3)).astype(np.float64, copy=False) / anchor.sigma_m
    )
    return _Known(rows, (anchor.ball_in_base - 0.5 * accelerations_in_base * tau**2) / anchor.sigma_m)


def _powers(tau: Array, unknowns: int) -> Array:
    """What p, v (and a) are multiplied by at some times [n, 2 or 3]."""
    powers = np.empty((len(tau), unknowns))
    powers[:, 0], powers[:, 1] = 1.0, tau
    if unknowns > 2:
        powers[:, 2] = 0.5 * tau * tau
    return powers


def _weight(per_m: Array, way_px: Array, ratio_s: float) -> Array:
    """Inverse covariance of the equations of sights [k, n, 2, 2].

    In pixels a sight's covariance is sigma_px^2 I + sigma_s^2 u u', u being the ball's way in the image. By
    Sherman and Morrison its inverse is (I - r^2 u u' / (1 + r^2 u'u)) / sigma_px^2, r being the ratio of the
    deviations.

    Args:
        per_m: Deviations of a detection per unit of an equation's error [k, n].
        way_px: u [k, n, 2] [px/s].
        ratio_s: r [s/px].
    """
    late = ratio_s * way_px
    less = late / (1.0 + (late * late).sum(axis=2, keepdims=True))
    return (per_m**2)[..., None, None] * (_ACROSS - less[..., :, None] * late[..., None, :])


def _normal(rows: Array, target: Array, weight: Array, powers: Array, known: _Known) -> tuple[Array, Array]:
    """Normal equations [1 or k, m, m], [k, m] of sights weighed [n or k, n, 2, 2], and of what is known.

    A sight's unknowns are its point's, times its powers: information [3, 3] and pull [3] of every point are
    gathered by these.
    """
    count, unknowns = len(target), powers.shape[1]
    weighed = rows.transpose(0, 2, 1) @ weight  # [n or k, n, 3, 2]
    pull = powers.T @ (weighed @ target[..., None])[..., 0]  # [k, 2 or 3, 3]
    products = (powers[:, :, None] * powers[:, None, :]).reshape(len(powers), -1)
    blocks = products.T @ (weighed @ rows).reshape(*weighed.shape[:-2], 9)
    normal = blocks.reshape(-1, unknowns, unknowns, 3, 3).transpose(0, 1, 3, 2, 4)
    normal = normal.reshape(-1, 3 * unknowns, 3 * unknowns) + known.rows.T @ known.rows
    right = pull.reshape(count, -1) + known.values @ known.rows
    return normal, right


def _determined(sights: Sights, anchor: Anchor | None = None, each: int = 2) -> bool:
    """So many sights of each camera, over at least a millisecond; an anchor stands for one of each."""
    told = list(zip(sights.camera, sights.time_s.tolist(), strict=True))
    for camera in (0, 1):
        times = [time_s for seen_by, time_s in told if seen_by == camera]
        if times and anchor is not None:
            times.append(anchor.time_s)
        if len(times) < each or max(times) - min(times) < 1e-3:
            return False
    return True


def along_line(
    motion: Motion, sights: Sequence[Bearing], sigma_px: float, time_s: float
) -> tuple[Array, Array]:
    """The paper's estimate of a ball in flight [3], [3] at a time.

    Position from the parabola, velocity from a line through the same sights, both then carried on.
    """
    start = motion.reference_s - motion.span_s - 1e-9
    line = fit_motion([sight for sight in sights if sight.time_s >= start], NONE, sigma_px)
    if line is None:
        return motion.at(time_s)
    tau = time_s - motion.reference_s
    ball = motion.ball_in_base + line.velocity_in_base * tau + 0.5 * GRAVITY_IN_BASE * tau**2
    return ball, line.velocity_in_base + GRAVITY_IN_BASE * tau


def doubt(sights: Sights, motion: Motion, alone: Motion, config: TrackerConfig) -> float:
    """How much another velocity [m/s] the ball would have, were its acceleration found and not assumed.

    0 unless that explains the sights better than the motion that was fitted to them `alone`.
    """
    least, shortest_s = 0.5 * config.change_chi_square, 0.7 * config.flight_proof_s
    if alone.span_s < shortest_s or alone.chi_square < least:
        return 0.0  # as on most frames: nothing can fit so much better
    free = fit_motion(sights, None, config.sigma_px, motion.reference_s, sigma_s=config.sigma_s)
    if free is None or alone.chi_square - free.chi_square < least:
        return 0.0
    return float(np.linalg.norm(free.velocity_in_base - motion.velocity_in_base))


def longest_flight(history: Sequence[Bearing], config: TrackerConfig) -> Motion | None:
    """The parabola through the longest window of sights, up to the youngest, that one flight explains.

    Longer windows are more certain, but may hold a ball that did not fly yet, and air bends long flights.
    """
    best = None
    newest, window_s = history[-1].time_s, config.flight_proof_s
    while window_s < 1.5 * config.flight_window_s:
        sights = Sights.of([sight for sight in history if sight.time_s >= newest - window_s - 1e-9])
        flight, line = fit_motions(sights, FALLS_OR_ROLLS, config.sigma_px, sigma_s=config.sigma_s)
        if flight is None or flight.rms_px > config.flight_misfit * config.sigma_px:
            break
        if line is None or line.chi_square < flight.chi_square:  # it rolls
            break
        if flight.span_s > 0.7 * config.flight_proof_s:
            best = flight
        window_s *= 1.5
    return best


def arrival_of(motion: Motion, height_m: float, sigma_px: float) -> Arrival | None:
    """Where a flight comes down to a height, or None if it never does.

    Args:
        motion: Of the flight.
        height_m: Of the ball's centre, base frame.
        sigma_px: Standard deviation of a detection that the motion was fitted with.
    """
    pull = -float(motion.acceleration_in_base[2])
    rise, gap = float(motion.velocity_in_base[2]), float(motion.ball_in_base[2]) - height_m
    left_s = sinks_in(gap, rise, pull) if pull > 0 else None
    if left_s is None:
        return None
    time_s = motion.reference_s + left_s
    ball, velocity = motion.at(time_s)
    if not velocity[2] < 0:  # it only just reaches the height: no error in height makes up for time
        return None
    covariance = motion.covariance_at(time_s)[:3, :3]
    # The ball meets the plane when its error in height is made up for by time: dt = -dz / v_z, and the
    # place moves by v dt.
    slope = np.eye(3)[:2] - np.outer(velocity[:2], (0.0, 0.0, 1.0)) / velocity[2]
    place = slope @ covariance @ slope.T
    return Arrival(
        time_s=float(time_s),
        ball_in_base=ball,
        velocity_in_base=velocity,
        time_sigma_s=float(np.sqrt(covariance[2, 2]) / abs(velocity[2])),
        place_sigma_m=float(np.sqrt(np.linalg.eigvalsh(place)[-1])),
        misfit=motion.rms_px / sigma_px,
    )
