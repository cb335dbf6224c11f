"""A session at the page: what is simulated, paused, stepped and thrown. It knows nothing of the page.

Everything is called from one thread. What comes from outside (`change`) is checked here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dris.belief.config import BeliefConfig
from dris.core.conditions import Condition
from dris.core.stage import Control, Frame, Stage
from dris.evaluation.registry import PolicyHandle
from dris.view.run import Outcome, Run, Start, TrainingRun, stage_of

FRAME_S = 1 / 30
"""Frames are shown this often [s]."""
LONGEST_GAP_S = 0.1
"""If the page is late by more, the show waits rather than jumps [s]."""
CHART_ROWS = 500
"""Most points of the strip chart."""
LARGEST_SET, LARGEST_NOISE, LONGEST_DELAY_S = 200, 4.0, 0.1
DRAWN, OWN = "drawn", "own"
"""What a person may say of physics and start: drawn from training's ranges, or by the sliders."""
SPEEDS = {"real time": 1.0, "half": 0.5, "quarter": 0.25, "tenth": 0.1}

MakeRun = Callable[[PolicyHandle, Start, float], Run]
"""Begins an attempt of a policy, with at most so long between frames [s]."""


@dataclass(frozen=True)
class Settings:
    """What a person has chosen. Values of sliders are kept in `Session.chosen` and `Session.physics`."""

    policy: str
    world: str = "training"
    start: str = OWN
    physics: str = DRAWN
    """drawn, own, or the name of one of the things that the session knows."""
    instances: int = 60
    noise: float = 0.0
    noise_correlation: float = 0.0
    delay_ms: float = 0.0
    belief: str = "as trained"
    speed: str = "quarter"
    colour_by: str = ""
    again: bool = False
    """Throw again once an attempt is over."""


@dataclass(frozen=True)
class Limits:
    """Values a number of the settings can take."""

    low: float
    high: float


LIMITS = {
    "instances": Limits(1, LARGEST_SET),
    "noise": Limits(0.0, LARGEST_NOISE),
    "noise_correlation": Limits(0.0, 0.95),
    "delay_ms": Limits(0.0, 1e3 * LONGEST_DELAY_S),
}


class Session:
    """What is going on. Call `play` as time passes, and `change`, `throw` and the like in between."""

    def __init__(
        self,
        policies: Mapping[str, Callable[[], PolicyHandle]],
        things: Mapping[str, Mapping[str, float]] | None = None,
        runs: Mapping[str, MakeRun] | None = None,
        seed: int = 0,
    ):
        """Begin with the first policy.

        Args:
            policies: Who may act, by name; loaded on use. No other can be asked for.
            things: Named physics, as domain parameters.
            runs: Worlds beside the training's, by name.
            seed: Of the first throw; every throw has the next.
        """
        self._load = dict(policies)
        self._loaded: dict[str, PolicyHandle] = {}
        self.things = dict(things or {})
        self._runs: dict[str, MakeRun] = {"training": TrainingRun, **(runs or {})}
        self.settings = Settings(next(iter(policies)))
        self._seed, self._number = seed, -1
        self.begun = 0
        """Attempts that were begun, again or anew."""
        self.chosen: dict[str, float] = {}
        """Values of the start's controls,"""
        self.physics: dict[str, float] = {}
        """and of the physics, whether they are in use or not."""
        self.paused = False
        self.outcome: Outcome | None = None
        """Of the present attempt, once it is over and shown."""
        self.throws = self.successes = 0
        self.chart: deque[tuple[float, ...]] = deque(maxlen=CHART_ROWS)
        """Rows (time, charted figures...) of the present attempt."""
        self._template()
        self.throw()

    @property
    def policies(self) -> tuple[str, ...]:
        """Who may act."""
        return tuple(self._load)

    @property
    def worlds(self) -> tuple[str, ...]:
        """Where."""
        return tuple(self._runs)

    @property
    def stage(self) -> Stage:
        """Of the present attempt."""
        return self._run.stage

    @property
    def offered(self) -> Stage:
        """Of the next: what may be chosen, and how it would go."""
        return self._stage

    @property
    def controls(self) -> tuple[Control, ...]:
        """What may be chosen of a start."""
        return self._stage.controls

    def policy(self) -> PolicyHandle:
        """Who acts."""
        name = self.settings.policy
        if name not in self._loaded:
            self._loaded[name] = self._load[name]()
        return self._loaded[name]

    def reload(self) -> None:
        """Forget what was loaded: from the next throw on, policies are as their files are now."""
        self._loaded.clear()

    def _template(self) -> None:
        """Learn what the present policy's task offers; values that were chosen before stay."""
        task = self.policy().make_task()
        self._stage, self.domain = stage_of(task), task.domain
        self.chosen = {c.name: self.chosen.get(c.name, c.default) for c in self._stage.controls}
        middle = {name: 0.5 * (r.low + r.high) for name, r in self.domain.items()}
        self.physics = {name: self.physics.get(name, value) for name, value in middle.items()}
        if self.settings.colour_by not in self.domain:
            self.settings = replace(self.settings, colour_by=list(self.domain)[-1])

    def change(self, name: str, value: Any) -> None:
        """Change a setting, a value of the start (`start/NAME`) or of the physics (`physics/NAME`).

        It holds from the next throw on; speed, colours and `again` at once.

        Raises:
            ValueError: There is no such setting, or it cannot take that value.
        """
        group, _, key = name.rpartition("/")
        if group == "start" and key in self.chosen:
            control = next(c for c in self.controls if c.name == key)
            self.chosen[key] = _number(name, value, control.low, control.high)
        elif group == "physics" and key in self.physics:
            low, high = self.physics_limits(key)
            self.physics[key] = _number(name, value, low, high)
        elif name in LIMITS:
            found = _number(name, value, LIMITS[name].low, LIMITS[name].high)
            values: dict[str, Any] = {name: int(found) if name == "instances" else found}
            self.settings = replace(self.settings, **values)
        elif name == "again":
            self.settings = replace(self.settings, again=bool(value))
        else:
            self._choose(name, value)

    def options(self) -> dict[str, tuple[str, ...]]:
        """Settings with a list of choices."""
        return {
            "policy": self.policies, "world": self.worlds, "start": (DRAWN, OWN),
            "physics": (DRAWN, OWN, *self.things), "belief": ("as trained", "none", "ensemble"),
            "speed": tuple(SPEEDS), "colour_by": tuple(self.domain),
        }  # fmt: skip

    def _choose(self, name: str, value: Any) -> None:
        options = self.options()
        if name not in options:
            raise ValueError(f"there is no setting '{name}'")
        if value not in options[name]:
            raise ValueError(f"{name} must be one of {', '.join(options[name])}, got '{value}'")
        before = self.settings
        self.settings = replace(before, **{name: value})
        if name == "policy" and value != before.policy:
            try:
                self._template()
            except Exception:
                self.settings = before
                self._template()
                raise

    def physics_limits(self, name: str) -> tuple[float, float]:
        """What the first instance may be given: training's range and as much again, not below zero."""
        span = self.domain[name]
        wide = span.high - span.low
        return max(0.0, span.low - 0.5 * wide) if span.low >= 0 else span.low - 0.5 * wide, span.high + wide

    def throw(self) -> None:
        """Begin a new attempt with what is chosen."""
        self._number += 1
        self._begin()

    def reset(self) -> None:
        """Begin the present attempt again, and forget the count."""
        self.throws = self.successes = 0
        self._begin()

    def _begin(self) -> None:
        settings, policy = self.settings, self.policy()
        physics = None
        if settings.physics == OWN:
            physics = dict(self.physics)
        elif settings.physics in self.things:
            physics = dict(self.things[settings.physics])
        noise, lasts = settings.noise, settings.noise_correlation
        condition = Condition(noise=noise, noise_correlation=lasts, delay_s=1e-3 * settings.delay_ms)
        start = Start(
            settings.instances, self._seed + self._number, condition, self._belief(policy),
            dict(self.chosen) if settings.start == OWN and self.chosen else None, physics,
            settings.physics if settings.physics in self.things else "",
        )  # fmt: skip
        run = self._runs[settings.world](policy, start, FRAME_S * SPEEDS[settings.speed])
        waiting = deque(run.advance())  # all that can go wrong has, before anything is changed
        self._run, self._waiting, self.outcome = run, waiting, None
        self.frame: Frame = self._waiting.popleft()
        self._clock = self.frame.time_s
        self.begun += 1
        self.chart.clear()
        self._note()

    def _belief(self, policy: PolicyHandle) -> BeliefConfig:
        asked = self.settings.belief
        return policy.belief if asked == "as trained" else policy.belief.named(asked)

    def play(self, elapsed_s: float) -> bool:
        """Let time pass at the chosen speed; whether there is something new to show."""
        if self.paused:
            return False
        if self.outcome is not None:
            if self.settings.again:
                self.throw()
                return True
            return False
        self._clock += min(max(elapsed_s, 0.0), LONGEST_GAP_S) * SPEEDS[self.settings.speed]
        return self._show_until(self._clock)

    def step(self) -> None:
        """Pause, and show the next frame."""
        self.paused = True
        if self.outcome is None:
            self._fetch()
            if self._waiting:
                self._clock = self._waiting[0].time_s
            self._show_until(self._clock)

    def _fetch(self) -> None:
        if not self._waiting:
            self._waiting.extend(self._run.advance())

    def _show_until(self, time_s: float) -> bool:
        """Show what is due, the last frame of an attempt with its outcome."""
        shown = False
        while True:
            self._fetch()
            if not self._waiting:
                if self.outcome is None and self._run.outcome is not None:
                    self.outcome = self._run.outcome
                    self.throws += 1
                    self.successes += self.outcome.success
                    shown = True
                return shown
            if self._waiting[0].time_s > time_s + 1e-9:
                return shown
            self.frame = self._waiting.popleft()
            self._note()
            shown = True

    def _note(self) -> None:
        figures = self.frame.scene.figures
        self.chart.append((self.frame.time_s, *(figures.get(n, math.nan) for n in self.stage.charted)))


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number in [{low:g}, {high:g}], got {value!r}")
    return float(value)
