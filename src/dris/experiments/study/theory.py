"""The paper's Appendix B, measured: what its propositions predict of N, beside what is seen.

Four measurements, of one trained policy on the training world. Every set is of its own throw; with N, only
the number of instances in each set changes, and the first N instances stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta, Struct

from dris.catching.success import reward_terms
from dris.catching.task import CatchingTask
from dris.core.env import Env, EnvConfig
from dris.core.schema import Count, Figure, Positive, Rate, header
from dris.evaluation.registry import find_policy
from dris.learning.policy import Policy
from dris.learning.run_folder import versions

SIZES = (1, 2, 5, 10, 20, 50, 100, 200)
DISCOUNT = 0.95
FEW_SETS = 64
"""Most throws for what costs more: local cost and mean return."""


@dataclass(frozen=True)
class TheoryConfig:
    """Effort of the measurements."""

    policy: str = "dris-50"
    """Whose gradients and states are looked at."""
    sets: Count = 256
    """Throws; each gives one sample of a gradient."""
    std: Positive = 0.1
    """Of the actions, as late in training."""
    step: int = 8
    """Control step at which the local cost is looked at; the balls are on the plate by then."""
    seed: int = 40_009


class _BySize(Struct, frozen=True):
    sizes: Annotated[list[Annotated[int, Meta(ge=1, le=10**6)]], Meta(min_length=2)]
    power: Figure

    def __post_init__(self) -> None:
        """Refuse lists of other lengths; at the largest size nothing is left to fall."""
        for name in self.__struct_fields__:
            values, expected = getattr(self, name), len(self.sizes) - (name in ("falling", "fitted"))
            if isinstance(values, list) and len(values) != expected:
                raise ValueError(f"{name}: {len(values)} values for {len(self.sizes)} sizes")


class _Propagation(Struct, frozen=True):
    largest_difference: Figure
    instances: Count


class _Gradient(_BySize, frozen=True):
    variance: list[Positive]
    seen: list[Positive]
    falling: list[Figure]
    fitted: list[Positive]
    rho: Figure


class _LocalCost(_BySize, frozen=True):
    noise: list[Positive]
    signal: list[Figure]
    signal_spread: list[Figure]
    true: Figure
    convex: Rate
    step: Count


class _Estimation(_BySize, frozen=True):
    error: list[Positive]


class Theory(Struct, frozen=True):
    """theory.json: what `measure` finds."""

    config: TheoryConfig
    propagation: _Propagation
    gradient: _Gradient
    local_cost: _LocalCost
    estimation: _Estimation


def propagation(make_task: Callable[[], Any], config: TheoryConfig, instances: int = 20) -> float:
    """Largest difference between instances that evolve in a set and the same ones alone (B.2).

    The proposition says that a set is propagated exactly, so the difference is to be zero.
    """
    generator = torch.Generator().manual_seed(config.seed)
    task = make_task()
    actions = 2 * torch.rand(task.horizon, 1, task.action_size, generator=generator) - 1

    def states(env: Env) -> torch.Tensor:
        env.reset()
        return torch.stack([env.step(action).observation.states[0] for action in actions])

    together = Env(task, EnvConfig(sets=1, instances=instances, seed=config.seed))
    in_set = states(together)
    parameters = together.parameters[0]
    worst = 0.0
    for i in range(instances):
        exactly = {name: (float(v), float(v)) for name, v in zip(task.domain, parameters[i], strict=True)}
        alone = Env(
            make_task(), EnvConfig(sets=1, instances=1, seed=config.seed), task.domain.shifted(**exactly)
        )
        worst = max(worst, float((states(alone)[:, 0] - in_set[:, i]).abs().max()))
    return worst


def gradient_variance(make_task: Callable[[], Any], policy: Policy, config: TheoryConfig) -> dict:
    """Variance of the policy gradient's estimate from one set, by N, and its floor rho (B.3).

    The estimate is the score function times the set's mean return to go, less the average over sets at
    that time. The proposition is about the mean of N gradients, with total variance sigma^2 (rho +
    (1 - rho) / N): the policy sees M = 200 instances and is rewarded for the first N of them. Its falling
    part is small, so it is measured set by set: |g_N - g_M|^2, which is (1 - rho) sigma^2 (1 / N - 1 / M) on
    average. In training the policy also sees only N, which changes the score function: `seen`.
    """

    def gradients(instances: int, rewarded: int) -> torch.Tensor:
        return torch.stack(_gradients(make_task(), policy, config, instances, rewarded))

    def variance(found: torch.Tensor) -> float:
        return float(found.var(dim=0).sum())

    whole = gradients(SIZES[-1], SIZES[-1])
    some = [gradients(SIZES[-1], size) for size in SIZES[:-1]]
    falling = [float((part - whole).square().sum(dim=1).mean()) for part in some]
    return {
        "sizes": SIZES,
        "variance": [*map(variance, some), variance(whole)],
        "seen": [variance(gradients(size, size)) for size in SIZES],
        "falling": falling,
        **fit_floor(falling, variance(whole)),
    }


def fit_floor(falling: list[float], whole: float) -> dict[str, Any]:
    """The floor rho and what it predicts, from the parts that fall and the variance of the largest size.

    power: of the falling parts in 1 / N - 1 / M; the proposition says 1.
    """
    shares = np.array([1 / n - 1 / SIZES[-1] for n in SIZES[:-1]])
    part = float(np.mean(np.array(falling) / shares))  # (1 - rho) sigma^2
    one = whole + part * (1 - 1 / SIZES[-1])  # sigma^2
    power = float(np.polyfit(np.log(shares), np.log(falling), 1)[0])
    return {"rho": 1 - part / one, "fitted": [part * share for share in shares], "power": power}


def _gradients(
    task: CatchingTask, policy: Policy, config: TheoryConfig, instances: int, rewarded: int
) -> list[torch.Tensor]:
    """One gradient [P] a set: of the reward of its first `rewarded` instances."""
    env = Env(task, EnvConfig(sets=config.sets, instances=instances, seed=config.seed))
    generator = torch.Generator().manual_seed(config.seed)
    observation = env.reset()
    inputs, actions, rewards = [], [], []
    for _ in range(task.horizon):
        inputs.append(policy.inputs(observation))
        with torch.no_grad():
            mean = policy.actor(inputs[-1])
            actions.append(mean + config.std * torch.randn(mean.shape, generator=generator))
        observation = env.step(actions[-1]).observation
        terms = torch.stack(list(task.reward_terms().values())).sum(dim=0)  # [B, N]
        rewards.append(terms[:, :rewarded].mean(dim=1))
    to_go = torch.zeros(config.sets)
    weights: list[torch.Tensor] = []
    for reward in reversed(rewards):
        to_go = reward + DISCOUNT * to_go
        weights.insert(0, to_go - to_go.mean())
    found = []
    wanted = [p for name, p in policy.actor.named_parameters() if "std" not in name]
    for row in range(config.sets):
        loss = torch.zeros(())
        for seen, action, weight in zip(inputs, actions, weights, strict=True):
            mean = policy.actor(seen[row : row + 1])
            score = -((action[row : row + 1] - mean) ** 2).sum() / (2 * config.std**2)
            loss = loss + weight[row] * score
        parts = torch.autograd.grad(loss, wanted)
        found.append(torch.cat([part.flatten() for part in parts]))
    return found


def local_cost(make_task: Callable[[], Any], policy: Policy, config: TheoryConfig) -> dict:
    """Linear noise and robustness signal of the local cost at one step, by N (B.4).

    The cost is expanded about the mean of a set of 1000: gradient and Hessian by central differences.
    Noise: standard deviation over draws of N of g . mean(s - mu). Signal: the mean of Tr(H Sigma_N) / 2,
    and its standard deviation. Only sets whose cost is convex there, as the proposition assumes, count.
    `true`: the set's mean cost less the cost at its mean, which the signal approximates.
    """
    many, draws = 1000, 500
    task = make_task()
    env = Env(task, EnvConfig(sets=min(config.sets, FEW_SETS), instances=many, seed=config.seed))
    observation = env.reset()
    for _ in range(config.step):
        observation = env.step(policy(observation)).observation
    states = task.states()
    mean = states.mean(dim=1, keepdim=True)

    def cost(s: torch.Tensor) -> torch.Tensor:
        return -sum(reward_terms(task.config, s, task.normal[:, None], task.plate_half_length).values())

    gradient, hessian = _expand(cost, mean)
    convex = (torch.linalg.eigvalsh(hessian) > -1e-3).all(dim=1)
    if not bool(convex.any()):
        raise ValueError(f"at step {config.step} the cost is convex in none of the sets: choose another step")
    true = cost(states).mean(dim=1) - cost(mean)[:, 0]
    gradient, hessian, off = gradient[convex], hessian[convex], (states - mean)[convex]
    linear = torch.einsum("bs,bns->bn", gradient, off)
    quadratic = 0.5 * torch.einsum("bns,bst,bnt->bn", off, hessian, off)
    generator = torch.Generator().manual_seed(config.seed)
    rows: dict[str, list[float]] = {"noise": [], "signal": [], "signal_spread": []}
    for size in SIZES:
        chosen = torch.randint(0, many, (draws, size), generator=generator)
        noise = linear[:, chosen].mean(dim=2)  # [B, draws]
        signal = quadratic[:, chosen].mean(dim=2)
        rows["noise"].append(float(noise.var(dim=1).mean().sqrt()))
        rows["signal"].append(float(signal.mean()))
        rows["signal_spread"].append(float(signal.var(dim=1).mean().sqrt()))
    power = float(np.polyfit(np.log(SIZES), np.log(rows["noise"]), 1)[0])
    figures = {"true": float(true[convex].mean()), "power": power, "convex": float(convex.float().mean())}
    return {"sizes": SIZES, **rows, **figures, "step": config.step}


def _expand(
    cost: Callable[[torch.Tensor], torch.Tensor], at: torch.Tensor, h: float = 2e-3
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradient [B, S] and Hessian [B, S, S] of a cost of states [B, 1, S]."""
    x, eye = at.double(), h * torch.eye(at.shape[2], dtype=torch.float64)

    def second(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (cost(x + a + b) - cost(x + a - b) - cost(x - a + b) + cost(x - a - b))[:, 0] / (4 * h * h)

    gradient = torch.stack([(cost(x + e) - cost(x - e))[:, 0] / (2 * h) for e in eye], dim=1)
    hessian = torch.stack([torch.stack([second(a, b) for b in eye], dim=1) for a in eye], dim=1)
    return gradient.float(), hessian.float()


def estimation_error(make_task: Callable[[], Any], policy: Policy, config: TheoryConfig) -> dict:
    """How far the mean return of N instances is from that of the whole domain, by N (B.5).

    Each throw has a set of 200, which the policy follows; its mean stands for the whole domain. Error: root
    mean square over throws and draws of N of them.
    """
    task = make_task()
    many = SIZES[-1]
    env = Env(task, EnvConfig(sets=min(config.sets, FEW_SETS), instances=many, seed=config.seed))
    observation = env.reset()
    total = torch.zeros(env.config.sets, many)
    for t in range(task.horizon):
        observation = env.step(policy(observation)).observation
        total += DISCOUNT**t * torch.stack(list(task.reward_terms().values())).sum(dim=0)
    truth = total.mean(dim=1)
    generator = torch.Generator().manual_seed(config.seed)
    errors = []
    for size in SIZES:
        chosen = torch.randint(0, many, (500, size), generator=generator)
        errors.append(float((total[:, chosen].mean(dim=2) - truth[:, None]).square().mean().sqrt()))
    power = float(np.polyfit(np.log(SIZES), np.log(errors), 1)[0])
    return {"sizes": SIZES, "error": errors, "power": power}


def measure(config: TheoryConfig) -> dict[str, Any]:
    """All four, of a policy by its name."""
    handle = find_policy(config.policy)
    make_task, policy = handle.make_task, handle.make_agent(None, 1)
    if not isinstance(policy, Policy):
        raise ValueError(f"{config.policy} has no gradient: name a trained policy")
    return {
        **header("theory"),
        "versions": versions(),
        "config": asdict(config),
        "propagation": {"largest_difference": propagation(make_task, config), "instances": 20},
        "gradient": gradient_variance(make_task, policy, config),
        "local_cost": local_cost(make_task, policy, config),
        "estimation": estimation_error(make_task, policy, config),
    }
