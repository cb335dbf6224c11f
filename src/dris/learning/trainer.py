"""Training, in the paper's two stages: pre-train the set encoder, then learn the policy with PPO.

The loop of the second stage is the paper's Algorithm 1. PPO is rsl_rl's; around it stand what its runner
does not do: exact resume, checkpoints without pickle, evaluation on a schedule, and data parallelism on
CPUs (start with torchrun). Random numbers depend on seed and iteration alone: a run that was interrupted
and resumed has the bits of one that was not.
"""

from __future__ import annotations

import copy
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.storage import RolloutStorage

from dris.belief.env import belief_env
from dris.core.conditions import find_condition
from dris.core.constants import VALIDATION_SEED
from dris.core.env import DivergedError, Env, EnvConfig, Observation, Step
from dris.core.files import locked
from dris.core.process import set_threads
from dris.core.rollout import run_episodes
from dris.core.task import Task
from dris.core.typed import to_plain, with_defaults
from dris.learning.checkpoint import (
    DIVERGED,
    Checkpoint,
    adam_tensors,
    fingerprint,
    load_adam,
    load_checkpoint,
    load_into,
    named,
    save_checkpoint,
)
from dris.learning.config import BEGAN_FROM, TrainConfig
from dris.learning.encoder_stage import encoder_stage, load_encoder
from dris.learning.policy import FilmModel, Policy
from dris.learning.run_folder import Metrics, check_same, claim_folder, warn_of_another_task_file

SAVE_S = 60.0
"""A checkpoint is never older than this and an iteration [s]."""
LEAST_RATE = 1e-5
"""A learning rate that adapts begins here, rsl_rl's least; times 1.5 a step it finds its level soon."""


@dataclass(frozen=True)
class Progress:
    """What happened last: the stage ("encoder" or "policy"), how far it is, and its figures."""

    stage: str
    done: int
    total: int
    figures: dict[str, float]


class Trainer:
    """One run in one folder. `run` goes on from whatever the folder holds."""

    def __init__(self, task: type[Task], config: TrainConfig, folder: Path):
        """Prepare a run; a folder that holds another configuration is refused.

        Args:
            task: The task's class; `config.task` is the name by which it is found again.
            config: The run.
            folder: Where it is kept.
        """
        if config.task_config is None:
            config = replace(config, task_config=task.Config())
        self.make_task, self.config, self.folder = partial(task.build, config.task_config), config, folder
        self._conditions = {n: find_condition(n, task.conditions()) for n in config.evaluate_on}
        self.rank = int(os.environ.get("RANK", 0))
        self.processes = int(os.environ.get("WORLD_SIZE", 1))
        if config.sets % self.processes:
            raise ValueError(f"{config.sets} sets cannot be divided among {self.processes} processes")
        self._stored_config = to_plain(config)
        claim_folder(folder, config, write=False)
        warn_of_another_task_file(folder, config.task)

    def run(self, stages: tuple[str, ...] = ("encoder", "policy")) -> Iterator[Progress]:
        """Train to the end, yielding after every episode of encoder data and every iteration."""
        set_threads(self.config.threads)
        if self.processes > 1 and not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")  # world and learner live on the CPU
        self.task = self.make_task()
        # Early: it may hold what JSON cannot.
        self._interface = json.loads(json.dumps(self.task.policy_interface(), allow_nan=False))
        self._check_possible()
        with torch.random.fork_rng():
            torch.manual_seed(self.config.seed)
            self.policy = Policy(self.task, self.config.encoder, self.config.policy)
        claim_folder(self.folder, self.config, write=self.rank == 0)
        with locked(self.folder, wait=False) if self.rank == 0 else nullcontext():
            yield from self._stages(stages)

    def _stages(self, stages: tuple[str, ...]) -> Iterator[Progress]:
        try:
            if "encoder" in stages and self.config.policy.encoder == "frozen":
                source = self.config.encoder_from or self.config.policy_from
                if source is None and self.rank == 0:
                    for reached in encoder_stage(self.make_task, self.config, self.folder):
                        yield Progress("encoder", *reached)
                if self.processes > 1:
                    torch.distributed.barrier()
                load_encoder(self.policy.encoder, self.config.encoder, source or self.folder)
            if "policy" in stages:
                yield from self._policy_stage()
        except DivergedError as error:
            file = self.folder / f"diverged-{self.rank}.safetensors"
            save_checkpoint(file, Checkpoint(DIVERGED, error.snapshot, self._stored_config, {}))
            raise DivergedError(f"{error}; what led to it is in {file}", error.snapshot) from error

    def _check_possible(self) -> None:
        frozen = self.config.policy.encoder == "frozen"
        for name, file in (("encoder_from", "encoder"), ("policy_from", "last"), ("policy_from", "encoder")):
            source = getattr(self.config, name)
            asked = name == "encoder_from" or self.config.encoder_from is None
            needed = file == "last" or (frozen and asked)
            if source is not None and needed and not (source / f"{file}.safetensors").exists():
                raise ValueError(f"{name}: {source} has no {file}.safetensors; name the folder of a run")
        steps, parts = self.config.sets // self.processes * self.task.horizon, self.config.ppo.mini_batches
        if parts > steps:
            raise ValueError(
                f"{steps} steps (sets x horizon) cannot be cut into {parts} mini-batches: ask for fewer, or "
                "for more sets"
            )
        if self.config.randomize or self.config.belief.prior:
            try:  # what the physics refuses is told before the folder is this run's
                self._make_env(self.make_task(), EnvConfig(2, min(2, self.config.instances))).reset()
            except (KeyError, ValueError) as error:
                ranges = f"randomize {self.config.randomize}, belief.prior {self.config.belief.prior}"
                raise ValueError(f"{ranges}: {error.args[0] if error.args else error}") from error

    def _make_env(self, task: Task, world: EnvConfig) -> Env:
        """The environment of this run, of some size."""
        ranges = {name: (low, high) for name, low, high in self.config.randomize}
        return belief_env(task, world, task.domain.shifted(**ranges), self.config.belief)

    def _policy_stage(self) -> Iterator[Progress]:
        config = self.config
        share = config.sets // self.processes
        world = EnvConfig(
            share, config.instances, config.seed, self.rank * share, config.noise, config.least_noise,
            delay_s=config.delay_s,
        )  # fmt: skip
        self.env = self._make_env(self.task, world)
        self.algorithm = self._ppo(self.policy.inputs(self.env.reset()), share)
        self._begin_from_another()
        self.averaged = copy.copy(self.policy)  # the same encoder; the actor's weights are a running mean
        self.averaged.actor = copy.deepcopy(self.policy.actor)
        self.best = -1.0
        self.seconds: float | None = 0.0  # spent on the iterations so far; None: nobody knows
        first = self._resume()
        metrics, saved = Metrics(self.folder, first) if self.rank == 0 else None, time.perf_counter()
        for iteration in range(first, config.iterations):
            began = time.perf_counter()
            with torch.random.fork_rng():
                torch.manual_seed((config.seed * 1_000_003 + iteration) * 64 + self.rank + 1)
                figures = self._iterate(iteration)
            done, last = iteration + 1, iteration + 1 == config.iterations
            if done % config.evaluate_every == 0 or last:
                figures |= self._evaluate()
            if self.seconds is not None:
                self.seconds += time.perf_counter() - began
            if metrics is not None:
                metrics.add(iteration, figures)
                if done % config.save_every == 0 or last or time.perf_counter() - saved > SAVE_S:
                    self._save(done)
                    saved = time.perf_counter()
            yield Progress("policy", done, config.iterations, figures)

    def _begin_from_another(self) -> None:
        """Take over what another run has learned, if one is named."""
        if self.config.policy_from is not None:
            file = self.config.policy_from / "last.safetensors"
            learned = load_checkpoint(file, "training")
            load_into(self.policy.actor, learned.group("average"), str(file))
            load_into(self.algorithm.critic, learned.group("critic"), str(file))

    def _ppo(self, inputs: Any, sets: int) -> PPO:
        config, ppo = self.config, self.config.ppo
        with torch.random.fork_rng():
            torch.manual_seed(config.seed + 1)
            critic = self.policy.model(outputs=1)
        storage = RolloutStorage("rl", sets, self.task.horizon, inputs, [self.task.action_size])
        distributed = {"global_rank": self.rank, "local_rank": self.rank, "world_size": self.processes}
        algorithm = PPO(
            self.policy.actor, critic, storage,
            learning_rate=ppo.learning_rate if ppo.desired_kl is None else LEAST_RATE,
            schedule="fixed" if ppo.desired_kl is None else "adaptive", desired_kl=ppo.desired_kl,
            num_learning_epochs=ppo.epochs, num_mini_batches=ppo.mini_batches, clip_param=ppo.clip,
            gamma=ppo.gamma, lam=ppo.gae_lambda, entropy_coef=0.0, max_grad_norm=ppo.max_grad_norm,
            multi_gpu_cfg=distributed if self.processes > 1 else None,
        )  # fmt: skip
        algorithm.optimizer = self._optimizer(critic)
        algorithm.optimizer.register_step_pre_hook(lambda *_: self._keep_below_schedule())
        if self.processes > 1:
            algorithm.broadcast_parameters()
        return algorithm

    def _optimizer(self, critic: FilmModel) -> torch.optim.AdamW:
        """AdamW in place of rsl_rl's Adam; only weight matrices of the actor decay."""
        actor = self.policy.actor
        parts = [actor.mlp, actor.encoder] if self.config.ppo.decay_encoder and actor.encoder else [actor.mlp]
        matrices = [p for part in parts for p in part.parameters() if p.dim() > 1]
        others = [p for m in (actor, critic) for p in m.parameters() if all(p is not d for d in matrices)]
        groups = [
            {"params": matrices, "weight_decay": self.config.ppo.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.config.ppo.learning_rate, fused=True)

    def _iterate(self, iteration: int) -> dict[str, float]:
        """One pass through the paper's Algorithm 1: a rollout of every set, then an update."""
        algorithm, policy, env = self.algorithm, self.policy, self.env
        self._anneal(iteration / self.config.iterations)
        rewards, limited = [], []
        with torch.inference_mode():
            env.episodes.fill_(iteration)  # draws depend on seed and iteration alone
            observation = env.reset()  # D_0: s_0 and c^(i) are drawn anew
            inputs = policy.inputs(observation)
            for _ in range(self.task.horizon):
                action = algorithm.act(inputs)  # z = psi(S), a ~ pi(z)
                step = env.step(action)  # D' = F(D, a); r is the mean over the set
                inputs = policy.inputs(self._next(step))
                # Truncations are no ends: the value of the last state follows in compute_returns.
                algorithm.process_env_step(inputs, step.reward, step.terminated.float(), {})
                rewards.append(step.reward)
                limited.append(step.limited)
            algorithm.compute_returns(inputs)
        losses = algorithm.update()
        self._check_finite(losses, iteration)
        self._average(iteration)
        return {
            "reward": float(torch.stack(rewards).mean()),
            "set_success": float(step.success.float().mean()),
            "limited": float(torch.stack(limited).float().mean()),
            "std": float(policy.actor.output_std.detach().mean()),
            "learning_rate": algorithm.learning_rate,
            **{f"loss/{name}": value for name, value in losses.items()},
        }

    def _next(self, step: Step) -> Observation:
        """The observation to go on from: sets that terminated begin anew."""
        if not bool(step.terminated.any()):
            return step.observation
        return self.env.restart(step.terminated)

    def _anneal(self, done: float) -> None:
        """Learning rate and exploration at a share `done` of the run."""
        ppo, first_std = self.config.ppo, self.config.policy.first_std
        self._scheduled_rate = ppo.learning_rate * max(1 - done, ppo.min_lr_fraction)
        if ppo.desired_kl is None:
            self.algorithm.learning_rate = self._scheduled_rate
        self._keep_below_schedule()
        ceiling = (1 - done) * math.log(first_std) + done * math.log(ppo.last_std)
        floor = math.log(ppo.least_std) if ppo.least_std > 0 else -math.inf
        with torch.no_grad():
            self.policy.actor.distribution.log_std_param.clamp_(min=floor, max=ceiling)

    def _keep_below_schedule(self) -> None:
        """Cut what rsl_rl made of the learning rate, to reach `desired_kl`, to the schedule's."""
        self.algorithm.learning_rate = min(self.algorithm.learning_rate, self._scheduled_rate)
        for group in self.algorithm.optimizer.param_groups:
            group["lr"] = self.algorithm.learning_rate

    def _average(self, iteration: int) -> None:
        """Bring the running mean of the weights up to date; early on it forgets faster."""
        window = max(self.config.ppo.ema_window * self.config.iterations, 1.0)
        keep = min(1 - 1 / window, (1 + iteration) / (10 + iteration))
        with torch.no_grad():
            learned = self.policy.actor.parameters()
            for average, new in zip(self.averaged.actor.parameters(), learned, strict=True):
                average.lerp_(new, 1 - keep)

    def _check_finite(self, losses: dict[str, float], iteration: int) -> None:
        if not all(math.isfinite(value) for value in losses.values()):
            storage = self.algorithm.storage
            snapshot = {"rewards": storage.rewards, "actions": storage.actions, "values": storage.values}
            raise DivergedError(f"the update of iteration {iteration} is not finite: {losses}", snapshot)

    def _evaluate(self) -> dict[str, float]:
        """Single-instance scores of the averaged policy."""
        figures: dict[str, float] = {}
        for name, condition in self._conditions.items():
            episodes, agent = self.config.evaluate_episodes, lambda task, sets: self.averaged
            make_env = partial(belief_env, belief=self.config.belief)
            found = run_episodes(self.make_task, agent, condition, episodes, VALIDATION_SEED, make_env)
            score = found.score()
            figures |= {f"{name}/success": score.success, f"{name}/reward": score.reward}
            figures |= {f"{name}/{measure}": rate for measure, rate in score.other_successes.items()}
        rate = mean(figures[f"{name}/success"] for name in self.config.evaluate_on)  # what "best" means
        if self.rank == 0 and rate > self.best:
            self.best = rate
            self._save_policy(self.folder / "best.safetensors", figures)
        return figures

    def _save_policy(self, file: Path, figures: dict[str, Any]) -> None:
        tensors = named("actor", self.averaged.actor.state_dict())
        tensors |= named("encoder", self.policy.encoder.state_dict())
        # A policy is handed on: the folders that its run began from are this machine's.
        config = {**self._stored_config, **dict.fromkeys(BEGAN_FROM), "interface": self._interface}
        save_checkpoint(file, Checkpoint("policy", tensors, config, figures))

    def _save(self, done: int) -> None:
        algorithm = self.algorithm
        tensors = named("actor", algorithm.actor.state_dict())
        tensors |= named("critic", algorithm.critic.state_dict())
        tensors |= named("average", self.averaged.actor.state_dict())
        tensors |= named("adam", adam_tensors(algorithm.optimizer))
        progress = {"iteration": done, "best": self.best, "seconds": self.seconds, "world": self._world()}
        progress["learning_rate"] = algorithm.learning_rate  # that of the last update, if it adapts
        if done == self.config.iterations:  # first: a run whose last checkpoint is there has its policy
            self._save_policy(self.folder / "policy.safetensors", {"iteration": done})
        saved = Checkpoint("training", tensors, self._stored_config, progress)
        save_checkpoint(self.folder / "last.safetensors", saved)

    def _world(self) -> dict[str, Any]:
        """What a run depends on besides its configuration; to go on, it must be the same."""
        frozen = self.config.policy.encoder == "frozen"
        encoder = fingerprint(self.policy.encoder.state_dict()) if frozen else ""
        return {"interface": self._interface, "encoder": encoder}

    def _resume(self) -> int:
        """Load the last checkpoint, if there is one; the iteration to go on with."""
        file = self.folder / "last.safetensors"
        if not file.exists():
            return 0
        saved = load_checkpoint(file, "training")
        check_same(file, with_defaults(saved.config, self.config), self._stored_config)
        check_same(file, saved.progress.get("world", {}), self._world())
        load_into(self.algorithm.actor, saved.group("actor"), str(file))
        load_into(self.algorithm.critic, saved.group("critic"), str(file))
        load_into(self.averaged.actor, saved.group("average"), str(file))
        load_adam(self.algorithm.optimizer, saved.group("adam"))
        self.best, self.seconds = saved.progress["best"], saved.progress.get("seconds")
        self.algorithm.learning_rate = saved.progress.get("learning_rate", self.algorithm.learning_rate)
        return saved.progress["iteration"]
