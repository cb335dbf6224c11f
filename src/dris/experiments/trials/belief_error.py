"""A belief beside the tracker on the same frames, against the truth: `dris lab belief`.

One policy catches balls from ramps; every 10 ms both are asked for the ball at that moment. Errors are those
of requests that both answered, told by what the ball does: flies in, has just met the plate, is between
bounces, or rolls.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dris.belief.config import BeliefConfig
from dris.catching import belief_observer
from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.belief_observer import beside_one_robot
from dris.catching.control import BallEstimate, LookingObserver
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.experiments.trials.config import TRIALS_SEED
from dris.experiments.trials.table import CAMERAS
from dris.experiments.trials.timed_belief import Seconds, TimedBelief, TimedEyes
from dris.lab.camera_observer import CameraObserverConfig
from dris.lab.drives import drive
from dris.lab.launch import RAMP_RADII, Ramp
from dris.lab.objects import BALLS, CatchObject
from dris.lab.state import State
from dris.lab.trial import catching_config, run_trial
from dris.lab.twin import TICK_S, Twin
from dris.learning.run_folder import versions

EVERY_TICKS = 10
JUST_MET_S = 0.06
"""After it has met the plate, a ball counts as having just met it for so long [s]."""
WATCHED_S = 2.0
"""From the policy's beginning [s]; later the ball lies."""
PHASES = ("flight", "just met the plate", "between bounces", "rolls")
ESTIMATORS = ("tracker", "belief")
INSIDE = 0.9
"""Share of the instances, the middle ones, in which the truth is looked for."""


@dataclass
class _Phase:
    """Requests while a ball does one thing."""

    asked: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    passed_on: int = 0
    """Answers of the belief that were the tracker's."""
    errors: list[list[tuple[float, float]]] = field(default_factory=list)
    """[both, estimators, 2] of position and velocity, where both answered."""
    inside: list[np.ndarray] = field(default_factory=list)
    """Whether each component of the truth [6] was in the belief's middle, where it had one."""

    def add(self, truth: np.ndarray, answers: dict[str, BallEstimate | None]) -> None:
        """A request: the truth [6], and what was answered."""
        self.asked += 1
        off = []
        for name, seen in answers.items():
            if seen is not None:
                self.answered[name] += 1
                position, velocity = seen.position - truth[:3], seen.velocity - truth[3:]
                off.append((float(np.linalg.norm(position)), float(np.linalg.norm(velocity))))
        if len(off) == len(answers):
            self.errors.append(off)

    def rows(self, instances: int) -> list[dict[str, Any]]:
        """One of each estimator; without a request that both answered there are no errors."""
        both, found = len(self.errors), []
        for k, name in enumerate(ESTIMATORS):
            row: dict[str, Any] = {
                "estimator": name, "asked": self.asked, "both": both,
                "alone": self.answered[name] - both, "missing": self.asked - self.answered[name],
            }  # fmt: skip
            for part, quantity in enumerate(("position_m", "velocity")):
                values = [off[k][part] for off in self.errors]
                row[quantity] = np.percentile(values, (50, 90)).tolist() if both else None
            found.append(row)
        inside = np.mean(self.inside, axis=0).tolist() if self.inside else None
        found[1] |= {"passed_on": self.passed_on, "believed": len(self.inside), "inside": inside}
        found[1]["inside_expected"] = INSIDE * (instances - 1) / (instances + 1)
        return found


class _Comparison:
    """Tracker and belief behind cameras of one kind: errors by phase, and costs."""

    def __init__(self, cameras: CameraObserverConfig):
        self._cameras = cameras
        self.phases: dict[str, _Phase] = defaultdict(_Phase)
        self.seconds: Seconds = defaultdict(list)
        self.counts: Counter[str] = Counter(trials=0, caught=0)
        self._met_s: float | None = None
        self._touched = self._begun = False

    def run(
        self, alone: PolicyHandle, twin: Twin, config: BallBeliefConfig, thing: CatchObject, launch: Ramp,
        seed: int,
    ) -> None:  # fmt: skip
        """One trial of a policy whose belief stands behind the eyes already."""
        self._met_s, self._touched, self._begun = None, False, False
        twin.reset(thing, launch, seed)
        eyes = TimedEyes(twin, thing, self._cameras, seed, self.seconds)
        observer = TimedBelief(eyes, twin, config, seed)
        trial = run_trial(alone, thing, launch, seed, twin, observer, WATCHED_S, self._watch)
        self.counts.update(trials=1, caught=trial.caught, **trial.belief)

    def _watch(self, twin: Twin, observer: LookingObserver) -> None:
        """Called after every millisecond."""
        assert isinstance(observer, TimedBelief)
        state = twin.state()
        local = state.plate_rotation.T @ (state.thing_position - state.plate_position)
        touches = bool(twin.touched and local[2] < 1.5 * twin.thing.reach and np.abs(local[:2]).max() < 0.15)
        if touches and not self._touched:
            self._met_s = twin.time_s
        self._touched = touches
        self._begun |= observer.belief.time_s is not None
        if twin.ticks % EVERY_TICKS == 0 and self._begun:  # one that begins anew is asked meanwhile, too
            self._ask(state, observer)

    def _ask(self, state: State, observer: TimedBelief) -> None:
        now_s, phase = state.time_s, self.phases[self._phase(state.time_s)]
        began = time.perf_counter()
        tracked = observer.inner.estimate(now_s)
        middle = time.perf_counter()
        believed = observer.estimate(now_s)  # asks the tracker once more
        ended = time.perf_counter()
        truth = np.concatenate((state.thing_position, state.thing_velocity))
        phase.add(truth, {"tracker": tracked, "belief": believed})
        if not observer.believes_at(now_s):
            phase.passed_on += believed is not None
            return
        self.seconds["tracker_question"].append(middle - began)
        self.seconds["belief_question"].append((ended - middle) - (middle - began))
        ends = 0.5 - INSIDE / 2, 0.5 + INSIDE / 2
        below, above = np.quantile(observer.belief.states_at(now_s), ends, axis=0)
        phase.inside.append((below <= truth) & (truth <= above))

    def _phase(self, now_s: float) -> str:
        if self._met_s is None:
            return PHASES[0]
        if now_s - self._met_s < JUST_MET_S:
            return PHASES[1]
        return PHASES[3] if self._touched else PHASES[2]

    def costs(self) -> dict[str, Any]:
        """Median and 99 % of what one of each takes [ms]: the belief's come on top of the tracker's."""
        ms = {name: 1e3 * np.percentile(values, (50, 99)) for name, values in self.seconds.items() if values}
        return {f"{name}_ms": values.tolist() for name, values in ms.items()}


def measure(trials: int, seed: int = TRIALS_SEED, policy: str = "belief-robot") -> dict[str, Any]:
    """Every ball from every ramp, with good cameras and poor ones, as a result file has it.

    Raises:
        ValueError: The policy has no belief.
    """
    handle, rows, sights = find_policy(policy), [], []
    believed = beside_one_robot(handle.belief)
    if believed is None:
        raise ValueError(f"'{policy}' has no belief to compare: choose a policy that has one")
    alone = replace(handle, belief=BeliefConfig("none"))
    twin = Twin(drive("fitted-gains", catching_config(handle)))
    for sight, cameras in CAMERAS.items():
        found = _Comparison(cameras)
        for k in range(trials):
            for thing in BALLS.values():
                for radius in RAMP_RADII:
                    found.run(alone, twin, believed, thing, Ramp(radius), seed + k)
        for phase in (phase for phase in PHASES if phase in found.phases):
            for row in found.phases[phase].rows(believed.instances):
                rows.append({"sight": sight, "phase": phase, **row})
                print(line(rows[-1]), flush=True)
        sights.append({"sight": sight, "delay_s": cameras.delay_s, **found.counts, **found.costs()})
    twin.close()
    print("\n" + "\n".join(map(cost_line, sights)), flush=True)
    asked = {"policy": policy, "trials": trials, "seed": seed, "every_s": EVERY_TICKS * TICK_S}
    names = ("BEGIN_SIGHTS", "START_SPREAD", "SIGMA_SCALE", "BELIEVED_S", "FAR_M", "GIVE_UP")
    observer = {name.lower(): getattr(belief_observer, name) for name in names}
    return {
        "config": asked | {"watched_s": WATCHED_S, "just_met_s": JUST_MET_S, "inside": INSIDE},
        "belief": asdict(believed) | observer,
        "versions": versions(),
        "sights": sights,
        "rows": rows,
    }


HEADER = (
    "| sight | the ball | estimator | both answered (it alone, it did not) | position mm, median (90 %) "
    "| velocity m/s, median (90 %) | truth inside, position, velocity |\n|---|---|---|---|---|---|---|"
)


def line(row: dict[str, Any]) -> str:
    """A row of a Markdown table."""
    errors = ["-", "-"]
    if row["both"]:
        (position, position_90), (velocity, velocity_90) = row["position_m"], row["velocity"]
        errors = [
            f"{1e3 * position:.1f} ({1e3 * position_90:.1f})",
            f"{velocity:.3f} ({velocity_90:.2f})",
        ]
    inside = "-"
    if row.get("inside"):
        shares = [" ".join(f"{share:.2f}" for share in row["inside"][k : k + 3]) for k in (0, 3)]
        inside = f"{', '.join(shares)} of {row['inside_expected']:.2f}"
    answered = f"{row['both']} ({row['alone']}, {row['missing']})"
    return "| " + " | ".join((row["sight"], row["phase"], row["estimator"], answered, *errors, inside)) + " |"


def cost_line(sight: dict[str, Any]) -> str:
    """What tracker and belief take behind one kind of cameras."""
    words = {
        "tracker_frame": "a frame",
        "tracker_question": "a question",
        "belief_sight": "on top for the belief a sight",
        "belief_question": "a question",
    }
    told = [f"{word} {sight[f'{name}_ms'][0]:.2f}" for name, word in words.items() if f"{name}_ms" in sight]
    counts = f"{sight['trials']} trials, {sight['caught']} caught, {sight['restarts']} restarts"
    return f"{sight['sight']}: {counts}; median ms: {', '.join(told)}"
