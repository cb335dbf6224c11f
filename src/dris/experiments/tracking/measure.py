"""How well the ball is seen: throws are drawn, photographed by the sensor model, tracked, and compared."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np

from dris.experiments.tracking.throws import PLATE_HALF_M, PLATE_IN_BASE, Kind, Throw, make_throw
from dris.lab.drawn_scene import Scene, clutter, draw_plate
from dris.lab.sensor import SensorConfig, SensorNoise, expose, exposures
from dris.perception.camera import Array, Rig, laboratory_rig
from dris.perception.detect import Image
from dris.perception.plate import Plate
from dris.perception.sources import Frame
from dris.perception.track import BallTracker, TrackerConfig
from dris.perception.watch import look

ESTIMATORS = ("line", "gravity", "gravity, plate known")
PHASES = ("flight", "impact", "after bounce", "landing", "plate")
"""flight: before the first impact. impact: an impact was less than `UNKNOWABLE_S` before the last frame, or
lies between it and the requested time. after bounce: later in that flight. landing: the first window on the
plate. plate: later."""
PLATE = Plate(0.0, PLATE_IN_BASE, np.array([0.0, 0.0, 1.0]), np.zeros(3), PLATE_HALF_M)
UNKNOWABLE_S = 0.03
"""Two frames of each camera and their offset: sooner no new velocity can be had from images."""


@dataclass
class Errors:
    """Errors of one estimator in one phase, and how often there was no valid state."""

    position: list[Array] = field(default_factory=list)
    velocity: list[Array] = field(default_factory=list)
    missing: int = 0

    def cells(self) -> list[str]:
        """Requests, share without a state, then bias and spread of position [mm] and velocity [m/s]."""
        count = len(self.velocity) + self.missing
        cells = [str(count), f"{self.missing / max(count, 1):.1%}"]
        for values, scale, form in ((self.position, 1e3, ".1f"), (self.velocity, 1.0, ".3f")):
            array = scale * np.array(values).reshape(-1, 3)
            for numbers in (array.mean(axis=0), array.std(axis=0)) if len(array) else ((), ()):
                cells.append(", ".join(f"{number:{form}}" for number in numbers))
        return cells


@dataclass
class Measurement:
    """Everything that `measure_tracking` found for one kind of throw."""

    kind: str
    errors: dict[tuple[str, str], Errors]
    """By estimator and phase."""
    acquire_s: list[float] = field(default_factory=list)
    """From the first frame with the ball to the first valid state, per throw."""
    frame_s: list[float] = field(default_factory=list)
    """Detection, tracking and state for one frame of one camera, wall-clock."""
    arrival_m: list[float] = field(default_factory=list)
    arrival_s: list[float] = field(default_factory=list)
    """Error of the arrival's place and time, as predicted 0.08 s before."""
    frames: int = 0
    seen: int = 0
    detected: int = 0


def measure_tracking(
    kind: Kind,
    throws: int = 8,
    latency_s: float = 0.02,
    seed: int = 0,
    sensor: SensorConfig | None = None,
    believed: Rig | None = None,
    end_s: float = np.inf,
) -> Measurement:
    """Track drawn throws with both estimators.

    Args:
        kind: Of throws, see `make_throw`.
        throws: How many.
        latency_s: The state is requested this long after each frame's time stamp.
        seed: Of everything that is drawn at random.
        sensor: Imperfections of the cameras.
        believed: The cameras as calibrated, if that differs.
        end_s: Stop this long after the first impact at the latest.
    """
    generator = np.random.default_rng(seed)
    rig, sensor = laboratory_rig(), sensor or SensorConfig()
    result = Measurement(kind, {(e, phase): Errors() for e in ESTIMATORS for phase in PHASES})
    corners = PLATE_IN_BASE + PLATE_HALF_M * np.array([[1, 1, 0], [1, -1, 0], [-1, -1, 0], [-1, 1, 0]])
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        for _ in range(throws):
            scenes = [
                Scene(camera, draw_plate(clutter(camera, generator), camera, corners))
                for camera in rig.cameras
            ]
            throw = make_throw(kind, generator)
            _follow(throw, scenes, believed or rig, sensor, (latency_s, end_s), generator, result)
    finally:
        cv2.setNumThreads(threads)
    return result


def _follow(
    throw: Throw,
    scenes: Sequence[Scene],
    rig: Rig,
    sensor: SensorConfig,
    times_s: tuple[float, float],
    generator: np.random.Generator,
    result: Measurement,
) -> None:
    """Track one throw and add its errors."""

    def render(camera: int, time_s: float) -> Image:
        return scenes[camera].draw(throw.at(time_s)[0], throw.radius_m)

    trackers = {
        name: BallTracker(rig, TrackerConfig(estimator="line" if name == "line" else "gravity"))
        for name in ESTIMATORS
    }
    leader = trackers["gravity"]
    first_seen: float | None = None
    acquired, foretold = False, False
    noise = SensorNoise(scenes[0].background.shape, sensor, generator)
    latency_s, end = times_s[0], min(throw.impacts_s[-1] + 0.25, times_s[1])
    for exposure in exposures(sensor, -0.25 + generator.uniform(0, 1 / sensor.fps), end, generator):
        image = noise(expose(render, exposure, sensor))
        visible = bool(scenes[exposure.camera].camera.sees(throw.at(exposure.true_s)[0]))
        begin = time.perf_counter()
        found = look(Frame(exposure.stamp_s, exposure.camera, image), leader)
        now = exposure.stamp_s + latency_s
        leader.state(now)
        result.frame_s.append(time.perf_counter() - begin)
        for tracker in trackers.values():
            if tracker is not leader:
                tracker.observe(exposure.stamp_s, exposure.camera, found)
        trackers["gravity, plate known"].expect_plate(PLATE)
        result.frames += 1
        result.seen += visible
        result.detected += visible and found is not None
        if found is not None and first_seen is None:
            first_seen = exposure.stamp_s
        state = leader.state(now)
        if not acquired and state is not None and first_seen is not None:
            acquired = True
            result.acquire_s.append(exposure.stamp_s - first_seen)
        if not foretold and -0.08 <= exposure.stamp_s < 0 and acquired:
            foretold = True
            arrival = leader.arrival(float(throw.pieces[1].ball_in_base[2]))
            if arrival is not None:
                result.arrival_m.append(
                    float(np.linalg.norm(arrival.ball_in_base - throw.pieces[1].ball_in_base))
                )
                result.arrival_s.append(abs(arrival.time_s))
        if acquired:
            _compare(throw, trackers, exposure.true_s, now, result)


def _compare(
    throw: Throw, trackers: dict[str, BallTracker], frame_s: float, now_s: float, result: Measurement
) -> None:
    ball, velocity = throw.at(now_s)
    phase = phase_of(throw, frame_s, now_s)
    for estimator, tracker in trackers.items():
        errors, state = result.errors[estimator, phase], tracker.state(now_s)
        if state is None or not state.valid:
            errors.missing += 1
            continue
        errors.position.append(state.ball_in_base - ball)
        errors.velocity.append(state.velocity_in_base - velocity)


def phase_of(throw: Throw, frame_s: float, now_s: float) -> str:
    """Which of `PHASES` a request falls into."""
    landed = throw.impacts_s[-1]
    if any(frame_s - UNKNOWABLE_S < impact <= now_s for impact in throw.impacts_s):
        return "impact"
    if now_s < 0:
        return "flight"
    if now_s < landed:
        return "after bounce"
    return "plate" if frame_s > landed + TrackerConfig().window_s else "landing"


def table(measurements: Sequence[Measurement]) -> str:
    """The errors as a Markdown table."""
    lines = [
        "| throws | phase | estimator | requests | no state | position bias (x, y, z) mm | spread mm "
        "| velocity bias (x, y, z) m/s | spread m/s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for m in measurements:
        for phase in PHASES:
            for estimator in ESTIMATORS:
                cells = [m.kind, phase, estimator, *m.errors[estimator, phase].cells()]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(measurements: Sequence[Measurement]) -> str:
    """Everything else, as a Markdown table."""
    lines = [
        "| throws | balls in view found | first state after the first detection, median (worst) | one frame, "
        "median (99 %) | arrival 0.08 s ahead: place, median (worst) | time |",
        "|---|---|---|---|---|---|",
    ]
    for m in measurements:
        ms = 1e3 * np.array(m.frame_s)
        place, when = 1e3 * np.array(m.arrival_m or [np.nan]), 1e3 * np.array(m.arrival_s or [np.nan])
        acquire = 1e3 * np.array(m.acquire_s or [np.nan])
        lines.append(
            f"| {m.kind} | {m.detected} of {m.seen} | {np.median(acquire):.0f} ms ({acquire.max():.0f}) "
            f"| {np.median(ms):.2f} ms ({np.percentile(ms, 99):.2f}) "
            f"| {np.median(place):.1f} mm ({place.max():.1f}) | {np.median(when):.1f} ms ({when.max():.1f}) |"
        )
    return "\n".join(lines)
