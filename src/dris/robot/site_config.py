"""What is where the robot stands, as a command line tells it: table, room to move, what may push, clocks."""

from __future__ import annotations

from dataclasses import dataclass

from dris.perception.track_config import TrackerConfig
from dris.robot.safety_config import TAU_MAX, SafetyConfig

FURTHEST = 1.0
"""An FR3 reaches 0.86 m: a wall or table further off is a mistake of units [m]."""
MOST_FORCE = 100.0
"""At which a robot that touches something must have stopped [N] [design]."""
SLOW_SHARE = 0.25
"""An arm that goes no faster than this share of its speeds is slow [design]."""
MOST_SIGMA_S, MOST_UNEVEN_S = 0.02, 0.05
"""With stamps worse than these a ball at 6 m/s is 12 cm and 30 cm off [s] [design]."""


@dataclass(frozen=True)
class SiteConfig:
    """Of one robot's place. The base frame has z up."""

    table_height: float = SafetyConfig.table_height
    """Plate, hand, wrist and forearm stay above this height over the robot's base [m]; the default is for an
    empty table that carries the base."""
    workspace_low: tuple[float, float, float] = SafetyConfig.workspace_low
    """Of the plate's centre over its home: ahead (x), to the left (y), up (z) [m]. Its corners reach 0.17 m
    further; forearm and wrist 0.3 m to the sides and up."""
    workspace_high: tuple[float, float, float] = SafetyConfig.workspace_high
    torque_thresholds: tuple[float, float, float, float, float, float, float] = (
        *(80.0, 80.0, 80.0, 80.0),
        *(12.0, 12.0, 12.0),
    )
    """Estimated outer torques at which the robot stops [Nm]: a fast plate seems to push, so more than the
    usual 20 where joints can; never raise them to hide a wrong payload [design]."""
    force_threshold: float = 80.0
    """The same for forces [N]."""
    slow_torque_thresholds: tuple[float, float, float, float, float, float, float] = (
        *(20.0, 20.0, 20.0, 20.0),
        *(10.0, 10.0, 10.0),
    )
    """The same for an arm at up to a quarter of its speeds, as in a first run or while its gains are
    identified, where those above are not lower [Nm]: the twin's told of up to 3.3 Nm and 5.4 N [design]."""
    slow_force_threshold: float = 20.0
    """The same for forces [N]."""
    sigma_s: float = TrackerConfig.sigma_s
    """Standard deviation of the cameras' time stamps [s]."""
    even_s: float = 0.006
    """From its stamp to its coming a frame of a camera takes as long as the other's, within so much [s]."""

    def __post_init__(self) -> None:
        """Refuse what is no place for a robot."""
        if not -FURTHEST <= self.table_height <= FURTHEST:
            raise ValueError(
                f"table_height must lie in [{-FURTHEST:g}, {FURTHEST:g}] m over the base, got "
                f"{self.table_height}"
            )
        pairs = list(zip(self.workspace_low, self.workspace_high, strict=True))
        if not all(-FURTHEST <= low < 0 < high <= FURTHEST for low, high in pairs):
            raise ValueError(
                f"workspace_low must lie in [{-FURTHEST:g}, 0) m, workspace_high in (0, {FURTHEST:g}] m, so "
                f"that the plate's home is inside, got {self.workspace_low}, {self.workspace_high}"
            )
        for name, most, values in (
            ("torque_thresholds", TAU_MAX, self.torque_thresholds),
            ("force_threshold", (MOST_FORCE,), (self.force_threshold,)),
            ("slow_torque_thresholds", TAU_MAX, self.slow_torque_thresholds),
            ("slow_force_threshold", (MOST_FORCE,), (self.slow_force_threshold,)),
        ):
            if len(values) != len(most) or not all(0 < v <= m for v, m in zip(values, most, strict=True)):
                raise ValueError(f"{name} must be positive and at most {most}, got {values}")
        if not 0 <= self.sigma_s <= MOST_SIGMA_S:
            raise ValueError(f"sigma_s must lie in [0, {MOST_SIGMA_S}] s, got {self.sigma_s}")
        if not 0 < self.even_s <= MOST_UNEVEN_S:
            raise ValueError(f"even_s must lie in (0, {MOST_UNEVEN_S}] s, got {self.even_s}")

    def thresholds(self, speed_share: float) -> tuple[tuple[float, ...], float]:
        """Outer torques [7, Nm] and force [N] that stop an arm which goes at a share of its speeds."""
        torques, force = self.torque_thresholds, self.force_threshold
        if speed_share > SLOW_SHARE:
            return torques, force
        slow = zip(torques, self.slow_torque_thresholds, strict=True)
        return tuple(map(min, slow)), min(force, self.slow_force_threshold)

    def safety(self, stiffness: tuple[float, ...], damping: tuple[float, ...]) -> SafetyConfig:
        """Limits of the filter for an arm with these gains."""
        return SafetyConfig(
            stiffness,
            damping,
            workspace_low=self.workspace_low,
            workspace_high=self.workspace_high,
            table_height=self.table_height,
        )

    def __str__(self) -> str:
        """Its walls, for a person to compare with the room."""
        sides = zip("xyz", self.workspace_low, self.workspace_high, strict=True)
        box = ", ".join(f"{axis} {low:+.2f} to {high:+.2f}" for axis, low, high in sides)
        return (
            f"arm above {self.table_height:+.2f} m over its base; plate's centre {box} m from its home, its "
            "corners 0.2 m and the forearm 0.3 m beyond"
        )
