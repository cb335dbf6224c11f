"""A task small enough to work out by hand: points on a line, moved by one shared velocity."""

import torch

from dris import Domain, KeyedRng, Range, Task


class LineTask(Task):
    """x' = gain * u; reward -|x|; success |x| < 0.5. Gains differ between instances."""

    state_names = ("x", "gain_seen")
    noise_scale = (0.1, 0.1)
    action_size = 1
    command_size = 1
    condition_size = 0
    horizon = 4
    step_s = 0.1
    substep_s = 0.02

    def __init__(self):
        self.domain = Domain({"gain": Range(1.0, 2.0, "")})
        self.poison_at = None

    def allocate(self, sets, instances):
        self.x = torch.zeros(sets, instances)
        self.gain = torch.ones(sets, instances)
        self.commands = []

    def begin(self, sets, parameters, rng: KeyedRng):
        self.gain[sets] = self.domain.column(parameters, "gain")
        self.x[sets] = rng.uniform(1, low=-1.0, high=1.0).expand(-1, self.x.shape[1])

    def command(self, action):
        return 2.0 * action, torch.zeros(len(action), dtype=torch.bool)

    def initial_command(self):
        return torch.zeros(len(self.x), 1)

    def advance(self, command, duration_s):
        self.commands.append((command.clone(), duration_s))
        self.x = self.x + self.gain * command * duration_s

    def states(self):
        x = self.x.clone()
        if self.poison_at is not None:
            x[self.poison_at] = float("nan")
        return torch.stack((x, torch.zeros_like(x)), dim=-1)

    def reward_terms(self):
        return {"near": -self.x.abs(), "bonus": torch.full_like(self.x, 0.25)}

    def success(self):
        return self.x.abs() < 0.5
