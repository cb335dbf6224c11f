"""Measurements of the twin itself: `python -m dris.lab calibration|gains|cameras`."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from dris.lab.launch import Ramp
from dris.lab.objects import BALLS


def calibration(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Contact: asked and measured."""
    from dris.experiments.contact import calibration

    rows = [vars(row) for row in calibration()]
    print("| ball | quantity | asked | measured | over the time grid's phase |\n|---|---|---|---|---|")
    for row in rows:
        spread = "" if row["low"] == row["high"] else f"{row['low']:.3f} to {row['high']:.3f}"
        print(
            f"| {row['thing']} | {row['quantity']} | {row['asked']:.3f} | {row['measured']:.3f} | {spread} |"
        )
    return rows


def gains(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Identify the twin's gains."""
    from dris.experiments.gains import identify

    result = vars(identify(arguments.policy))
    for name, value in result.items():
        print(f"{name}: {value}")
    return [result]


def cameras(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time of a pair of pictures; set MUJOCO_GL=egl before."""
    from dris.lab.twin import Twin

    twin = Twin()
    twin.reset(BALLS["ping-pong"], Ramp(), 0)
    names = [camera.name for camera in twin.config.lab.cameras]
    for name in names:
        twin.render(name)  # the first picture sets things up
    start = time.perf_counter()
    for _ in range(arguments.pairs):
        for name in names:
            twin.render(name)
    pair_ms = 1e3 * (time.perf_counter() - start) / arguments.pairs
    print(f"{pair_ms:.1f} ms for {len(names)} pictures of 640 x 480")
    return [{"pair_ms": pair_ms}]


COMMANDS = {
    "calibration": calibration,
    "gains": gains,
    "cameras": cameras,
}


def main() -> None:
    """Read the command line, measure, print, and save if asked to."""
    parser = argparse.ArgumentParser(prog="python -m dris.lab", description=__doc__)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--pairs", type=int, default=50, help="pictures to take (cameras)")
    parser.add_argument("--policy", default="dris-200", help="whose catches excite the joints (gains)")
    parser.add_argument("--json", type=Path, help="where to save the results")
    arguments = parser.parse_args()
    rows = COMMANDS[arguments.what](arguments)
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(row) for row in rows)  # a row a line: differences can be read
        arguments.json.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
