"""What clients can set on the robot, checked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dris.lab.fci.limits import LARGEST_NUMBER, Thresholds, sensible
from dris.lab.fci.plant import STIFFNESS
from dris.lab.fci.protocol import Command, Request

MOST_JOINT_STIFFNESS = 14250.0
"""[Nm/rad]"""
CARTESIAN_STIFFNESS = ((10.0, 3000.0), (1.0, 300.0))
"""Ranges along and about the axes [N/m, Nm/rad]."""
MOST_LOAD = 5.0
"""[kg] [assumed; an FR3 carries 3]"""
HAND_TURN, HAND_REACH = -np.pi / 4, 0.1034
"""Franka's hand on the flange: turn about z [rad], and from flange to fingertips [m]."""


class Refused(ValueError):
    """A setting that the robot does not take."""


def hand_pose() -> np.ndarray:
    """[4, 4] of the nominal end effector, between the hand's fingertips, in the flange frame."""
    pose = np.eye(4)
    c, s = np.cos(HAND_TURN), np.sin(HAND_TURN)
    pose[:2, :2], pose[2, 3] = ((c, -s), (s, c)), HAND_REACH
    return pose


@dataclass(frozen=True, eq=False)
class Settings:
    """As they are until a client changes them."""

    thresholds: Thresholds = field(default_factory=Thresholds.default)
    """The "nominal" ones; those for accelerations are checked and left."""
    joint_stiffness: np.ndarray = field(default_factory=lambda: np.array(STIFFNESS))
    cartesian_stiffness: np.ndarray = field(
        default_factory=lambda: np.array([2000.0, 2000, 2000, 100, 100, 100])
    )
    guiding: tuple[bool, ...] = (True,) * 6 + (False,)
    stiffness_frame: np.ndarray = field(default_factory=lambda: np.eye(4))
    """EE_T_K"""
    end_effector: np.ndarray = field(default_factory=lambda: np.eye(4))
    """NE_T_EE"""
    load_mass: float = 0.0
    load_centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    load_inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def flange_to_end(self) -> np.ndarray:
        """F_T_EE [4, 4]."""
        return hand_pose() @ self.end_effector

    def flange_to_stiffness(self) -> np.ndarray:
        """[4, 4] of the stiffness frame K, in which outer forces are told, in the flange frame."""
        return self.flange_to_end() @ self.stiffness_frame

    def changed(self, request: Request) -> Settings:
        """With what a request sets.

        Raises:
            Refused: It makes no sense.
        """
        body = request.body
        for name in body.dtype.names or ():
            if not sensible(body[name]):
                raise Refused(f"{name} must be finite and at most {LARGEST_NUMBER:g}, got {body[name]}")
        if request.command == Command.SET_COLLISION_BEHAVIOR:
            return replace(self, thresholds=_thresholds(body))
        if request.command == Command.SET_JOINT_IMPEDANCE:
            stiffness = body["stiffness"].copy()
            if (stiffness < 0).any() or (stiffness > MOST_JOINT_STIFFNESS).any():
                raise Refused(f"stiffness lies in [0, {MOST_JOINT_STIFFNESS:g}] Nm/rad, got {stiffness}")
            return replace(self, joint_stiffness=stiffness)
        if request.command == Command.SET_CARTESIAN_IMPEDANCE:
            return replace(self, cartesian_stiffness=_cartesian(body["stiffness"].copy()))
        if request.command == Command.SET_GUIDING_MODE:
            return replace(self, guiding=(*map(bool, body["axes"]), bool(body["nullspace"])))
        if request.command == Command.SET_EE_TO_K:
            return replace(self, stiffness_frame=_pose(body["pose"]))
        if request.command == Command.SET_NE_TO_EE:
            return replace(self, end_effector=_pose(body["pose"]))
        return self._loaded(body)

    def _loaded(self, body: np.ndarray) -> Settings:
        mass, inertia = float(body["mass"]), body["inertia"].reshape(3, 3).copy()
        if not 0 <= mass <= MOST_LOAD:
            raise Refused(f"a load has 0 to {MOST_LOAD:g} kg, got {mass:g}")
        if not np.allclose(inertia, inertia.T, atol=1e-9) or np.linalg.eigvalsh(inertia).min() < -1e-9:
            raise Refused(f"an inertia is symmetric and not negative, got {inertia.tolist()}")
        return replace(self, load_mass=mass, load_centre=body["centre"].copy(), load_inertia=inertia)


def _thresholds(body: np.ndarray) -> Thresholds:
    for name in body.dtype.names or ():
        lower, upper = body[name]
        if (lower <= 0).any() or (upper < lower).any():
            raise Refused(f"{name}: thresholds are positive and lower <= upper, got {lower}, {upper}")
    return Thresholds(*body["torque_nominal"].copy(), *body["force_nominal"].copy())


def _cartesian(stiffness: np.ndarray) -> np.ndarray:
    for values, (low, high) in zip((stiffness[:3], stiffness[3:]), CARTESIAN_STIFFNESS, strict=True):
        if (values < low).any() or (values > high).any():
            raise Refused(f"Cartesian stiffness lies in [{low:g}, {high:g}], got {values}")
    return stiffness


def _pose(columns: np.ndarray) -> np.ndarray:
    pose = columns.reshape(4, 4).T.copy()
    turn = pose[:3, :3]
    rigid = np.allclose(turn @ turn.T, np.eye(3), atol=1e-5) and np.linalg.det(turn) > 0
    if not rigid or not np.allclose(pose[3], (0, 0, 0, 1)):
        raise Refused(f"a pose is a rotation and a translation, got {pose.tolist()}")
    return pose
