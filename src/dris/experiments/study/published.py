"""The values that the paper published, to stand beside ours."""

from __future__ import annotations

from importlib.resources import files
from typing import TypedDict

import msgspec

Bands = dict[str, dict[str, tuple[float, float]]]
"""Low and high end of what the paper draws, by method and condition."""


class EqualInteraction(TypedDict):
    """As many balls for everybody, as the paper's text gives it: by method."""

    condition: str
    success: dict[str, float]
    memory_gb: dict[str, float]


class RealTrials(TypedDict, total=False):
    """The real robot's trials."""

    source: str
    policies: list[str]
    trials: int
    """Of a cell."""
    caught: dict[str, list[int]]
    """By object and launch, a number a policy."""
    totals: list[str]


class Published(TypedDict, total=False):
    """The paper's figures, or those of them that a page shall show."""

    source: str
    success: Bands
    reward: Bands
    equal_interaction: EqualInteraction
    real: RealTrials


def load_published() -> Published:
    """All of them."""
    text = (files("dris.experiments.study") / "published.json").read_bytes()
    return msgspec.json.decode(text, type=Published)


def bands_of(paper: Published, measure: str) -> Bands:
    """What the paper has of reward, or of success by whatever test; nothing if it is not to be shown."""
    return paper.get("reward", {}) if measure == "reward" else paper.get("success", {})


def equal_success(paper: Published) -> dict[str, float]:
    """Success by method with as many balls for everybody."""
    return paper["equal_interaction"]["success"] if "equal_interaction" in paper else {}
