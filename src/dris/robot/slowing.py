"""Less speed for a first run, everywhere at once: policy, law and filter."""

from __future__ import annotations

from dataclasses import replace

from dris.catching.joint_limits import SAFE_SHARE
from dris.catching.law import LawConfig
from dris.catching.settings import CatchingConfig
from dris.robot.safety_config import SafetyConfig


def slowed(
    share: float, config: CatchingConfig, law: LawConfig, safety: SafetyConfig
) -> tuple[CatchingConfig, LawConfig, SafetyConfig]:
    """What a session is made of, for a share in (0, 1] of its speed.

    Law and filter also get the joints' own limits slowed (`JointLimits.slowed`), which the arm tells later.

    Raises:
        ValueError: It is no share.
    """
    if not 0 < share <= 1:
        raise ValueError(f"speed_share must lie in (0, 1], got {share}")
    if share == 1:
        return config, law, safety
    return (
        replace(config, joint_speed=share * (config.joint_speed or SAFE_SHARE)),
        replace(law, joint_speed=law.joint_speed or SAFE_SHARE),
        replace(safety, plate_speed=share * safety.plate_speed),
    )
