"""One attempt in the twin laboratory with perfect sight: from the throw, through the approach, to the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dris.catching.approach import Approach
from dris.catching.control import BallEstimate, Controller
from dris.catching.loop import CatchLoop
from dris.catching.settings import DOMAIN
from dris.catching.stage import flight_time, spin_vector
from dris.core.stage import Frame
from dris.evaluation.registry import PolicyHandle
from dris.lab.belief_observer import with_belief
from dris.lab.drives import as_driven, drive
from dris.lab.launch import Scene as LaunchScene
from dris.lab.launch import Start as LaunchStart
from dris.lab.launch import Throw
from dris.lab.objects import BALLS, CatchObject, training_ball
from dris.lab.observer import TruthObserver
from dris.lab.shown import Shown, physics_of
from dris.lab.trial import GIVE_UP_S, catching_config, is_lost, one_robot
from dris.lab.twin import TICK_S, Twin
from dris.view.run import Outcome, Start

KEPT_S = 3.0
"""A catch counts if the ball is on the plate so long after the policy took over [s]; the paper waits ten."""
PIECE_S = 0.05
"""What `advance` goes on by [s]."""
DRIVE = "fitted-gains"
"""Inside what a real FR3 allows: see dris.lab.drives."""


THINGS = {name: physics_of(one) for name, one in BALLS.items()}
"""The laboratory's balls as the training's domain would have them."""


@dataclass(frozen=True)
class SpunThrow(Throw):
    """A throw with spin."""

    spin: float = 0.0
    """Topspin [rad/s]."""

    def start(self, scene: LaunchScene, generator: np.random.Generator) -> LaunchStart:
        """The ball as it leaves the hand."""
        start = super().start(scene, generator)
        return replace(start, spin=spin_vector(start.velocity, self.spin))


class TwinRun:
    """An attempt in the laboratory: one ball, or the real one and those of a belief."""

    def __init__(self, policy: PolicyHandle, start: Start, frame_s: float):
        """Begin; see `dris.view.run.TrainingRun`.

        Raises:
            ValueError: The policy was not made to catch, or its belief is none that the twin has.
        """
        config = catching_config(policy)
        self.outcome: Outcome | None = None
        self._twin = twin = Twin(drive(DRIVE, config))
        self._thing = _thing(start)
        twin.reset(self._thing, _throw(start), start.seed)
        self._shown = Shown(twin)
        self.stage = self._shown.stage
        truth = TruthObserver(twin, start.condition.noise, start.seed, config)
        belief = replace(start.belief, instances=max(2, start.instances - 1))
        self._observer = with_belief(truth, belief, config, twin.kinematics, start.seed)
        driven = as_driven(config, twin.config)
        self._loop = CatchLoop(
            twin, self._observer, Controller(one_robot(policy, KEPT_S), driven),
            Approach(config, twin.kinematics) if config.start == "arrival" else None,
            sum(config.lead_s) / 2, on_step=self._sees,
        )  # fmt: skip
        self._every = max(1, int(frame_s / TICK_S + 1e-6))
        self._seen: BallEstimate | None = None

    def _sees(self, seen: BallEstimate | None) -> None:
        self._seen = seen

    def advance(self) -> list[Frame]:
        """A twentieth of a second."""
        if self.outcome is not None:
            return []
        frames = [self._look()] if self._twin.ticks == 0 else []
        for _ in range(round(PIECE_S / TICK_S)):
            self._loop.tick()
            self._twin.advance(1)
            self._observer.tick()
            self._shown.tick()
            if self._twin.ticks % self._every == 0:
                frames.append(self._look())
        self._judge()
        return frames

    def _judge(self) -> None:
        """Whether it is over: kept long enough, lost, or nothing came."""
        state, began_s, now_s = self._twin.state(), self._loop.began_s, self._twin.time_s
        lost = is_lost(state) and state.thing_velocity[2] <= 0
        if began_s is None and now_s <= GIVE_UP_S and not lost:
            return
        if began_s is not None and now_s - began_s < KEPT_S and not lost:
            return
        caught = began_s is not None and not lost and state.on_plate(self._thing.reach)
        self.outcome = Outcome(caught, float(caught), 1)

    def _look(self) -> Frame:
        return self._shown.frame(self._observer, self._seen)


def _thing(start: Start) -> CatchObject:
    """The ball: one of the laboratory's, one by its numbers, or one drawn as the training draws."""
    if start.thing in BALLS:
        return BALLS[start.thing]
    draw = np.random.default_rng((start.seed, 1))
    physics = start.physics or {name: draw.uniform(r.low, r.high) for name, r in DOMAIN.items()}
    restitution = min(max(physics["restitution"], 0.05), 0.9)
    return training_ball(physics["radius"], restitution, max(physics["dynamic_friction"], 1e-3))


def _throw(start: Start) -> Throw:
    if start.chosen is None:
        return Throw()
    chosen: Callable[[str], float] = start.chosen.__getitem__
    distance, angle = chosen("distance"), math.radians(chosen("direction"))
    flight = flight_time(distance, chosen("speed"))
    return SpunThrow((distance, distance), (flight, flight), (angle, angle), (0.0, 0.0), spin=chosen("spin"))
