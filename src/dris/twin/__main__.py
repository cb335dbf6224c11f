"""Measurements of the twin: `python -m dris.twin calibration|transfer|trials|gains|cameras`."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from dris.evaluate import EVALUATION_SEED
from dris.stats import wilson
from dris.twin.drives import DRIVES, drive
from dris.twin.launch import RAMP_RADII, SLOW_THROW, Laid, Launch, Ramp, Throw
from dris.twin.objects import BALLS, IRREGULAR, thing


def calibration(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Contact: asked and measured."""
    from dris.twin.calibrate import calibration

    rows = [vars(row) for row in calibration()]
    print("| ball | quantity | asked | measured | over the time grid's phase |\n|---|---|---|---|---|")
    for row in rows:
        spread = "" if row["low"] == row["high"] else f"{row['low']:.3f} to {row['high']:.3f}"
        print(
            f"| {row['thing']} | {row['quantity']} | {row['asked']:.3f} | {row['measured']:.3f} | {spread} |"
        )
    return rows


def transfer(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The training's throws in both worlds."""
    from dris.twin.compare import evaluate_in_twin

    rows = []
    for policy in arguments.policies:
        for name in arguments.drives:
            config = drive(name)
            # The training world under the same law, as far as it has it.
            same: dict[str, Any] = {"torque_rate": config.torque_rate}
            same |= {"stiffness": config.stiffness, "damping": config.damping}
            result = evaluate_in_twin(policy, arguments.trials, arguments.seed, config, **same)
            print(f"{policy}, drive {name}: " + "; ".join(result.lines()), flush=True)
            rows.append({"policy": policy, "drive": name, "seed": arguments.seed, **vars(result)})
    return rows


def trials(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Ten-second trials: the ramps, throws by hand (irregular objects too), or balancing."""
    from dris.twin.control import TRIAL_S, make_agent, run_trial
    from dris.twin.twin import Twin

    cells: list[tuple[str, str, Launch]] = []
    if arguments.kind == "ramps":
        cells = [(f"R = {r} m", name, Ramp(r)) for name in BALLS for r in RAMP_RADII]
    elif arguments.kind == "throws":
        cells += [("thrown", name, Throw()) for name in BALLS]
        cells += [("thrown gently", name, SLOW_THROW) for name in (*BALLS, *IRREGULAR)]
    else:
        cells = [("laid on at 30 degrees", name, Laid()) for name in BALLS]
    rows = []
    for policy in arguments.policies:
        agent = make_agent(policy, round(TRIAL_S / 0.05))
        for name in arguments.drives:
            twin, total = Twin(drive(name)), 0
            for label, what, launch in cells:
                outcomes = [
                    run_trial(agent, thing(what), launch, arguments.seed + k, twin)
                    for k in range(arguments.trials)
                ]
                caught = sum(trial.caught for trial in outcomes)
                over = sum(trial.speed_share > 1 for trial in outcomes)
                total += caught
                print(
                    f"{policy}, drive {name}, {what}, {label}: {caught} / {len(outcomes)}, "
                    f"a joint passed its FCI speed limit in {over}",
                    flush=True,
                )
                rows.append(
                    {
                        "policy": policy, "drive": name, "thing": what, "launch": label,
                        "seed": arguments.seed, "trials": len(outcomes), "caught": caught,
                        "settled": sum(trial.settled for trial in outcomes), "over_speed": over,
                    }
                )  # fmt: skip
            count = len(cells) * arguments.trials
            low, high = wilson(total, count)
            print(f"{policy}, drive {name}: {total} / {count} = {total / count:.2f} [{low:.2f}, {high:.2f}]")
    return rows


def gains(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Identify the twin's gains."""
    from dris.twin.gains import identify

    result = vars(identify())
    for name, value in result.items():
        print(f"{name}: {value}")
    return [result]


def cameras(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time of a pair of pictures; set MUJOCO_GL=egl before."""
    from dris.twin.twin import Twin

    twin = Twin()
    twin.reset(BALLS["ping-pong"], Ramp(), 0)
    names = [camera.name for camera in twin.config.lab.cameras]
    for name in names:
        twin.render(name)  # the first picture sets things up
    start = time.perf_counter()
    for _ in range(arguments.trials):
        for name in names:
            twin.render(name)
    pair_ms = 1e3 * (time.perf_counter() - start) / arguments.trials
    print(f"{pair_ms:.1f} ms for {len(names)} pictures of 640 x 480")
    return [{"pair_ms": pair_ms}]


COMMANDS = {
    "calibration": calibration,
    "transfer": transfer,
    "trials": trials,
    "gains": gains,
    "cameras": cameras,
}


def main() -> None:
    """Read the command line, measure, print, and save if asked to."""
    parser = argparse.ArgumentParser(prog="python -m dris.twin", description=__doc__)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--policies", nargs="+", default=["dris-200", "e2e"])
    parser.add_argument("--drives", nargs="+", default=list(DRIVES), choices=DRIVES)
    parser.add_argument(
        "--kind", choices=("ramps", "throws", "balancing"), default="ramps", help="cells of `trials`"
    )
    parser.add_argument("--trials", type=int, default=50, help="per cell")
    parser.add_argument("--seed", type=int, default=EVALUATION_SEED)
    parser.add_argument("--json", type=Path, help="where to save the results")
    arguments = parser.parse_args()
    rows = COMMANDS[arguments.what](arguments)
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(row) for row in rows)  # a row a line: differences can be read
        arguments.json.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
