"""The cells of every kind of trials; apart from the table, so that a deployment needs no torch."""

from __future__ import annotations

from dris.experiments.trials.config import Kind
from dris.lab.launch import RAMP_RADII, SLOW_THROW, Laid, Launch, Ramp, Throw
from dris.lab.objects import BALLS, IRREGULAR


def cells_of(kind: Kind) -> list[tuple[str, str, Launch]]:
    """CatchObject, name of the launch, launch."""
    if kind == "ramps":
        return [(ball, f"R = {radius:.2f} m", Ramp(radius)) for ball in BALLS for radius in RAMP_RADII]
    if kind == "throws":
        ways: tuple[tuple[str, Launch], ...] = (("thrown", Throw()), ("thrown gently", SLOW_THROW))
        return [(ball, label, launch) for ball in BALLS for label, launch in ways]
    if kind == "balancing":
        return [(ball, "from 30 degrees", Laid()) for ball in BALLS]
    return [(name, "thrown gently", SLOW_THROW) for name in IRREGULAR]
