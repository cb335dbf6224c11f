"""The laboratory as a MuJoCo model: arm, padded plate, ramp, one thing to catch, two cameras.

Contact between thing and pad is a one-sided spring and damper, m r'' = -m w^2 r - 2 m zeta w r', whose
damping ratio zeta gives the restitution that is asked for (`stepped_damping_ratio`). Everything else that the
thing can touch (links, hand, floor) is hard and takes MuJoCo's defaults; the arm cannot touch itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np

from dris.catching.robot_model import robot_spec
from dris.core.constants import GRAVITY
from dris.lab.cameras import CAMERAS, CameraConfig
from dris.lab.objects import CatchObject

JOINTS = 7
PLATE_HALF = 0.12
"""Half edge of the plate [m] [paper]; `fr3.xml` has the same."""
FIXTURE = 2
"""Collision bit: the thing looks for fixtures; fixtures do not look for each other."""
RAMP_PIECES, RAMP_PIECES_SEEN = 64, 10
HIDDEN = 4
"""Group of geoms that are not drawn."""

_SHAPES = {
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "ellipsoid": mujoco.mjtGeom.mjGEOM_ELLIPSOID,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
}


@dataclass(frozen=True)
class LabConfig:
    """What the laboratory is like."""

    timestep: float = 0.00025
    """Of MuJoCo [s]; must divide the control tick. With `contact_frequency`, w dt = 0.15: the phase at which
    an impact meets the time grid then scatters the restitution by 0.02 either way."""
    contact_frequency: float = 600.0
    """w of thing on pad [rad/s]: contact lasts pi / w = 5 ms and sinks in by v / w, 1 cm at 6 m/s [assumed:
    pad and ball give way together]."""
    friction_frequency: float = 1000.0
    """Rate at which slip below the friction limit dies out [1/s]."""
    joint_friction: tuple[float, ...] = (0.3, 0.3, 0.3, 0.3, 0.15, 0.15, 0.10)
    """Dry friction that the robot's own compensation leaves [Nm] [assumed: a fifth to two fifths of
    what the MuJoCo Menagerie gives an uncompensated FR3]."""
    ramp_friction: float = 0.5
    """Of balls on the printed ramp [assumed]."""
    air_density: float = 1.2
    """[kg/m3] at 20 degrees C; 0 is a vacuum."""
    gravity: float = GRAVITY
    """[m/s2]"""
    cameras: tuple[CameraConfig, ...] = CAMERAS

    def __post_init__(self) -> None:
        """Refuse what would simulate wrongly."""
        if not 1e-5 <= self.timestep <= 5e-4:
            raise ValueError(f"timestep must lie in [0.00001, 0.0005] s, got {self.timestep}")
        if not 0 < self.contact_frequency * self.timestep <= 0.3:
            raise ValueError(
                f"contact_frequency x timestep must lie in (0, 0.3], got "
                f"{self.contact_frequency * self.timestep:.3f}: shorten the step or soften the contact"
            )
        if len(self.joint_friction) != JOINTS or min(self.joint_friction) < 0:
            raise ValueError(f"joint_friction needs {JOINTS} values of 0 or more, got {self.joint_friction}")
        if self.air_density < 0:
            raise ValueError(f"air_density must not be negative, got {self.air_density}")


@dataclass(frozen=True)
class RampShape:
    """Where a ramp ends and what its lower section is: a quarter circle that ends level."""

    end: tuple[float, float, float]
    """Where a ball's lowest point leaves it, base frame [m]."""
    heading: float
    """Direction of leaving about the vertical [rad]."""
    radius: float
    """Of the quarter circle [m]."""

    def track(self, angle: float) -> tuple[np.ndarray, np.ndarray]:
        """Point of the track and its normal [3], `angle` back from the end along the circle [rad]."""
        forward = np.array([math.cos(self.heading), math.sin(self.heading), 0.0])
        up = np.array([0.0, 0.0, 1.0])
        normal = math.sin(angle) * forward + math.cos(angle) * up
        return np.array(self.end) + self.radius * (up - normal), normal


def damping_ratio(restitution: float) -> float:
    """The damping ratio zeta in (0, 1) of a one-sided spring-damper that returns `restitution`.

    Contact begins at r = 0 with speed v and ends when the force would become a pull, that is at
    w t = atan2(2 zeta s, 2 zeta^2 - 1) / s with s = sqrt(1 - zeta^2); the speed has then fallen to
    v exp(-zeta w t).
    """

    def returned(zeta: float) -> float:
        s = math.sqrt(1 - zeta * zeta)
        return math.exp(-zeta / s * math.atan2(2 * zeta * s, 2 * zeta * zeta - 1))

    return _bisect(returned, restitution)


@lru_cache
def stepped_damping_ratio(restitution: float, frequency_step: float) -> float:
    """The same for time steps of `frequency_step` = w dt, averaged over the impact's phase on the grid.

    MuJoCo evaluates the contact at the start of each step and moves on with the speed at its end; the
    closed form is its limit for small steps and too lively by 0.004 to 0.012 at w dt = 0.15.
    """
    phase = np.linspace(0.0, 1.0, 64, endpoint=False)

    def returned(zeta: float) -> float:
        # In units of 1 / w and the impact speed; depth is negative inside the pad.
        depth, speed = -phase * frequency_step, np.full_like(phase, -1.0)
        for _ in range(math.ceil(8.0 / frequency_step)):
            push = np.maximum(-depth - 2 * zeta * speed, 0.0) * (depth < 0)
            speed = speed + frequency_step * push
            depth = depth + frequency_step * speed
        return float(speed.mean())

    return _bisect(returned, restitution)


def _bisect(returned: Callable[[float], float], restitution: float) -> float:
    """Zeta for a restitution that falls as zeta grows."""
    low, high = 1e-6, 1 - 1e-9
    for _ in range(50):
        zeta = 0.5 * (low + high)
        low, high = (zeta, high) if returned(zeta) > restitution else (low, zeta)
    return zeta


def build(
    config: LabConfig, thing: CatchObject, ramp: RampShape | None = None, mount: str = "down"
) -> mujoco.MjModel:
    """The whole laboratory with one thing, free to move; its body and free joint come after the arm's."""
    spec = robot_spec(mount)
    _options(spec, config)
    for index in range(JOINTS):
        spec.joint(f"joint{index + 1}").frictionloss = config.joint_friction[index]
    for geom in spec.geoms:
        # Links and hand can be hit; the plate's contact is a pair of its own.
        geom.contype, geom.conaffinity = 0, 0 if geom.name == "plate" else FIXTURE
        geom.condim = 3
    _pad(spec)
    _add_thing(spec, config, thing)
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[4, 4, 0.1],
        rgba=[0.55, 0.57, 0.60, 1],
        contype=0,
        conaffinity=FIXTURE,
    )
    if ramp is not None:
        _add_ramp(spec, config, ramp)
    for camera in config.cameras:
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, camera.axes().ravel())
        spec.worldbody.add_camera(
            name=camera.name,
            pos=camera.position,
            quat=quat,
            fovy=math.degrees(2 * math.atan(0.5 * camera.height / camera.focal)),
        )
    return spec.compile()


def build_bench(config: LabConfig, thing: CatchObject, tilt_rad: float = 0.0) -> mujoco.MjModel:
    """A padded plate that nothing can move, turned about y by `tilt_rad`, and one thing.

    The plate's top face has its centre in the origin; it is wide, so that nothing rolls off in a test.
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    _options(spec, config)
    plate = spec.worldbody.add_body(
        name="plate", quat=[math.cos(0.5 * tilt_rad), 0.0, math.sin(0.5 * tilt_rad), 0.0]
    )
    plate.add_geom(
        name="plate",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[3, 3, 0.005],
        pos=[0, 0, -0.005],
        contype=0,
        conaffinity=0,
    )
    _add_thing(spec, config, thing)
    return spec.compile()


def _options(spec: mujoco.MjSpec, config: LabConfig) -> None:
    spec.option.timestep = config.timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10.0  # friction ten times as stiff as the normal: rolling does not creep
    spec.option.gravity = [0, 0, -config.gravity]
    visual = spec.visual
    visual.global_.offwidth = max((camera.width for camera in config.cameras), default=640)
    visual.global_.offheight = max((camera.height for camera in config.cameras), default=480)
    # Software rendering: keep it cheap.
    visual.quality.offsamples, visual.quality.shadowsize, visual.quality.numquads = 0, 0, 1
    visual.headlight.ambient, visual.headlight.diffuse = [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]


def _pad(spec: mujoco.MjSpec) -> None:
    """Show the neoprene pad: the plate's upper 3 mm in dark grey."""
    spec.geom("plate").rgba = [0.35, 0.36, 0.40, 1]
    spec.body("plate").add_geom(
        name="pad",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[PLATE_HALF + 1e-4, PLATE_HALF + 1e-4, 0.0016],
        pos=[0, 0, 0.0035],
        rgba=[0.16, 0.17, 0.19, 1],
        mass=0,
        contype=0,
        conaffinity=0,
        group=2,
    )


def _add_thing(spec: mujoco.MjSpec, config: LabConfig, thing: CatchObject) -> None:
    body = spec.worldbody.add_body(name="thing", pos=[0, 0, 3])
    body.add_freejoint(name="thing")
    body.explicitinertial = True
    body.mass, body.inertia = thing.mass, list(thing.inertia)
    body.ipos, body.iquat = [0, 0, 0], [1, 0, 0, 0]  # else the compiler takes the body's own position
    w = config.contact_frequency
    zeta = stepped_damping_ratio(thing.restitution, w * config.timestep)
    for index, part in enumerate(thing.parts):
        name = f"thing{index}"
        body.add_geom(
            name=name,
            type=_SHAPES[part.shape],
            size=list(part.size),
            pos=list(part.offset),
            rgba=[*thing.colour, 1],
            contype=FIXTURE,
            conaffinity=0,
            condim=3,
            friction=[0.4, 0.005, 0.0001],
        )
        spec.add_pair(
            name=f"{name} on plate",
            geomname1=name,
            geomname2="plate",
            condim=3,  # rolling resistance is a torque of its own: see forces.py
            friction=[thing.friction, thing.friction, 0, 0, 0],
            solref=[-(w**2), -2 * zeta * w],
            solreffriction=[-1.0, -config.friction_frequency],
            solimp=[0.95, 0.95, 0.001, 0.5, 2],
        )


def _add_ramp(spec: mujoco.MjSpec, config: LabConfig, ramp: RampShape) -> None:
    """The track as a polygon of flat boxes: many to roll on, unseen, and few to be seen, for speed.

    64 boxes cost a ball less than 1 % of its speed.
    """
    w = config.contact_frequency
    for box in _track(ramp, RAMP_PIECES):
        spec.worldbody.add_geom(
            **box,
            group=HIDDEN,
            conaffinity=FIXTURE,
            priority=1,
            condim=3,
            friction=[config.ramp_friction, 0, 0],
            solref=[-(w**2), -w],  # a damping ratio of 0.5: hardly bounces
            solimp=[0.95, 0.95, 0.001, 0.5, 2],
        )
    for box in _track(ramp, RAMP_PIECES_SEEN):
        spec.worldbody.add_geom(**box, rgba=[0.75, 0.76, 0.78, 1], conaffinity=0)


def _track(ramp: RampShape, pieces: int) -> Iterator[dict[str, Any]]:
    """Boxes whose upper faces follow the track, as MuJoCo's `add_geom` takes them; they look for nothing."""
    edge = math.pi / 2 / pieces
    for index in range(pieces):
        (low, _), (high, _) = ramp.track(index * edge), ramp.track((index + 1) * edge)
        _, normal = ramp.track((index + 0.5) * edge)
        length = float(np.linalg.norm(high - low))
        along = (high - low) / length
        quat = np.zeros(4)
        axes = np.stack((along, np.cross(normal, along), normal), axis=1)
        mujoco.mju_mat2Quat(quat, axes.ravel())
        place = {"pos": 0.5 * (low + high) - 0.002 * normal, "quat": quat}
        size = [0.5 * length, 0.03, 0.002]
        yield {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": size, "contype": 0, **place}
