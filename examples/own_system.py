"""A belief beside a system of your own, outside of any environment: the crane of own_task.py.

Fifty cranes run on beside the real one under the same commands, and each observation pulls them; whoever acts
sees their mean. Here the real crane is a simulation, too; in your program it is your sensors and motors.

    python examples/own_system.py
"""

import torch

from dris import KeyedRng, ensemble_update
from own_task import CraneTask


class CraneBelief:
    """Cranes that follow what is seen of a real one: one set of N."""

    def __init__(self, seen: torch.Tensor, noise: float, instances: int = 50, seed: int = 0) -> None:
        """Begin around an observation [S] that is off by `noise` of the task's noise scales."""
        self.task = CraneTask()
        self.task.allocate(1, instances)
        one, no = torch.tensor([0]), torch.tensor([0])
        rng = KeyedRng(seed, one, no, no)
        self.task.begin(one, self.task.domain.sample(rng, instances), rng)  # each with its own physics
        self.deviation = noise * torch.tensor(self.task.noise_scale)
        self.task.place_states(seen + self.deviation * rng.normal(instances, len(seen)))

    def advance(self, command: torch.Tensor) -> None:
        """A control step has passed under a command [1, M]."""
        self.task.advance(command, self.task.step_s)

    def see(self, seen: torch.Tensor) -> None:
        """Take an observation [S] in."""
        values, states = self.task.read_instances(), self.task.states()
        self.task.write_instances(ensemble_update(values, states, seen[None], self.deviation).values)

    def mean(self) -> torch.Tensor:
        """What a policy is to see, as `Observation(mean, condition)`: states [1, 1, S]."""
        return self.task.states().mean(dim=1, keepdim=True)


def follow(noise: float = 4.0, seed: int = 0) -> tuple[float, float]:
    """Mean error of what is seen and of what is believed of a real crane, in noise scales."""
    torch.manual_seed(seed)
    real, scale = CraneTask(), torch.tensor(CraneTask.noise_scale)
    one, no = torch.tensor([0]), torch.tensor([0])
    rng = KeyedRng(seed + 1, one, no, no)
    real.allocate(1, 1)
    real.begin(one, real.domain.sample(rng, 1), rng)
    belief, errors = None, []
    for step in range(real.horizon):
        state = real.states()[0, 0]
        seen = state + noise * scale * torch.randn(4)
        if belief is None:
            belief = CraneBelief(seen, noise)
        else:
            belief.see(seen)
        found = torch.stack((seen, belief.mean()[0, 0]))
        errors.append(((found - state) / scale).abs().mean(dim=1))
        command = torch.tensor([[0.5 if step % 20 < 10 else -0.5]])  # your policy, from belief.mean()
        real.advance(command, real.step_s)
        belief.advance(command)
    raw, believed = torch.stack(errors).mean(0).tolist()
    return raw, believed


if __name__ == "__main__":
    raw, believed = follow()
    print(f"off by {raw:.2f} noise scales as seen, by {believed:.2f} as believed")
