"""A trial's frames with the truth beside them: recorded once, looked at again under any fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.belief_observer import BeliefObserver
from dris.catching.control import BallObserver, LookingObserver
from dris.catching.eyes_observer import EyesObserver
from dris.catching.kinematics import Kinematics
from dris.evaluation.registry import PolicyHandle
from dris.lab.camera_observer import CameraObserver, CameraObserverConfig, detector
from dris.lab.launch import Launch
from dris.lab.objects import CatchObject
from dris.lab.trial import run_trial
from dris.lab.twin import State, Twin
from dris.perception.camera import Rig
from dris.perception.detect import Detection
from dris.perception.eyes import Eyes
from dris.perception.monitor_config import MonitorConfig
from dris.perception.motion import GRAVITY_IN_BASE
from dris.perception.plate import Plate
from dris.perception.sources import Frame

EVERY_S = 0.005
"""States are asked for so often."""
POSITION_M, SPEED = 0.05, 0.5
"""A state that is further off [m], [m/s] is wrong,"""
AFTER_S, BEFORE_S = 0.045, 0.01
"""unless an impact ended less than `AFTER_S` ago, or comes within `BEFORE_S`: one that is foreseen may be a
little early."""
IMPACT_SPEED = 0.3
"""A touch that changes the velocity by more within `TOUCH_S` is an impact [m/s]: balls on a ramp chatter."""
SOFT_TICKS = 45
"""So is one, after as long a free flight, that makes as much of a difference to free fall within so many
milliseconds: a ball that comes to roll on something. Eyes have `AFTER_S` to notice that, too."""
TOUCH_S = 0.008
"""An impact ends when the ball has left what it met, or after so long: on the twin's pad after 5 to 7 ms."""


@dataclass(frozen=True)
class Arrived:
    """A frame, and when it came."""

    now_s: float
    frame: Frame


@dataclass
class Truth:
    """What was true, every millisecond."""

    states: list[State] = field(default_factory=list)
    touched: list[bool] = field(default_factory=list)

    def note(self, twin: Twin) -> None:
        """Keep this millisecond."""
        self.states.append(twin.state())
        self.touched.append(twin.touched)

    def impacts_s(self) -> list[tuple[float, float]]:
        """From when to when the ball met something hard enough: at once, or softly after a free flight."""
        found, ticks, last = [], round(TOUCH_S / 1e-3), len(self.states) - 1
        free = 0
        for k in range(1, last + 1):
            if self.touched[k] and not self.touched[k - 1]:
                end = min(k + ticks, last)
                hard = np.linalg.norm(self._change(k, end)) > IMPACT_SPEED
                soft = free >= SOFT_TICKS and np.linalg.norm(self._pushed(k)) > IMPACT_SPEED
                if hard or soft:
                    left = next((n for n in range(k, end) if not self.touched[n]), end)
                    found.append((self.states[k].time_s, self.states[left].time_s))
            free = 0 if self.touched[k] else free + 1
        return found

    def _change(self, start: int, end: int) -> np.ndarray:
        """Of the velocity [3] from before one millisecond to another [m/s]."""
        return self.states[end].thing_velocity - self.states[start - 1].thing_velocity

    def _pushed(self, start: int) -> np.ndarray:
        """How another velocity [3] it has `SOFT_TICKS` later than if it had gone on falling [m/s]."""
        end = min(start + SOFT_TICKS, len(self.states) - 1)
        return self._change(start, end) - GRAVITY_IN_BASE * (end - start + 1) * 1e-3

    def landing_s(self) -> float:
        """When the ball first met something after its longest time in the air: the plate."""
        free, best = 0, (0, self.states[-1].time_s)
        for state, touched in zip(self.states, self.touched, strict=True):
            if touched and free > best[0]:
                best = (free, state.time_s)
            free = 0 if touched else free + 1
        return best[1]


@dataclass
class Recording:
    """One trial as its cameras gave it."""

    thing: CatchObject
    rig: Rig
    kinematics: Kinematics
    frames: list[Arrived] = field(default_factory=list)
    plates: list[Plate] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)


class _Recorder(CameraObserver):
    """Cameras whose frames are kept."""

    recording: Recording

    def take(self, frame: Frame, now_s: float, whole: bool = True) -> Detection | None:
        self.recording.frames.append(Arrived(now_s, frame))
        return super().take(frame, now_s, whole)

    def observe_plate(self, plate: Plate) -> None:
        self.recording.plates.append(plate)
        super().observe_plate(plate)


def record(
    policy: PolicyHandle, twin: Twin, thing: CatchObject, launch: Launch, seed: int, duration_s: float
) -> Recording:
    """Run a trial for a while after the policy has begun, with whole frames."""
    twin.reset(thing, launch, seed)
    observer = _Recorder(twin, thing, replace(CameraObserverConfig(), window_half_px=None), seed)
    recording = observer.recording = Recording(thing, observer.rig, twin.kinematics)

    def note(twin: Twin, observer: LookingObserver) -> None:
        recording.truth.note(twin)

    run_trial(policy, thing, launch, seed, twin, observer, duration_s, note, until_lost=False)
    return recording


@dataclass
class Seen:
    """What was made of a trial: one entry per request."""

    times_s: list[float] = field(default_factory=list)
    errors: list[tuple[float, float] | None] = field(default_factory=list)
    """Of position [m] and velocity [m/s]; None: no state to act on."""
    causes: list[str] = field(default_factory=list)
    """Of the verdict then."""
    stopped: bool = False
    noticed: dict[str, int] = field(default_factory=dict)
    """What the monitor noticed, counted."""

    def ask(self, observer: BallObserver, eyes: Eyes, truth: State) -> None:
        """Compare what a policy would be told, by eyes or by a belief behind them, with the truth."""
        told = observer.estimate(truth.time_s)
        off = None
        if told is not None:
            position = float(np.linalg.norm(told.position - truth.thing_position))
            off = position, float(np.linalg.norm(told.velocity - truth.thing_velocity))
        self.times_s.append(truth.time_s)
        self.errors.append(off)
        self.causes.append(eyes.monitor.verdict.cause)
        self.stopped = eyes.monitor.verdict.level == "stop"
        self.noticed = {str(cause): count for cause, count in eyes.monitor.noticed.items()}

    def fair(
        self, impacts_s: Sequence[tuple[float, float]], since_s: float = -math.inf
    ) -> list[tuple[float, float]]:
        """Errors of the states that were told from a time on, those about impacts left out."""
        asked = zip(self.times_s, self.errors, strict=True)
        return [
            off for at_s, off in asked if off is not None and at_s >= since_s and not _about(at_s, impacts_s)
        ]

    def wrong(self, impacts_s: Sequence[tuple[float, float]], since_s: float = -math.inf) -> int:
        """How many states were told from a time on that were wrong, and not about an impact."""
        return sum(
            position > POSITION_M or speed > SPEED for position, speed in self.fair(impacts_s, since_s)
        )


def _about(at_s: float, impacts_s: Sequence[tuple[float, float]]) -> bool:
    return any(start_s - BEFORE_S <= at_s <= end_s + AFTER_S for start_s, end_s in impacts_s)


def replay(
    recording: Recording,
    spoil: Callable[[Recording], list[Arrived]] = lambda recording: recording.frames,
    believed: Rig | None = None,
    monitor: MonitorConfig | None = None,
    belief: BallBeliefConfig | None = None,
) -> Seen:
    """Look at a recorded trial again.

    Args:
        recording: The trial.
        spoil: What becomes of its frames.
        believed: The cameras as calibrated, if that differs.
        monitor: From when on the eyes do not believe themselves.
        belief: Behind the eyes, if there is one.
    """
    thing, config = recording.thing, CameraObserverConfig()
    eyes = Eyes(believed or recording.rig, thing.outline, detector(thing), config.tracker, monitor)
    inner = EyesObserver(eyes, thing.radius)
    observer = inner if belief is None else BeliefObserver(inner, recording.kinematics, belief)
    frames, plates = iter(spoil(recording)), iter(recording.plates)
    frame, plate, seen = next(frames, None), next(plates, None), Seen()
    for tick, truth in enumerate(recording.truth.states):
        while plate is not None and plate.time_s <= truth.time_s + 1e-9:
            observer.observe_plate(plate)
            plate = next(plates, None)
        while frame is not None and frame.now_s <= truth.time_s + 1e-9:
            inner.take(frame.frame, truth.time_s)
            frame = next(frames, None)
        if tick % round(EVERY_S / 1e-3) == 0:
            observer.observe_joints(truth.time_s, truth.q)
            seen.ask(observer, eyes, truth)
    return seen
