"""What a session asks of an arm, and how arms say what is wrong."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.core.errors import DrisError


class ArmError(DrisError, RuntimeError):
    """The arm cannot or will not; the message says why and what to do."""


class RestsAlready(ArmError):
    """An arm that was to be stopped rests, and something else has stopped it, too."""


@dataclass(frozen=True, eq=False)
class ArmState:
    """An arm now."""

    time_s: float
    """The robot's clock."""
    q: np.ndarray
    """[M] [rad]"""
    dq: np.ndarray
    """[M] [rad/s]"""
    moving: bool
    """Whether it obeys references."""
    error: str = ""
    """Why it does not, if something stopped it: a reflex, a user stop, a lost connection."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Numbers for a pickle, a thousand a second: arrays of seven take four times as long."""
        return _arm_state, (self.time_s, self.q.tolist(), self.dq.tolist(), self.moving, self.error)


def _arm_state(time_s: float, q: list[float], dq: list[float], moving: bool, error: str) -> ArmState:
    return ArmState(time_s, np.array(q), np.array(dq), moving, error)


@dataclass(frozen=True)
class Payload:
    """Something rigid at the flange, in its frame."""

    mass_kg: float = 0.0
    centre_in_flange: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[m]"""
    inertia: tuple[float, ...] = (0.0,) * 9
    """About that centre, by columns [kg m2]."""


@dataclass(frozen=True)
class Carried:
    """What a robot believes that it carries, and compensates."""

    end_effector: Payload
    """By its own settings."""
    load: Payload
    """That it was told of besides."""


class Arm(Protocol):
    """An arm whose own controller computes tau = K (q~ - q) - D dq + C at 1 kHz and adds gravity."""

    def state(self) -> ArmState:
        """What it measured last."""

    def limits(self) -> JointLimits:
        """Of its joints, as the robot itself tells them."""

    def masses(self) -> tuple[float, ...]:
        """Of links 1 to 7, as the robot itself tells them [kg]."""

    def versions(self) -> str:
        """Of driver, library and robot, as far as they tell; empty where nothing does."""

    def carries(self) -> Carried:
        """What the robot believes that it carries."""

    def begin(self, reference: np.ndarray) -> None:
        """Obey references from now on, beginning with joints [M]."""

    def exchange(self, reference: np.ndarray) -> ArmState:
        """Set a reference [M] and read the state: once a tick."""

    def stop(self) -> None:
        """Come to rest softly, and obey no more."""

    def recover(self) -> bool:
        """Clear an error, if the robot lets us."""

    def close(self) -> None:
        """Stop, and disconnect."""


FASTEST = 10.0
"""No joint of such an arm may go faster [rad/s]: more is a mistake of units."""


def _seven(text: str, kind: str) -> list[ElementTree.Element]:
    """Joints or links 1 to 7 of an FR3's URDF, of whatever variant; the hand's are not among them.

    Raises:
        ParseError: It is no XML.
        KeyError: One is missing.
    """
    pattern, found = re.compile(rf"(?:fr3\w*_)?{kind}(\d)"), {}
    for element in ElementTree.fromstring(text).iter(kind):
        name = element.get("name", "")
        if (match := pattern.fullmatch(name)) and "finger" not in name:
            found[int(match[1])] = element
    return [found[number] for number in range(1, 8)]


def limits_of_urdf(text: str) -> JointLimits:
    """Limits of joints 1 to 7 from the URDF that an FR3 sends.

    Raises:
        ArmError: It tells no limits of some joint.
    """
    columns: list[list[float]] = []
    try:
        for joint in _seven(text, "joint"):
            limit, near_end = joint.find("limit"), joint.find("position_based_velocity_limits")
            if limit is None or near_end is None:
                raise KeyError(joint.get("name"))
            keys = [(limit, "lower"), (limit, "upper"), (limit, "velocity")]
            keys += [(near_end, "velocity_offset"), (near_end, "deceleration_limit")]
            columns.append([float(element.attrib[name]) for element, name in keys])
        low, high, speed, offset, deceleration = np.array(columns).T
        wrong = not np.isfinite(columns).all() or (low >= high).any() or (speed <= 0).any()
        if wrong or (speed > FASTEST).any() or (offset < 0).any() or (deceleration <= 0).any():
            raise ValueError(columns)
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise ArmError(
            "the robot's model does not tell plausible limits of all seven joints: system image 5.9 or newer?"
        ) from error
    return JointLimits(low, high, speed, offset, deceleration)


def masses_of_urdf(text: str) -> tuple[float, ...]:
    """Masses of links 1 to 7 from the URDF that an FR3 sends [kg].

    Raises:
        ArmError: It tells no mass of some link.
    """
    masses: list[float] = []
    try:
        for link in _seven(text, "link"):
            mass = link.find("inertial/mass")
            if mass is None:
                raise KeyError(link.get("name"))
            masses.append(float(mass.attrib["value"]))
        if not (np.isfinite(masses).all() and min(masses) > 0):
            raise ValueError(masses)
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise ArmError(
            "the robot's model does not tell plausible masses of all seven links, so nothing confirms that "
            "it is the arm of this package's model: system image 5.9 or newer?"
        ) from error
    return tuple(masses)
