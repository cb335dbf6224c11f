"""From what is seen to what the joints should do, at 20 Hz on a clock that is handed in.

    seen -> (d, v) in the motion frame, tilt -> policy -> (delta, tilt) -> pose -> joints -> robot

The path knows nothing of the twin: it takes a ball's position and velocity and measured joints, and gives
joints. `run_trial` closes the loop around a twin; how the ball is seen is a function handed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from dris.catching.settings import GRAVITY, CatchingConfig
from dris.catching.task import CatchingTask
from dris.env import Observation
from dris.evaluate import Agent
from dris.names import agent_maker
from dris.twin.kinematics import Kinematics
from dris.twin.launch import Laid, Launch
from dris.twin.objects import Thing
from dris.twin.twin import TICK_S, State, Twin

TRIAL_S = 10.0
"""A catch counts if the thing is still on the plate this long after the robot began [paper]."""
SETTLED_S = 1.0
"""The training's episodes end here, and their success is read."""


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
        self._kinematics = Kinematics(config.home)
        self._low = self._kinematics.home_position + config.workspace_low
        self._high = self._kinematics.home_position + config.workspace_high
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
        target = np.clip(wished, self._low, self._high)
        joints, reached = self._kinematics.solve(target, to_base[:2, :2] @ tilt, q)
        limited = limited or bool((wished != target).any()) or not reached
        return Decision(self._clock(), states, condition, action, joints, limited)


def decode(config: CatchingConfig, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Displacement [3] and tilt [2] in the motion frame that an action [5] asks for; was it cut.

    The meaning is the training's: components in [-1, 1], displacement by the signed square, tilt in
    proportion and inside its disc.
    """
    inside = np.clip(action, -1.0, 1.0)
    displacement = config.displacement * inside[:3] * np.abs(inside[:3])
    tilt = config.max_tilt * inside[3:]
    size = float(np.linalg.norm(tilt))
    limited = bool((inside != action).any()) or size > config.max_tilt
    return displacement, tilt * (config.max_tilt / max(size, config.max_tilt)), limited


def about_z(angle: float) -> np.ndarray:
    """R_z(angle)."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def tilt_of(normal: np.ndarray) -> np.ndarray:
    """Tilt vector [2] of a unit normal [3]: n = (sin a sin b, -cos a sin b, cos b)."""
    sine = math.hypot(normal[0], normal[1])
    if sine < 1e-9:
        return np.zeros(2)
    return np.array([-normal[1], normal[0]]) * (math.atan2(sine, normal[2]) / sine)


def arrival_s(state: State, radius: float) -> float:
    """Time until a thing in free fall is at the plate's height [s]; infinite if it never will."""
    drop = float(state.thing_position[2] - radius - state.plate_position[2])
    rise = float(state.thing_velocity[2])
    square = rise**2 + 2 * GRAVITY * drop
    return math.inf if square < 0 else (rise + math.sqrt(square)) / GRAVITY


@dataclass(frozen=True)
class Trial:
    """What became of one trial."""

    caught: bool
    """On the plate `TRIAL_S` after the robot began."""
    settled: bool
    """By the training's measure: on the plate and slower than 0.1 m/s, one second after the robot began."""
    lost_s: float | None
    """When the thing was given up, since the robot began [s]."""
    speed_share: float
    """Fastest joint as a share of its FCI speed limit; above 1 the real robot would have stopped."""
    limited_share: float
    """Share of ticks in which a torque or its rate was cut."""
    decisions: list[Decision] = field(repr=False)
    states: list[State] = field(repr=False)
    """At every control step, before it is taken, and at the end."""


def make_agent(name: str, steps: int) -> tuple[CatchingConfig, Callable[[], Agent]]:
    """What a policy's actions mean, and a function that makes the agent for one trial of `steps` steps."""
    make_task, maker = agent_maker(name)
    task = make_task()
    if not isinstance(task, CatchingTask):
        raise ValueError(f"'{name}' was trained on {type(task).__name__}; the twin catches")
    longer = task.changed(horizon=steps)  # VelTrack counts its steps
    return task.config, lambda: maker(longer, 1)


Look = Callable[[Twin], tuple[np.ndarray, np.ndarray]]
"""How a thing is seen: position and velocity [3] in the base frame."""


def perfect(twin: Twin) -> tuple[np.ndarray, np.ndarray]:
    """See the truth, without delay."""
    state = twin.state()
    return state.thing_position, state.thing_velocity


def run_trial(
    policy: str | tuple[CatchingConfig, Callable[[], Agent]],
    thing: Thing,
    launch: Launch,
    seed: int,
    twin: Twin | None = None,
    look: Look = perfect,
    lead_s: float | None = 0.1,
    duration_s: float = TRIAL_S,
) -> Trial:
    """One trial.

    Args:
        policy: Its name, or what `make_agent` returns (faster for many trials).
        thing: What to catch.
        launch: How it comes.
        seed: Of the launch.
        twin: To use again; a new one otherwise.
        look: How the thing is seen.
        lead_s: The robot begins this long before the thing arrives [s], as in training; None: at once.
        duration_s: From there to the end [s].
    """
    if isinstance(policy, str):
        policy = make_agent(policy, math.ceil(duration_s / CatchingConfig().step_s))
    config, agent_of = policy
    twin = twin or Twin()
    state = twin.reset(thing, launch, seed)
    if lead_s is not None and not isinstance(launch, Laid):
        while arrival_s(state, thing.radius) > lead_s:
            twin.advance(1)
            state = twin.state()
    controller = Controller(agent_of(), config, lambda: twin.time_s)
    decisions, states, settled, lost_s = [], [], False, None
    began, last = twin.ticks, twin.ticks + round(duration_s / TICK_S)
    while twin.ticks < last and lost_s is None:
        if controller.due():
            state = twin.state()
            states.append(state)
            decision = controller.step(*look(twin), state.q)
            decisions.append(decision)
            twin.set_reference(decision.joints)
            if is_lost(state):
                lost_s = (twin.ticks - began) * TICK_S
        twin.advance(1)
        if twin.ticks - began == round(SETTLED_S / TICK_S):
            settled = is_settled(twin.state(), thing, config)
    state = twin.state()
    states.append(state)
    return Trial(
        caught=lost_s is None and state.on_plate(thing.reach),
        settled=settled,
        lost_s=lost_s,
        speed_share=float((twin.fastest / twin.speed_limit).max()),
        limited_share=twin.limited_ticks / max(twin.ticks, 1),
        decisions=decisions,
        states=states,
    )


def is_settled(state: State, thing: Thing, config: CatchingConfig) -> bool:
    """The training's success: on the plate and slow."""
    speed = float(np.linalg.norm(state.thing_velocity))
    return state.on_plate(thing.reach, config.success_gap) and speed < config.success_speed


def is_lost(state: State) -> bool:
    """Whether the thing has fallen a hand's breadth below the plate, from where nothing brings it back."""
    return bool(state.thing_position[2] < state.plate_position[2] - 0.15)
