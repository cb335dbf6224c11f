"""What the robot knows and cameras do not: where the plate is. It tells when a ball must have bounced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dris.perception.camera import Array
from dris.perception.motion import Motion
from dris.perception.triangulate import Bearing


@dataclass(frozen=True, eq=False)
class Plate:
    """The plate's surface at a time, moving on at a constant velocity."""

    time_s: float
    centre_in_base: Array
    normal_in_base: Array
    """Unit length, away from the robot."""
    velocity_in_base: Array
    half_length_m: float = 0.12
    edge_in_base: Array | None = None
    """Direction of one of its edges, unit length; None if it is not known how it is turned."""

    def __post_init__(self) -> None:
        """Refuse what is no plate."""
        vectors = ["centre_in_base", "normal_in_base", "velocity_in_base"]
        for name in vectors + ["edge_in_base"] * (self.edge_in_base is not None):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.shape != (3,) or not np.isfinite(value).all():
                raise ValueError(f"{name} must be 3 finite numbers, got {getattr(self, name)}")
            object.__setattr__(self, name, value)
        length = float(np.linalg.norm(self.normal_in_base))
        if not abs(length - 1) < 1e-3:
            raise ValueError(f"normal_in_base must have length 1, got {length:.4g}")

    def beside(self, ball_in_base: Array, time_s: float) -> tuple[float, float]:
        """How far a point is above the plate's plane, negative below, and along it from the centre [m]."""
        offset = ball_in_base - self.centre_in_base - self.velocity_in_base * (time_s - self.time_s)
        (x, y, z), (a, b, c) = offset.tolist(), self.normal_in_base.tolist()
        height = a * x + b * y + c * z
        return height, math.hypot(x - height * a, y - height * b, z - height * c)

    def gap(self, ball_in_base: Array, time_s: float, radius_m: float) -> float:
        """Distance of a ball's surface from the plate's plane; negative below."""
        return self.beside(ball_in_base, time_s)[0] - radius_m

    def under(self, ball_in_base: Array, time_s: float) -> bool:
        """Whether the plate is below a ball, not beside it."""
        return self.beside(ball_in_base, time_s)[1] <= self.half_length_m


def impact_time(motion: Motion, plate: Plate, radius_m: float, start_s: float, end_s: float) -> float | None:
    """When a motion brings the ball down on the plate, or None if not in the interval."""
    # Along the normal, in plain numbers because it is asked twice a frame: place, speed and pull.
    ball, velocity, acceleration = motion.ball_in_base, motion.velocity_in_base, motion.acceleration_in_base
    over, rising, pull = (np.array((ball, velocity, acceleration)) @ plate.normal_in_base).tolist()
    tau, carried = start_s - motion.reference_s, float(plate.normal_in_base @ plate.velocity_in_base)
    speed = rising + pull * tau - carried
    gap = over + (rising + 0.5 * pull * tau) * tau - carried * (start_s - plate.time_s) - radius_m
    gap -= float(plate.normal_in_base @ plate.centre_in_base)
    if gap <= 0:
        time_s = start_s if speed < 0 else math.inf
    elif pull == 0:
        time_s = start_s - gap / speed if speed < 0 else math.inf
    else:
        # gap + speed tau + pull tau^2 / 2 = 0, the first root on the way down
        root = speed * speed - 2 * pull * gap
        time_s = start_s + (-speed - math.sqrt(root)) / pull if root >= 0 else math.inf
    if not start_s <= time_s <= end_s or not plate.under(motion.at(time_s)[0], time_s):
        return None
    return time_s


def across_impact(
    motion: Motion, plate: Plate, impact_s: float, time_s: float, restitution: float
) -> tuple[Array, Array]:
    """Position and velocity after an impact: Newton's restitution along the normal, no friction.

    A ball that would be back on the plate before the time requested is taken to stay there.
    """
    ball, velocity = motion.at(impact_s)
    normal = plate.normal_in_base
    closing = float(normal @ (velocity - plate.velocity_in_base))
    velocity = velocity - (1 + restitution) * closing * normal
    tau, pull = time_s - impact_s, motion.acceleration_in_base
    rising, falling = -restitution * closing, -float(normal @ pull)
    if falling <= 0 or tau <= 2 * rising / falling:
        return ball + velocity * tau + 0.5 * pull * tau**2, velocity + pull * tau
    resting = velocity - rising * normal
    return ball + resting * tau, resting


LYING_M = 0.03
"""A ball no further from the plate may be lying on it: the plate's place is told every 50 ms, and one that
accelerates at 20 m/s2 is by then 25 mm from where its velocity takes it [design]."""
RISING = 0.5
"""A ball that leaves the plate faster does not lie on it [m/s]: it will rise by more than a centimetre."""


def may_lie(motion: Motion, plate: Plate, radius_m: float) -> bool:
    """Whether a motion ends where a ball that lies on the plate would be."""
    height, along = plate.beside(motion.ball_in_base, motion.reference_s)
    return along <= plate.half_length_m and abs(height - radius_m) < LYING_M


def is_above(motion: Motion, plate: Plate, radius_m: float) -> bool:
    """Whether a motion ends in the air over the plate, or leaves it: then it is no rolling.

    An impact lasts some milliseconds, and a window that holds a sight from before its end looks straight.
    """
    height, along = plate.beside(motion.ball_in_base, motion.reference_s)
    rising = float(plate.normal_in_base @ (motion.velocity_in_base - plate.velocity_in_base))
    return along <= plate.half_length_m and (rising > RISING or height - radius_m > LYING_M)


RADII_M = (0.01, 0.06)
"""A ball whose outline is of another size, were it on the plate, is not on it."""
SPAN_S = 0.02
"""Two sights this far apart tell a velocity."""


def resting_place(sight: Bearing, plate: Plate) -> Array | None:
    """Centre [3] of a ball that lies on the plate where one camera sees it; None if it cannot.

    On the ray P = c + s d (depth s) the outline says that the radius is size x s, and the plate that the
    centre is a radius above it: n . (c + s d - p) = size x s.
    """
    axes = np.concatenate((sight.rows, sight.axis[None]))
    centre = np.linalg.solve(axes, np.append(sight.values, sight.offset))
    ray = np.linalg.solve(axes, (0.0, 0.0, 1.0))
    place = plate.centre_in_base + plate.velocity_in_base * (sight.time_s - plate.time_s)
    normal = plate.normal_in_base
    slope = float(normal @ ray) - sight.size
    depth = float(normal @ (place - centre)) / slope if slope < 0 else -1.0  # the camera is above the plate
    ball = centre + depth * ray
    fits = depth > 0 and RADII_M[0] <= sight.size * depth <= RADII_M[1]
    return ball if fits and plate.under(ball, sight.time_s) else None


def lying(sights: Sequence[Bearing], plate: Plate, time_s: float) -> tuple[Array, Array] | None:
    """Position and velocity at a time of a ball that lies on the plate, from sights of any camera, by time.

    One sight is enough: the ball then moves with the plate. None if the youngest sight is of no such ball.
    """
    seen = [(sight.time_s, resting_place(sight, plate)) for sight in sights]
    found = [(at_s, ball) for at_s, ball in seen if ball is not None]
    if not found or found[-1][0] < sights[-1].time_s:
        return None
    times, balls = np.array([at_s for at_s, _ in found]), np.array([ball for _, ball in found])
    velocity = plate.velocity_in_base
    if times[-1] - times[0] >= SPAN_S:
        offsets = times - times.mean()
        velocity = offsets @ (balls - balls.mean(axis=0)) / float(offsets @ offsets)
        start_s, ball = float(times.mean()), balls.mean(axis=0)
    else:
        start_s, ball = float(times[-1]), balls[-1]
    return ball + velocity * (time_s - start_s), velocity


def places_apart(sights: Sequence[Bearing], plate: Plate) -> float:
    """How far apart two cameras put a ball that lies on the plate, by the youngest sight of each [m].

    Rays meet on the plate only if the ball is there: one in the air, h above it, is put 2 h apart and
    more by cameras that look down by 30 degrees or less, at right angles. Infinite if not both see it there.
    """
    first, second = (
        resting_place(seen[-1], plate) if (seen := [s for s in sights if s.camera == camera]) else None
        for camera in (0, 1)
    )
    if first is None or second is None:
        return math.inf
    return float(np.linalg.norm(first - second))
