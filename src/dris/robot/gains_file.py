"""Gains that `dris identify-gains --json` found to match, read for the policy that they were found for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from dris.catching.settings import JOINTS
from dris.core.schema import read_as

KIND = "identified-gains"
FEWEST, MOST = 0.5, 2.0
"""Of a gain that was told, so much of it may match: further off it is not the gain that is wrong [design]."""

Gains = Annotated[
    tuple[Annotated[float, Meta(gt=0, le=1e6)], ...], Meta(min_length=JOINTS, max_length=JOINTS)
]
"""K [Nm/rad] or D [Nm s/rad] of every joint; msgspec refuses NaN wherever a bound is given."""


class _File(msgspec.Struct):
    kind: str
    simulated: bool
    told_stiffness: Gains
    told_damping: Gains
    matching_stiffness: Gains
    matching_damping: Gains


def matching_gains(
    file: Path, stiffness: tuple[float, ...], damping: tuple[float, ...], simulated: bool
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """K and D to tell an arm in place of others.

    Args:
        file: Of `dris identify-gains --json`.
        stiffness: K that the policy would be driven with otherwise.
        damping: D, the same.
        simulated: Whether the arm is.

    Raises:
        ValueError: It is no such file, of a simulated arm for a real one, of another policy's gains, or too
            far from them.
    """
    found = read_as(file, _File, KIND)
    if found.simulated and not simulated:
        raise ValueError(f"{file} is of the twin: identify the gains of this arm, `--robot ADDRESS --move`")
    for name, told, own, match in (
        ("K", found.told_stiffness, stiffness, found.matching_stiffness),
        ("D", found.told_damping, damping, found.matching_damping),
    ):
        if told != tuple(own):
            raise ValueError(
                f"{file} is of a policy with {name} = {told}, this one is driven with {tuple(own)}: run "
                "`dris identify-gains` with this policy"
            )
        for joint, (one, other) in enumerate(zip(match, told, strict=True), start=1):
            if not FEWEST <= one / other <= MOST:
                raise ValueError(
                    f"{file}: {name} of joint {joint} is {one:g} in place of {other:g}, allowed are "
                    f"{FEWEST:g} to {MOST:g} times as much: look for a wrong payload or what holds the arm, "
                    "and identify again"
                )
    return found.matching_stiffness, found.matching_damping
