"""The verb that keeps a simulated robot busy for hours: soak."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dris.cli.robot import exported
from dris.core import validation

KIND = "soak"


def soak(
    policy: tyro.conf.Positional[str] = "dris-200",
    wishes: Literal["policy", "wild"] = "policy",
    faults: Literal["alone", "pairs", "cameras"] = "alone",
    minutes: float = 60.0,
    seed: int = 80001,
    address: str = "127.0.0.1",
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Hours of the twin behind Franka's protocol: throws with random faults, or wishes that nobody has.

    Exit code 1 if the arm once did not stop when it had to, stopped when it had to go on, if memory grew by
    more than 100 MB and 3 MB a round after the third round, or if a wild wish made the robot stop itself.

    Args:
        policy: A folder that `dris export` made, or a policy by name.
        wishes: policy: it catches balls while things go wrong at random. wild: nothing is caught; random and
            adversarial joints go through law, filter and driver, every other round without the law.
        faults: alone: one a throw, all of them and then at random. pairs: two at once, every pair of them
            once, and then it ends. cameras: what cameras do wrong, from rendered images, each three times,
            and then it ends; all others see the truth.
        minutes: How long at most; a round that has begun is finished.
        seed: Of throws and faults.
        address: Loopback address of the twin's robot.
        json_file: Also write what became of every round to this file.
    """
    validation.check_seed(seed)
    validation.check_json(json_file)
    if not minutes > 0:
        raise ValueError(f"minutes must be positive, got {minutes}")
    from dris.core.files import write_json
    from dris.core.schema import header
    from dris.experiments.deploy import TwinRig
    from dris.experiments.deployment import writing
    from dris.experiments.soak import SILENCE_S, Round, Watch, summary
    from dris.experiments.soak import soak as rounds_of
    from dris.experiments.soak_faults import ALONE, CAMERAS, PAIRS
    from dris.robot.runtime import Runtime

    if wishes == "wild":
        return _wild(policy, seed, address, minutes, json_file)
    rounds: list[Round] = []
    watch, tried = Watch(), {"alone": ALONE, "pairs": PAIRS, "cameras": 3 * CAMERAS}[faults]

    def enough(number: int) -> bool:
        late = number > 0 and time.monotonic() > end
        return late or (faults != "alone" and number == len(tried))

    with (
        writing(json_file, KIND),
        exported(policy) as folder,
        TwinRig(Runtime(folder), address, silence_s=SILENCE_S, watch=watch) as rig,
    ):
        end = time.monotonic() + 60 * minutes
        for one in rounds_of(rig, watch, seed, enough, tried):
            rounds.append(one)
            write_json(json_file, header(KIND) | summary(rounds) | {"rows": [asdict(r) for r in rounds]})
            rest = "" if one.stopped_s is None else f"at rest after {one.stopped_s:.3f} s; "
            wrong = "MISSED; " if one.missed else ""
            print(f"{one.number:>4}  {one.fault:<14} {wrong}{rest}{one.ended}", flush=True)
    told = summary(rounds)
    for name, value in told.items():
        print(f"{name}: {value}")
    return 1 if told["missed"] or told["leaks"] else 0


def _wild(policy: str, seed: int, address: str, minutes: float, json_file: Path | None) -> int:
    from dris.core.files import write_json
    from dris.core.schema import header
    from dris.experiments.deploy import TwinRig
    from dris.experiments.deployment import writing
    from dris.experiments.wild import wild_rounds, wild_summary
    from dris.robot.runtime import Runtime

    rounds = []
    with writing(json_file, KIND), exported(policy) as folder, TwinRig(Runtime(folder), address) as rig:
        end = time.monotonic() + 60 * minutes
        for one in wild_rounds(rig, seed, lambda number: number > 0 and time.monotonic() > end):
            rounds.append(one)
            write_json(json_file, header(KIND) | wild_summary(rounds) | {"rows": [asdict(r) for r in rounds]})
            wrong = f"REFLEX: {'; '.join(one.reflexes)}; " if one.reflexes else ""
            fastest = f"fastest joint {one.speed_share:.2f} of its limit"
            print(
                f"{one.number:>4}  {one.through:<14} {one.seconds:5.1f} s  {wrong}{fastest}; {one.ended}",
                flush=True,
            )
    told = wild_summary(rounds)
    for name, value in told.items():
        print(f"{name}: {value}")
    return 1 if told["reflexes"] or told["never_began"] else 0
