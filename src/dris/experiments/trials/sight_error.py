"""What the eyes make of the twin's balls, against the truth: `dris lab sight`.

The robot stands still and the ball comes down a ramp; the track is asked for the ball every millisecond from
0.25 s, when a policy may begin, to 20 ms before it meets the plate's height. After that the plate moves: the
errors of whole trials stand in their own results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from dris.experiments.trials.config import TRIALS_SEED
from dris.lab.camera_observer import CameraObserver, CameraObserverConfig
from dris.lab.launch import RAMP_RADII, Launch, Ramp
from dris.lab.objects import BALLS, CatchObject
from dris.lab.twin import Twin
from dris.perception.arrival import sinks_in
from dris.perception.track_config import Estimator

FIRST_S, LAST_S = 0.25, 0.02
"""Requests begin and end so long before the arrival [s]."""


@dataclass
class Sighting:
    """What was seen of one launch."""

    position: np.ndarray
    """Errors of the requests [n, 3], base frame [m]."""
    velocity: np.ndarray
    """[n, 3] [m/s]"""
    missing: int
    """Requests that found no valid state."""
    found_share: float
    """Share of the frames in which the ball was found."""


def follow(twin: Twin, thing: CatchObject, launch: Launch, estimator: Estimator, seed: int) -> Sighting:
    """Watch one launch until the thing is about to arrive."""
    twin.reset(thing, launch, seed)
    config = CameraObserverConfig()
    config = replace(config, tracker=replace(config.tracker, estimator=estimator))
    observer = CameraObserver(twin, thing, config, seed)
    errors: list[tuple[np.ndarray, np.ndarray]] = []
    missing = 0
    while (left := _arrives_in(twin)) is not None and left > LAST_S:
        twin.advance(1)
        observer.tick()
        if left > FIRST_S:
            continue
        seen, state = observer.estimate(twin.time_s), twin.state()
        if seen is None:
            missing += 1
        else:
            errors.append((seen.position - state.thing_position, seen.velocity - state.thing_velocity))
    position, velocity = np.array(errors).reshape(-1, 2, 3).swapaxes(0, 1)
    return Sighting(position, velocity, missing, observer.found_share)


def _arrives_in(twin: Twin) -> float | None:
    """Time until the thing would fall to the plate's height from where it is [s]."""
    state = twin.state()
    drop = float(state.thing_position[2] - twin.thing.radius - state.plate_position[2])
    return sinks_in(drop, float(state.thing_velocity[2]))


def measure(launches: int, seed: int = TRIALS_SEED) -> list[dict[str, Any]]:
    """Every ball, ramp and estimator: errors as mean and spread over all requests."""
    twin, rows = Twin(), []
    for name, thing in BALLS.items():
        for radius in RAMP_RADII:
            for estimator in get_args(Estimator):
                seen = [follow(twin, thing, Ramp(radius), estimator, seed + k) for k in range(launches)]
                asked = {"ball": name, "ramp_m": radius, "estimator": estimator, "launches": launches}
                rows.append(asked | {"seed": seed} | _summary(seen))
                print(line(rows[-1]), flush=True)
    twin.close()
    return rows


def _summary(seen: list[Sighting]) -> dict[str, Any]:
    """What several launches say of one estimator."""
    position = np.concatenate([one.position for one in seen])
    velocity = np.concatenate([one.velocity for one in seen])
    return {
        "requests": len(position),
        "missing": sum(one.missing for one in seen),
        "position_bias_m": position.mean(axis=0).tolist(),
        "position_spread_m": position.std(axis=0).tolist(),
        "velocity_bias": velocity.mean(axis=0).tolist(),
        "velocity_spread": velocity.std(axis=0).tolist(),
        "found_share": float(np.mean([one.found_share for one in seen])),
    }


HEADER = (
    "| ball | ramp | estimator | requests (none) | position bias (x, y, z) mm | spread mm "
    "| velocity bias (x, y, z) m/s | spread m/s | frames found |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def line(row: dict[str, Any]) -> str:
    """A row of a Markdown table."""
    cells = [row["ball"], f"{row['ramp_m']:.2f} m", row["estimator"], f"{row['requests']} ({row['missing']})"]
    for key, unit, digits in (("position", 1e3, 1), ("velocity", 1.0, 2)):
        for what in ("bias", "spread"):
            values = row[f"{key}_{what}" + ("_m" if key == "position" else "")]
            cells.append(", ".join(f"{unit * value:.{digits}f}" for value in values))
    return "| " + " | ".join((*cells, f"{row['found_share']:.0%}")) + " |"
