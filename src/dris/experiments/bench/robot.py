"""How much of its time a robot's computer needs: a tick, a frame and a decision, `dris bench robot`.

One trial is recorded in the twin, whole frames and joints every millisecond. A session then lives through it
again, with eyes, belief, the runtime without torch, the law and the safety filter, on an arm that tells the
recorded joints, and every call is timed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from dris.catching.eyes_observer import EyesObserver
from dris.catching.joint_limits import JointLimits
from dris.catching.kinematics import Kinematics
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.experiments.tracking.recording import Recording, record
from dris.experiments.trials.cells import cells_of
from dris.lab.belief_observer import with_belief
from dris.lab.camera_observer import CameraObserverConfig, detector
from dris.lab.drives import as_driven, drive, law_of
from dris.lab.objects import THINGS
from dris.lab.twin import TICK_S, Twin
from dris.perception.eyes import Eyes
from dris.robot.arm import ArmState, Carried, Payload
from dris.robot.driver import DriverProcess
from dris.robot.export import export
from dris.robot.runtime import Runtime
from dris.robot.session import Session
from dris.robot.states import CATCHING

CELL = 7
"""Of the ramps' twelve: ping-pong, 0.20 m."""
CATCH_S = 1.5
"""Lived through after the policy took over [s]."""
EXCHANGES = 2000
PERIODS_MS = {"tick": 1.0, "frame": 6.25, "decision": 50.0}
"""Until the next one: 1 kHz, two cameras at 80 frames a second each, 20 Hz [ms]."""


class RecordedArm:
    """Tells joints that were recorded, whatever it is asked for; has the methods of `dris.robot.arm.Arm`."""

    def __init__(self, path: tuple[np.ndarray, np.ndarray, JointLimits]):
        """Joints [T, M], their speeds, and their limits."""
        self._q, self._dq, self._limits = path
        self.at = self._asked = 0
        self._moving = False

    def limits(self) -> JointLimits:
        """As they were given."""
        return self._limits

    def masses(self) -> tuple[float, ...]:
        """None."""
        return ()

    def versions(self) -> str:
        """There is no robot."""
        return ""

    def carries(self) -> Carried:
        """Nothing."""
        return Carried(Payload(), Payload())

    def state(self) -> ArmState:
        """Of the present millisecond."""
        self._asked += 1
        return ArmState(self._asked * TICK_S, self._q[self.at].copy(), self._dq[self.at].copy(), self._moving)

    def begin(self, reference: np.ndarray) -> None:
        """Say that it obeys."""
        self._moving = True

    def exchange(self, reference: np.ndarray) -> ArmState:
        """As `state`."""
        return self.state()

    def stop(self) -> None:
        """Say that it does not."""
        self._moving = False

    def recover(self) -> bool:
        """There is nothing to clear."""
        return True

    def close(self) -> None:
        """As `stop`."""
        self.stop()


class Stopwatch:
    """Durations of calls, by name [s]."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed."""

        def wrapped(*arguments: Any) -> Any:
            start = time.perf_counter()
            found = call(*arguments)
            self.spent.setdefault(name, []).append(time.perf_counter() - start)
            return found

        return wrapped


def bench_robot(policy: str = "belief-robot", repeats: int = 5) -> dict[str, Any]:
    """Time what a robot's computer does: medians and 99th percentiles over some lives of one trial [ms].

    Raises:
        RuntimeError: The session did not come to catch what was recorded.
    """
    handle = find_policy(policy)
    recording, path = _recorded(handle)
    watch = Stopwatch()
    with tempfile.TemporaryDirectory(prefix="dris-bench-") as folder:
        export(policy, Path(folder), episodes=0)
        runtime = Runtime(Path(folder))
        for _ in range(repeats):
            _live(handle, runtime, recording, path, watch)
    _exchange(path, watch)
    rows = {
        name: {"median_ms": 1e3 * float(np.median(spent)), "p99_ms": 1e3 * float(np.quantile(spent, 0.99))}
        for name, spent in watch.spent.items()
    }
    return {"settings": {"policy": policy, "repeats": repeats}, "periods_ms": PERIODS_MS, "parts": rows}


def _recorded(handle: PolicyHandle) -> tuple[Recording, tuple[np.ndarray, np.ndarray, JointLimits]]:
    config = handle.task_config
    what, _, launch = cells_of("ramps")[CELL]
    with closing(Twin(drive("fitted-gains", config))) as twin:
        recording = record(handle, twin, THINGS[what], launch, 0, CATCH_S)
    states = recording.truth.states
    limits = Kinematics(config.home, config.mount).limits
    return recording, (np.array([s.q for s in states]), np.array([s.dq for s in states]), limits)


def _live(
    handle: PolicyHandle,
    runtime: Runtime,
    recording: Recording,
    path: tuple[np.ndarray, np.ndarray, JointLimits],
    watch: Stopwatch,
) -> None:
    """One life: home, arm, and the whole recording."""
    config, driven = handle.task_config, drive("fitted-gains", handle.task_config)
    kinematics, arm, now_s = Kinematics(config.home, config.mount), RecordedArm(path), -60.0
    outline = recording.thing.outline
    eyes = Eyes(recording.rig, outline, detector(recording.thing), CameraObserverConfig().tracker)
    inner = EyesObserver(eyes, recording.thing.radius)
    observer = with_belief(inner, handle.belief, config, kinematics, 0)
    if inner.on_sight is not None:
        inner.on_sight = watch.timed("belief", inner.on_sight)
    act = watch.timed("act", runtime.act_one)
    session = Session(
        arm, observer, act, as_driven(config, driven), law_of(driven), lambda: now_s,
        rehearse=runtime.rehearse,
    )  # fmt: skip
    session.connect()
    session.start()
    while session.state == "homing" and now_s < 0:
        now_s += TICK_S
        session.tick()
    frames = iter(recording.frames)
    frame = next(frames, None)
    take, tick = watch.timed("frame", inner.take), watch.timed("tick", session.tick)
    now_s = recording.truth.states[0].time_s
    session.arm_now()
    for arm.at, truth in enumerate(recording.truth.states):
        now_s = truth.time_s
        while frame is not None and frame.now_s <= now_s + 1e-9:
            take(frame.frame, now_s)
            frame = next(frames, None)
        decided = len(watch.spent.get("act", ()))
        tick()
        if len(watch.spent.get("act", ())) > decided:
            watch.spent.setdefault("decision", []).append(watch.spent["tick"].pop())
    if session.state not in CATCHING:
        raise RuntimeError(f"the session is {session.state} ({session.reason}) where it should be catching")


def _exchange(path: tuple[np.ndarray, np.ndarray, JointLimits], watch: Stopwatch) -> None:
    """References to the driver's process and states back, with no robot behind it."""
    driver = DriverProcess(RecordedArm, path)
    try:
        driver.begin(path[0][0])
        exchange = watch.timed("driver", driver.exchange)
        for _ in range(EXCHANGES):
            exchange(path[0][0])
    finally:
        driver.close()


def table(result: dict[str, Any]) -> str:
    """The result as text for a terminal."""
    parts, periods = result["parts"], result["periods_ms"]
    meaning = {
        "tick": "every millisecond: read, law, filter, log",
        "driver": "of it besides: to the driver's process and back",
        "frame": "every frame of a camera: detection, track, monitor, belief",
        "belief": "of it: the belief pulled by a sight",
        "decision": "every 50 ms: a tick with estimate, policy, inverse kinematics",
        "act": "of it: encode and act, without torch",
    }
    lines = [f"{'':<10}{'median':>10}{'99 %':>10}{'of':>10}"]
    for name, text in meaning.items():
        if name in parts:
            period = f"{periods[name]:>7.2f} ms" if name in periods else f"{'':>10}"
            row = parts[name]
            lines.append(f"{name:<10}{row['median_ms']:>7.2f} ms{row['p99_ms']:>7.2f} ms{period}  {text}")
    return "\n".join(lines)
