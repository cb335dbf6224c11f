"""The paper's table of trials, and more: balls by launches by policies, resumable trial by trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch

from dris.catching.settings import DOMAIN
from dris.catching.task import CatchingTask
from dris.core.files import locked, read_json, to_json, write_json
from dris.core.process import in_processes
from dris.core.rollout import wilson
from dris.core.schema import header
from dris.core.typed import with_defaults
from dris.evaluation.registry import PolicyHandle, find_policy, policy_file
from dris.experiments.trials.cells import cells_of
from dris.experiments.trials.config import TrialsConfig
from dris.experiments.trials.film import Filmed, film
from dris.experiments.trials.outcome import Outcome, within_limits
from dris.lab.camera_observer import POOR_CAMERAS, CameraObserver, CameraObserverConfig
from dris.lab.drives import drive
from dris.lab.objects import CatchObject, thing
from dris.lab.trial import catching_config, run_trial
from dris.lab.twin import Twin, TwinConfig
from dris.learning.checkpoint import fingerprint, load_checkpoint
from dris.learning.run_folder import versions
from dris.sim.contact import AVERAGED

CAMERAS = {"cameras": CameraObserverConfig(), "poor-cameras": POOR_CAMERAS}
LIGHT_MASS_SCALE = 1e-3
"""Mass of a thing that does not push, over its own."""
FILM_TRIES = 4
ROUND = 5
"""Trials of a cell before the next cell has its turn: half a table then says something of every cell."""
_LONG = ("states", "decisions")


def thing_of(config: TrialsConfig, name: str) -> CatchObject:
    """A thing by its name, as a table's values change it."""
    found = thing(name)
    if config.contact == "training":
        middle = {key: torch.tensor(0.5 * (r.low + r.high)) for key, r in DOMAIN.items()}
        found = replace(
            found,
            restitution=float(AVERAGED.pair_restitution(middle["restitution"])),
            friction=float(AVERAGED.pair_friction(middle["dynamic_friction"])),
            rolling=0.0,
        )
    if config.coupling == "one-way":
        x, y, z = found.inertia
        inertia = (LIGHT_MASS_SCALE * x, LIGHT_MASS_SCALE * y, LIGHT_MASS_SCALE * z)
        found = replace(found, mass=LIGHT_MASS_SCALE * found.mass, inertia=inertia)
    return found


def lab_of(config: TrialsConfig, policy: PolicyHandle) -> TwinConfig:
    """The laboratory of a table, for a policy."""
    chosen = drive(config.drive, catching_config(policy))
    if config.coupling == "one-way":
        thin = LIGHT_MASS_SCALE * chosen.lab.air_density
        chosen = replace(chosen, lab=replace(chosen.lab, air_density=thin))
    return chosen


def _world(config: TrialsConfig, policy: str) -> str:
    """What tells the world of a policy's trials from others: things, launches, laboratory and cameras."""
    cells = cells_of(config.kind)
    parts = {
        "things": [asdict(thing_of(config, what)) for what, _, _ in cells],
        "launches": [repr(launch) for _, _, launch in cells],
        "laboratory": asdict(lab_of(config, find_policy(policy))),
        "cameras": None if config.sight == "perfect" else asdict(CAMERAS[config.sight]),
    }
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()[:16]


def run_table(config: TrialsConfig, file: Path, workers: int = 1) -> Iterator[tuple[str, bool]]:
    """Run what is missing of a table; yields each trial's name and whether it was a catch.

    The file holds every trial's outcome and is replaced whole after each. A table may grow: policies and
    trials that are not in the file are added to it.

    Args:
        config: Which trials.
        file: Of the table.
        workers: Trials at a time, each in a process of its own if there is more than one.

    Raises:
        ValueError: The file holds trials of another kind or of other weights, or another process adds to
            the folder.
    """
    with locked(file.parent, wait=False):
        yield from _add(config, file, workers)


def _add(config: TrialsConfig, file: Path, workers: int) -> Iterator[tuple[str, bool]]:
    table = _open_table(config, file)
    names = [
        f"{policy}/{what}/{label}/{k}"
        for policy in table["config"]["policies"]
        for what, label, _ in cells_of(config.kind)
        for k in range(table["config"]["trials"])
    ]
    missing = [name for name in names if name not in table["trials"]]
    missing.sort(key=lambda name: int(name.rsplit("/", 1)[1]) // ROUND)
    for name, outcome in _outcomes(config, missing, workers):
        found = table["trials"] | {name: outcome}
        table["trials"] = {name: found[name] for name in names if name in found}
        table["totals"] = totals(table["trials"])
        write_json(file, table)
        yield name, outcome["caught"]


def _weights(policy: str) -> str:
    """What tells a policy's weights from others'; agents in code have none."""
    if policy in CatchingTask.baselines():
        return ""
    return fingerprint(load_checkpoint(policy_file(policy), "policy").tensors)[:16]


def _config_in(table: dict[str, Any]) -> dict[str, Any]:
    """The configuration in a table's file; a policy's own belief was a null before it had a name."""
    found = table.get("config", {})
    return {**found, "belief": found.get("belief") or "own"}


def _open_table(config: TrialsConfig, file: Path) -> dict[str, Any]:
    stamp = json.loads(to_json(asdict(config)))
    weights = {policy: _weights(policy) for policy in config.policies}
    worlds = {policy: _world(config, policy) for policy in config.policies}
    made_with = {"weights": weights, "worlds": worlds, "versions": versions()}
    if not file.exists():
        return {**header("trials"), "config": stamp, **made_with, "trials": {}}
    table = read_json(file)
    for policy, known in table.get("weights", {}).items():
        if weights.setdefault(policy, _weights(policy)) != known:
            raise ValueError(f"{file} holds trials of other weights of '{policy}': choose another --name")
    old = with_defaults(_config_in(table), config)
    if {**old, "policies": 0, "trials": 0} != {**stamp, "policies": 0, "trials": 0}:
        raise ValueError(f"{file} holds trials of another configuration: choose another --name or --out")
    for policy, known in table.get("worlds", {}).items():
        if worlds.setdefault(policy, _world(config, policy)) != known:
            raise ValueError(
                f"{file} holds trials of '{policy}' in another laboratory (balls, ramps, gains or cameras "
                "have changed since): choose another --name"
            )
    stamp["policies"] = [*old["policies"], *(p for p in config.policies if p not in old["policies"])]
    stamp["trials"] = max(old["trials"], config.trials)
    return header("trials") | table | {"config": stamp, **made_with}


def _outcomes(config: TrialsConfig, names: list[str], workers: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run trials by their names, here or in other processes."""
    if workers == 1:
        yield from ((name, run_named(config, name)) for name in names)
    else:
        found = in_processes(partial(run_named, config), names, workers)
        yield from ((name, future.result()) for name, future in found)


def run_named(config: TrialsConfig, name: str) -> dict[str, Any]:
    """Outcome of a trial by its name: policy/thing/launch/number."""
    policy, what, label, k = name.rsplit("/", 3)
    launch = next(launch for *cell, launch in cells_of(config.kind) if cell == [what, label])
    handle, twin = _laboratory(replace(config, policies=(policy,)))
    object_, seed = thing_of(config, what), config.seed + int(k)
    twin.reset(object_, launch, seed)
    cameras = None if config.sight == "perfect" else CAMERAS[config.sight]
    observer = None if cameras is None else CameraObserver(twin, object_, cameras, seed)
    found = run_trial(handle, object_, launch, seed, twin, observer)
    outcome = {key: value for key, value in vars(found).items() if key not in _LONG}
    return outcome | {"approach": None if found.approach is None else asdict(found.approach)}


@lru_cache(maxsize=1)
def _laboratory(config: TrialsConfig) -> tuple[PolicyHandle, Twin]:
    """A policy and its laboratory, kept from trial to trial."""
    handle = _policy(config, config.policies[0])
    return handle, Twin(lab_of(config, handle))


def _policy(config: TrialsConfig, name: str) -> PolicyHandle:
    """A policy by its name, with the belief that a table asks for."""
    handle = find_policy(name)
    return replace(handle, belief=handle.belief.named(config.belief))


def film_table(file: Path) -> Iterator[Filmed]:
    """Films beside a table's file: of every policy the first catch and the first loss that repeat on film.

    A film reads out whole frames and a table windows, so that a trial on the edge may end otherwise.

    Raises:
        ValueError: The table's trials did not use the cameras that a film shows.
    """
    table = read_json(file)
    config = TrialsConfig(**{**_config_in(table), "policies": tuple(table["config"]["policies"])})
    if config.sight != "cameras":
        raise ValueError(f"{file} holds trials with {config.sight} sight: films show what cameras see")
    launches = {(what, label): launch for what, label, launch in cells_of(config.kind)}
    trials = [(*key.rsplit("/", 3), trial["caught"]) for key, trial in table["trials"].items()]
    for policy in config.policies:
        handle, short = _policy(config, policy), Path(policy).name
        lab = lab_of(config, handle)
        for caught, word in ((True, "caught"), (False, "lost")):
            video = file.with_name(f"{file.stem}-{short}-{word}.mp4")
            alike = [cell for who, *cell, ended in trials if (who, ended) == (policy, caught)]
            for what, label, k in alike[:FILM_TRIES]:
                launch, title = launches[what, label], f"{short}, {what}, {label}, trial {k}"
                seed = config.seed + int(k)
                found = film(handle, thing_of(config, what), launch, seed, lab, title, video)
                if found.trial.caught == caught:
                    yield found
                    break
                video.unlink()


def totals(trials: dict[str, Outcome]) -> dict[str, dict[str, Any]]:
    """Catches of each policy over all its trials, with Wilson's interval.

    within_speed: catches in which no joint passed the speed at which a real FR3 stops. within_limits: those
    in which, besides, the torque law never asked for more than a joint's torque or FCI's torque rate.
    """
    counts: dict[str, list[Outcome]] = {}
    for name, outcome in trials.items():
        counts.setdefault(name.rsplit("/", 3)[0], []).append(outcome)
    found = {}
    for policy, outcomes in counts.items():
        caught = [outcome["caught"] for outcome in outcomes]
        low, high = wilson(sum(caught), len(caught))
        found[policy] = {
            "caught": sum(caught), "trials": len(caught), "rate": sum(caught) / len(caught),
            "low": low, "high": high,
            "within_speed": sum(o["caught"] and o["speed_share"] <= 1 for o in outcomes),
            "within_limits": sum(o["caught"] and within_limits(o) for o in outcomes),
        }  # fmt: skip
    return found
