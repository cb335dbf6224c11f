"""How the training world is stepped and driven."""

import math
from dataclasses import dataclass, field

from dris.sim.ik_config import IkConfig


@dataclass(frozen=True)
class WorldConfig:
    """How the world is stepped and how the arms are driven."""

    stiffness: tuple[float, ...]
    """K of the torque law, one per joint [Nm/rad]."""
    damping: tuple[float, ...]
    """D of the torque law, one per joint [Nm s/rad]."""
    bounce_speed: float
    """Impacts slower than this do not bounce [m/s]."""
    substep_s: float = 0.005
    """Step of arms and contact [s]; docs/reports/physics.md shows the error against it."""
    arm_steps: int | None = None
    """Steps of the arm in a substep; None chooses by gains, inertias and braking."""
    joint_speed: float | None = None
    """Share of the joints' speed limits that the law may drive at; None drives without limit."""
    torque_rate: float | None = None
    """Limit on the change of torque [Nm/s]; the FR3 asks for 1000. None leaves it unlimited."""
    brakes_in_time: bool = False
    """Whether the law takes the speed that a joint will have once its torque is taken back at that limit, and
    slows down towards the end of a range; stiff gains overshoot otherwise. See dris.sim.arm."""
    threads: int = 1
    """CPU threads that share the sets."""
    device: str = "cpu"
    ik: IkConfig = field(default_factory=IkConfig)

    def __post_init__(self) -> None:
        """Refuse values that would step the world wrongly."""
        for name in ("stiffness", "damping"):
            values = tuple(float(value) for value in getattr(self, name))  # NumPy's numbers are not ours
            if not all(math.isfinite(value) and value >= 0 for value in values):
                raise ValueError(f"{name} must be finite and not negative, got {values}")
            object.__setattr__(self, name, values)
        if not 1e-4 <= self.substep_s <= 0.02:
            raise ValueError(f"substep_s must lie in [0.0001, 0.02] s, got {self.substep_s}")
        if not 0 < self.bounce_speed < math.inf:
            raise ValueError(
                f"bounce_speed must be positive and finite, got {self.bounce_speed}; 0.01 m/s lets nearly "
                "everything bounce, and restitution 0 nothing"
            )
        if self.arm_steps is not None and not 1 <= self.arm_steps <= 1000:
            raise ValueError(f"arm_steps must lie in [1, 1000] or be None to choose, got {self.arm_steps}")
        if self.joint_speed is not None and not 0 < self.joint_speed <= 1:
            raise ValueError(f"joint_speed must lie in (0, 1] or be None, got {self.joint_speed}")
        if self.torque_rate is not None and not self.torque_rate > 0:
            raise ValueError(f"torque_rate must be positive or None, got {self.torque_rate}")
        if self.brakes_in_time and (self.torque_rate is None or self.joint_speed is None):
            raise ValueError("brakes_in_time needs a joint_speed to keep and a torque_rate to brake with")
        if self.brakes_in_time and not min(*self.stiffness, *self.damping) > 0:
            raise ValueError("brakes_in_time needs gains above zero")
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, got {self.threads}")
