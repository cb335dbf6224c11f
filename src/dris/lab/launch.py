"""How a thing comes to the plate: ramp, throw, drop, laid on a tilted plate, or placed exactly.

A launch is a plain value; `start` turns it into an initial state with a random generator. The base frame
has z up and x ahead of the robot; the plate's home is its centre before the robot moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.lab.model import LabConfig, RampShape
from dris.lab.objects import CatchObject

RAMP_RADII = (0.13, 0.20, 0.32)
"""The three lower sections [m] [paper]."""
_TASK = CatchingConfig()


@dataclass(frozen=True)
class Start:
    """A thing's state in the base frame, and how the robot starts."""

    position: np.ndarray
    """Of the centre of mass [m]."""
    velocity: np.ndarray
    """[m/s]"""
    spin: np.ndarray
    """Angular velocity [rad/s]."""
    joints: tuple[float, ...] | None = None
    """Where the robot starts [rad]; None is home."""
    ramp: RampShape | None = None
    """The ramp it starts on."""


@dataclass(frozen=True)
class Scene:
    """What a launch may know: the laboratory, the thing, and where the plate starts."""

    lab: LabConfig
    thing: CatchObject
    kinematics: Kinematics
    """Of the robot, for where it starts."""

    @property
    def plate(self) -> np.ndarray:
        """Centre [3] of the plate's top face at home, base frame [m]."""
        return self.kinematics.home_position


@dataclass(frozen=True)
class Ramp:
    """Roll down a ramp above the workspace and leave it level.

    The paper gives three radii and "different release speeds". Assumed here: the lower section is a
    quarter circle that ends level, and the ball is let go at rest at its top. It rolls down in simulation;
    near the top, where nothing presses it on, it slips. The mount stands where balls of the usual size land
    about the plate's home.
    """

    radius: float = 0.20
    """R of the lower section [m] [paper]."""
    height: float = 1.0
    """Of the ramp's end over the plate's home [m] [assumed]: arrival at 4.4 m/s downwards, a little slower
    than the training's slowest throws."""
    azimuth: float = 0.0
    """Direction the ball comes from, about the vertical from straight ahead [rad] [assumed]."""
    below_top: tuple[float, float] = (0.0, 0.05)
    """Where on the circle it is let go, from the top [rad] [assumed]: no hand is exact."""
    scatter_sideways: float = 0.01
    """Standard deviation of its speed sideways when let go [m/s] [assumed]."""

    def aimed_speed(self, gravity: float) -> float:
        """Release speed that the mount is placed for [m/s].

        0.8 of what a solid ball of 3 cm would have had it never slipped and were there no air: with it the
        four balls come down within 4 cm of the plate's home, each ball elsewhere.
        """
        return 0.8 * math.sqrt(10 / 7 * gravity * (self.radius - 0.03))

    def shape(self, scene: Scene) -> RampShape:
        """Where the ramp stands."""
        comes_from = np.array([math.cos(self.azimuth), math.sin(self.azimuth), 0.0])
        gravity = scene.lab.gravity
        carry = self.aimed_speed(gravity) * math.sqrt(2 * self.height / gravity)
        end = scene.plate + comes_from * carry + (0.0, 0.0, self.height)
        return RampShape((float(end[0]), float(end[1]), float(end[2])), self.azimuth + math.pi, self.radius)

    def start(self, scene: Scene, generator: np.random.Generator) -> Start:
        """The ball near the top of the ramp."""
        shape = self.shape(scene)
        point, normal = shape.track(math.pi / 2 - generator.uniform(*self.below_top))
        sideways = np.array([-math.sin(shape.heading), math.cos(shape.heading), 0.0])
        velocity = self.scatter_sideways * generator.standard_normal() * sideways
        return Start(point + scene.thing.radius * normal, velocity, np.zeros(3), ramp=shape)


@dataclass(frozen=True)
class Throw:
    """A throw by hand: the paper's training throws, flown from release, with air.

    The thrower aims so that the ball, with its drag, meets a point of the catching region after the
    chosen time of flight.
    """

    distance: tuple[float, float] = _TASK.distance
    flight_s: tuple[float, float] = _TASK.flight_s
    incoming: tuple[float, float] = _TASK.incoming
    spawn_height: tuple[float, float] = _TASK.spawn_height
    region_radius: float = _TASK.region_radius

    def start(self, scene: Scene, generator: np.random.Generator) -> Start:
        """The ball as it leaves the hand."""
        distance, flight_s, angle, height = (
            generator.uniform(*bounds)
            for bounds in (self.distance, self.flight_s, self.incoming, self.spawn_height)
        )
        reach = self.region_radius * math.sqrt(generator.uniform())
        around = generator.uniform(0.0, 2 * math.pi)
        arrival = scene.plate + (reach * math.cos(around), reach * math.sin(around), scene.thing.radius)
        release = scene.plate + (distance * math.cos(angle), distance * math.sin(angle), height)
        velocity = aim(scene, release, arrival, flight_s)
        return Start(release, velocity, np.zeros(3))


SLOW_THROW = Throw(flight_s=(0.7, 1.0))
"""A gentler hand: 3 to 5 m/s downwards on arrival."""


@dataclass(frozen=True)
class Drop:
    """Let go from rest over the plate."""

    height: float = 0.5
    """Of the thing's lowest point over the plate's home [m]."""
    offset: tuple[float, float] = (0.0, 0.0)
    """From the plate's centre, x and y of the base frame [m]."""

    def start(self, scene: Scene, generator: np.random.Generator) -> Start:
        """The thing at rest in the air."""
        above = scene.plate + (*self.offset, self.height + scene.thing.reach)
        return Start(above, np.zeros(3), np.zeros(3))


@dataclass(frozen=True)
class Laid:
    """Lay the thing on the plate, which stands tilted: the paper's start for balancing."""

    tilt: float = math.radians(30.0)
    """[rad] [paper]"""
    axis: float | None = None
    """Direction of the horizontal axis of the tilt, alpha [rad]; None draws it."""
    uphill: float = 0.03
    """How far up from the plate's centre it is laid [m] [assumed]."""

    def start(self, scene: Scene, generator: np.random.Generator) -> Start:
        """The thing at rest on the tilted plate."""
        alpha = generator.uniform(0.0, 2 * math.pi) if self.axis is None else self.axis
        tilt = self.tilt * np.array([math.cos(alpha), math.sin(alpha)])
        kinematics = scene.kinematics
        joints, reached = kinematics.home, False
        for _ in range(6):  # the pull to where a search starts lets go when it starts from the last answer
            if not reached:
                joints, reached = kinematics.solve(scene.plate, tilt, joints, iterations=60)
        if not reached:
            raise ValueError(
                f"the plate cannot be tilted by {self.tilt:.2f} rad about {alpha:.2f} rad at home"
            )
        plate, rotation = kinematics.plate(joints)
        normal = rotation[:, 2]
        uphill = np.array([0.0, 0.0, 1.0]) - normal[2] * normal
        uphill = uphill / max(float(np.linalg.norm(uphill)), 1e-9)
        position = plate + self.uphill * uphill + scene.thing.radius * normal
        return Start(position, np.zeros(3), np.zeros(3), tuple(joints))


@dataclass(frozen=True)
class Placed:
    """An exact start, for comparisons with another world."""

    position: tuple[float, float, float]
    velocity: tuple[float, float, float]
    joints: tuple[float, ...] | None = None

    def start(self, scene: Scene, generator: np.random.Generator) -> Start:
        """As it says."""
        return Start(np.array(self.position), np.array(self.velocity), np.zeros(3), self.joints)


Launch = Ramp | Throw | Drop | Laid | Placed


def aim(scene: Scene, release: np.ndarray, arrival: np.ndarray, flight_s: float) -> np.ndarray:
    """Velocity [3] at release that brings the thing to `arrival` after `flight_s`, air included.

    Starts from the parabola and corrects by the miss; drag is a mild disturbance, so this contracts.
    """
    gravity = np.array([0.0, 0.0, -scene.lab.gravity])
    velocity = (arrival - release) / flight_s - 0.5 * gravity * flight_s
    for _ in range(12):
        miss = arrival - fly(scene, release, velocity, flight_s)
        velocity = velocity + miss / flight_s
        if np.linalg.norm(miss) < 1e-4:
            break
    return velocity


def fly(scene: Scene, position: np.ndarray, velocity: np.ndarray, duration_s: float) -> np.ndarray:
    """Where a thing in the air is after a time: drag and buoyancy, midpoint rule at about 2 ms."""
    thing, density = scene.thing, scene.lab.air_density
    volume = 4 / 3 * math.pi * thing.radius**3
    weight = np.array([0.0, 0.0, -scene.lab.gravity * (1 - density * volume / thing.mass)])
    drag = 0.5 * density * math.pi * thing.radius**2 * thing.drag / thing.mass
    steps = max(1, math.ceil(duration_s / 0.002))
    h = duration_s / steps
    for _ in range(steps):
        middle = velocity + 0.5 * h * (weight - drag * math.sqrt(velocity @ velocity) * velocity)
        position = position + h * middle
        velocity = velocity + h * (weight - drag * math.sqrt(middle @ middle) * middle)
    return position
