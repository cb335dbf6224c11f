"""Which trials; apart from what runs them, so that a command line can be read without MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dris.core.validation import check_seed
from dris.lab import Drive

TRIALS_SEED = 50_021
"""Seed of the first trial of every cell. No policy was trained on it; the gains of preset `robot` were chosen
by a look at the first three trials of each cell (docs/reports/literal.md), and so were cameras, approach and
drive of preset `released` (docs/reports/twin.md)."""

Kind = Literal["ramps", "throws", "balancing", "irregular"]


@dataclass(frozen=True)
class TrialsConfig:
    """Which trials."""

    kind: Kind = "ramps"
    """ramps: four balls by three ramps, the paper's table; throws: by hand, as in training and gently;
    balancing: laid on the plate tilted by 30 degrees; irregular: apple, strawberry and wooden cube, thrown
    gently."""
    policies: tuple[str, ...] = ("belief-robot",)
    """The one that was made for a robot, and others to compare it with: see `dris evaluate --help`."""
    trials: int = 20
    """Of every cell."""
    seed: int = TRIALS_SEED
    drive: Drive = "fitted-gains"
    """What stands between reference and torque: see `dris.lab.drives`."""
    sight: Literal["cameras", "poor-cameras", "perfect"] = "cameras"
    """poor-cameras: four times the noise, 60 ms of latency, every third frame lost, one camera covered for
    0.2 s. perfect: the true position and velocity, without delay."""
    contact: Literal["real", "training"] = "real"
    """training: every thing bounces and slides as the middle of the training's balls do."""
    coupling: Literal["two-way", "one-way"] = "two-way"
    """one-way: things a thousand times lighter, in air as much thinner: they fly the same and do not push."""
    belief: Literal["own", "none", "ensemble"] = "own"
    """What stands between sight and the policies. own: what each was trained with. ensemble: 50 balls that
    fly and bounce beside the real one, pulled by every sight."""

    def __post_init__(self) -> None:
        """Refuse tables that are none."""
        if self.trials < 1 or not self.policies:
            raise ValueError(f"need at least one trial and one policy, got {self.trials}, {self.policies}")
        if len(set(self.policies)) < len(self.policies):
            raise ValueError(f"name each policy once, got {self.policies}")
        check_seed(self.seed)
