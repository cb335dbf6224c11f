"""The environment: B sets of N instances, one shared action per set, the mean reward of the set.

It owns time, randomness and everything that stands between a policy and the world: observation
noise, execution error and delay. Episodes end by truncation, so learners bootstrap there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch

from dris.core.domain import Domain
from dris.core.errors import DrisError
from dris.core.rng import KeyedRng
from dris.core.task import Task

# What random numbers are for: with the step, they key the draws of a set's episode.
_START, _OBSERVATION, _EXECUTION, _DROPOUT = range(4)


@dataclass(frozen=True)
class EnvConfig:
    """How many sets of which size, and how hard the world makes it to see and to act."""

    sets: int = 128
    """B, sets that evolve side by side."""
    instances: int = 200
    """N, instances in each set."""
    seed: int = 0
    first_set: int = 0
    """Index of the first set: processes that share a seed and divide the sets among them differ here."""
    noise: float = 0.0
    """Observation noise in units of the task's noise scale (the paper's 1 to 4 sigma), drawn for each set and
    step: one error for all its instances, as a set of one has at deployment. Drawn for each instance, it
    would average out in the set's code."""
    least_noise: float | None = None
    """Every episode's noise lies between this and `noise`, drawn evenly; None: it is `noise`."""
    noise_correlation: float = 0.0
    """Correlation of the noise from one control step to the next: AR(1) of the same standard deviation, as
    the errors of a tracker are."""
    dropout: float = 0.0
    """Probability that an observation is missing; the last one then stands in for it. The first never is."""
    execution_error: float = 0.0
    """Half width of the uniform error on every command (the paper's 0.05 rad)."""
    delay_s: tuple[float, float] = (0.0, 0.0)
    """Range of the time from observation to the moment its command acts, drawn per episode [s]."""

    def __post_init__(self) -> None:
        """Refuse configurations that make no environment."""
        if self.sets < 1 or self.instances < 1:
            raise ValueError(f"sets and instances must be at least 1, got {self.sets}, {self.instances}")
        for name in ("noise", "execution_error"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} must be finite and not negative, got {value}")
        if self.least_noise is not None and not 0 <= self.least_noise <= self.noise:
            raise ValueError(
                f"least_noise must be None or lie in [0, noise {self.noise}], got {self.least_noise}"
            )
        if not 0 <= self.noise_correlation <= 1:
            raise ValueError(f"noise_correlation must lie in [0, 1], got {self.noise_correlation}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout}")
        low, high = self.delay_s
        if not 0 <= low <= high < 10:
            raise ValueError(f"delay_s must satisfy 0 <= low <= high < 10 s, got {self.delay_s}")


@dataclass(frozen=True)
class Observation:
    """What a policy sees: the (noisy) state set [B, N, S] and its condition [B, C]."""

    states: torch.Tensor
    condition: torch.Tensor


@dataclass(frozen=True)
class Step:
    """What one control step brought. `reward` is the mean over the set (paper, Sec. III-C).

    Attributes:
        observation: Of the state reached.
        reward: [B] mean reward of each set.
        rewards: [B, N] of each instance.
        terms: Named terms of it, [B] each.
        success: [B, N] which instances would count as a success now.
        terminated: [B] episodes that ended because of the state reached.
        truncated: [B] episodes that ended because time was up.
        limited: [B] actions that a limit changed, including actions outside [-1, 1].
    """

    observation: Observation
    reward: torch.Tensor
    rewards: torch.Tensor
    terms: dict[str, torch.Tensor]
    success: torch.Tensor
    terminated: torch.Tensor
    truncated: torch.Tensor
    limited: torch.Tensor

    @property
    def done(self) -> torch.Tensor:
        """[B] episodes that ended, for either reason."""
        return self.terminated | self.truncated


EARLY_RESET_OFFSET = 2**20
"""Distance of the numbers of a set's episodes that begin between those of all sets."""


class DivergedError(DrisError, RuntimeError):
    """A number stopped being finite. `snapshot` holds the tensors that led to it."""

    def __init__(self, message: str, snapshot: dict[str, torch.Tensor]):
        super().__init__(message)
        self.snapshot = snapshot


class Env:
    """B sets of a task. `reset` starts episodes, `step` advances all sets by one control step."""

    def __init__(
        self, task: Task, config: EnvConfig, domain: Domain | None = None, belief_domain: Domain | None = None
    ):
        """Allocate the task's sets.

        Args:
            task: The task; it belongs to this environment from now on.
            config: Sizes, seed, noise, execution error, delay.
            domain: Ranges to draw from instead of the task's, for instance `task.domain.shifted()`.
            belief_domain: Ranges that all instances but the first, the real one, are drawn from, if they are
                a belief (`dris.belief.env`).
        """
        self.task, self.config = task, config
        self.domain = task.domain if domain is None else domain
        self._belief_domain = belief_domain
        if list(self.domain) != list(task.domain):
            raise ValueError(f"domain has {list(self.domain)}, the task's has {list(task.domain)}")
        task.allocate(config.sets, config.instances)
        self._noise_scale = torch.tensor(task.noise_scale)
        self.noise_level = torch.full((config.sets,), float(config.noise))
        """[B] noise of the present episodes, in noise scales."""
        self._error = torch.zeros(config.sets, 1, len(task.state_names))  # of the observation, in scales
        self._seen = torch.zeros(0)  # states as they were observed last, with dropout
        self.missing: torch.Tensor | None = None
        """[B] which sets saw nothing at the last step; None: all saw."""
        self._every = torch.arange(config.sets)
        self.steps = torch.zeros(config.sets, dtype=torch.long)
        """[B] control steps since each episode began."""
        self.episodes = torch.zeros(config.sets, dtype=torch.long)
        """[B] episodes each set has begun; with `seed`, all that later draws depend on."""
        self.parameters = torch.zeros(config.sets, config.instances, len(self.domain))
        """[B, N, P] domain parameters of the present episodes."""
        self.on_advance: Callable[[float], None] | None = None
        """Called after every piece of a control step with its duration [s]; see `watch_every_s`."""
        self.watch_every_s: float | None = None
        """Cut control steps into pieces no longer than this [s], a multiple of the task's substep."""
        self._finished = torch.ones(config.sets, dtype=torch.bool)
        self._delay_substeps = torch.zeros(config.sets, dtype=torch.long)
        longest = math.ceil(config.delay_s[1] / task.substep_s)
        self._per_step = round(task.step_s / task.substep_s)
        if abs(self._per_step * task.substep_s - task.step_s) > 1e-9:
            raise ValueError(f"substep_s {task.substep_s} does not divide step_s {task.step_s}")
        # Commands given but not yet obeyed, newest first: as they will act, and as they were asked for,
        # without the error of execution that nobody can know.
        self._pending = torch.zeros(longest // self._per_step + 2, config.sets, task.command_size)
        self._asked = self._pending.clone()

    def _rng(self, sets: torch.Tensor, purpose: int) -> KeyedRng:
        moments = 4 * self.steps[sets] + purpose
        return KeyedRng(self.config.seed, self.config.first_set + sets, self.episodes[sets], moments)

    def reset(self, sets: torch.Tensor | None = None) -> Observation:
        """Start new episodes in some sets (all if None) and observe every set.

        Args:
            sets: Indices [R], each once, or a mask [B] such as `step.done`.
        """
        sets = self._every if sets is None else self._indices(sets)
        self.episodes[sets] += 1
        self.steps[sets] = 0
        self._finished[sets] = False
        rng = self._rng(sets, _START)
        parameters = self.domain.sample(rng, self.config.instances, self._belief_domain)
        low, high = self.config.delay_s
        delay = rng.uniform(1, low=low, high=high)[:, 0]
        self._delay_substeps[sets] = torch.round(delay / self.task.substep_s).long()
        self.parameters[sets] = parameters
        self.task.begin(sets, parameters, rng)
        self._pending[:, sets] = self._asked[:, sets] = self.task.initial_command()[sets]
        if self.config.least_noise is not None:
            drawn = rng.uniform(1, low=self.config.least_noise, high=self.config.noise)
            self.noise_level[sets] = drawn[:, 0]
        self._draw_error(sets, fresh=True)
        waiting = None
        if len(self._seen) and len(sets) < self.config.sets:  # the others see what they saw
            waiting = torch.ones(self.config.sets, dtype=torch.bool)
            waiting[sets] = False
        return self._observe(self.task.states(), waiting)

    def restart(self, sets: torch.Tensor) -> Observation:
        """Start anew in sets whose episode ended before the others'.

        Their episodes are numbered apart, so that what all sets draw when they next begin together does not
        depend on who ended early.
        """
        self.episodes[self._indices(sets)] += EARLY_RESET_OFFSET - 1
        return self.reset(sets)

    def _indices(self, sets: torch.Tensor) -> torch.Tensor:
        """Set indices from indices or from a mask, checked."""
        count = self.config.sets
        if sets.dtype == torch.bool:
            if tuple(sets.shape) != (count,):
                raise ValueError(f"a mask of sets has shape ({count},), got {tuple(sets.shape)}")
            return sets.nonzero()[:, 0]
        inside = (sets >= 0) & (sets < count)
        if sets.dim() != 1 or not bool(inside.all()) or len(sets.unique()) != len(sets):
            raise ValueError(f"sets must be different indices in 0 to {count - 1}, got {sets.tolist()}")
        return sets

    def step(self, action: torch.Tensor) -> Step:
        """Apply one action per set [B, A] and let every instance evolve for one control step.

        Raises:
            ValueError: The action has the wrong shape or is not finite, or an episode is over.
            DivergedError: A state or reward is not finite.
        """
        self._check_action(action)
        bounded = action.float().clamp(-1.0, 1.0)
        command, limited = self.task.command(bounded)
        limited = limited | (bounded != action).any(dim=1)
        self._asked = torch.cat((command[None], self._asked[:-1]))
        if self.config.execution_error > 0:
            rng = self._rng(self._every, _EXECUTION)
            width = self.config.execution_error
            command = command + rng.uniform(self.task.command_size, low=-width, high=width)
        self._advance(command)
        self.steps += 1

        states = self.task.states()
        terms = self.task.reward_terms()
        reward = torch.stack(list(terms.values())).sum(dim=0)
        self._check_finite({"state": states, "reward": reward}, action)
        self._draw_error(self._every, fresh=False)
        terminated = self.task.terminated().expand(self.config.sets)
        truncated = ~terminated & (self.steps >= self.task.horizon)
        self.missing = self._missing()
        self._finished = terminated | truncated
        counted = self._counted(reward)
        return Step(
            observation=self._observe(states, self.missing),
            reward=counted(reward),
            rewards=reward,
            terms={name: counted(term) for name, term in terms.items()},
            success=self.task.success(),
            terminated=terminated,
            truncated=truncated,
            limited=limited,
        )

    def _counted(self, rewards: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
        """From values [B, N] of instances with these rewards [B, N] to what counts for a set [B]."""
        return lambda values: values.mean(dim=1)

    def notes(self) -> dict[str, torch.Tensor]:
        """What else there is to tell of the present episodes [B], by name; nothing by default."""
        return {}

    def _advance(self, command: torch.Tensor) -> None:
        """One control step in which each set switches to its command when its delay is over."""
        self._pending = torch.cat((command[None], self._pending[:-1]))
        whole = self._delay_substeps // self._per_step
        part = self._delay_substeps % self._per_step
        before = self._pending[whole + 1, self._every]
        after = self._pending[whole, self._every]
        # The sets' switching times cut the control step into pieces of constant command.
        cuts = {0, self._per_step, *part.unique().tolist()}
        if self.watch_every_s is not None:
            cuts |= set(range(0, self._per_step, max(1, round(self.watch_every_s / self.task.substep_s))))
        for begin, end in pairwise(sorted(cuts)):
            obeyed = torch.where((part <= begin)[:, None], after, before)
            self.task.advance(obeyed, (end - begin) * self.task.substep_s)
            if self.on_advance is not None:
                self.on_advance((end - begin) * self.task.substep_s)

    def _draw_error(self, sets: torch.Tensor, fresh: bool) -> None:
        """The next error of the observation in some sets; a fresh one owes nothing to the last."""
        if self.config.noise == 0:
            return
        error = self._rng(sets, _OBSERVATION).normal(1, self._error.shape[2])
        kept = 0.0 if fresh else self.config.noise_correlation
        if kept > 0:
            error = kept * self._error[sets] + math.sqrt(1 - kept**2) * error
        self._error[sets] = error

    def _noise(self) -> torch.Tensor:
        """[B, 1, S] the present error of the observation, in its units."""
        return self.noise_level[:, None, None] * self._noise_scale * self._error

    def _missing(self) -> torch.Tensor | None:
        """Which sets [B] see nothing at this step."""
        if self.config.dropout == 0:
            return None
        return self._rng(self._every, _DROPOUT).uniform(1)[:, 0] < self.config.dropout

    def _observe(self, states: torch.Tensor, missing: torch.Tensor | None = None) -> Observation:
        if self.config.noise > 0:
            states = states + self._noise()
        if missing is not None:
            states = torch.where(missing[:, None, None], self._seen, states)
        if self.config.dropout > 0:
            self._seen = states
        if self.task.condition_size == 0:
            return Observation(states, torch.zeros(self.config.sets, 0))
        return Observation(states, self.task.condition())

    def _check_action(self, action: torch.Tensor) -> None:
        expected = (self.config.sets, self.task.action_size)
        if tuple(action.shape) != expected:
            raise ValueError(f"action has shape {tuple(action.shape)}, expected {expected}")
        if not bool(torch.isfinite(action).all()):
            bad = int((~torch.isfinite(action)).any(dim=1).nonzero()[0])
            raise ValueError(
                f"action of set {bad} at step {int(self.steps[bad])} is not finite: {action[bad].tolist()}"
            )
        if bool(self._finished.any()):
            bad = int(self._finished.nonzero()[0])
            raise ValueError(f"the episode of set {bad} is over (or never began): call reset first")

    def _check_finite(self, values: dict[str, torch.Tensor], action: torch.Tensor) -> None:
        for name, value in values.items():
            if bool(torch.isfinite(value.sum())):  # one pass: a sum keeps any NaN or infinity
                continue
            bad = ~torch.isfinite(value.reshape(*value.shape[:2], -1)).all(dim=2)
            row, instance = bad.nonzero()[0].tolist()
            raise DivergedError(
                f"{name} of set {row}, instance {instance} is not finite at step "
                f"{int(self.steps[row])} of episode {int(self.episodes[row])} (seed "
                f"{self.config.seed})",
                snapshot={"action": action, **values},
            )
