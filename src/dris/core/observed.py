"""What a belief is shown of a task's instances, and how well."""

from __future__ import annotations

import numpy as np
import torch

from dris.core.covariance import principal
from dris.core.env import Env, EnvConfig
from dris.core.probe import NOT_OFFERED, MakeTask, TaskError, actions, gap, global_draws, require
from dris.core.rng import KeyedRng
from dris.core.task import Task

_LEAST_RANK = 1e-12
"""Least ratio of a covariance's variances at which it counts as of full rank: near rounding [design]."""


class Sensor:
    """What is observed of a task: O values with a deviation each, or with a covariance.

    One with a covariance is taken along its axes, each value in its own deviation: what is observed and what
    is predicted are then whitened, for every kind of update.

    Attributes:
        declared: Whether the task tells; else its states are observed, with its `noise_scale`.
        scale: [O] standard deviations at a noise level of 1; ones along the axes of a covariance.
        log_volume: What whitening takes from the log-likelihood of an observation.
    """

    def __init__(self, task: Task):
        """Read what the task declares.

        Raises:
            ValueError: It makes no observation.
        """
        self._task, self._name = task, type(task).__name__
        self._to_axes: torch.Tensor | None = None
        self._from_axes: torch.Tensor | None = None
        self.log_volume = 0.0
        scaled, correlated = np.size(task.observation_scale) > 0, len(task.observation_covariance) > 0
        self.declared = type(task).observed is not Task.observed or scaled or correlated
        if scaled and correlated:
            raise ValueError(
                f"{self._name} has both observation_scale and observation_covariance: keep one; on the "
                "diagonal of a covariance stands the scale squared"
            )
        if correlated:
            self.scale = torch.ones(self._whiten(task.observation_covariance))
            return
        name = "observation_scale" if scaled else "noise_scale"
        deviations = getattr(task, name)
        self.scale = torch.tensor(deviations).float()
        if self.scale.ndim != 1 or not bool(((self.scale > 0) & torch.isfinite(self.scale)).all()):
            raise ValueError(
                f"{name} of {self._name} must have one positive and finite deviation per value, got "
                f"{deviations}: what no sensor shows is left out of observed(), not given another scale"
            )

    def _whiten(self, covariance: tuple[tuple[float, ...], ...]) -> int:
        """Keep the axes of a covariance [O, O], each in its own deviation; returns O."""
        try:
            variances, axes = principal(covariance, len(covariance))
        except ValueError as error:
            raise ValueError(f"observation_covariance of {self._name}: {error}") from error
        if not variances.min() > _LEAST_RANK * variances.max():
            raise ValueError(
                f"observation_covariance of {self._name} has variances {variances.min():.3g} to "
                f"{variances.max():.3g} along its axes: no sensor is exact along one, give it full rank"
            )
        deviations = np.sqrt(variances)
        self._to_axes = torch.tensor(axes / deviations).float()
        self._from_axes = torch.tensor((axes * deviations).T).float()
        self.log_volume = -float(np.log(deviations).sum())
        return len(variances)

    def read(self, sets: int, instances: int) -> torch.Tensor:
        """[B, N, O] what each instance would be seen as, in the observation's own units.

        Raises:
            ValueError: The task's answer has another shape or is not finite.
        """
        values = self._task.observed()
        if not self.declared:  # states, which the environment has looked at
            return values
        shape = (sets, instances, len(self.scale))
        if tuple(values.shape) != shape:
            raise ValueError(
                f"observed() of {self._name} has shape {tuple(values.shape)}, not {shape}: as many values as "
                "observation_scale, observation_covariance or, without them, noise_scale"
            )
        _check_finite(f"observed() of {self._name}", values, "clamp what leaves the sensor's range")
        return values

    def along_axes(self, values: torch.Tensor) -> torch.Tensor:
        """Values [..., O] as an update takes them, in deviations `scale`."""
        return values if self._to_axes is None else values @ self._to_axes

    def in_units(self, errors: torch.Tensor) -> torch.Tensor:
        """Errors [..., O] that were drawn along the axes, in the observation's own units."""
        return errors if self._from_axes is None else errors @ self._from_axes

    def draw_start(self, sets: int, instances: int, rng: KeyedRng) -> torch.Tensor:
        """[B, N, S] where a belief begins, by the task.

        Raises:
            ValueError: The task's answer has another shape or is not finite.
        """
        states = self._task.draw_start(instances, rng)
        shape = (sets, instances, len(self._task.state_names))
        if tuple(states.shape) != shape:
            raise ValueError(f"draw_start() of {self._name} has shape {tuple(states.shape)}, not {shape}")
        _check_finite(f"draw_start() of {self._name}", states, "draw states that the system may be in")
        return states


def _check_finite(what: str, values: torch.Tensor, way_out: str) -> None:
    """Refuse numbers [B, N, ...] that are not finite."""
    if bool(torch.isfinite(values.sum())):  # one pass: a sum keeps any NaN or infinity
        return
    bad = (~torch.isfinite(values)).any(dim=2)
    if bool(bad.any()):  # else the sum alone was too large
        row, instance = bad.nonzero()[0].tolist()
        raise ValueError(f"{what} is not finite in set {row}, instance {instance}: {way_out}")


def what_is_observed_is_as_declared(make: MakeTask) -> str | None:
    """observed() has as many finite values as have a positive scale; draw_start() gives states.

    Both are as repeatable as the rest: the same seed gives the same bits, and what an instance or a set is
    seen as does not depend on how many others there are.
    """
    try:
        if not Sensor(make()).declared:
            return f"{NOT_OFFERED}: a belief is shown its states"
        whole, start = _shown(make, 2, 3)
        again, again_start = _shown(make, 2, 3)
        drawn = global_draws(lambda: _shown(make, 2, 3))
        more_sets, more_starts = _shown(make, 3, 3)
        alone, _ = _shown(make, 2, 1)
    except ValueError as error:
        raise TaskError(str(error)) from error
    random = f" draw from the global generator of {' and of '.join(drawn)}" if drawn else ""
    differ = gap([*whole, start], [*again, again_start])
    require(
        not (random or differ),
        f"observed() or draw_start(){random or ' differ between two runs with one seed, ' + differ}: a "
        "sensor's noise is added by the environment, and a start is drawn from the rng that it is given",
    )
    found = gap([*whole, start], [one[:2] for one in (*more_sets, more_starts)])
    require(not found, f"observed() or draw_start() of a set changes when there are more sets, {found}")
    found = gap(alone, [one[:, :1] for one in whole])
    require(not found, f"observed() of instance 0 changes when its set has three instances, {found}")
    return None


def _shown(make: MakeTask, sets: int, instances: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """What is observed [B, N, O] in an episode, and a start [B, N, S] of beliefs."""
    task = make()
    sensor, env = Sensor(task), Env(task, EnvConfig(sets=sets, instances=instances))
    env.reset()
    shown = [sensor.read(sets, instances).clone()]
    for action in actions(task, sets):
        done = env.step(action).done
        shown.append(sensor.read(sets, instances).clone())
        if bool(done.any()):
            break
    index = torch.arange(sets)
    return shown, sensor.draw_start(sets, instances, KeyedRng(3, index, index * 0, index * 0))
