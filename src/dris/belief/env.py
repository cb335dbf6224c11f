"""The environment with a belief: instance 0 of a set is real, the others follow what is seen of it.

The others run on in the same world under the same commands, each with its own physics, and every observation
pulls them. A policy sees them, or their mean, in place of the observation. The paper's set is one in which
nothing is observed, and all begin alike: the plain environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from dris.belief.config import BeliefConfig
from dris.belief.ensemble import ensemble_update
from dris.belief.kalman import Gaussian, kalman_predict, kalman_update
from dris.belief.particles import log_likelihood, squared_distance, systematic_resample
from dris.core.domain import Domain, Range
from dris.core.env import Env, EnvConfig, Observation, Step
from dris.core.observed import Sensor
from dris.core.rng import KeyedRng
from dris.core.task import Task

_KEY = 0xBE11EF
"""Tells the belief's random numbers from the environment's."""
_KALMAN_PROCESS = 1.0
"""What a step may change besides free motion, for the filter without a simulator [noise scales] [design]."""


def belief_env(
    task: Task, config: EnvConfig, domain: Domain | None = None, belief: BeliefConfig | None = None
) -> Env:
    """An environment with a belief, or, without one, the plain environment."""
    if belief is None or belief.update == "none":
        return Env(task, config, domain)
    return BeliefEnv(task, config, domain, belief)


class BeliefEnv(Env):
    """B sets, each of one true instance and a belief of N. Steps tell of the true one.

    Attributes:
        surprise: [B] squared distance of the last observation from what was predicted, in its expected
            deviations: about S where the belief is right.
        log_likelihood: [B] of all observations of the present episode.
        restarts: [B] how often the belief began anew in the present episode.
        repaired: Instances that left physics: put by an update where they cannot be, and put right by the
            task; or not finite, and replaced by copies of others.
    """

    def __init__(self, task: Task, config: EnvConfig, domain: Domain | None, belief: BeliefConfig):
        """Allocate; `config.instances` does not count, the belief's do."""
        if belief.update == "none":
            raise ValueError("with update none there is no belief: belief_env gives the plain environment")
        self.belief = belief
        ranges = {name: (low, high) for name, low, high in belief.prior}
        if unknown := sorted(ranges.keys() - set(task.domain)):
            known = ", ".join(task.domain)
            raise ValueError(f"a belief's prior is over parameters of the task ({known}), not {unknown[0]}")
        prior = task.domain.shifted(**ranges)
        if belief.physics == "nominal":
            middle = {name: 0.5 * (r.low + r.high) for name, r in prior.items()}
            prior = Domain({n: Range(middle[n], middle[n], r.unit, r.meaning) for n, r in prior.items()})
        self._sensor = Sensor(task)
        if self._sensor.declared and belief.update == "kalman":
            raise ValueError(
                f"a kalman belief observes states with their noise_scale, and {type(task).__name__} declares "
                "something else to be observed: take ensemble or particles"
            )
        task.first_is_real = True
        super().__init__(task, replace(config, instances=1 + belief.beside), domain, belief_domain=prior)
        self._scale = torch.tensor(task.noise_scale)
        self._noise_scale = self._sensor.scale
        self._error = torch.zeros(config.sets, 1, len(self._noise_scale))
        sets, size = config.sets, len(task.state_names)
        self._gaussian = Gaussian(torch.zeros(sets, size), torch.eye(size).expand(sets, size, size))
        # An observation of more numbers than the state surprises more where all is right.
        self._restart_surprise = belief.restart_surprise * max(1.0, len(self._noise_scale) / size)
        self.surprise = torch.zeros(sets, dtype=torch.float64)
        self._surprises = torch.zeros(2, sets, dtype=torch.float64)  # their sum over an episode, and how many
        self.log_likelihood = torch.zeros(sets, dtype=torch.float64)
        self.restarts = torch.zeros(sets, dtype=torch.long)
        self.repaired = 0
        self._put_right = torch.zeros(sets, dtype=torch.long)  # in the present episodes

    def reset(self, sets: torch.Tensor | None = None) -> Observation:
        """Start new episodes in some sets (all if None); their beliefs begin at what is seen."""
        fresh = torch.ones(self.config.sets, dtype=torch.bool)
        if sets is not None:
            fresh = torch.zeros_like(fresh)
            fresh[self._indices(sets)] = True
        seen = super().reset(sets)
        self.log_likelihood[fresh], self.restarts[fresh], self.surprise[fresh] = 0.0, 0, 0.0
        self._surprises[:, fresh], self._put_right[fresh] = 0.0, 0
        self._see(seen.states[:, 0], fresh, torch.zeros_like(fresh), elapsed=False)
        return self._view(seen)

    def step(self, action: torch.Tensor) -> Step:
        """Act; every instance evolves, and what is then seen pulls those of the belief."""
        step = super().step(action)
        pulled = torch.ones(self.config.sets, dtype=torch.bool) if self.missing is None else ~self.missing
        self._see(step.observation.states[:, 0], torch.zeros_like(pulled), pulled)
        return replace(
            step,
            observation=self._view(step.observation),
            rewards=step.rewards[:, :1],
            success=step.success[:, :1],
        )

    @property
    def spread(self) -> torch.Tensor:
        """[B, S] standard deviation of the belief over the present state."""
        if self.belief.update == "kalman":
            return self._gaussian.covariance.diagonal(dim1=1, dim2=2).sqrt().float()
        return self.task.states()[:, 1:].std(dim=1)

    def _advance(self, command: torch.Tensor) -> None:
        """As without a belief; instances of it that leave physics become copies of others."""
        super()._advance(command)
        self._replace_lost(self.task.states()[:, 1:])

    def _replace_lost(self, values: torch.Tensor) -> bool:
        """Make instances with values [B, N, K] that are not finite copies of others; were there any?"""
        if bool(torch.isfinite(values.sum())):  # one pass: a sum keeps any NaN or infinity
            return False
        lost = ~torch.isfinite(values).all(dim=2)
        left = (~lost).sum(dim=1, keepdim=True)  # where none is, the environment says so
        ranked = lost.long().argsort(dim=1, stable=True)  # those that are left first
        turn = (lost.long().cumsum(dim=1) - 1).clamp_min(0) % left.clamp_min(1)
        index = torch.where(lost, ranked.gather(1, turn), torch.arange(lost.shape[1]))
        self.task.gather_instances(1 + index, 1)
        self._count(lost)
        return bool(lost.any())

    def _counted(self, rewards: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
        """Of all instances [B, 1 + N]: the true one's values, the belief's, or those of its worst part."""
        if self.belief.reward == "truth" or not self.belief.beside:
            return lambda values: values[:, 0]
        if self.belief.worst_share == 1:
            return lambda values: values[:, 1:].mean(dim=1)
        worst = rewards[:, 1:].argsort(dim=1)[:, : math.ceil(self.belief.worst_share * self.belief.instances)]
        return lambda values: values[:, 1:].gather(1, worst).mean(dim=1)

    def notes(self) -> dict[str, torch.Tensor]:
        """Of each episode: how often a belief began anew, instances put right, and the surprise.

        That is the mean of all its observations, for each observed value: about 1 where a belief is right.
        Particles have none: what they are told by is how far off the best of them was.
        """
        surprise, seen = self._surprises
        found = {"belief_restarts": self.restarts.double(), "belief_repaired": self._put_right.double()}
        if self.belief.update != "particles":
            found["belief_surprise"] = surprise / (seen.clamp_min(1) * len(self._noise_scale))
        return found

    def _count(self, changed: torch.Tensor) -> None:
        """Keep count of instances [B, N] that were put right."""
        self._put_right += changed.sum(dim=1)
        self.repaired += int(changed.sum())

    def _deviation(self, scale: torch.Tensor) -> torch.Tensor:
        """[B, S] of what has a scale [S], at the noise that the filter expects."""
        told = self.belief.told_noise
        level = self.noise_level if told is None else torch.full_like(self.noise_level, told)
        return level.clamp_min(self.belief.noise_floor)[:, None] * scale

    def _noise(self) -> torch.Tensor:
        """[B, 1, O] the present error of what is observed."""
        return self._sensor.in_units(super()._noise())

    def _observe(self, states: torch.Tensor, missing: torch.Tensor | None = None) -> Observation:
        """As without a belief, but of what is observed [B, 1 + N, O]; the view takes its place."""
        if self._sensor.declared:
            states = self._sensor.read(*states.shape[:2])
        return super()._observe(states, missing)

    def _see(
        self, seen: torch.Tensor, fresh: torch.Tensor, pulled: torch.Tensor, elapsed: bool = True
    ) -> None:
        """Take observations [B, O] in: beliefs [B] that are fresh begin there, others are pulled or let be.

        A control step has elapsed since the last ones, or none.
        """
        if self.belief.update == "kalman":
            self._see_without_instances(seen, fresh, pulled, elapsed)
            return
        task, deviation = self.task, self._deviation(self._scale)
        numbers = self.config.first_set + self._every
        rng = KeyedRng(self.config.seed ^ _KEY, numbers, self.episodes, self.steps)
        spread = rng.normal(self.belief.instances, len(self._scale))
        if bool(pulled.any()):
            surprise, likelihood = self._pull(seen, pulled, rng)
            surprised = self._heed(pulled, surprise, likelihood)
            fresh, pulled = fresh | surprised, pulled & ~surprised
        if self._sensor.declared and bool(fresh.any()):
            self._begin(seen, fresh, rng)
            fresh, pulled = torch.zeros_like(fresh), pulled | fresh
        states = task.states()[:, 1:]
        around = deviation[:, None] if self.belief.update == "particles" else self._scale
        jittered = states + self.belief.jitter * around * spread
        states = torch.where(pulled[:, None, None], jittered, states)
        if bool(fresh.any()):
            centre, around = self._start_around(seen, deviation)
            states = torch.where(fresh[:, None, None], centre[:, None] + around[:, None] * spread, states)
            task.draw_hidden(fresh, states, 1, rng)
        self._count(task.place_states(states, 1) & (fresh | pulled)[:, None])

    def _start_around(self, seen: torch.Tensor, deviation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Where beliefs begin [B, S], of states that were seen so [B, S], and how far around [B, S]."""
        return seen, deviation

    def _begin(self, seen: torch.Tensor, fresh: torch.Tensor, rng: KeyedRng) -> None:
        """Begin some beliefs [B] where the task says, pulled by observations [B, O]."""
        task, count = self.task, self.belief.instances
        start = self._sensor.draw_start(len(seen), count, rng)
        task.draw_hidden(fresh, start, 1, rng)
        states = torch.where(fresh[:, None, None], start, task.states()[:, 1:])
        self._count(task.place_states(states, 1) & fresh[:, None])
        self._pull(seen, fresh, rng)

    def _pull(
        self, seen: torch.Tensor, pulled: torch.Tensor, rng: KeyedRng
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Let observations [B, O] change the instances of some beliefs [B].

        Returns:
            [B] how surprising they are, and their log-likelihood.
        """
        task, sensor = self.task, self._sensor
        deviation = self._deviation(sensor.scale)
        values = task.read_instances()[:, 1:]
        if self._replace_lost(values):  # by what no state shows, such as spin
            values = task.read_instances()[:, 1:]
            self._check_finite({"what is believed": values}, self._asked[0])
        predicted = sensor.along_axes(sensor.read(len(seen), 1 + self.belief.instances)[:, 1:])
        seen = sensor.along_axes(seen)
        if self.belief.update == "ensemble":
            update = ensemble_update(values, predicted, seen, deviation)
            written = task.write_instances(torch.where(pulled[:, None, None], update.values, values), 1)
            self._count(written & pulled[:, None])
            return update.surprise, update.log_likelihood + sensor.log_volume
        weights = log_likelihood(predicted, seen, deviation)
        likelihood = weights.double().logsumexp(dim=1) - math.log(weights.shape[1])
        index = systematic_resample(weights, rng.uniform(1)[:, 0])
        task.gather_instances(1 + torch.where(pulled[:, None], index, torch.arange(index.shape[1])), 1)
        nearest = (
            squared_distance(predicted, seen, deviation).min(dim=1).values
        )  # of the one that predicted best
        return nearest.double(), likelihood + sensor.log_volume

    def _heed(self, pulled: torch.Tensor, surprise: torch.Tensor, likelihood: torch.Tensor) -> torch.Tensor:
        """Keep what observations of some sets [B] said of their beliefs; which [B] must begin anew."""
        self.log_likelihood += pulled * likelihood
        self.surprise = torch.where(pulled, surprise, self.surprise)
        self._surprises += pulled * torch.stack((surprise, torch.ones_like(surprise)))
        surprised = pulled & (surprise > self._restart_surprise)
        self.restarts += surprised
        return surprised

    def _see_without_instances(
        self, seen: torch.Tensor, fresh: torch.Tensor, pulled: torch.Tensor, elapsed: bool
    ) -> None:
        """The Kalman filter's step: free motion, then the observation; far from it, it begins anew."""
        deviation, now = self._deviation(self._scale), self._gaussian
        if elapsed:
            mean, jacobian = self.task.free_motion(now.mean.float())
            predicted = kalman_predict(now, mean, jacobian.double(), _KALMAN_PROCESS * self._scale)
            after, surprise, likelihood = kalman_update(predicted, seen, deviation)
            surprised = self._heed(pulled, surprise, likelihood)
            now, fresh = after.where(pulled, predicted), fresh | surprised
        begun = Gaussian(seen.double(), torch.diag_embed(deviation.double().square()))
        self._gaussian = begun.where(fresh, now)

    def look_ahead(self) -> tuple[torch.Tensor, torch.Tensor]:
        """States [B, 1 + N, S] and conditions [B, C] when the next command will act: after its delay.

        Commands on their way are known as they were asked for, so that the world need only run on, and is
        put back.
        """
        task, delay, step = self.task, self._delay_substeps, self._per_step
        states, condition = task.states(), torch.zeros(self.config.sets, 0)
        if task.condition_size:
            condition = task.condition().clone()
        saved, now = task.save_state(), 0
        # Of the commands on their way, number i is i + 1 steps old and acts from delay - (i + 1) steps.
        cuts = {int(d) - i * step for d in delay.unique() for i in range(int(d) // step + 1)}
        for end in sorted(cut for cut in cuts if cut > 0):
            acting = ((delay - now - 1).clamp_min(0) // step).clamp_max(len(self._asked) - 1)
            task.advance(self._asked[acting, self._every], (end - now) * task.substep_s)
            now, reached = end, delay == end
            states[reached] = task.states()[reached]
            if task.condition_size:
                condition[reached] = task.condition()[reached]
        task.restore_state(saved)
        return states, condition

    def _view(self, observation: Observation) -> Observation:
        """What the policy sees in place of an observation."""
        condition, delayed = observation.condition, bool(self._delay_substeps.any())
        if self.belief.update == "kalman":
            mean, deviation = self._gaussian.mean.float(), self.spread
        else:
            states = self.task.states()[:, 1:]
            if self.belief.look_ahead and delayed:
                states, condition = self.look_ahead()
                states = states[:, 1:]
            if self.belief.view == "set":
                return Observation(states, condition)
            mean, deviation = states.mean(dim=1), states.std(dim=1)
        if self.belief.view == "mean":
            return Observation(mean[:, None], condition)
        apart = torch.diag_embed(deviation)
        points = torch.cat((torch.zeros_like(apart[:, :1]), apart, -apart), dim=1)
        return Observation(mean[:, None] + points, condition)
