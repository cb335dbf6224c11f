"""What a session asks of an arm, and how arms say what is wrong."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.core.errors import DrisError


class ArmError(DrisError, RuntimeError):
    """The arm cannot or will not; the message says why and what to do."""


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


class Arm(Protocol):
    """An arm whose own controller computes tau = K (q~ - q) - D dq + C at 1 kHz and adds gravity."""

    def state(self) -> ArmState:
        """What it measured last."""

    def limits(self) -> JointLimits:
        """Of its joints, as the robot itself tells them."""

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


def limits_of_urdf(text: str) -> JointLimits:
    """Limits of joints 1 to 7 from the URDF that an FR3 sends.

    Raises:
        ArmError: It tells no limits of some joint.
    """
    columns: list[list[float]] = []
    try:
        joints = {joint.get("name", ""): joint for joint in ElementTree.fromstring(text).iter("joint")}
        for number in range(1, 8):
            found = next(joint for name, joint in joints.items() if name.endswith(f"joint{number}"))
            limit, near_end = found.find("limit"), found.find("position_based_velocity_limits")
            assert limit is not None and near_end is not None
            named = [(limit, "lower"), (limit, "upper"), (limit, "velocity")]
            named += [(near_end, "velocity_offset"), (near_end, "deceleration_limit")]
            columns.append([float(element.attrib[name]) for element, name in named])
    except (ElementTree.ParseError, StopIteration, AssertionError, KeyError, ValueError) as error:
        raise ArmError(
            "the robot's model does not tell the limits of all seven joints: needs system image 5.9 or newer"
        ) from error
    return JointLimits(*np.array(columns).T)
