"""The verbs `lab`, measurements of the twin laboratory and of how well it is seen, and `fci-twin`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dris.core import validation
from dris.core.files import write_json
from dris.core.schema import header
from dris.lab.fci.faults import Faults

_NO_FAULTS = Faults()


def lab(
    what: tyro.conf.Positional[
        Literal["contact", "gains", "cameras", "tracking", "conditions", "faults", "sight", "belief"]
    ],
    policy: str = "dris-200",
    repeats: int = 5,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Measure the twin laboratory, or how well the ball is seen.

    Args:
        what: contact: what balls do on a plate, asked and measured; gains: fit K and D to the training world;
            cameras: time of a pair of pictures; tracking: errors of the track of drawn throws;
            conditions: the same under one imperfection at a time; faults: whether the eyes notice faults of
            cameras, clocks and rooms, and are right without; sight: errors of the track of the twin's balls;
            belief: the same of a belief beside the tracker, while a policy catches, with good cameras and
            poor ones.
        policy: Whose catches excite the joints (gains), or who is told what is seen (faults).
        repeats: Throws of a kind (tracking, sight, belief), clean trials of a ball and ramp (faults), pairs
            of pictures (cameras).
        json_file: Also write the result to this file.
    """
    validation.check_at_least_one(repeats=repeats)
    validation.check_json(json_file)
    measures: dict[str, Callable[[], Any]] = {
        "contact": _contact,
        "gains": lambda: _gains(policy),
        "cameras": lambda: _cameras(repeats),
        "tracking": lambda: _tracking(repeats),
        "conditions": _conditions,
        "faults": lambda: _faults(repeats, policy, json_file),
        "sight": lambda: _sight(repeats),
        "belief": lambda: _belief(repeats),
    }
    rows = measures[what]()
    if isinstance(rows, str):  # a table whose rows are not told one by one
        print(rows)
    result = rows if isinstance(rows, dict) else {"rows": rows}
    write_json(json_file, header(f"lab-{what}") | result)
    return 0


def _contact() -> list[dict[str, Any]]:
    from dris.experiments.contact import calibration

    rows = [vars(row) for row in calibration()]
    print("| ball | quantity | asked | measured | over the time grid's phase |\n|---|---|---|---|---|")
    for row in rows:
        spread = "" if row["low"] == row["high"] else f"{row['low']:.3f} to {row['high']:.3f}"
        cells = (row["thing"], row["quantity"], f"{row['asked']:.3f}", f"{row['measured']:.3f}", spread)
        print(f"| {' | '.join(cells)} |")
    return rows


def _gains(policy: str) -> list[dict[str, Any]]:
    from dris.experiments.gains import identify

    result = vars(identify(policy))
    for name, value in result.items():
        print(f"{name}: {value}")
    return [result]


def _cameras(pairs: int) -> list[dict[str, Any]]:
    from dris.lab.launch import Ramp
    from dris.lab.objects import BALLS
    from dris.lab.twin import Twin

    twin = Twin()
    twin.reset(BALLS["ping-pong"], Ramp(), 0)
    names = [camera.name for camera in twin.config.lab.cameras]
    for name in names:
        twin.render(name)  # the first picture sets things up
    start = time.perf_counter()
    for _ in range(pairs):
        for name in names:
            twin.render(name)
    pair_ms = 1e3 * (time.perf_counter() - start) / pairs
    print(f"{pair_ms:.1f} ms for {len(names)} pictures of 640 x 480")
    return [{"pair_ms": pair_ms}]


def _tracking(throws: int) -> str:
    from dris.experiments.tracking.measure import measure_tracking, summary, table

    measured = [measure_tracking(kind, throws=throws) for kind in ("training", "ramp")]
    return f"{table(measured)}\n{summary(measured)}"


def _conditions() -> str:
    from dris.experiments.tracking.conditions import conditions_table

    return conditions_table()


def _faults(repeats: int, policy: str, json_file: Path | None) -> list[dict[str, Any]]:
    from dris.experiments.tracking.fault_table import measure

    def keep(rows: list[dict[str, Any]]) -> None:
        write_json(json_file, header("lab-faults") | {"rows": rows})

    return measure(repeats, on_rows=keep, name=policy)


def _sight(launches: int) -> list[dict[str, Any]]:
    from dris.experiments.trials.sight_error import HEADER, measure

    print(HEADER)
    return measure(launches)


def _belief(trials: int) -> dict[str, Any]:
    from dris.experiments.trials.belief_error import HEADER, measure

    print(HEADER)
    return measure(trials)


def fci_twin(
    address: str = "127.0.0.1", pace: float = 1.0, hand_alone: bool = False, faults: Faults = _NO_FAULTS
) -> int:
    """Serve the twin's arm by Franka's protocol (FCI, server version 10) until interrupted.

    Unmodified clients (franky-control, pylibfranka, libfranka) connect to it as to a robot.

    Args:
        address: Of the loopback, 127.0.0.1 to 127.255.255.254. Clients always take port 1337.
        pace: Robot seconds per second at most while a motion runs.
        hand_alone: The robot's settings know the hand alone, as a real one's should for `dris deploy`: the
            client declares the plate. By default they know hand and plate.
        faults: What goes wrong.
    """
    from dris.lab.fci.plant import Plant
    from dris.lab.fci.protocol import PORT, VERSION
    from dris.lab.fci.server import Server, ServerConfig
    from dris.lab.launch import Placed
    from dris.lab.objects import BALLS
    from dris.lab.twin import Twin

    def tell(line: str) -> None:
        print(line, flush=True)

    config = ServerConfig(address=address, pace=pace, faults=faults)
    twin = Twin()
    twin.reset(BALLS["foam"], Placed((1.5, 1.0, 0.1), (0.0, 0.0, 0.0)), 0)  # out of the arm's reach
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Server(Plant(twin, knows_plate=not hand_alone), config, tell=tell) as server:
        tell(f"an FR3 with a plate, simulated: FCI version {VERSION} on {address}:{PORT}; Ctrl-C ends it")
        try:
            server.run()
        except KeyboardInterrupt:
            counts, reflexes = server.counts, len(server.cabinet.reflexes)
            tell(
                f"interrupted after {counts.ticks / 1000:.1f} s of robot time: {counts.commands} commands, "
                f"{counts.missed} missed, {reflexes} reflexes"
            )
    return 130
