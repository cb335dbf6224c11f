"""How an FR3 is connected to, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass

from dris.robot.arm import Payload
from dris.robot.site_config import SiteConfig

RESTING_TORQUE, RESTING_FORCE = 10.0, 10.0
"""Outer torques [Nm] and forces [N] that stop a robot while this driver does not move it: the lowest of
libfranka's examples; franky's own are 20 and 30."""


@dataclass(frozen=True)
class Fr3Config:
    """How to connect, and what the arm is told before it moves."""

    address: str
    stiffness: tuple[float, ...]
    """K [Nm/rad]"""
    damping: tuple[float, ...]
    """D [Nm s/rad]"""
    realtime: bool = True
    """Whether a real-time kernel is insisted on; a simulated robot needs none."""
    torque_thresholds: tuple[float, ...] = SiteConfig.torque_thresholds
    """Estimated outer torques at which the robot stops [Nm],"""
    force_threshold: float = SiteConfig.force_threshold
    """and forces [N]."""
    payload: Payload = Payload()
    """Declared to the robot before it moves: the plate, beyond what the robot's own settings say of its
    hand."""

    @property
    def resting_thresholds(self) -> tuple[float, float]:
        """Outer torque [Nm] and force [N] that stop the robot once it is connected, until it is to move.

        franky sets some on connecting, and FCI does not tell what was set before.
        """
        torque = min(RESTING_TORQUE, *self.torque_thresholds)
        return torque, min(RESTING_FORCE, self.force_threshold)

    def dry_run(self) -> str:
        """What became of a robot that was connected and not moved."""
        torque, force = self.resting_thresholds
        return (
            f"dry run: nothing moved; connecting set the robot's collision thresholds to {torque:g} Nm and "
            f"{force:g} N, all else that was sent were questions"
        )
