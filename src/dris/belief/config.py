"""What a belief is: every value of it. Here without torch, so that a command line is read quickly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dris.core.validation import check_choices, check_positive

BeliefUpdate = Literal["none", "ensemble", "particles", "kalman"]
BeliefName = Literal["own", "none", "ensemble", "particles", "kalman"]
"""As commands take it; own: what a policy was trained with, none if it was trained without."""


@dataclass(frozen=True)
class BeliefConfig:
    """A filter between what is seen and a policy. Noise is counted in the task's noise scales."""

    update: BeliefUpdate = "ensemble"
    """What an observation does to the instances. none: nothing, the paper's set; ensemble: pulls them by
    their own covariance (ensemble Kalman), best with few; particles: lets those survive that predicted it.
    kalman: a filter without instances and without a simulator, as a baseline."""
    instances: int = 50
    """N, beside the true one."""
    view: Literal["mean", "spread", "set"] = "mean"
    """What the policy sees as its set: the mean alone; the mean and a point one standard deviation to either
    side of it along each component; or all instances."""
    physics: Literal["domain", "nominal"] = "domain"
    """Of the instances: drawn from the task's ranges, or, as a baseline, the middle of them."""
    prior: tuple[tuple[str, float, float], ...] = ()
    """Ranges of parameters that differ from the task's: name, low, high."""
    look_ahead: bool = True
    """Whether the policy sees the moment at which its command will act, if there is a delay."""
    told_noise: float | None = None
    """Noise that the filter expects; None: what there is."""
    noise_floor: float = 0.3
    """An observation counts as no better than this, however exact it is: the instances' own physics is not
    exact either, and a filter that is too sure stops listening [design]."""
    jitter: float = 0.02
    """Deviation of what is added to every instance's state at an update, so that they never become one, nor
    too sure [design]. Copies of particles need more, 0.3, and theirs is counted in the deviations of what is
    seen: they become one the faster the less exact that is."""
    restart_surprise: float = 100.0
    """Squared distance of an observation from what was predicted, in its expected deviations, at which the
    belief begins anew from what is seen. It is about the size of the state where the belief is right
    [design]. Where more is observed than the state, as many times more as there are more numbers."""
    reward: Literal["belief", "truth"] = "belief"
    """In training, whose reward a policy learns from: the instances' mean, or the true one's."""
    worst_share: float = 1.0
    """Share of the instances, those with the lowest reward, whose mean counts (CVaR); 1: all."""

    def __post_init__(self) -> None:
        """Refuse what makes no filter."""
        check_choices(self)
        check_positive(self, "restart_surprise")
        if self.update == "kalman" and self.view == "set":
            raise ValueError("a kalman belief has no instances to show: view must be mean or spread")
        if not isinstance(self.instances, int) or self.instances < 2:
            raise ValueError(
                f"a belief needs at least 2 instances to have a spread, got {self.instances}: take 50"
            )
        for name in ("noise_floor", "jitter"):
            if not 0 < getattr(self, name) < 100:
                raise ValueError(f"{name} must lie in (0, 100) noise scales, got {getattr(self, name)}")
        if self.told_noise is not None and not 0 <= self.told_noise < 100:
            raise ValueError(f"told_noise must be None or lie in [0, 100), got {self.told_noise}")
        if not 0 < self.worst_share <= 1:
            raise ValueError(f"worst_share must lie in (0, 1], got {self.worst_share}")

    def named(self, name: str) -> BeliefConfig:
        """The belief of a name in `BELIEFS`; this one, as it is, if that is "own" or its kind."""
        return self if name in ("own", self.update) else BELIEFS[name]

    @property
    def beside(self) -> int:
        """Instances that the environment simulates beside the true one."""
        return 0 if self.update in ("none", "kalman") else self.instances


BELIEFS: dict[str, BeliefConfig] = {
    "none": BeliefConfig("none"),
    "ensemble": BeliefConfig(),
    "nominal": BeliefConfig(physics="nominal"),
    "particles": BeliefConfig("particles", jitter=0.3),
    "kalman": BeliefConfig("kalman"),
}
"""Beliefs by name."""
