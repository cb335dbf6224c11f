"""One trial: see the thing, go where it will arrive, wait for the moment, act at 20 Hz, judge.

How the thing is seen is a value handed in (`Sight`): the truth here, cameras in `dris.lab.camera_observer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from dris.catching.approach import Approach, Outcome
from dris.catching.control import Controller, Decision
from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.rollout import Agent
from dris.core.task import Task
from dris.evaluation.registry import agent_maker
from dris.lab.drives import drive
from dris.lab.launch import Laid, Launch, Placed
from dris.lab.model import PLATE_HALF
from dris.lab.objects import Thing
from dris.lab.observer import PerfectSight, Sight
from dris.lab.twin import FCI_TORQUE_RATE, TICK_S, State, Twin

TRIAL_S = 10.0
"""A catch counts if the thing is still on the plate this long after the robot began [paper]."""
SETTLED_S = 1.0
"""The training's episodes end here, and their success is read."""
GIVE_UP_S = 5.0
"""If nothing has come by then, nothing will [s]."""
WATCH_TICKS = 5
"""Arrival and loss are looked for every so many milliseconds."""
_EXECUTION = 1
"""Tells the seed of execution errors from the launch's."""


@dataclass(frozen=True)
class Approached:
    """What became of an approach."""

    outcome: Outcome
    """At the end of it."""
    changes: list[tuple[float, str]]
    """When the outcome changed [s since the launch], and to what, with the reason."""
    place_error: float | None
    """At the hand-over, the plate's centre from where the ball is expected [m]; None if there was none."""
    facing_error: float | None
    """Angle of its normal from the estimated velocity [rad]."""
    speed_share: float
    """Fastest joint until then as a share of its FCI speed limit."""


@dataclass(frozen=True)
class Trial:
    """What became of one trial."""

    caught: bool
    """On the plate `TRIAL_S` after the robot began [paper]."""
    settled: bool
    """By the training's measure: on the plate and slower than 0.1 m/s, one second after the robot began."""
    began: bool
    """Whether the robot saw the thing in time to begin."""
    lost_s: float | None
    """When the thing was given up, since the robot began [s]."""
    blind_steps: int
    """Control steps without a valid state; the robot then holds its last reference."""
    found_share: float
    """Share of frames in which something was found."""
    position_error: float | None
    """RMS of the seen position against the truth, over the control steps [m]; None if nothing was seen."""
    velocity_error: float | None
    """RMS of the seen velocity [m/s]."""
    speed_share: float
    """Fastest joint as a share of what FCI allows where it is; above 1 the real robot would have stopped."""
    torque_share: float
    """Largest torque that the law asked for, as a share of the joint's limit."""
    torque_rate_share: float
    """Largest change of torque that it asked for in a millisecond, as a share of FCI's 1000 Nm/s."""
    limited_share: float
    """Share of ticks in which a torque or its rate was cut: the law asked for more than FCI accepts."""
    governed_share: float
    """Share of ticks in which the drive's governor held the law back so that it did not ask."""
    approach: Approached | None
    """What became of the approach; None if there was none to make."""
    decisions: list[Decision] = field(repr=False)
    states: list[State] = field(repr=False)
    """At every control step, before it is taken, and at the end."""


Player = tuple[CatchingConfig, Callable[[], Agent]]
"""What a policy's actions mean, and a function that makes the agent for one trial."""


def make_player(name: str, duration_s: float = TRIAL_S) -> Player:
    """A policy by its name, for trials of a length."""
    return player_of(*agent_maker(name), duration_s)


def player_of(make_task: Callable[[], Task], make_agent: Callable[..., Agent], duration_s: float) -> Player:
    """An agent and the task it was made for, for trials of a length.

    Raises:
        ValueError: The task is another.
    """
    task = make_task()
    if not isinstance(task, CatchingTask):
        raise ValueError(f"the policy was trained on {type(task).__name__}; the twin catches")
    longer = task.changed(horizon=math.ceil(duration_s / task.step_s) + 1)  # VelTrack counts its steps
    return task.config, lambda: make_agent(longer, 1)


def run_trial(
    player: str | Player,
    thing: Thing,
    launch: Launch,
    seed: int,
    twin: Twin | None = None,
    sight: Sight | None = None,
    duration_s: float = TRIAL_S,
    watch: Callable[[Twin, Sight], None] | None = None,
    execution_error: float = 0.0,
    until_lost: bool = True,
) -> Trial:
    """One trial.

    The policy begins when the thing is as far from arriving as it was trained to see it first (the middle of
    `lead_s`), or at once if it lies on the plate or was placed. One that was trained to begin at the arrival
    is brought there before: see `dris.catching.approach`.

    Args:
        player: Name of a policy, or what `make_player` returns (faster for many trials).
        thing: What to catch.
        launch: How it comes.
        seed: Of the launch.
        twin: To use again; otherwise a new one with the drive `fci`.
        sight: How the thing is seen; the truth otherwise.
        duration_s: From the beginning to the end [s].
        watch: Called after every millisecond, for videos.
        execution_error: Half width of the uniform error on every reference [rad].
        until_lost: Whether a trial ends when the thing is lost.

    Raises:
        ValueError: The twin holds its plate another way than the policy was trained with.
    """
    config, agent_of = make_player(player, duration_s) if isinstance(player, str) else player
    twin, sight = twin or Twin(drive("fci", config)), sight or PerfectSight()
    if twin.config.mount != config.mount:
        raise ValueError(
            f"the twin's hand holds its plate '{twin.config.mount}', the policy was trained with "
            f"'{config.mount}': build the twin from drive(name, player[0])"
        )
    twin.reset(thing, launch, seed)
    lead_s = None if isinstance(launch, Laid | Placed) else sum(config.lead_s) / 2
    if config.start == "arrival":  # the drive says how fast joints may go; see dris.lab.drives
        config = replace(config, joint_speed=twin.config.joint_speed)
    controller = Controller(agent_of(), config, lambda: twin.time_s)
    loop = _Loop(twin, sight, controller, config, execution_error, seed)
    if lead_s is None:
        loop.tell_plate(twin.state())
    elif config.start == "arrival":
        loop.approach = Approach(config, twin.kinematics)
    while not loop.ended(duration_s, until_lost):
        if loop.began is None and loop.approach is not None:
            loop.go(loop.approach)
        if loop.began is None and loop.may_begin(lead_s):
            loop.begin()
        if loop.began is not None and loop.controller.due():
            loop.step()
        twin.advance(1)
        sight.tick(twin)
        if watch is not None:
            watch(twin, sight)
        if loop.began is not None and twin.ticks - loop.began == round(SETTLED_S / TICK_S):
            loop.settled = is_settled(twin.state(), thing, config)
    return loop.outcome()


class _Loop:
    """The memory of one trial."""

    def __init__(
        self,
        twin: Twin,
        sight: Sight,
        controller: Controller,
        config: CatchingConfig,
        execution_error: float,
        seed: int,
    ):
        self.twin, self.sight, self.controller, self._config = twin, sight, controller, config
        self._execution_error = execution_error
        self._generator = np.random.default_rng((seed, _EXECUTION))
        self.approach: Approach | None = None
        self._approached: Approached | None = None
        self.began: int | None = None
        self.settled = False
        self._blind = 0
        self._errors: list[tuple[float, float]] = []
        self._states: list[State] = []
        self._decisions: list[Decision] = []
        self._told, self._plate = twin.ticks, twin.state().plate_position

    def ended(self, duration_s: float, until_lost: bool) -> bool:
        """Whether time is up, the thing lost (if that ends a trial), or nothing came."""
        if self.began is not None and self.twin.ticks - self.began >= round(duration_s / TICK_S):
            return True
        if self.began is None and self.twin.time_s > GIVE_UP_S:
            return True
        if not until_lost or self.twin.ticks % WATCH_TICKS:
            return False
        state = self.twin.state()
        # What rises below the plate before the robot begins has only just been thrown.
        return is_lost(state) and (self.began is not None or state.thing_velocity[2] <= 0)

    def may_begin(self, lead_s: float | None) -> bool:
        """Whether the thing is as near as the policy was trained to see it first; None: if it is seen."""
        if self.approach is not None:
            if not self.approach.due(self.twin.time_s):
                return False
        elif lead_s is not None:
            if self.twin.ticks % WATCH_TICKS:
                return False
            left = self.sight.arrives_in(self.twin)
            if left is None or left > lead_s:
                return False
        return self.sight.ball(self.twin) is not None

    def tell_plate(self, state: State) -> None:
        """Tell the sight where the plate is, and its mean velocity since it was last told."""
        elapsed_s = max(self.twin.ticks - self._told, 1) * TICK_S
        self.sight.tell_plate(state, (state.plate_position - self._plate) / elapsed_s)
        self._told, self._plate = self.twin.ticks, state.plate_position

    def go(self, approach: Approach) -> None:
        """One tick of the approach."""
        twin = self.twin
        if twin.ticks % WATCH_TICKS == 0:
            self.tell_plate(twin.state())
            height = float(twin.kinematics.home_position[2])
            approach.update(self.sight.arrival(twin, height), twin.time_s)
        twin.set_reference(approach.reference(twin.time_s))

    def begin(self) -> None:
        """Hand over to the policy."""
        self.began = self.twin.ticks
        if self.approach is not None:
            self._approached = self._judge(self.approach)

    def _judge(self, approach: Approach) -> Approached:
        """How the approach stands now."""
        state, place, facing = self.twin.state(), None, None
        if self.began is not None and approach.arrival is not None:
            place = float(np.linalg.norm(state.plate_position - approach.arrival.ball_in_base))
            velocity = approach.arrival.velocity_in_base
            cosine = -float(state.plate_rotation[:, 2] @ velocity) / float(np.linalg.norm(velocity))
            facing = math.acos(min(cosine, 1.0))
        return Approached(approach.outcome, approach.changes, place, facing, self.twin.speed_share)

    def step(self) -> None:
        """One control step; without a valid state the last reference stays."""
        state = self.twin.state()
        self._states.append(state)
        self.tell_plate(state)
        seen = self.sight.ball(self.twin)
        if seen is None:
            self._blind += 1
            self.controller.skip()
            return
        truth = (state.thing_position, state.thing_velocity)
        position, speed = (float(np.linalg.norm(s - t)) for s, t in zip(seen, truth, strict=True))
        self._errors.append((position, speed))
        decision = self.controller.step(*seen, state.q)
        self._decisions.append(decision)
        width = self._execution_error
        self.twin.set_reference(decision.joints + self._generator.uniform(-width, width, len(state.q)))

    def outcome(self) -> Trial:
        """Judge."""
        twin, state = self.twin, self.twin.state()
        lost = is_lost(state)
        if self.approach is not None and self._approached is None:
            self._approached = self._judge(self.approach)
        errors = np.sqrt(np.mean(np.square(self._errors), axis=0)).tolist() if self._errors else (None, None)
        return Trial(
            caught=self.began is not None and not lost and state.on_plate(twin.thing.reach),
            settled=self.settled,
            began=self.began is not None,
            lost_s=(twin.ticks - self.began) * TICK_S if lost and self.began is not None else None,
            blind_steps=self._blind,
            found_share=self.sight.found_share,
            position_error=errors[0],
            velocity_error=errors[1],
            speed_share=twin.speed_share,
            torque_share=float((twin.largest_torque / twin.torque_limit).max()),
            torque_rate_share=float(twin.largest_rate.max() / FCI_TORQUE_RATE),
            limited_share=twin.limited_ticks / max(twin.ticks, 1),
            governed_share=twin.governed_ticks / max(twin.ticks, 1),
            approach=self._approached,
            decisions=self._decisions,
            states=[*self._states, state],
        )


def is_settled(state: State, thing: Thing, config: CatchingConfig, slower_than: float | None = None) -> bool:
    """The training's success: on the disc inside the plate, and slow [m/s], by default as the task has it."""
    speed = float(np.linalg.norm(state.thing_velocity))
    across = (state.plate_rotation.T @ (state.thing_position - state.plate_position))[:2]
    inside = state.on_plate(thing.reach, config.success_gap) and float(np.hypot(*across)) <= PLATE_HALF
    return inside and speed < (config.success_speed if slower_than is None else slower_than)


def is_lost(state: State) -> bool:
    """Whether the thing has fallen a hand's breadth below the plate, from where nothing brings it back."""
    return bool(state.thing_position[2] < state.plate_position[2] - 0.15)
