"""Every number of the catching task, with its unit and its source.

Sources: [paper] the paper's text; [released] the environment that the paper's laboratory published later,
which is where its figures come from (docs/reports/released.md); [design] chosen here where both are silent,
with the reason. Defaults are the preset `released`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from dris.core.domain import Domain, Range
from dris.core.typed import policy_field
from dris.sim.ik_config import IkConfig

DOMAIN = Domain(
    {
        "radius": Range(0.02, 0.04, "m", "ball radius"),  # [paper] Appendix A
        "static_friction": Range(0.0, 0.1, "", "ball's static friction"),  # [paper] Appendix A
        "dynamic_friction": Range(0.0, 0.1, "", "capped at static friction"),  # [paper] Appendix A
        "restitution": Range(0.4, 0.7, "", "ball's restitution"),  # [paper] Appendix A
    }
)

JOINTS = 7
"""Of an FR3."""
CONTROL_IK = IkConfig(stay_weight=3e-4, home_weight=1e-4, position_tolerance=5e-3, tilt_tolerance=0.02)
"""Inverse kinematics for control, in every world: stay near the present posture rather than swing the elbow
for the last millimetre, which the next step corrects anyway [design]."""


@dataclass(frozen=True)
class CatchingConfig:
    """The catching task. Vectors are (x, y, z); the base frame has z up and x ahead of the robot."""

    contact: Literal["averaged", "exact"] = "averaged"
    """Contact preset: see dris.sim.contact [released]."""

    # Time.
    step_s: float = policy_field(0.05)
    """Control step: actions at 20 Hz [paper]."""
    horizon: int = 20
    """Control steps in an episode, one second [paper]."""
    substep_s: float = 0.005
    """Step of arm and contact; ten times finer than the action: docs/reports/physics.md [design]."""

    # Robot.
    mount: Literal["down", "level"] = policy_field("down")
    """How the hand holds the plate: see dris.catching.robot_model [released]."""
    home: tuple[float, ...] = policy_field(
        (0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4)
    )
    """Hand straight down, plate level, 0.44 m ahead and 0.49 m up [released]."""
    start: Literal["arrival", "home"] = "arrival"
    """Where the plate is when the episode begins: at the point where the ball will arrive, facing it, which
    is what the paper fits parabolas for [released]; or at home, as the text says [paper]."""
    joint_noise: float = 0.02
    """Standard deviation of the joints around their start [rad] [paper]."""
    stiffness: tuple[float, ...] = policy_field((120.0, 70.0, 70.0, 120.0, 30.0, 20.0, 40.0))
    """K of the torque law [Nm/rad] [released]."""
    damping: tuple[float, ...] = policy_field((15.0, 11.0, 10.0, 14.0, 4.0, 3.0, 5.0))
    """D of the torque law [Nm s/rad] [released]."""
    gain_scale: float = 1.0
    """What K and D really are, over those told: a robot that was identified wrongly."""
    joint_speed: float | None = None
    """Share of the FR3's joint speed limits that it is driven at. None: only torques are limited, as in the
    paper's simulation; the real robot stops beyond its speed limits. What a limit costs:
    docs/reports/physics.md [design]."""
    torque_rate: float | None = None
    """Limit on torque change [Nm/s]; FCI asks for 1000. Off, as in the paper's simulation [design]."""
    brakes_in_time: bool = False
    """Whether the law takes into account what a joint still gains of speed while its torque is taken back at
    that limit [design]."""
    reference_lead: float = 1.0
    """How far desired joints may lead, over what drives them at `joint_speed`: within a control step the arm
    catches up with them, and a law that brakes in time keeps the speed [design]."""

    # Action.
    displacement: float = policy_field(0.1)
    """Largest displacement command along an axis in one step [m]. The released policy has no limit and asks
    for up to 0.2 m; cut at 0.1 m it loses less than 0.01 of its success [design]."""
    displacement_curve: Literal["linear", "square"] = policy_field("linear")
    """Displacement in proportion to the action [released], or to its signed square."""
    max_tilt: float = policy_field(0.3)
    """Largest tilt command [rad] [released]; the paper only says beta < pi/4."""
    workspace_around: Literal["start", "home"] = policy_field("start")
    """Where the box of plate positions stands: around the plate's start, its axes those of the motion frame
    [released], or around the plate's home, its axes those of the base."""
    workspace_low: tuple[float, float, float] = policy_field((-0.15, -0.15, -0.10))
    """Lowest plate position over the middle of the box [m] [released]."""
    workspace_high: tuple[float, float, float] = policy_field((0.15, 0.15, 0.10))
    """Highest plate position over the middle of the box [m] [released]."""

    # Throws.
    distance: tuple[float, float] = (1.0, 2.0)
    """Horizontal distance of the thrower from the plate [m] [paper]."""
    flight_s: tuple[float, float] = (1.0, 1.5)
    """Time of flight to the catching region [s] [paper]."""
    region_radius: float = 0.2
    """Horizontal radius of the catching region around the plate, at its height [m] [paper]."""
    laid_share: float = 0.0
    """Share of the episodes that begin with the ball at rest on the plate, which stands tilted at home, in
    place of a throw: the paper's balancing [design]."""
    laid_tilt: tuple[float, float] = (0.0, math.radians(30.0))
    """Of the plate then [rad]."""
    lead_s: tuple[float, float] = (0.08, 0.12)
    """The episode begins this long before arrival [s] [paper]."""
    incoming: tuple[float, float] = (-math.pi / 2, math.pi / 2)
    """Direction the ball comes from, about the vertical from straight ahead [rad] [released]; a throw
    from behind would pass through the robot."""
    spawn_height: tuple[float, float] = (-0.2, 0.2)
    """Height of the release over the plate [m]; with the flight time it sets the arrival speed,
    4.7 to 7.5 m/s downwards [design]."""

    # Reward and success.
    decay: float = 0.25
    """eta of the reward [m/s] [paper]."""
    slack: float = 0.1
    """The ball may sink at this speed without loss, the 0.1 of the reward's max [m/s] [paper]."""
    success_speed: float = 0.1
    """A caught ball is slower than this at the end [m/s] [paper]."""
    other_success_speeds: tuple[float, ...] = (0.2,)
    """Speeds that success is told at besides, under names such as success_0.2 [m/s] [released]."""
    success_gap: float = 0.01
    """A ball on the plate is no further from its surface [m]; keeps hops from counting [design]."""

    # Observation noise, one standard deviation.
    noise_position: float = 0.01
    """[m] [paper]"""
    noise_velocity: float = 0.05
    """[m/s] [paper]"""

    @property
    def true_gains(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """K and D that the arm really has."""
        stiffness, damping = (
            tuple(self.gain_scale * g for g in gains) for gains in (self.stiffness, self.damping)
        )
        return stiffness, damping

    def __post_init__(self) -> None:
        """Refuse values outside what the task means."""
        for name in ("distance", "flight_s", "lead_s", "incoming", "spawn_height", "laid_tilt"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} ({low}, {high}) is reversed: the lower end comes first")
        for name in ("home", "stiffness", "damping"):
            if len(getattr(self, name)) != JOINTS:
                raise ValueError(f"{name} needs {JOINTS} values, got {getattr(self, name)}")
        if not 0 < self.max_tilt < math.pi / 4:
            raise ValueError(f"max_tilt must lie in (0, pi/4), got {self.max_tilt}")
        for name, known in (
            ("contact", ("averaged", "exact")),
            ("mount", ("down", "level")),
            ("start", ("arrival", "home")),
            ("displacement_curve", ("linear", "square")),
            ("workspace_around", ("start", "home")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got '{getattr(self, name)}'")
        if self.joint_speed is not None and not 0 < self.joint_speed <= 1:
            raise ValueError(f"joint_speed must be None or lie in (0, 1], got {self.joint_speed}")
        if self.brakes_in_time and (self.torque_rate is None or self.joint_speed is None):
            raise ValueError("brakes_in_time needs a joint_speed to keep and a torque_rate to brake with")
        if not 1 <= self.reference_lead < math.inf:
            raise ValueError(f"reference_lead must be at least 1, got {self.reference_lead}")
        positive = (
            "step_s",
            "horizon",
            "displacement",
            "decay",
            "success_speed",
            "success_gap",
            "gain_scale",
        )
        for name in (*positive, "region_radius", "noise_position", "noise_velocity"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("distance", "flight_s", "lead_s"):
            if not getattr(self, name)[0] > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.laid_share <= 1:
            raise ValueError(f"laid_share must lie in [0, 1], got {self.laid_share}")
        if self.joint_noise < 0:
            raise ValueError(f"joint_noise must not be negative, got {self.joint_noise}")
        if not all(lo < 0 < hi for lo, hi in zip(self.workspace_low, self.workspace_high, strict=True)):
            raise ValueError("the workspace must enclose its middle: low < 0 < high per axis")


TEXT = CatchingConfig(
    mount="level",
    # Gripper level, plate 0.69 m ahead and 0.56 m up; q6 = q2 - q4 + pi/2 keeps it level. Chosen for reach
    # and speed: at the joints' speed limits the level plate does 0.84 m/s ahead and back, 5.2 m/s sideways
    # and 1.5 m/s up and down [design].
    home=(0.0, -0.2, 0.0, -2.5, 0.0, 2.3 + math.pi / 2, math.pi / 4),
    start="home",
    # ManiSkill's drives, softer where the FR3's wrist has only 12 Nm; every joint closes in on its target
    # within 0.1 s [design].
    stiffness=(1000.0, 1000.0, 1000.0, 1000.0, 300.0, 300.0, 200.0),
    damping=(100.0, 100.0, 100.0, 100.0, 30.0, 30.0, 20.0),
    displacement=0.15,
    displacement_curve="square",
    # A plate that can tilt less passes on less of the observation noise: docs/reports/literal.md [design].
    max_tilt=0.25,
    workspace_around="home",
    # Nearly all poses in this box are reachable [design].
    workspace_low=(-0.30, -0.30, -0.25),
    workspace_high=(0.15, 0.30, 0.10),
)
"""The paper's text taken literally, and what it leaves open chosen here: the robot starts at home with a
level gripper and has 0.1 s to get to the ball."""

ROBOT = replace(
    TEXT,
    stiffness=(300.0, 300.0, 300.0, 300.0, 60.0, 60.0, 40.0),
    damping=(40.0, 40.0, 40.0, 40.0, 8.0, 8.0, 5.0),
    joint_speed=0.9,
    torque_rate=1000.0,
    displacement=0.3,
    lead_s=(0.2, 0.3),
)
"""The text as a real FR3 allows it: torques change by no more than FCI's 1000 Nm/s, gains are soft enough for
that, joints stay below their speed limits, and the robot begins early enough to get there [design]."""

FR3 = CatchingConfig(
    contact="exact",
    horizon=40,
    # Stiffer than released: lively balls must be met by a plate that gives way at 0.5 m/s and more.
    stiffness=(300.0, 300.0, 300.0, 300.0, 60.0, 60.0, 40.0),
    damping=(40.0, 40.0, 40.0, 40.0, 8.0, 8.0, 5.0),
    joint_speed=0.85,
    torque_rate=1000.0,
    brakes_in_time=True,
    # By what drives a joint at its limit in the middle of a control step: 1 + 0.025 s K / D [design].
    reference_lead=1.2,
    # A plate that follows by K / D = 7.5 / s goes at 1.1 m/s, which joints at these limits allow [design].
    displacement=0.15,
    lead_s=(0.15, 0.25),
)
"""The released environment inside what a real FR3 allows, with margin: joint speeds, torque rate, two-second
episodes, and balls that bounce as their numbers say [design]. The robot begins earlier, so that a delay
leaves it time."""

PRESETS: dict[str, CatchingConfig] = {
    "released": CatchingConfig(),
    "paper": TEXT,
    "exact": replace(TEXT, contact="exact"),
    "robot": ROBOT,
    "fr3": FR3,
}
"""Named variants of the task. released: the environment behind the paper's figures; paper: its text taken
literally; exact: that, with balls that bounce and rub as their numbers say; robot: the text as an FR3
allows it; fr3: the released environment as an FR3 allows it."""
