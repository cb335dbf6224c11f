"""Conditions: named ways to make the world harder than in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Condition:
    """One way to make the world harder, all in one place.

    Attributes:
        noise: Observation noise in multiples of the task's noise scale.
        execution_error: Half width of the uniform error on commands.
        delay_s: Time from observation to the moment its command acts [s].
        noise_correlation: Of the noise from one control step to the next, an AR(1) of the same deviation.
        dropout: Probability that an observation is missing; the last one then stands in for it.
        domain: Ranges that differ from the training's, by parameter.
        task: Values of the task that differ from the training's, for `Task.changed`.
    """

    noise: float = 0.0
    execution_error: float = 0.0
    delay_s: float = 0.0
    noise_correlation: float = 0.0
    dropout: float = 0.0
    domain: tuple[tuple[str, float, float], ...] = ()
    task: tuple[tuple[str, Any], ...] = ()


CONDITIONS: dict[str, Condition] = {
    "clean": Condition(),
    **{f"noise-{k}": Condition(noise=k) for k in (1, 2, 3, 4)},
    "execution": Condition(execution_error=0.05),  # [paper] uniform [rad]; ours: drawn anew each step
    "restitution": Condition(domain=(("restitution", 0.7, 0.8),)),  # [paper] trained on 0.4 to 0.7
    **{f"delay-{ms}": Condition(delay_s=ms / 1000) for ms in (20, 40, 60)},
    # Errors of a tracker last from frame to frame.
    **{f"correlated-{k}": Condition(noise=k, noise_correlation=0.8) for k in (1, 2, 3, 4)},
    **{f"dropout-{percent}": Condition(dropout=percent / 100) for percent in (20, 40)},
}
