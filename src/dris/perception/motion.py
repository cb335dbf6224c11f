"""Fit a motion with known acceleration to sights of unsynchronised cameras, all at once.

P(t) = p + v tau + a tau^2 / 2 with tau = t - reference. Every sight gives two equations that are linear in
(p, v) at its own time, so nothing needs to be paired or interpolated, and a camera that missed a frame still
helps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from dris.perception.arrival import Arrival, sinks_in
from dris.perception.camera import Array
from dris.perception.equations import Anchor, Equations, Sights, pixel_weight
from dris.perception.track_config import TrackerConfig
from dris.perception.triangulate import Bearing

GRAVITY_IN_BASE = np.array([0.0, 0.0, -9.81])
"""[m/s2]; the base frame's z is up."""
NONE = np.zeros(3)
_EQUAL = np.array((1.0, 1.0, 0.0))
"""Of a sight's two equations, which have nothing to do with each other."""
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
        tau, carried = time_s - self.reference_s, self.covariance.copy()
        carried[:3] += tau * carried[3:]  # p + v tau: of the rows, then of the columns
        carried[:, :3] += tau * carried[:, 3:]
        return carried


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
    times_s = sights.time_s.tolist()
    newest_s, oldest_s = max(times_s), min(times_s)
    reference = newest_s if reference_s is None else reference_s
    equations = Equations(sights, sights.time_s - reference, pulls, free, sigma_s)
    if anchor is not None:
        equations.know(anchor, reference)
    # First with equal depths and exact stamps, then with depths and speeds found: equation errors become
    # pixel errors, each over its deviation. Solved by OpenCV: so small, they take NumPy five times as long.
    normal, right = equations.normal(((sights.focal_px / sigma_px) ** 2)[None, :, None] * _EQUAL)
    for _ in range(2):
        solved = [cv2.solve(one, told) for one, told in zip(normal, right, strict=True)]
        if not all(regular for regular, _ in solved):
            return nothing
        solutions = [np.asarray(solution, np.float64) for _, solution in solved]
        errors, depth, way = equations.residuals(solutions)
        if not depth.min() > 0:
            if len(pulls) == 1:
                return nothing
            arguments = sigma_px, reference_s, anchor, sigma_s
            return [fit_motions(sights, pull[None], *arguments)[0] for pull in pulls]
        weight = pixel_weight(depth, way, sights.focal_px, sigma_px)
        normal, right = equations.normal(weight)
    squares, count = equations.squares(weight, errors, solutions), 2 * len(times_s) + 3 * (anchor is not None)
    found: list[Motion | None] = []
    for k, solution in enumerate(solutions):
        regular, covariance = cv2.invert(normal[k])
        if not regular:
            return nothing
        found.append(
            Motion(
                reference_s=reference,
                ball_in_base=solution[:3, 0],
                velocity_in_base=solution[3:6, 0],
                acceleration_in_base=solution[6:, 0] if free else pulls[k],
                covariance=np.asarray(covariance[:6, :6], np.float64),
                chi_square=squares[k],
                rms_px=sigma_px * math.sqrt(max(squares[k], 0.0) / count),
                span_s=newest_s - oldest_s,
            )
        )
    return found


def _determined(sights: Sights, anchor: Anchor | None = None, each: int = 2) -> bool:
    """So many sights of each camera, over at least a millisecond; an anchor stands for one of each."""
    seen: tuple[list[float], list[float]] = ([], [])
    for camera, time_s in zip(sights.camera, sights.time_s.tolist(), strict=True):
        seen[camera].append(time_s)
    for times in seen:
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
