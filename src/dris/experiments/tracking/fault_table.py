"""Whether the eyes know when they are wrong, with faults and without: `dris lab faults`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.belief_observer import beside_one_robot
from dris.catching.control import LookingObserver
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.experiments.tracking.faults import FAULTS, Fault
from dris.experiments.tracking.recording import EVERY_S, Recording, Seen, Truth, record, replay
from dris.lab.camera_observer import CameraObserver
from dris.lab.drives import drive
from dris.lab.launch import RAMP_RADII, Ramp
from dris.lab.objects import BALLS
from dris.lab.trial import catching_config, run_trial
from dris.lab.twin import Twin
from dris.perception.monitor import RIG

POLICY = "dris-200"
WATCHED_S = 0.8
"""From the policy's beginning."""
SEED = 70021
RECORDED = (("ping-pong", 0.20), ("rubber", 0.32), ("foam", 0.20), ("wiffle", 0.13))
"""Balls and ramps of the recorded trials."""
ACTED_S = 0.3
"""A belief is judged from so long before the ball lands: policies take over 0.15 to 0.25 s before, and until
then the approach asks the track alone."""
SURVIVED = 0.5
"""A fault is survived if at least so much of the states that there are without it are told."""

LIVE = "none, live"
"""Trials without a fault, run as they are judged: with windows, the robot acting on what is seen."""
Outcome = Literal["survived", "refused", "stopped", "silently wrong"]


@dataclass(frozen=True)
class Row:
    """What became of one fault in one trial, or of one clean trial."""

    fault: str
    ball: str
    ramp_m: float
    seed: int
    outcome: Outcome
    noticed_s: float | None
    """From the fault's beginning to the first verdict or refused frame that it caused."""
    cause: str
    """Of that verdict."""
    wrong_ms: float
    """How long states were told that were wrong."""
    told: float
    """Share of requests with a state, from the fault's beginning on."""
    worst_m: float
    """Largest error of a state that was told, impacts apart,"""
    worst_speed: float
    """and of its velocity [m/s]."""


def judge(
    fault: Fault,
    recording: Recording,
    clean: Seen,
    seed: int,
    ramp_m: float,
    belief: BallBeliefConfig | None = None,
) -> Row:
    """Look at a recorded trial under a fault, behind a belief if there is one."""
    believed = fault.believed(recording.rig) if fault.believed else None
    seen = replay(recording, fault.spoil, believed, belief=belief)
    begins_s, truth = fault.begins_s(recording), recording.truth
    return _row(
        fault.name, recording.thing.name, ramp_m, seed, seen, clean, truth, begins_s, belief is not None
    )


def _row(
    name: str,
    ball: str,
    ramp_m: float,
    seed: int,
    seen: Seen,
    clean: Seen,
    truth: Truth,
    begins_s: float,
    believes: bool = False,
) -> Row:
    impacts_s, since_s = truth.impacts_s(), truth.landing_s() - ACTED_S if believes else -np.inf
    wrong, fair = seen.wrong(impacts_s, since_s), seen.fair(impacts_s, since_s)
    late = [k for k, at_s in enumerate(seen.times_s) if at_s >= begins_s]
    told = sum(seen.errors[k] is not None for k in late) / max(len(late), 1)
    before = sum(clean.errors[k] is not None for k in late) / max(len(late), 1)
    outcome: Outcome = "survived" if told >= SURVIVED * before else "refused"
    if wrong:
        outcome = "silently wrong"
    elif seen.stopped:
        outcome = "stopped"
    alarms = [
        (seen.times_s[k], seen.causes[k]) for k in late if seen.causes[k] in RIG | {"second ball", "size"}
    ]
    if not alarms and outcome == "refused":  # what was noticed is the motion, not the rig
        alarms = [(seen.times_s[k], seen.causes[k]) for k in late if seen.causes[k] != clean.causes[k]]
    worst = np.array(fair).max(axis=0).tolist() if fair else (0.0, 0.0)
    return Row(
        name, ball, ramp_m, seed, outcome,
        alarms[0][0] - begins_s if alarms else None, alarms[0][1] if alarms else "",
        1e3 * EVERY_S * wrong, told, worst[0], worst[1],
    )  # fmt: skip


def measure(
    repeats: int,
    seed: int = SEED,
    on_rows: Callable[[list[dict[str, Any]]], None] = lambda rows: None,
    name: str = POLICY,
) -> list[dict[str, Any]]:
    """Every fault on every recorded trial, and `repeats` clean trials of each ball and ramp.

    Prints a table of the faults, then what became of the clean trials.

    Args:
        repeats: Clean trials of each ball and ramp.
        seed: Of the first trial.
        on_rows: Called with everything so far, after every trial.
        name: Of the policy that catches; states are those that it would be told, by its belief if it has one.
    """
    policy = find_policy(name)
    belief = beside_one_robot(policy.belief)
    twin = Twin(drive("fitted-gains", catching_config(policy)))
    rows: list[Row] = []
    for k, (ball, ramp_m) in enumerate(RECORDED):
        recording = record(policy, twin, BALLS[ball], Ramp(ramp_m), seed + k, WATCHED_S)
        clean = replay(recording, belief=belief)
        rows += [judge(fault, recording, clean, seed + k, ramp_m, belief) for fault in FAULTS]
        on_rows([asdict(row) for row in rows])
    print(table(rows), flush=True)
    cells = [(k, ball, ramp_m) for k in range(repeats) for ball in BALLS for ramp_m in RAMP_RADII]
    for k, ball, ramp_m in cells:
        rows.append(watch_clean(twin, policy, ball, ramp_m, seed + k))
        on_rows([asdict(row) for row in rows])
    print("\n" + table([row for row in rows if row.fault == LIVE]))
    twin.close()
    return [asdict(row) for row in rows]


def watch_clean(twin: Twin, policy: PolicyHandle, ball: str, ramp_m: float, seed: int) -> Row:
    """A live trial without any fault."""
    truth, seen = Truth(), Seen()
    twin.reset(BALLS[ball], Ramp(ramp_m), seed)
    cameras = CameraObserver(twin, BALLS[ball], seed=seed)

    def watch(twin: Twin, observer: LookingObserver) -> None:
        truth.note(twin)
        if twin.ticks % round(EVERY_S / 1e-3) == 0:
            seen.ask(observer, cameras.eyes, truth.states[-1])

    run_trial(policy, BALLS[ball], Ramp(ramp_m), seed, twin, cameras, WATCHED_S, watch, until_lost=False)
    return _row(LIVE, ball, ramp_m, seed, seen, seen, truth, 0.0, policy.belief.update != "none")


_ORDER: tuple[Outcome, ...] = ("survived", "refused", "stopped", "silently wrong")


def table(rows: list[Row]) -> str:
    """By fault, as a Markdown table."""
    lines = [
        "| fault | trials | outcome | noticed after, median (worst) | as | wrong states, worst trial |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row.fault for row in rows):
        found = [row for row in rows if row.fault == name]
        counts = [(outcome, sum(row.outcome == outcome for row in found)) for outcome in _ORDER]
        outcomes = ", ".join(f"{outcome} {count}" for outcome, count in counts if count)
        times = [1e3 * row.noticed_s for row in found if row.noticed_s is not None]
        when = f"{np.median(times):.0f} ms ({max(times):.0f})" if times else ""
        causes = ", ".join(sorted({row.cause for row in found if row.cause}))
        wrong_ms = max(row.wrong_ms for row in found)
        lines.append(f"| {name} | {len(found)} | {outcomes} | {when} | {causes} | {wrong_ms:.0f} ms |")
    return "\n".join(lines)
