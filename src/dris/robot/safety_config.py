"""What the safety filter keeps: its limits, and the names of its clauses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from dris.catching.ball_belief_config import BELIEVED_S
from dris.core.validation import check_positive

Clause = Literal[
    "not finite",
    "stale",
    "coupling",
    "speed",
    "plate speed",
    "torque",
    "torque rate",
    "position",
    "jump",
    "workspace",
    "keep-out",
]
"""not finite: a number is none, the last reference counts. stale: what the reference rests on is too old; the
last one counts. coupling: a joint would have driven another that is too fast. speed: a joint would have
become too fast, or not have slowed down, by the time its torque is taken back. plate speed: the plate or the
flange would have become too fast. torque: the law would have asked for too much. torque rate: the law would
have changed its torque too much since the last tick. position: too near to the end of a joint's range. jump:
the reference would have moved further in a tick than any joint goes. workspace, keep-out: the plate would
have left its box, or come too near to table or robot."""
TAU_MAX = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
"""FCI's largest torques [Nm]."""


class LimitArrays(NamedTuple):
    """Of a `SafetyConfig`, by the names that it has for them."""

    stiffness: np.ndarray
    damping: np.ndarray
    torque: np.ndarray
    workspace_low: np.ndarray
    workspace_high: np.ndarray


@dataclass(frozen=True)
class SafetyConfig:
    """Limits beyond those of the joints, which the robot itself tells. The base frame has z up."""

    stiffness: tuple[float, ...]
    """K of the law [Nm/rad]."""
    damping: tuple[float, ...]
    """D of the law [Nm s/rad]."""
    torque: tuple[float, ...] = TAU_MAX
    """[Nm]"""
    torque_share: float = 0.9
    """Of them, with gravity and Coriolis torques; what the model does not know needs the rest [design]."""
    torque_rate: float = 1000.0
    """FCI's [Nm/s],"""
    torque_rate_share: float = 0.95
    """and the share of it that the law may use [design]."""
    acceleration: float = 150.0
    """Of a joint whose reference may go with it [rad/s2]: a reference that moves further in a tick jumps. The
    twin's wrist reaches 135 when wishes jump 20 times a second [design]."""
    speed_share: float = 0.9
    """Of its limit that a joint is driven at, once its torques have been taken back: where wishes jump and
    joints drive each other, some pass it by a tenth [design]."""
    position_margin: float = 0.05
    """From where a joint may have no speed, near the end of its range [rad] [design]."""
    plate_speed: float = 2.5
    """Of plate and flange that a reference may drive them at [m/s]; FCI stops at 3 [design]."""
    workspace_low: tuple[float, float, float] = (-0.45, -0.45, -0.25)
    """Of the plate's centre over its home [m]: catching region, box and some more [design].
    Corners, wrist and forearm reach up to 0.3 m further."""
    workspace_high: tuple[float, float, float] = (0.45, 0.45, 0.30)
    table_height: float = 0.10
    """The plate's corners, hand, wrist and forearm stay above [m] [design]."""
    clearance: float = 0.02
    """Of plate, hand and wrist from base to upper arm, of the plate from the forearm, too [m] [design]."""
    plate_overshoot: float = 1.4
    """An arm whose plate or flange moves faster than this share of `plate_speed` is stopped: under references
    that drive it at that speed for good, wishes that jump brought it to 1.29 on its way there [design]."""
    workspace_overshoot: float = 0.06
    """How far the arm itself may pass the workspace that references keep [m]: soft gains overshoot by 4 to
    5 cm; beyond, it is stopped [design]."""
    keep_out_overshoot: float = 0.01
    """The same towards table and robot: half of `clearance` [m] [design]."""
    hold_age_s: float = 0.075
    """Older than this, what a reference rests on counts no more [s]: six frames of 80 a second [design]."""
    stop_age_s: float = 0.25
    """Older than this, the arm stops [s] [design]."""

    def behind(self, belief: object | None) -> SafetyConfig:
        """The same for sights that a belief carries on for longer, if there is one and nobody has chosen."""
        if belief is None or self.hold_age_s != SafetyConfig.hold_age_s:
            return self
        return replace(self, hold_age_s=min(BELIEVED_S, 0.8 * self.stop_age_s))

    @cached_property
    def blind(self) -> SafetyConfig:
        """The same while nobody tells where the ball is: then no belief carries sights on."""
        return replace(self, hold_age_s=min(self.hold_age_s, SafetyConfig.hold_age_s))

    @cached_property
    def arrays(self) -> LimitArrays:
        """What a filter computes with, a thousand times a second."""
        names = ("stiffness", "damping", "torque", "workspace_low", "workspace_high")
        return LimitArrays(*(np.array(getattr(self, name), dtype=float) for name in names))

    def __post_init__(self) -> None:
        """Refuse limits that limit nothing."""
        names = ("torque_rate", "acceleration", "plate_speed", "plate_overshoot", "hold_age_s", "stop_age_s")
        check_positive(self, *names, "torque_share", "torque_rate_share", "speed_share")
        for name in ("torque_share", "torque_rate_share", "speed_share"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} must lie in (0, 1], got {getattr(self, name)}")
        for name in ("stiffness", "damping", "torque"):
            values = getattr(self, name)
            if len(values) != len(TAU_MAX) or not np.isfinite(values).all() or min(values) <= 0:
                raise ValueError(
                    f"{name} needs a positive number for each of {len(TAU_MAX)} joints, got {values}"
                )
        if not self.hold_age_s < self.stop_age_s:
            raise ValueError(f"hold_age_s must be below stop_age_s, got {self.hold_age_s}, {self.stop_age_s}")
        if not np.less(self.workspace_low, self.workspace_high).all():
            found = f"{self.workspace_low}, {self.workspace_high}"
            raise ValueError(f"workspace_low must lie below workspace_high, got {found}")
        for name in ("position_margin", "clearance", "workspace_overshoot", "keep_out_overshoot"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} must not be negative, and finite, got {getattr(self, name)}")
        if not np.isfinite(self.table_height):
            raise ValueError(f"table_height must be a finite number of metres, got {self.table_height}")
