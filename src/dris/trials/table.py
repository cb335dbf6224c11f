"""The paper's table of trials, and more: balls by launches by policies, resumable trial by trial."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dris.runs import to_json, write_atomically
from dris.stats import wilson
from dris.trials.config import Kind, TrialsConfig
from dris.trials.sight import SightConfig
from dris.trials.trial import run_seen_trial
from dris.twin.control import TRIAL_S, make_agent, run_trial
from dris.twin.drives import drive
from dris.twin.launch import RAMP_RADII, SLOW_THROW, Laid, Launch, Ramp, Throw
from dris.twin.objects import BALLS, IRREGULAR, thing
from dris.twin.twin import Twin


def cells_of(kind: Kind) -> list[tuple[str, str, Launch]]:
    """Thing, name of the launch, launch."""
    if kind == "ramps":
        return [(ball, f"R = {radius:.2f} m", Ramp(radius)) for ball in BALLS for radius in RAMP_RADII]
    if kind == "throws":
        ways: tuple[tuple[str, Launch], ...] = (("thrown", Throw()), ("thrown gently", SLOW_THROW))
        return [(ball, label, launch) for ball in BALLS for label, launch in ways]
    if kind == "balancing":
        return [(ball, "from 30 degrees", Laid()) for ball in BALLS]
    return [(name, "thrown gently", SLOW_THROW) for name in IRREGULAR]


def run_table(config: TrialsConfig, file: Path) -> Iterator[tuple[str, bool]]:
    """Run what is missing of a table; yields each trial's name and whether it was a catch.

    The file holds every trial's outcome and is replaced whole after each.

    Raises:
        ValueError: The file holds trials of another configuration.
    """
    stamp = json.loads(to_json(asdict(config)))
    table: dict[str, Any] = {"config": stamp, "trials": {}}
    if file.exists():
        table = json.loads(file.read_text())
        if table.get("config") != stamp:
            raise ValueError(f"{file} holds trials of another configuration: choose another --out")
    for policy in config.policies:
        agent = make_agent(policy, round(TRIAL_S / 0.05) + 1)
        twin = Twin(drive(config.drive))
        for what, label, launch in cells_of(config.kind):
            for k in range(config.trials):
                name = f"{policy}/{what}/{label}/{k}"
                if name in table["trials"]:
                    continue
                seed = config.seed + k
                if config.sight == "perfect":
                    found: Any = run_trial(agent, thing(what), launch, seed, twin)
                else:
                    found = run_seen_trial(agent, thing(what), launch, seed, twin, SightConfig())
                kept = {
                    key: value for key, value in vars(found).items() if key not in ("states", "decisions")
                }
                table["trials"][name] = json.loads(to_json(kept))
                table["totals"] = totals(table["trials"])
                write_atomically(file, to_json(table))
                yield name, bool(found.caught)
        twin.close()


def totals(trials: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Catches of each policy over all its trials, with Wilson's interval."""
    counts: dict[str, list[bool]] = {}
    for name, outcome in trials.items():
        counts.setdefault(name.rsplit("/", 3)[0], []).append(outcome["caught"])
    found = {}
    for policy, caught in counts.items():
        low, high = wilson(sum(caught), len(caught))
        found[policy] = {
            "caught": sum(caught), "trials": len(caught), "rate": sum(caught) / len(caught),
            "low": low, "high": high,
        }  # fmt: skip
    return found
