"""What a belief before a policy loses by what it does not know: where the ball starts, and its physics.

It is told one or the other, or both, and all else is as before. A robot's eyes watch a ball for some tenths
of a second before a policy takes over; the training world's belief begins at a single noisy sight.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from dris.belief.config import BELIEFS
from dris.belief.env import BeliefEnv
from dris.core.conditions import Condition
from dris.core.domain import Domain
from dris.core.env import EnvConfig
from dris.core.files import read_json
from dris.core.rng import KeyedRng
from dris.core.rollout import Score, run_episodes
from dris.core.schema import header, kind_of
from dris.core.task import Task
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.learning.run_folder import versions

KNOWN: tuple[tuple[str, ...], ...] = ((), ("start",), ("physics",), ("start", "physics"))
NOISE = (2.0, 3.0, 4.0)


@dataclass(frozen=True)
class AblationConfig:
    """Effort of the measurement."""

    episodes: int = 2000
    seed: int = 777


class KnowingEnv(BeliefEnv):
    """An ensemble that is told what no belief can know: where the ball truly starts, or its physics."""

    def __init__(self, task: Task, config: EnvConfig, domain: Domain | None, known: tuple[str, ...]):
        super().__init__(task, config, domain, BELIEFS["ensemble"])
        self._known = known
        if "physics" in known:
            self._belief_domain = None
            self.domain = _Shared(dict(self.domain))

    def _start_around(self, seen: torch.Tensor, deviation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if "start" not in self._known:
            return super()._start_around(seen, deviation)
        return self.task.states()[:, 0], torch.zeros_like(deviation)


class _Shared(Domain):
    """A domain from which all instances of a set draw the same."""

    def sample(self, rng: KeyedRng, instances: int, others: Domain | None = None) -> torch.Tensor:
        drawn = super().sample(rng, instances)  # as many as without, so that episodes start alike
        return drawn[:, :1].expand(-1, instances, -1).clone()


def score_knowing(
    policy: PolicyHandle, known: tuple[str, ...], noise: float, config: AblationConfig
) -> Score:
    """Score of a policy behind an ensemble that is told something."""
    make_env = partial(_make, known=known)
    asked = Condition(noise=noise), config.episodes, config.seed, make_env
    return run_episodes(policy.make_task, policy.make_agent, *asked).score()


def _make(task: Task, config: EnvConfig, domain: Domain | None, known: tuple[str, ...]) -> KnowingEnv:
    return KnowingEnv(task, config, domain, known)


Row = dict[str, Any]


def measure(files: list[Path], config: AblationConfig, so_far: list[Row]) -> Iterator[list[Row]]:
    """Every policy, told each of `KNOWN`, under each of `NOISE`: first what is known, then all after each.

    Args:
        files: Policies.
        config: Effort.
        so_far: Rows of an interrupted measurement; those of the same weights are kept.
    """
    have = {(row["weights"], *row["known"], row["noise"]): row for row in so_far if "weights" in row}
    asked = [(file, known, noise) for file in files for known in KNOWN for noise in NOISE]
    weights = {file: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in files}
    rows = [have.get((weights[file], *known, noise)) for file, known, noise in asked]
    yield [row for row in rows if row is not None]
    for k, (file, known, noise) in enumerate(asked):
        if rows[k] is None:
            policy = replace(find_policy(str(file)), belief=BELIEFS["ensemble"])
            found = score_knowing(policy, known, noise, config)
            low, high = found.interval
            name = "/".join(file.with_suffix("").parts[-3:])
            told = {"policy": name, "weights": weights[file], "known": list(known), "noise": noise}
            rows[k] = {**told, "success": found.success, "low": low, "high": high, **found.other_successes}
            yield [row for row in rows if row is not None]


def result(config: AblationConfig, rows: list[Row]) -> dict[str, Any]:
    """Of the file."""
    return {**header("ablation"), **asdict(config), "rows": rows, "versions": versions()}


def rows_of(file: Path, config: AblationConfig) -> list[Row]:
    """What an interrupted measurement of the same effort has left behind."""
    if not file.exists():
        return []
    found = read_json(file)
    same = all(found.get(name) == value for name, value in asdict(config).items())
    return found["rows"] if same and kind_of(file) == "ablation" else []


def table(rows: list[Row]) -> str:
    """Success at 0.1 / 0.2 m/s by what is known and noise, in words."""
    lines = [f"{'policy':<20} {'known':<16}" + "".join(f"{f'noise-{k:g}':>16}" for k in NOISE)]
    for first in range(0, len(rows), len(NOISE)):
        line = rows[first : first + len(NOISE)]
        told = f"{line[0]['policy']:<20} {' and '.join(line[0]['known']) or 'nothing':<16}"
        others = [f"{row['success']:.3f} / {row.get('success_0.2', math.nan):.3f}" for row in line]
        lines.append(told + "".join(f"{other:>16}" for other in others))
    return "\n".join(lines)
