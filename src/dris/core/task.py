"""What a user writes: a task that evolves N instances of each of B sets under one shared action.

A task knows physics, reward and success. It knows nothing of episodes, noise, delay or learning:
those belong to `dris.core.env.Env`, which calls the methods below in this order:

    allocate(B, N)                        once
    begin(sets, parameters, draws)        at the start of each episode
    command(action) -> advance(command)   every control step, then
    states, condition, reward_terms, success, terminated
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch

from dris.core.domain import Domain
from dris.core.rng import Draws


class Task(ABC):
    """A task. Tensors are float32 on the CPU; B sets, N instances, see the attributes for the rest.

    Attributes:
        presets: Names that `from_preset` knows, for tasks with variants.
        domain: The physical parameters that differ between instances.
        state_names: One name per component of an instance's state, S in all.
        noise_scale: [S] one standard deviation of observation noise, in the state's units.
        action_size: A; actions are normalised, each component in [-1, 1].
        command_size: M, what an action becomes before execution error, for instance desired joints.
        condition_size: C, what the policy sees besides the set (0 if nothing): the paper's u.
        horizon: T, control steps in an episode.
        step_s: Duration of a control step [s].
        substep_s: Delays are rounded to this [s]; it must divide `step_s`.
    """

    presets: ClassVar[tuple[str, ...]] = ()
    domain: Domain
    state_names: tuple[str, ...]
    noise_scale: tuple[float, ...]
    action_size: int
    command_size: int
    condition_size: int
    horizon: int
    step_s: float
    substep_s: float

    @classmethod
    def from_preset(cls, preset: str = "") -> Task:
        """Build the task in one of its named variants; the empty name builds it without arguments."""
        if preset:
            known = ", ".join(cls.presets) or "none"
            raise ValueError(f"{cls.__name__} has no preset '{preset}'; known: {known}, or --preset ''")
        return cls()

    def changed(self, **values: Any) -> Task:
        """This task with other values of its own, for evaluation outside of what it was trained on."""
        raise ValueError(f"{type(self).__name__} has no values to change, asked for {', '.join(values)}")

    @abstractmethod
    def allocate(self, sets: int, instances: int) -> None:
        """Make room for B sets of N instances."""

    @abstractmethod
    def begin(self, sets: torch.Tensor, parameters: torch.Tensor, draws: Draws) -> None:
        """Start new episodes in some sets.

        All instances of a set start in the same state s_0 (paper, Algorithm 1).

        Args:
            sets: [R] indices of the sets to start.
            parameters: [R, N, P] domain parameters of their instances.
            draws: Random numbers for these R sets; take no others.
        """

    @abstractmethod
    def command(self, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Turn actions [B, A] into commands for the shared system.

        Returns:
            Commands [B, M], and whether a limit changed what the action asked for [B].
        """

    @abstractmethod
    def hold(self) -> torch.Tensor:
        """Commands [B, M] that leave the system as it is: what it obeys before the first action."""

    @abstractmethod
    def advance(self, command: torch.Tensor, duration_s: float) -> None:
        """Let every instance evolve under commands [B, M] (paper, Eq. 5)."""

    @abstractmethod
    def states(self) -> torch.Tensor:
        """True states of the instances [B, N, S], a new tensor."""

    def condition(self) -> torch.Tensor:
        """What conditions the policy besides the set [B, C]; asked for only if C > 0."""
        return torch.zeros(0, 0)

    def contract(self) -> dict[str, Any]:
        """What a policy relies on beyond shapes (how actions are scaled, for instance), as plain values.

        Stored with every policy; a policy is refused by a task whose contract differs.
        """
        return {}

    @abstractmethod
    def reward_terms(self) -> dict[str, torch.Tensor]:
        """Named terms [B, N] of the present states' reward; the reward is their sum."""

    @abstractmethod
    def success(self) -> torch.Tensor:
        """Which instances [B, N] would count as a success if the episode ended now."""

    def other_successes(self) -> dict[str, torch.Tensor]:
        """Success by other measures [B, N] each, by names that begin with `success_`; none by default."""
        return {}

    def terminated(self) -> torch.Tensor:
        """Which sets [B] have come to an end that no time limit explains; none by default."""
        return torch.zeros(1, dtype=torch.bool)
