"""What a user writes: a task that evolves N instances of each of B sets under one shared action.

A task knows physics, reward and success. It knows nothing of episodes, noise, delay or learning:
those belong to `dris.core.env.Env`, which calls the methods below in this order:

    allocate(B, N)                        once
    begin(sets, parameters, rng)          at the start of each episode
    command(action) -> advance(command)   every control step, then
    states, condition, reward_terms, success, terminated
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch

from dris.core.conditions import Condition
from dris.core.domain import Domain
from dris.core.rng import KeyedRng

if TYPE_CHECKING:
    import numpy as np

    from dris.core.stage import Stage


@dataclass(frozen=True)
class NoConfig:
    """The configuration of a task that has nothing to configure."""


class Task(ABC):
    """A task. Tensors are float32 on the CPU; B sets, N instances, see the attributes for the rest.

    Attributes:
        Config: Frozen dataclass of the values that a user may set; plain numbers, texts, tuples and the like.
            It is turned into flags (`--task.NAME VALUE`) and stored whole with every run and policy. A task
            that has one takes it as the only argument of its constructor, and keeps it in `config`.
        presets: Named values of `Config`.
        domain: The physical parameters that differ between instances.
        state_names: One name per component of an instance's state, S in all.
        noise_scale: [S] one standard deviation of observation noise, in the state's units. It is the unit of
            the encoder and of the audit, too: positive, also of what no sensor shows (see `observed`).
        observation_scale: [O] for a belief, one standard deviation of the noise of each observed value, in
            its own units; empty: `noise_scale`.
        observation_covariance: [O, O] in place of it, where the errors of observed values go together.
        action_size: A; actions are normalised, each component in [-1, 1].
        command_size: M, what an action becomes before execution error, for instance desired joints.
        condition_size: C, what the policy sees besides the set (0 if nothing): the paper's u.
        horizon: T, control steps in an episode.
        step_s: Duration of a control step [s].
        substep_s: Delays are rounded to this [s]; it must divide `step_s`.
        instance_tensors: For a belief, the attributes that hold all that differs between instances, the
            states first: tensors [B, N, S], then [B, N] or [B, N, K], each with the range that it may have.
            Empty: a task that offers a belief has methods of its own, `read_instances` to `restore_state`.
        first_is_real: Whether instance 0 of a set is the real one and the others a belief about it, set by
            whoever believes: where instances start, and when an episode has terminated, must then follow from
            the real one alone.
    """

    Config: ClassVar[type] = NoConfig
    presets: ClassVar[Mapping[str, Any]] = {}
    config: Any = NoConfig()
    domain: Domain
    state_names: tuple[str, ...]
    noise_scale: tuple[float, ...]
    observation_scale: tuple[float, ...] = ()
    observation_covariance: tuple[tuple[float, ...], ...] = ()
    action_size: int
    command_size: int
    condition_size: int
    horizon: int
    step_s: float
    substep_s: float
    instance_tensors: ClassVar[Mapping[str, tuple[float, float]]] = {}
    first_is_real: bool = False

    @classmethod
    def preset(cls, name: str = "") -> Any:
        """A configuration by its name; the empty name means the default."""
        if name and name not in cls.presets:
            known = ", ".join(cls.presets) or "none"
            raise ValueError(f"{cls.__name__} has no preset '{name}'; known: {known}")
        return cls.presets[name] if name else cls.Config()

    @classmethod
    def build(cls, config: Any = None) -> Self:
        """The task with a configuration; tasks that have none are built without arguments."""
        arguments = () if cls.Config is NoConfig else (cls.Config() if config is None else config,)
        try:
            return cls(*arguments)
        except TypeError as error:
            given = "its configuration alone" if arguments else "without arguments"
            raise ValueError(f"{cls.__name__} cannot be built {given}: {error}") from error

    @classmethod
    def conditions(cls) -> Mapping[str, Condition]:
        """Conditions of this task besides those that any task has (`dris.core.conditions`)."""
        return {}

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[Any, int], Callable[[Any], torch.Tensor]]]:
        """Agents that need no training, by name: functions of a task and a number of sets."""
        return {}

    @classmethod
    def policies(cls) -> Mapping[str, Path]:
        """Files of trained policies that come with the task, by name."""
        return {}

    def with_config(self, **values: Any) -> Self:
        """This task with other values of its configuration."""
        if unknown := sorted(values.keys() - {f.name for f in fields(self.config)}):
            raise ValueError(f"the configuration of {type(self).__name__} has no {', '.join(unknown)}")
        return type(self).build(replace(self.config, **values))

    def policy_interface(self) -> dict[str, Any]:
        """What a policy relies on beyond shapes, as plain values: by default the `policy_field`s."""
        return {f.name: getattr(self.config, f.name) for f in fields(self.config) if f.metadata.get("policy")}

    def draw(self, which: int, ghost: np.ndarray | None = None) -> np.ndarray | None:
        """A picture [height, width, 3] (uint8) of one set as it is now; None: `dris play` plots states.

        Args:
            which: Set.
            ghost: [3] where the policy sees its first instance, if what is seen is not what is true; only a
                task whose stage has `points_of` is told.
        """
        return None

    def stage(self) -> Stage | None:
        """How the task shows itself in 3-D; None: `dris view` cannot show it.

        A task with an MJCF returns a `dris.sim.mjcf_stage.MjcfStage`.
        """
        return None

    @abstractmethod
    def allocate(self, sets: int, instances: int) -> None:
        """Make room for B sets of N instances."""

    @abstractmethod
    def begin(self, sets: torch.Tensor, parameters: torch.Tensor, rng: KeyedRng) -> None:
        """Start new episodes in some sets.

        All instances of a set start in the same state s_0 (paper, Algorithm 1).

        Args:
            sets: [R] indices of the sets to start.
            parameters: [R, N, P] domain parameters of their instances.
            rng: Random numbers for these R sets; take no others.
        """

    @abstractmethod
    def command(self, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Turn actions [B, A] into commands for the shared system.

        Returns:
            Commands [B, M], and whether a limit changed what the action asked for [B].
        """

    @abstractmethod
    def initial_command(self) -> torch.Tensor:
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

    @classmethod
    def offers_belief(cls) -> bool:
        """Whether its instances can be read and written back."""
        return bool(cls.instance_tensors) or cls.read_instances is not Task.read_instances

    def read_instances(self) -> torch.Tensor:
        """All that is uncertain of each instance [B, N, D], for a belief: its state and its parameters."""
        return torch.cat([part.flatten(2) for part in self._instance_parts("read_instances")], dim=-1)

    def write_instances(self, values: torch.Tensor, first: int = 0) -> torch.Tensor:
        """Change the instances from `first` on to what `read_instances` would read [B, N - first, D].

        Returns:
            [B, N - first] which had to be changed to be physical.
        """
        parts, changed = self._instance_parts("write_instances"), []
        new = values.split([part.shape[2] for part in parts], dim=-1)
        for part, value, (low, high) in zip(parts, new, self.instance_tensors.values(), strict=True):
            possible = value.clamp(low, high)
            part[:, first:] = possible
            changed.append((possible != value).any(dim=-1))
        return torch.stack(changed).any(dim=0)

    def place_states(self, states: torch.Tensor, first: int = 0) -> torch.Tensor:
        """Change the states of the instances from `first` on [B, N - first, S]; parameters stay.

        Returns:
            As `write_instances`.
        """
        size = self._instance_parts("place_states")[0].shape[2]
        rest = self.read_instances()[:, first:, size:]
        return self.write_instances(torch.cat((states, rest), dim=-1), first)

    def _instance_parts(self, asked: str) -> list[torch.Tensor]:
        """The tensors of `instance_tensors`, [B, N, K] each: views."""
        if not self.instance_tensors:
            raise ValueError(
                f"{type(self).__name__} has no {asked}: a belief needs it, or `instance_tensors`"
            )
        tensors: list[torch.Tensor] = []
        for name in self.instance_tensors:
            tensor = getattr(self, name, None)
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(
                    f"instance_tensors of {type(self).__name__} names '{name}', and there is no such tensor: "
                    "name what allocate() makes, the states first"
                )
            tensors.append(tensor if tensor.ndim == 3 else tensor[..., None])
        return tensors

    def gather_instances(self, index: torch.Tensor, first: int = 0) -> None:
        """Make each instance i from `first` on a copy of instance index[b, i - first], [B, N - first].

        A task whose instances have more than `read_instances` tells, such as contacts, copies that, too.
        """
        values = self.read_instances()
        self.write_instances(values.gather(1, index[..., None].expand(-1, -1, values.shape[2])), first)

    def draw_hidden(  # noqa: B027
        self, sets: torch.Tensor, states: torch.Tensor, first: int, rng: KeyedRng
    ) -> None:
        """Draw what no observation shows, such as spin, and forget contacts, where a belief begins anew.

        By default nothing.

        Args:
            sets: [B] which sets.
            states: [B, N - first, S] where their instances from `first` on will be placed.
            first: Instance.
            rng: Numbers for all B sets.
        """

    def observed(self) -> torch.Tensor:
        """What a sensor without error would show of each instance now [B, N, O], for a belief.

        By default its state. Some components of it are as good, or any other function of the instance, such
        as a bearing or a pixel; a policy behind the belief sees states all the same. A task that has this
        has `draw_start`, too.
        """
        return self.states()

    def draw_start(self, instances: int, rng: KeyedRng) -> torch.Tensor:
        """States [B, N, S] where the system may be before anything is observed: where a belief begins.

        The first observation then pulls them. Also where it begins anew in the midst of an episode, after
        a surprise: wide enough for both. Without hooks for what is observed it begins at the state seen.

        Args:
            instances: N, beside the real one.
            rng: Numbers for all B sets.
        """
        raise ValueError(
            f"{type(self).__name__} has no draw_start: where a belief begins does not follow from what is "
            "observed; give the task draw_start(instances, rng), which draws states [B, N, S]"
        )

    def free_motion(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Where states [B, S] of the last control step's begin are now if nothing was touched.

        For a filter that knows no simulator.

        Returns:
            [B, S] and its derivative [B, S, S] or [S, S].
        """
        raise ValueError(f"{type(self).__name__} has no free_motion: a kalman belief needs it")

    def save_state(self) -> Any:
        """All that `advance` changes, for a belief that looks ahead: by default all tensors and numbers.

        A task whose `advance` changes anything else, such as a simulator's memory, has methods of its own.
        """
        self._instance_parts("save_state")
        plain = torch.Tensor | int | float | None
        kept = {name: value for name, value in vars(self).items() if isinstance(value, plain)}
        return {
            n: (value, value.clone() if isinstance(value, torch.Tensor) else None)
            for n, value in kept.items()
        }

    def restore_state(self, saved: Any) -> None:
        """Back to what `save_state` gave: the same tensors, so that views of each other stay so."""
        self._instance_parts("restore_state")
        for name, (value, was) in saved.items():
            setattr(self, name, value)
            if was is not None and 0 not in value.stride():  # an expanded one follows what it is a view of
                value.copy_(was)

    @abstractmethod
    def reward_terms(self) -> dict[str, torch.Tensor]:
        """Named terms [B, N] of the present states' reward; the reward is their sum."""

    @abstractmethod
    def success(self) -> torch.Tensor:
        """Which instances [B, N] would count as a success if the episode ended now."""

    def other_successes(self) -> dict[str, torch.Tensor]:
        """Success by other measures [B, N] each, by names that begin with `success_`; none by default.

        Pages explain both kinds by the first lines of the task's own docstrings.
        """
        return {}

    def terminated(self) -> torch.Tensor:
        """Which sets [B] have come to an end that no time limit explains; none by default.

        Where `first_is_real`, that follows from instance 0 alone: what the others do is only believed.
        """
        return torch.zeros(1, dtype=torch.bool)
