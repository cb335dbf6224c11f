"""A belief beside the tracker on the same frames, against the truth: `dris lab belief`.

One policy catches balls from ramps; every 10 ms both are asked for the ball at that moment. Errors are told
by what the ball does: flies in, has just met the plate, is between bounces, or rolls.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

import numpy as np

from dris.catching.belief_observer import BeliefObserver
from dris.catching.control import LookingObserver
from dris.evaluation.registry import find_policy
from dris.experiments.trials.config import TRIALS_SEED
from dris.experiments.trials.table import CAMERAS
from dris.lab.camera_observer import CameraObserver
from dris.lab.drives import drive
from dris.lab.launch import RAMP_RADII, Ramp
from dris.lab.objects import BALLS
from dris.lab.trial import catching_config, run_trial
from dris.lab.twin import Twin

EVERY_TICKS = 10
JUST_MET_S = 0.06
"""After it has met the plate, a ball counts as having just met it for so long [s]."""
WATCHED_S = 2.0
"""From the policy's beginning [s]; later the ball lies."""
PHASES = ("flight", "just met the plate", "between bounces", "rolls")


class _Comparison:
    """Errors of tracker and belief, by phase."""

    def __init__(self) -> None:
        self.errors: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        self.missing: dict[tuple[str, str], int] = defaultdict(int)
        self.seconds: list[float] = []
        self._met_s: float | None = None
        self._touched = False

    def begin(self) -> None:
        """A trial begins."""
        self._met_s, self._touched = None, False

    def watch(self, twin: Twin, observer: LookingObserver) -> None:
        """Called after every millisecond."""
        assert isinstance(observer, BeliefObserver)
        state = twin.state()
        local = state.plate_rotation.T @ (state.thing_position - state.plate_position)
        touches = bool(twin.touched and local[2] < 1.5 * twin.thing.reach and np.abs(local[:2]).max() < 0.15)
        if touches and not self._touched:
            self._met_s = twin.time_s
        self._touched = touches
        if twin.ticks % EVERY_TICKS or observer.belief.time_s is None:
            return
        phase = self._phase(twin.time_s)
        began = time.perf_counter()
        believed = observer.estimate(twin.time_s)
        self.seconds.append(time.perf_counter() - began)
        for name, seen in (("tracker", observer.inner.estimate(twin.time_s)), ("belief", believed)):
            if seen is None:
                self.missing[phase, name] += 1
                continue
            position, velocity = seen.position - state.thing_position, seen.velocity - state.thing_velocity
            off = float(np.linalg.norm(position)), float(np.linalg.norm(velocity))
            self.errors[phase, name].append(off)

    def _phase(self, now_s: float) -> str:
        if self._met_s is None:
            return PHASES[0]
        if now_s - self._met_s < JUST_MET_S:
            return PHASES[1]
        return PHASES[3] if self._touched else PHASES[2]


def measure(trials: int, seed: int = TRIALS_SEED, policy: str = "belief-robot") -> list[dict[str, Any]]:
    """Every ball from every ramp, with good cameras and poor ones."""
    handle, rows = find_policy(policy), []
    twin = Twin(drive("fitted-gains", catching_config(handle)))
    for sight, cameras in CAMERAS.items():
        found, caught = _Comparison(), 0
        for k in range(trials):
            for thing in BALLS.values():
                for radius in RAMP_RADII:
                    twin.reset(thing, Ramp(radius), seed + k)
                    found.begin()
                    eyes = CameraObserver(twin, thing, cameras, seed + k)
                    trial = run_trial(
                        handle, thing, Ramp(radius), seed + k, twin, eyes, WATCHED_S, found.watch
                    )
                    caught += trial.caught
        count = trials * len(BALLS) * len(RAMP_RADII)
        for (phase, name), errors in sorted(found.errors.items(), key=lambda item: PHASES.index(item[0][0])):
            position, velocity = np.array(errors).T
            rows.append(
                {
                    "sight": sight, "phase": phase, "estimator": name, "requests": len(errors), "seed": seed,
                    "missing": found.missing[phase, name], "trials": count, "caught": caught,
                    "position_m": np.percentile(position, (50, 90)).tolist(),
                    "velocity": np.percentile(velocity, (50, 90)).tolist(),
                    "estimate_ms": 1e3 * float(np.median(found.seconds)),
                }
            )  # fmt: skip
            print(line(rows[-1]), flush=True)
    twin.close()
    return rows


HEADER = (
    "| sight | the ball | estimator | requests (none) | position mm, median (90 %) "
    "| velocity m/s, median (90 %) |\n|---|---|---|---|---|---|"
)


def line(row: dict[str, Any]) -> str:
    """A row of a Markdown table."""
    (position, position_90), (velocity, velocity_90) = row["position_m"], row["velocity"]
    cells = (
        row["sight"], row["phase"], row["estimator"], f"{row['requests']} ({row['missing']})",
        f"{1e3 * position:.1f} ({1e3 * position_90:.1f})", f"{velocity:.3f} ({velocity_90:.2f})",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"
