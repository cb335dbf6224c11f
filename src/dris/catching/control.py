"""From what is seen to what the joints should do, at 20 Hz on a clock that is handed in.

    seen -> (d, v) in the motion frame, tilt -> policy -> (delta, tilt) -> pose -> joints -> robot

The path knows nothing of the twin: it takes a ball's position and velocity and measured joints, and gives
joints. `dris.lab.trial` closes the loop around a twin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.core.env import Observation
from dris.core.rollout import Agent
from dris.perception.arrival import tilt_of


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
    """Whether a limit changed what was asked for: action range, tilt, workspace, reach."""


class Controller:
    """The control path of one trial.

    It starts with the first `step`: the motion frame is the plate's place then, turned to the ball.
    """

    def __init__(self, agent: Agent, config: CatchingConfig, clock: Callable[[], float]):
        """Get ready.

        Args:
            agent: Made for one set.
            config: What actions mean: step, home, workspace, scales.
            clock: Seconds; any origin. In the twin the robot's own time.
        """
        self._agent, self._config, self._clock = agent, config, clock
        self.step_s = config.step_s
        self._kinematics = Kinematics(config.home, config.mount)
        self._low, self._high = np.array(config.workspace_low), np.array(config.workspace_high)
        self._box_middle, self._box_to_base = self._kinematics.home_position, np.eye(3)
        self._motion_to_base: np.ndarray | None = None
        self._began_s = 0.0
        self._steps = 0

    def due(self) -> bool:
        """Whether the next control step should be taken now."""
        if self._motion_to_base is None:
            return True
        return self._clock() >= self._began_s + self._steps * self._config.step_s - 1e-9

    def skip(self) -> None:
        """Let a control step pass without a decision, because nothing was seen."""
        self._steps += self._motion_to_base is not None

    def step(self, ball_position: np.ndarray, ball_velocity: np.ndarray, q: np.ndarray) -> Decision:
        """Decide from a ball's position and velocity [3] (base frame) and measured joints [7]."""
        plate, rotation = self._kinematics.plate(q)
        offset = ball_position - plate
        if self._motion_to_base is None:
            self._began_s = self._clock()
            self._motion_to_base = about_z(math.atan2(offset[1], offset[0]))
            if self._config.workspace_around == "start":
                self._box_middle, self._box_to_base = plate, self._motion_to_base
        to_base = self._motion_to_base
        self._steps += 1
        states = np.concatenate((to_base.T @ offset, to_base.T @ ball_velocity))
        condition = tilt_of(to_base.T @ rotation[:, 2])
        observation = Observation(
            torch.tensor(states, dtype=torch.float32).reshape(1, 1, 6),
            torch.tensor(condition, dtype=torch.float32).reshape(1, 2),
        )
        with torch.inference_mode():
            action = self._agent(observation)[0].numpy().astype(float)
        if not np.isfinite(action).all():
            raise ValueError(f"the policy's action is not finite: {action.tolist()} for {states.tolist()}")
        displacement, tilt, limited = decode(self._config, action)
        wished = plate + to_base @ displacement
        in_box = self._box_to_base.T @ (wished - self._box_middle)
        target = self._box_middle + self._box_to_base @ np.clip(in_box, self._low, self._high)
        joints, reached = self._kinematics.solve(target, to_base[:2, :2] @ tilt, q)
        joints, slowed = self._slow_down(joints, q)
        limited = limited or bool(np.abs(wished - target).max() > 1e-9) or not reached or slowed
        return Decision(self._clock(), states, condition, action, joints, limited)

    def _slow_down(self, joints: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, bool]:
        """Shorten the way to joints [7] until none is asked to exceed the task's speed limit."""
        config = self._config
        lead = self._kinematics.largest_error(config.joint_speed, config.stiffness, config.damping)
        share = float((lead / np.maximum(np.abs(joints - q), 1e-9)).min())
        return q + min(share, 1.0) * (joints - q), share < 1


def decode(config: CatchingConfig, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Displacement [3] and tilt [2] in the motion frame that an action [5] asks for; was it cut.

    The meaning is the training's: components in [-1, 1], displacement in proportion or by the signed
    square, tilt in proportion and inside its disc.
    """
    inside = np.clip(action, -1.0, 1.0)
    displacement = config.displacement * inside[:3]
    if config.displacement_curve == "square":
        displacement = displacement * np.abs(inside[:3])
    tilt = config.max_tilt * inside[3:]
    size = float(np.linalg.norm(tilt))
    limited = bool((inside != action).any()) or size > config.max_tilt
    return displacement, tilt * (config.max_tilt / max(size, config.max_tilt)), limited


def about_z(angle: float) -> np.ndarray:
    """R_z(angle)."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
