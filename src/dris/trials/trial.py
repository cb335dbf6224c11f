"""One trial from pictures to torques: see, wait for the moment, act at 20 Hz, ten seconds.

cameras -> detection -> track -> (d, v) -> encoder -> policy -> pose -> joints -> torques
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dris.catching.settings import CatchingConfig
from dris.evaluate import Agent
from dris.trials.sight import Sight, SightConfig
from dris.twin.control import SETTLED_S, TRIAL_S, Controller, is_lost, is_settled
from dris.twin.launch import Laid, Launch
from dris.twin.objects import Thing
from dris.twin.twin import TICK_S, State, Twin

GIVE_UP_S = 5.0
"""If nothing has come by then, nothing will [s]."""


@dataclass(frozen=True)
class SeenTrial:
    """What became of a trial."""

    caught: bool
    """On the plate ten seconds after the robot began [paper]."""
    settled: bool
    """By the training's measure, one second after the robot began."""
    began: bool
    """Whether the robot saw the ball in time to begin."""
    lost_s: float | None
    """When the ball was lost, since the robot began [s]."""
    blind_steps: int
    """Control steps without a valid state; the robot then holds its last reference."""
    found_share: float
    """Frames in which something was found."""
    position_error: float
    """RMS of the seen position against the truth, over the control steps [m]."""
    velocity_error: float
    """RMS of the seen velocity [m/s]."""
    speed_share: float
    """Fastest joint as a share of its FCI speed limit."""
    states: list[State] = field(repr=False)


def run_seen_trial(
    agent: tuple[CatchingConfig, Callable[[], Agent]],
    thing: Thing,
    launch: Launch,
    seed: int,
    twin: Twin,
    config: SightConfig | None = None,
    lead_s: float = 0.1,
    duration_s: float = TRIAL_S,
    watch: Callable[[Twin, Sight], None] | None = None,
) -> SeenTrial:
    """Run one trial through the cameras.

    Args:
        agent: What `dris.twin.control.make_agent` returns.
        thing: What to catch.
        launch: How it comes.
        seed: Of launch and sensor.
        twin: The laboratory.
        config: How it is seen.
        lead_s: The robot begins this long before the ball's predicted arrival [s].
        duration_s: From there to the end [s].
        watch: Called after every millisecond, for videos.
    """
    task, agent_of = agent
    twin.reset(thing, launch, seed)
    sight = Sight(twin, thing, config or SightConfig(), seed)
    controller = Controller(agent_of(), task, lambda: twin.time_s)
    loop = _Loop(twin, thing, sight, controller)
    wait = not isinstance(launch, Laid)  # a ball that lies on the plate is there already
    while twin.time_s < GIVE_UP_S + duration_s:
        if loop.began is None and loop.may_begin(lead_s if wait else None):
            loop.began = twin.ticks
        if loop.began is not None:
            if controller.due():
                loop.step()
            if twin.ticks - loop.began >= round(duration_s / TICK_S):
                break
        if is_lost(twin.state()) or (loop.began is None and twin.time_s > GIVE_UP_S):
            break
        twin.advance(1)
        sight.tick(twin)
        if watch is not None:
            watch(twin, sight)
        if loop.began is not None and twin.ticks - loop.began == round(SETTLED_S / TICK_S):
            loop.settled = is_settled(twin.state(), thing, task)
    return loop.outcome()


class _Loop:
    """The control loop's memory."""

    def __init__(self, twin: Twin, thing: Thing, sight: Sight, controller: Controller):
        self.twin, self.thing, self.sight, self.controller = twin, thing, sight, controller
        self.began: int | None = None
        self.settled = False
        self.blind = 0
        self.errors: list[tuple[float, float]] = []
        self.states: list[State] = []
        self._plate = twin.state().plate_position

    def may_begin(self, lead_s: float | None) -> bool:
        """Whether the ball is as near as the policy was trained to see it first."""
        if lead_s is None:
            return self.sight.state(self.twin.time_s) is not None
        if self.twin.ticks % 5:  # a fit every 5 ms is often enough
            return False
        left = self.sight.arrives_in(self.twin.state(), self.thing.radius)
        return left is not None and left <= lead_s and self.sight.state(self.twin.time_s) is not None

    def step(self) -> None:
        """One control step; without a valid state the last reference stays."""
        state = self.twin.state()
        self.states.append(state)
        velocity = (state.plate_position - self._plate) / self.controller.step_s
        self._plate = state.plate_position
        self.sight.tell_plate(state, velocity)
        seen = self.sight.state(state.time_s)
        if seen is None:
            self.blind += 1
            self.controller.skip()
            return
        self.errors.append(
            (
                float(np.linalg.norm(seen.ball_in_base - state.thing_position)),
                float(np.linalg.norm(seen.velocity_in_base - state.thing_velocity)),
            )
        )
        decision = self.controller.step(seen.ball_in_base, seen.velocity_in_base, state.q)
        self.twin.set_reference(decision.joints)

    def outcome(self) -> SeenTrial:
        """Judge."""
        state = self.twin.state()
        lost = is_lost(state)
        position, speed = np.sqrt(np.mean(np.square(self.errors or [(0.0, 0.0)]), axis=0))
        return SeenTrial(
            caught=self.began is not None and not lost and state.on_plate(self.thing.reach),
            settled=self.settled,
            began=self.began is not None,
            lost_s=(self.twin.ticks - self.began) * TICK_S if lost and self.began is not None else None,
            blind_steps=self.blind,
            found_share=self.sight.found / max(self.sight.frames, 1),
            position_error=float(position),
            velocity_error=float(speed),
            speed_share=float((self.twin.fastest / self.twin.speed_limit).max()),
            states=self.states,
        )
