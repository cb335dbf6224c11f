"""Things to catch: the paper's four balls and its irregular objects, in SI units.

The paper names them (Sec. VI) and prints no size, mass or material. Sources: [ITTF] rules of table tennis
2.3; [USAR] official rules of racquetball 2.2; [sphere] drag of a smooth sphere at Reynolds numbers of
10^4 to 10^5, textbook; [assumed] chosen here, inside the radii that the paper trains on where it is a ball.
All restitutions, frictions and rolling resistances on the neoprene pad are assumed: nobody published them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

SOLID, SHELL = 2 / 5, 2 / 3
"""Inertia over m r^2 of a solid ball and of a thin shell."""


@dataclass(frozen=True)
class Part:
    """One primitive of an object, in the frame of its centre of mass."""

    shape: Literal["sphere", "ellipsoid", "box"]
    size: tuple[float, float, float]
    """Radius (three times the same), semi-axes, or half edges [m]."""
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of the primitive's centre from the centre of mass [m]."""


@dataclass(frozen=True)
class CatchObject:
    """An object to catch."""

    name: str
    parts: tuple[Part, ...]
    mass: float
    """[kg]"""
    inertia: tuple[float, float, float]
    """About the centre of mass, along the object's axes [kg m2]."""
    restitution: float
    """Speed after over speed before a straight impact on the padded plate."""
    friction: float
    """Sliding friction on the pad."""
    rolling: float
    """Rolling resistance on the pad, as a force over the normal force."""
    drag: float
    """Drag coefficient, on the cross section of the sphere of radius `radius`."""
    colour: tuple[float, float, float] = (0.95, 0.45, 0.10)
    """Red, green, blue; plain and far from the scene's greys and blue, so that cameras find it."""

    def __post_init__(self) -> None:
        """Refuse things that cannot be."""
        if not self.parts:
            raise ValueError(f"{self.name} needs at least one part")
        if not self.mass > 0 or not min(self.inertia) > 0:
            raise ValueError(
                f"{self.name}: mass and inertia must be positive, got {self.mass}, {self.inertia}"
            )
        if not 0.05 <= self.restitution <= 0.9:
            raise ValueError(
                f"{self.name}: restitution must lie in [0.05, 0.9], got {self.restitution}: "
                "soft contact was calibrated for no other"
            )
        for name in ("friction", "rolling", "drag"):
            if getattr(self, name) < 0:
                raise ValueError(f"{self.name}: {name} must not be negative, got {getattr(self, name)}")

    @property
    def radius(self) -> float:
        """Of a ball; of another thing, the mean half width that air and rolling see [m]."""
        if len(self.parts) == 1 and self.parts[0].shape == "sphere":
            return self.parts[0].size[0]
        return float(sum(math.prod(part.size) for part in self.parts) ** (1 / 3))

    @property
    def outline(self) -> tuple[float, float]:
        """Smallest and largest radius that its outline can have, seen from any side [m]."""
        return min(min(part.size) for part in self.parts), self.reach

    @property
    def reach(self) -> float:
        """Furthest that any point of it can be from its centre of mass [m]."""
        return max(
            math.hypot(*part.offset) + (math.hypot(*part.size) if part.shape == "box" else max(part.size))
            for part in self.parts
        )


def ball(name: str, *, radius: float, mass: float, inertia_factor: float, **surface: Any) -> CatchObject:
    """A sphere; `inertia_factor` is `SOLID` or `SHELL`, `surface` the fields from restitution on."""
    moment = inertia_factor * mass * radius**2
    return CatchObject(name, (Part("sphere", (radius,) * 3),), mass, (moment,) * 3, **surface)


BALL_DENSITY = 100.0
"""[kg/m3] of the training's balls, which have no mass there [assumed]: 11 g at a radius of 3 cm."""


def training_ball(radius: float, restitution: float, friction: float) -> CatchObject:
    """A ball of the training world, with a mass."""
    mass = BALL_DENSITY * 4 / 3 * math.pi * radius**3
    surface = {"restitution": restitution, "friction": friction, "rolling": 0.0, "drag": 0.0}
    return ball(f"r{radius:.4f}", radius=radius, mass=mass, inertia_factor=SOLID, **surface)


BALLS: dict[str, CatchObject] = {
    thing.name: thing
    for thing in (
        ball(
            "wiffle",
            radius=0.0365,  # [assumed] the usual perforated plastic ball, 9 inches around
            mass=0.020,  # [assumed]
            inertia_factor=SHELL,
            restitution=0.45,  # [assumed] thin plastic that buckles, on a pad
            friction=0.15,  # [assumed] hard plastic on smooth neoprene
            rolling=0.010,  # [assumed] holes catch the pad a little
            drag=0.60,  # [assumed] holes add to a sphere's 0.47
            colour=(0.95, 0.90, 0.15),
        ),
        ball(
            "rubber",
            radius=0.0286,  # [USAR] 2 1/4 inches across
            mass=0.0397,  # [USAR] 1.4 ounces
            inertia_factor=SHELL,  # [USAR] hollow
            restitution=0.65,  # [assumed] 0.83 on a hard floor [USAR]: 70 of 100 inches; less on a pad
            friction=0.40,  # [assumed] rubber grips
            rolling=0.012,  # [assumed]
            drag=0.47,  # [sphere]
            colour=(0.10, 0.70, 0.20),
        ),
        ball(
            "ping-pong",
            radius=0.020,  # [ITTF]
            mass=0.0027,  # [ITTF]
            inertia_factor=SHELL,
            restitution=0.60,  # [assumed] 0.89 to 0.92 on steel [ITTF]; far less on a pad
            friction=0.15,  # [assumed]
            rolling=0.006,  # [assumed] light and hard: hardly dents the pad
            drag=0.47,  # [sphere]
            colour=(0.98, 0.45, 0.05),
        ),
        ball(
            "foam",
            radius=0.035,  # [assumed]
            mass=0.0072,  # [assumed] soft polyurethane foam of 40 kg/m3
            inertia_factor=SOLID,
            restitution=0.50,  # [assumed]
            friction=0.35,  # [assumed]
            rolling=0.020,  # [assumed] soft
            drag=0.50,  # [assumed] rough surface
            colour=(0.90, 0.15, 0.45),
        ),
    )
}
"""The paper's four test balls."""


def _ellipsoid_inertia(mass: float, size: tuple[float, float, float]) -> tuple[float, float, float]:
    a, b, c = size
    return (mass * (b * b + c * c) / 5, mass * (a * a + c * c) / 5, mass * (a * a + b * b) / 5)


_APPLE = (0.036, 0.036, 0.032)
_CUBE = 0.02
IRREGULAR: dict[str, CatchObject] = {
    thing.name: thing
    for thing in (
        CatchObject(
            "apple",  # the paper's "lightweight toy apple"; all values assumed
            (Part("ellipsoid", _APPLE),),
            mass=0.025,
            inertia=_ellipsoid_inertia(0.025, _APPLE),
            restitution=0.40,
            friction=0.30,
            rolling=0.015,
            drag=0.47,
            colour=(0.85, 0.10, 0.10),
        ),
        CatchObject(
            "strawberry",  # the paper's "heavier toy strawberry": a wide top and a tip; all values assumed
            (
                Part("ellipsoid", (0.024, 0.024, 0.018), (0.0, 0.0, 0.008)),
                Part("sphere", (0.013,) * 3, (0.0, 0.0, -0.018)),
            ),
            mass=0.060,
            inertia=(1.7e-5, 1.7e-5, 1.3e-5),  # of a solid cone-like body of that size
            restitution=0.35,
            friction=0.40,
            rolling=0.015,
            drag=0.50,
            colour=(0.90, 0.05, 0.25),
        ),
        CatchObject(
            "cube",  # the paper's "wooden cube"; 4 cm of beech-like wood at 650 kg/m3, assumed
            (Part("box", (_CUBE,) * 3),),
            mass=0.0416,
            inertia=(0.0416 * (2 * _CUBE) ** 2 / 6,) * 3,
            restitution=0.40,
            friction=0.35,
            rolling=0.0,
            drag=1.0,
            colour=(0.80, 0.55, 0.10),
        ),
    )
}
"""The paper's irregular objects, as primitives."""

THINGS: dict[str, CatchObject] = BALLS | IRREGULAR


def thing(name: str) -> CatchObject:
    """A thing by its name.

    Raises:
        ValueError: There is no such thing; the message lists those there are.
    """
    if name not in THINGS:
        raise ValueError(f"there is no object '{name}'; known: {', '.join(THINGS)}")
    return THINGS[name]
