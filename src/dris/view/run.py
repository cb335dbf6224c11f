"""One attempt in the training world, a control step at a time, with what it looks like in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from dris.belief.config import BeliefConfig
from dris.belief.env import BeliefEnv
from dris.core.conditions import Condition
from dris.core.domain import Domain
from dris.core.env import Env, EnvConfig, Observation
from dris.core.rollout import sets_under
from dris.core.stage import Frame, Stage
from dris.core.task import Task
from dris.evaluation.registry import PolicyHandle

CLEAN = Condition()
BEFORE_FRAME_S = 0.02
"""Frames of the flight before an episode, which is drawn and not simulated [s]."""
BEFORE_S = 1.0
"""Most of it that is asked for [s]."""


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt."""

    success: bool
    """Of the first instance, the one that is real."""
    share: float
    """Of all instances that the attempt tells of."""
    instances: int


class Run(Protocol):
    """An attempt that is under way."""

    @property
    def stage(self) -> Stage:
        """What it is shown on."""

    @property
    def outcome(self) -> Outcome | None:
        """None until it is over."""

    def advance(self) -> list[Frame]:
        """Go on by a control step or so; frames of it in order, none once it is over."""


@dataclass(frozen=True)
class Start:
    """How an attempt begins: everything but the policy."""

    instances: int = 60
    seed: int = 0
    condition: Condition = CLEAN
    """What makes it harder to see and to act."""
    belief: BeliefConfig = field(default_factory=lambda: BeliefConfig("none"))
    chosen: Mapping[str, float] | None = None
    """Values of the stage's controls; None: the start is drawn."""
    physics: Mapping[str, float] | None = None
    """Domain parameters of the first instance; None: drawn."""
    thing: str = ""
    """Name of the thing that these are of, if it has one."""


class TrainingRun:
    """An attempt in the world that policies are trained in."""

    def __init__(self, policy: PolicyHandle, start: Start, frame_s: float):
        """Begin.

        Args:
            policy: Who acts.
            start: How it begins.
            frame_s: Longest time between frames [s].

        Raises:
            ValueError: The policy's task has no stage.
        """
        task = policy.make_task()
        stage = stage_of(task)
        if start.chosen is not None and stage.controls:
            task = type(task).build(stage.configured(start.chosen))
        self._env, self._start = _env(task, start), start
        self.outcome: Outcome | None = None
        task = self._env.task  # a condition may have made another of it
        self.stage = stage_of(task)
        self._env.watch_every_s = max(1, int(frame_s / task.substep_s + 1e-6)) * task.substep_s
        self._env.on_advance = self._watch
        self._agent = policy.make_agent(task, 1)
        self._frames: list[Frame] = []
        self._seen: Observation | None = None
        self._ghost: np.ndarray | None = None
        self._time_s = 0.0

    def advance(self) -> list[Frame]:
        """A control step, or, at first, the flight before the episode."""
        if self.outcome is not None:
            return []
        self._frames = []
        if self._seen is None:
            self._begin()
            return self._frames
        step = self._env.step(self._agent(self._seen))
        self._see(step.observation)
        if bool(step.done[0]):
            success = step.success[0]
            self.outcome = Outcome(bool(success[0]), float(success.float().mean()), len(success))
        return self._frames

    def _begin(self) -> None:
        self._see(self._env.reset())
        real = 1 if isinstance(self._env, BeliefEnv) else self._env.config.instances
        if self._start.chosen is not None:
            self.stage.begun(0, self._start.chosen, real)
        first = self._look()
        for k in range(round(BEFORE_S / BEFORE_FRAME_S), 0, -1):
            before_s = k * BEFORE_FRAME_S
            if (earlier := self.stage.before(first.scene, before_s)) is not None:
                self._frames.append(Frame(-before_s, earlier, None))
        self._frames.append(first)

    def _watch(self, duration_s: float) -> None:
        self._time_s += duration_s
        self._frames.append(self._look())

    def _see(self, seen: Observation) -> None:
        """Keep what the policy sees, and where that is."""
        self._seen, self._ghost = seen, ghost_of(self._env, self.stage, seen)

    def _look(self) -> Frame:
        scene = self.stage.scene(0)
        if not scene.parameters:
            columns = zip(self._env.domain, self._env.parameters[0].numpy().T, strict=True)
            scene = replace(scene, parameters={name: values.copy() for name, values in columns})
        return Frame(self._time_s, scene, self._ghost)


def ghost_of(env: Env, stage: Stage, seen: Observation) -> np.ndarray | None:
    """[3] where the policy of the first set sees its first instance, or the mean of its belief.

    To be asked as soon as it is seen: states may be told from a plate that moves on. None: that is not shown.
    """
    states = seen.states[0]
    if isinstance(env, BeliefEnv) and env.belief.view == "set":
        states = states.mean(dim=0, keepdim=True)
    points = stage.points_of(0, states[:1])
    return None if points is None else points[0]


def stage_of(task: Task) -> Stage:
    """How a task shows itself.

    Raises:
        ValueError: It does not; the message says what to do.
    """
    stage = task.stage()
    if stage is None:
        name = type(task).__name__
        raise ValueError(
            f"{name} has no stage to show it in 3-D: give it the method `stage` (docs/guides/view.md), or "
            "take `dris play`, which plots its states"
        )
    return stage


def _env(task: Task, start: Start) -> Env:
    """One set whose first instance has the physics that were chosen, if any."""

    def make(task: Task, config: EnvConfig, others: Domain) -> Env:
        chosen = {name: (v, v) for name, v in (start.physics or {}).items() if name in others}
        domain = others.shifted(**chosen)
        if start.belief.update != "none":
            belief = replace(start.belief, instances=max(2, start.instances - 1))
            return BeliefEnv(task, config, domain, belief)
        return Env(task, config, domain, belief_domain=others if chosen else None)

    return sets_under(task, start.condition, 1, start.instances, start.seed, make)
