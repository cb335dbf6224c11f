"""One trial: see the thing, go where it will arrive, wait for the moment, act at 20 Hz, judge.

How the thing is seen is a value handed in: the truth, or cameras (`dris.lab.camera_observer`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dris.catching.approach import Approach, Outcome
from dris.catching.control import Act, BallEstimate, Controller, Decision, LookingObserver, troubles_of
from dris.catching.loop import WATCH_TICKS, CatchLoop
from dris.catching.settings import CatchingConfig
from dris.catching.success import caught
from dris.lab.belief_observer import with_belief
from dris.lab.drives import as_driven, drive
from dris.lab.launch import Laid, Launch, Placed
from dris.lab.model import PLATE_HALF
from dris.lab.objects import CatchObject
from dris.lab.observer import TruthObserver
from dris.lab.state import State
from dris.lab.twin import FCI_TORQUE_RATE, TICK_S, Twin

if TYPE_CHECKING:  # brings torch, which a deployment does without: it takes from here what a trial is
    from dris.evaluation.registry import PolicyHandle

TRIAL_S = 10.0
"""A catch counts if the thing is still on the plate this long after the robot began [paper]."""
SETTLED_S = 1.0
"""The training's episodes end here, and their success is read."""
SETTLED_TICKS = round(SETTLED_S / TICK_S)
GIVE_UP_S = 5.0
"""If nothing has come by then, nothing will [s]."""
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
    belief: dict[str, int]
    """What a belief refused and put right, and how often it began anew; empty without one."""
    decisions: list[Decision] = field(repr=False)
    states: list[State] = field(repr=False)
    """At every control step, before it is taken, and at the end."""


def run_trial(
    policy: str | PolicyHandle,
    thing: CatchObject,
    launch: Launch,
    seed: int,
    twin: Twin | None = None,
    observer: LookingObserver | None = None,
    duration_s: float = TRIAL_S,
    watch: Callable[[Twin, LookingObserver], None] | None = None,
    execution_error: float = 0.0,
    until_lost: bool = True,
    on_step: Callable[[BallEstimate | None], None] = lambda seen: None,
) -> Trial:
    """One trial.

    The policy begins when the thing is as far from arriving as it was trained to see it first (the middle of
    `lead_s`), or at once if it lies on the plate or was placed. One that was trained to begin at the arrival
    is brought there before: see `dris.catching.approach`.

    Args:
        policy: Its name, or what `find_policy` returns (faster for many trials).
        thing: What to catch.
        launch: How it comes.
        seed: Of the launch.
        twin: To use again; otherwise a new one with the drive `rate-limit`.
        observer: How the thing is seen, on that twin; the truth otherwise.
        duration_s: From the beginning to the end [s].
        watch: Called after every millisecond, for videos.
        execution_error: Half width of the uniform error on every reference [rad].
        until_lost: Whether a trial ends when the thing is lost.
        on_step: Called at every control step with what the policy sees.

    Raises:
        ValueError: The policy was not made to catch, or the twin holds its plate another way.
    """
    from dris.evaluation.registry import find_policy

    handle = find_policy(policy) if isinstance(policy, str) else policy
    config = catching_config(handle)
    twin = twin or Twin(drive("rate-limit", config))
    if twin.config.mount != config.mount:
        raise ValueError(
            f"the twin's hand holds its plate '{twin.config.mount}', the policy was trained with "
            f"'{config.mount}': build the twin from drive(name, policy.task_config)"
        )
    twin.reset(thing, launch, seed)
    eyes = with_belief(observer or TruthObserver(twin), handle.belief, config, twin.kinematics, seed)
    record = _Record(twin, eyes, on_step)
    generator = np.random.default_rng((seed, _EXECUTION))
    loop = CatchLoop(
        twin,
        record.observer,
        Controller(one_robot(handle, duration_s), as_driven(config, twin.config)),
        Approach(config, twin.kinematics) if config.start == "arrival" and comes(launch) else None,
        sum(config.lead_s) / 2 if comes(launch) else None,
        on_step=record.on_step,
        disturb=lambda q: q + generator.uniform(-execution_error, execution_error, len(q)),
    )
    while not _ended(twin, loop, duration_s, until_lost):
        waiting = loop.began_s is None
        loop.tick()
        if waiting and loop.began_s is not None and loop.approach is not None:
            record.approached = _judge_approach(twin, loop.approach, handed_over=True)
        twin.advance(1)
        record.observer.tick()
        if watch is not None:
            watch(twin, record.observer)
        if loop.began_s is not None and round((twin.time_s - loop.began_s) / TICK_S) == SETTLED_TICKS:
            record.settled = is_settled(twin.state(), thing, config)
    return record.outcome(loop)


def catching_config(policy: PolicyHandle) -> CatchingConfig:
    """What a policy's actions mean.

    Raises:
        ValueError: It was not made to catch.
    """
    if not isinstance(policy.task_config, CatchingConfig):
        raise ValueError(f"the policy was trained on {policy.task.__name__}; the twin catches")
    return policy.task_config


def one_robot(policy: PolicyHandle, duration_s: float) -> Act:
    """A policy as one robot's controller asks it, for a while."""
    import torch

    from dris.core.env import Observation

    task = policy.make_task()
    agent = policy.make_agent(task.with_config(horizon=math.ceil(duration_s / task.step_s) + 1), 1)

    def act(states: np.ndarray, condition: np.ndarray) -> np.ndarray:
        seen, tilt = (torch.tensor(values, dtype=torch.float32)[None] for values in (states, condition))
        with torch.inference_mode():
            return agent(Observation(seen[None], tilt))[0].numpy()

    return act


def comes(launch: Launch) -> bool:
    """Whether the thing comes from afar; otherwise it lies on the plate, or was placed near it."""
    return not isinstance(launch, Laid | Placed)


def _ended(twin: Twin, loop: CatchLoop, duration_s: float, until_lost: bool) -> bool:
    """Whether time is up, the thing lost (if that ends a trial), or nothing came."""
    if loop.began_s is not None and twin.time_s - loop.began_s >= duration_s - 0.5 * TICK_S:
        return True
    if loop.began_s is None and twin.time_s > GIVE_UP_S:
        return True
    if not until_lost or twin.ticks % WATCH_TICKS:
        return False
    state = twin.state()
    # What rises below the plate before the robot begins has only just been thrown.
    return is_lost(state) and (loop.began_s is not None or state.thing_velocity[2] <= 0)


def _judge_approach(twin: Twin, approach: Approach, handed_over: bool) -> Approached:
    """How the approach stands now."""
    state, place, facing = twin.state(), None, None
    if handed_over and approach.arrival is not None:
        place = float(np.linalg.norm(state.plate_position - approach.arrival.ball_in_base))
        velocity = approach.arrival.velocity_in_base
        cosine = -float(state.plate_rotation[:, 2] @ velocity) / float(np.linalg.norm(velocity))
        facing = math.acos(min(cosine, 1.0))
    return Approached(approach.outcome, approach.changes, place, facing, twin.speed_share)


class _Record:
    """What a trial is judged by."""

    def __init__(self, twin: Twin, observer: LookingObserver, told: Callable[[BallEstimate | None], None]):
        self.twin, self.observer, self._told = twin, observer, told
        self.approached: Approached | None = None
        self.settled = False
        self._errors: list[tuple[float, float]] = []
        self._states: list[State] = []

    def on_step(self, seen: BallEstimate | None) -> None:
        """Keep the truth, and how far off it is seen."""
        self._told(seen)
        state = self.twin.state()
        self._states.append(state)
        if seen is not None:
            position = float(np.linalg.norm(seen.position - state.thing_position))
            self._errors.append((position, float(np.linalg.norm(seen.velocity - state.thing_velocity))))

    def outcome(self, loop: CatchLoop) -> Trial:
        """Judge."""
        twin, state = self.twin, self.twin.state()
        lost, began_s = is_lost(state), loop.began_s
        if loop.approach is not None and self.approached is None:
            self.approached = _judge_approach(twin, loop.approach, handed_over=False)
        errors = np.sqrt(np.mean(np.square(self._errors), axis=0)).tolist() if self._errors else (None, None)
        return Trial(
            caught=began_s is not None and not lost and state.on_plate(twin.thing.reach),
            settled=self.settled,
            began=began_s is not None,
            lost_s=twin.time_s - began_s if lost and began_s is not None else None,
            blind_steps=loop.blind_steps,
            found_share=self.observer.found_share,
            position_error=errors[0],
            velocity_error=errors[1],
            speed_share=twin.speed_share,
            torque_share=float((twin.largest_torque / twin.torque_limit).max()),
            torque_rate_share=float(twin.largest_rate.max() / FCI_TORQUE_RATE),
            limited_share=twin.limited_ticks / max(twin.ticks, 1),
            governed_share=twin.governed_ticks / max(twin.ticks, 1),
            approach=self.approached,
            belief={} if (found := troubles_of(self.observer)) is None else found._asdict(),
            decisions=loop.decisions,
            states=[*self._states, state],
        )


def is_settled(
    state: State, thing: CatchObject, config: CatchingConfig, slower_than: float | None = None
) -> bool:
    """The training's success: on the disc inside the plate, and slow [m/s], by default as the task has it."""
    seen = np.concatenate((state.thing_position - state.plate_position, state.thing_velocity))
    speed = config.success_speed if slower_than is None else slower_than
    return bool(caught(config, seen, state.plate_rotation[:, 2], thing.reach, PLATE_HALF, speed))


def is_lost(state: State) -> bool:
    """Whether the thing has fallen a hand's breadth below the plate, from where nothing brings it back."""
    return bool(state.thing_position[2] < state.plate_position[2] - 0.15)
