"""What the eyes make of the twin's balls, against the truth: `dris bench sight`.

The robot stands still and the ball comes down a ramp; the track is asked for the ball every millisecond from
0.25 s, when a policy may begin, to 20 ms before it meets the plate's height. After that the plate moves: the
errors of whole trials stand in their own results.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dris.core.files import to_json, write_atomically
from dris.core.schema import header
from dris.experiments.trials.config import TRIALS_SEED
from dris.lab.camera_observer import CameraSight, SightConfig
from dris.lab.launch import RAMP_RADII, Launch, Ramp
from dris.lab.objects import BALLS, Thing
from dris.lab.trial import PerfectSight
from dris.lab.twin import Twin

Estimator = Literal["line", "gravity"]
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


def follow(twin: Twin, thing: Thing, launch: Launch, estimator: Estimator, seed: int) -> Sighting:
    """Watch one launch until the thing is about to arrive."""
    twin.reset(thing, launch, seed)
    config = SightConfig()
    config = replace(config, tracker=replace(config.tracker, estimator=estimator))
    sight, truth = CameraSight(twin, thing, config, seed), PerfectSight()
    errors: list[tuple[np.ndarray, np.ndarray]] = []
    missing = 0
    while (left := truth.arrives_in(twin)) is not None and left > LAST_S:
        twin.advance(1)
        sight.tick(twin)
        if left > FIRST_S:
            continue
        seen, state = sight.ball(twin), twin.state()
        if seen is None:
            missing += 1
        else:
            errors.append((seen[0] - state.thing_position, seen[1] - state.thing_velocity))
    position, velocity = np.array(errors).reshape(-1, 2, 3).swapaxes(0, 1)
    return Sighting(position, velocity, missing, sight.found_share)


def measure(launches: int, seed: int = TRIALS_SEED) -> list[dict[str, Any]]:
    """Every ball, ramp and estimator: errors as mean and spread over all requests."""
    twin, rows = Twin(), []
    for name, thing in BALLS.items():
        for radius in RAMP_RADII:
            for estimator in ("line", "gravity"):
                seen = [
                    follow(twin, thing, Ramp(radius), estimator, seed + k)  # type: ignore[arg-type]
                    for k in range(launches)
                ]
                position = np.concatenate([one.position for one in seen])
                velocity = np.concatenate([one.velocity for one in seen])
                rows.append(
                    {
                        "ball": name,
                        "ramp_m": radius,
                        "estimator": estimator,
                        "launches": launches,
                        "seed": seed,
                        "requests": len(position),
                        "missing": sum(one.missing for one in seen),
                        "position_bias_m": position.mean(axis=0).tolist(),
                        "position_spread_m": position.std(axis=0).tolist(),
                        "velocity_bias": velocity.mean(axis=0).tolist(),
                        "velocity_spread": velocity.std(axis=0).tolist(),
                        "found_share": float(np.mean([one.found_share for one in seen])),
                    }
                )
                print(line(rows[-1]), flush=True)
    twin.close()
    return rows


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


def main() -> None:
    """Read the command line, measure, print, and save if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m dris.experiments.trials.sight_error", description=__doc__
    )
    parser.add_argument("--launches", type=int, default=5, help="of every ball, ramp and estimator")
    parser.add_argument("--json", type=Path, help="where to save the results")
    arguments = parser.parse_args()
    print(HEADER)
    rows = measure(arguments.launches)
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(arguments.json, to_json(header("sightings") | {"sightings": rows}))


if __name__ == "__main__":
    main()
