"""A task of your own, in plain torch: a crane that carries loads without swing.

A trolley runs on a rail and a load hangs from it on a rope. The action is the trolley's acceleration.
Rope length and air drag are unknown: N loads with different values hang from the same trolley at once,
and one action has to suit them all.

    dris check examples/own_task.py:CraneTask
"""

from dataclasses import dataclass
from math import inf

import torch

from dris import Domain, KeyedRng, Range, Task, policy_field

GRAVITY = 9.81  # [m/s2]


@dataclass(frozen=True)
class CraneConfig:
    """Values of the task: flags of `dris train` (`--task.swing 0.5`), stored with every policy."""

    max_acceleration: float = policy_field(2.0)
    """Of the trolley at an action of 1 [m/s2]; a policy that was trained with another is refused."""
    swing: float = 0.3
    """Largest angle of the rope at the start [rad]."""


class CraneTask(Task):
    """Bring a swinging load to rest above the origin.

    State of a load: trolley position and velocity, swing angle and rate. Reward: 1 when everything is
    still at the origin, falling with distance, speed and swing. Success: the load is within 5 cm of
    the origin and slower than 10 cm/s.
    """

    state_names = ("position", "velocity", "angle", "rate")
    noise_scale = (0.01, 0.05, 0.01, 0.05)
    action_size = 1
    command_size = 1
    condition_size = 0
    horizon = 60
    step_s = 0.1
    substep_s = 0.01
    Config = CraneConfig
    presets = {"calm": CraneConfig(swing=0.1)}
    # What a belief needs (`dris evaluate RUN --belief ensemble`): all that differs between instances, the
    # state first, each with its range.
    instance_tensors = {"state": (-inf, inf), "rope": (0.1, inf), "drag": (0.0, inf)}

    def __init__(self, config: CraneConfig = CraneConfig()) -> None:
        self.config = config
        self.domain = Domain(
            {
                "rope": Range(0.6, 1.4, "m", "rope length"),
                "drag": Range(0.0, 0.3, "1/s", "air drag of the swing"),
            }
        )

    def allocate(self, sets: int, instances: int) -> None:
        self.state = torch.zeros(sets, instances, 4)
        self.rope = torch.ones(sets, instances)
        self.drag = torch.zeros(sets, instances)

    def begin(self, sets: torch.Tensor, parameters: torch.Tensor, rng: KeyedRng) -> None:
        self.rope[sets] = self.domain.column(parameters, "rope")
        self.drag[sets] = self.domain.column(parameters, "drag")
        start = torch.zeros(len(sets), 4)
        start[:, 0] = rng.uniform(1, low=-2.0, high=2.0)[:, 0]
        start[:, 2] = self.config.swing * rng.uniform(1, low=-1.0, high=1.0)[:, 0]
        self.state[sets] = start[:, None]  # every load of a set starts alike

    def command(self, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.config.max_acceleration * action, torch.zeros(len(action), dtype=torch.bool)

    def initial_command(self) -> torch.Tensor:
        return torch.zeros(len(self.state), 1)

    def advance(self, command: torch.Tensor, duration_s: float) -> None:
        x, v, angle, rate = self.state.unbind(dim=-1)
        h = self.substep_s
        for _ in range(round(duration_s / h)):
            # Pendulum on an accelerated pivot: l a'' = -g sin(a) - u cos(a) - drag l a'
            swing = -(GRAVITY * angle.sin() + command * angle.cos()) / self.rope - self.drag * rate
            rate = rate + h * swing
            angle = angle + h * rate
            v = v + h * command
            x = x + h * v
        self.state = torch.stack((x, v, angle, rate), dim=-1)

    def states(self) -> torch.Tensor:
        return self.state.clone()

    def _load(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Horizontal position and velocity of the load [B, N]."""
        x, v, angle, rate = self.state.unbind(dim=-1)
        return x + self.rope * angle.sin(), v + self.rope * rate * angle.cos()

    def reward_terms(self) -> dict[str, torch.Tensor]:
        place, speed = self._load()
        return {
            "near": 0.5 * torch.exp(-place.abs()),
            "still": 0.5 * torch.exp(-place.abs() - speed.abs() / 0.3),
        }

    def success(self) -> torch.Tensor:
        place, speed = self._load()
        return (place.abs() < 0.05) & (speed.abs() < 0.10)
