"""The control path of one robot: from what is seen to what its joints should do, at 20 Hz.

    ball -> (d, v) in the motion frame, tilt -> policy -> (delta, tilt) -> pose -> joints -> robot

What an action means is the training's, by the same code (`dris.catching.actions`). The path knows no
simulator, no camera and no torch: a `Robot` tells its joints and takes references, a `BallObserver` tells
where the ball is. The twin, the training world and a real arm are robots; the truth, noise and cameras are
observers. `dris.catching.loop` closes the loop around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dris.catching.actions import decode, keep_inside, slow_down
from dris.catching.frames import motion_to_base, tilt_of_normal, to_motion
from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.perception.arrival import Arrival
from dris.perception.plate import Plate

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Action [5] for a ball's state [6] and the plate's tilt [2], both in the motion frame."""


class Robot(Protocol):
    """An arm under the torque law tau = K (q~ - q) - D dq + C + g."""

    @property
    def time_s(self) -> float:
        """Its clock [s]; any origin."""

    def joints(self) -> np.ndarray:
        """Measured joint positions [M] [rad]."""

    def set_reference(self, q: np.ndarray) -> None:
        """Joints q~ [M] to go to from now on."""


@dataclass(frozen=True, eq=False)
class BallEstimate:
    """A ball's state, base frame."""

    position: np.ndarray
    """[3] [m]"""
    velocity: np.ndarray
    """[3] [m/s]"""
    age_s: float = 0.0
    """Of the last sight that it rests on [s]."""
    deviation: np.ndarray | None = None
    """[6] of position [m] and velocity [m/s], as a belief has it; None: nobody knows."""


class BallObserver(Protocol):
    """Whoever tells where the ball is."""

    @property
    def radius_m(self) -> float:
        """Of the ball that it looks for."""

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """Learn the robot's joints [M]; called every few milliseconds."""

    def observe_plate(self, plate: Plate) -> None:
        """Learn where the plate is, as the robot's own joints say.

        Called before every control step, and while the robot approaches.
        """

    def estimate(self, time_s: float) -> BallEstimate | None:
        """The ball at a time, or None if it is out of sight."""

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """When and where the ball's centre sinks to a height, as known at a time, if it is."""


Trust = tuple[str, str]
"""How far an observer believes itself, and why. fine; doubt: what it has of the ball is not to be acted on;
hold: something is wrong with what it sees by, or it sees two balls: no further; stop: somebody must look."""
FINE: Trust = ("fine", "")


def trust_of(observer: BallObserver) -> Trust:
    """How far an observer believes itself; one that does not say does."""
    return getattr(observer, "trust", FINE)


class Troubles(NamedTuple):
    """What a belief met so far that it did not expect."""

    refused: int
    """Sights that surprised too much."""
    restarts: int
    """Times that it began anew because of them, or with its clock."""
    repaired: int
    """Instances that a sight put where they cannot be."""


def troubles_of(observer: BallObserver) -> Troubles | None:
    """Those of an observer's belief; None if it has none."""
    return getattr(observer, "troubles", None)


class LookingObserver(BallObserver, Protocol):
    """One that looks while time passes."""

    def tick(self) -> None:
        """Look, if it is time to; called every millisecond."""

    @property
    def found_share(self) -> float:
        """Share of looks in which something was found."""


@dataclass(frozen=True)
class Decision:
    """One control step: what was seen, asked for and sent."""

    time_s: float
    states: np.ndarray
    """[6] d and v in the motion frame."""
    condition: np.ndarray
    """[2] the plate's tilt in the motion frame."""
    action: np.ndarray
    """[5] as the policy gave it."""
    joints: np.ndarray
    """[7] reference."""
    limited: bool
    """Whether a limit changed what was asked for: action range, tilt, workspace, reach, speed."""


class Controller:
    """A policy on one robot, for one catch.

    It starts with the first `step`: the motion frame is the plate's place then, turned to the ball.
    """

    def __init__(self, act: Act, config: CatchingConfig):
        """Get ready.

        Args:
            act: The policy.
            config: What actions mean: step, home, workspace, scales, speed.
        """
        self._act, self._config = act, config
        self.step_s = config.step_s
        self.kinematics = Kinematics(config.home, config.mount)
        self._box_middle = self.kinematics.home_position
        self._motion_to_base: np.ndarray | None = None
        self._began_s = 0.0
        self._steps = 0

    def due(self, now_s: float) -> bool:
        """Whether the next control step should be taken now."""
        return self._motion_to_base is None or now_s >= self._began_s + self._steps * self.step_s - 1e-9

    def skip(self) -> None:
        """Let a control step pass without a decision, because nothing was seen."""
        self._steps += self._motion_to_base is not None

    def step(self, now_s: float, ball: BallEstimate, q: np.ndarray) -> Decision:
        """Decide from a ball's state and measured joints [7].

        Raises:
            ValueError: What is seen, or the policy's action, is not finite.
        """
        seen = np.concatenate((ball.position, ball.velocity, q))
        if not np.isfinite(seen).all():  # whatever the policy would make of it
            raise ValueError(f"what is seen is not finite: ball and joints {seen.tolist()}")
        plate, rotation = self.kinematics.plate(q)
        offset = ball.position - plate
        if self._motion_to_base is None:
            self._began_s = now_s
            self._motion_to_base = motion_to_base(np.asarray(math.atan2(offset[1], offset[0])))
            if self._config.workspace_around == "start":
                self._box_middle = plate
        to_base = self._motion_to_base
        self._steps += 1
        states = np.concatenate((to_motion(offset, to_base), to_motion(ball.velocity, to_base)))
        condition = tilt_of_normal(to_motion(rotation[:, 2], to_base))
        action = np.asarray(self._act(states, condition), dtype=float)
        if not np.isfinite(action).all():
            raise ValueError(f"the policy's action is not finite: {action.tolist()} for {states.tolist()}")
        inside = action.clip(-1.0, 1.0)
        displacement, tilt, cut = decode(self._config, inside)
        wished = plate + to_base @ displacement
        target = keep_inside(self._config, wished, self._box_middle, to_base)
        joints, reached = self.kinematics.solve(target, to_base[:2, :2] @ tilt, q)
        config = self._config
        down, up = self.kinematics.position_error_bounds(
            q, config.joint_speed, config.stiffness, config.damping
        )
        joints, slowed = slow_down(joints, q, config.reference_lead * np.where(joints > q, up, down))
        limits = (cut, slowed, not reached, (inside != action).any(), (wished != target).any())
        return Decision(now_s, states, condition, action, joints, any(map(bool, limits)))
