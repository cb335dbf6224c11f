"""Conditions: named ways to make the world harder than in training.

Those of any task are a word and a number: noise-2.5, correlated-2, bias-2, dropout-30 (per cent), delay-40
(ms) and execution-0.05 (in units of the command). A task adds its own (`Task.conditions`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WORST_CASE = "worst-case"
"""Name of the grid over the domain, which is no single condition."""
TRACKER_CORRELATION = 0.8
"""Of the noise of `correlated-<x>` from one control step to the next: errors of a tracker last."""


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
        task: Values of the task's configuration that differ from the training's.
    """

    noise: float = 0.0
    execution_error: float = 0.0
    delay_s: float = 0.0
    noise_correlation: float = 0.0
    dropout: float = 0.0
    domain: tuple[tuple[str, float, float], ...] = ()
    task: tuple[tuple[str, Any], ...] = ()


_FAMILIES = {
    "noise": lambda x: Condition(noise=x),
    "correlated": lambda x: Condition(noise=x, noise_correlation=TRACKER_CORRELATION),
    "bias": lambda x: Condition(noise=x, noise_correlation=1.0),  # one error for the whole episode
    "delay": lambda ms: Condition(delay_s=ms / 1000),
    "dropout": lambda percent: Condition(dropout=percent / 100),
    "execution": lambda width: Condition(execution_error=width),
}
_BELOW = {"dropout": 100, "delay": 10_000}


def find_condition(name: str, own: Mapping[str, Condition]) -> Condition:
    """A condition by its name.

    Args:
        name: clean, a family and a number such as noise-2.5, or one of the task's.
        own: Those of the task.

    Raises:
        ValueError: There is none of this name, or its number is out of range.
    """
    if name in own:
        return own[name]
    if name == "clean":
        return Condition()
    match = re.fullmatch(r"([a-z]+)-(\d+(?:\.\d+)?)", name)
    if match is None or match[1] not in _FAMILIES:
        known = ", ".join(("clean", *(f"{family}-<x>" for family in _FAMILIES), *own, WORST_CASE))
        raise ValueError(f"unknown condition '{name}'; known: {known}")
    value = float(match[2]) if "." in match[2] else int(match[2])
    if match[1] in _BELOW and value >= _BELOW[match[1]]:
        raise ValueError(f"condition '{name}': its number must lie in [0, {_BELOW[match[1]]})")
    return _FAMILIES[match[1]](value)
