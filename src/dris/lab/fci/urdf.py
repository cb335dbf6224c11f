"""The arm as clients download it: a URDF of fr3.xml without hand and plate, which states tell of.

A client builds its dynamics from it, so that its Coriolis terms and gravity are those of the twin, and reads
the position-dependent speed limits.
"""

from __future__ import annotations

import math
from xml.etree import ElementTree

import mujoco
import numpy as np

from dris.lab.fci.limits import Limits
from dris.lab.model import JOINTS


def arm_urdf(model: mujoco.MjModel, limits: Limits, flange: np.ndarray) -> str:
    """The URDF of an arm.

    Args:
        model: With bodies base, link1 to link7 and joint1 to joint7.
        limits: Of its joints.
        flange: In link 7 [m].
    """
    robot = ElementTree.Element("robot", name="fr3")
    _link(robot, "link0", model, "base")
    for index in range(JOINTS):
        name = f"link{index + 1}"
        _link(robot, name, model, name)
        joint = _joint(robot, f"joint{index + 1}", "revolute", f"link{index}", name)
        body = model.body(name)
        _origin(joint, body.pos, _rotation(body.quat))
        ElementTree.SubElement(joint, "axis", xyz=_text(model.joint(f"joint{index + 1}").axis))
        joints = limits.joints
        ElementTree.SubElement(
            joint,
            "limit",
            effort=_text(limits.torque[index]),
            lower=_text(joints.low[index]),
            upper=_text(joints.high[index]),
            velocity=_text(joints.speed[index]),
        )
        ElementTree.SubElement(
            joint,
            "position_based_velocity_limits",
            deceleration_limit=_text(joints.deceleration[index]),
            velocity_offset=_text(joints.offset[index]),
        )
    ElementTree.SubElement(robot, "link", name="link8")
    _origin(_joint(robot, "joint8", "fixed", f"link{JOINTS}", "link8"), flange, np.eye(3))
    return ElementTree.tostring(robot, encoding="unicode")


def _joint(robot: ElementTree.Element, name: str, kind: str, parent: str, child: str) -> ElementTree.Element:
    joint = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    return joint


def _link(robot: ElementTree.Element, name: str, model: mujoco.MjModel, body: str) -> None:
    found = model.body(body)
    link = ElementTree.SubElement(robot, "link", name=name)
    inertial = ElementTree.SubElement(link, "inertial")
    _origin(inertial, found.ipos, np.eye(3))
    ElementTree.SubElement(inertial, "mass", value=_text(found.mass))
    axes = _rotation(found.iquat)
    full = axes @ np.diag(found.inertia) @ axes.T
    names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    ElementTree.SubElement(inertial, "inertia", {key: _text(full[at]) for key, at in names.items()})


def _origin(element: ElementTree.Element, position: np.ndarray, rotation: np.ndarray) -> None:
    """Place it; a URDF turns about its fixed x, y and z, in this order."""
    across = math.hypot(rotation[0, 0], rotation[1, 0])
    angles = (
        math.atan2(rotation[2, 1], rotation[2, 2]),
        math.atan2(-rotation[2, 0], across),
        math.atan2(rotation[1, 0], rotation[0, 0]),
    )
    ElementTree.SubElement(element, "origin", rpy=_text(angles), xyz=_text(position))


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, quaternion)
    return flat.reshape(3, 3)


def _text(values: np.ndarray | float | tuple[float, ...]) -> str:
    return " ".join(f"{value:.12g}" for value in np.atleast_1d(np.asarray(values, dtype=float)))
