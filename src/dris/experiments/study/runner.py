"""A study: runs of several methods and seeds, each scored under all conditions, one result file a run.

A job is one run: method, preset, seed. No job needs another, so they may run anywhere, in any order, and
again: a job's result depends on the job alone. A result file (a cell) is written once, whole, by the
process that collects; a study that is started again does what is missing.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from dris.core.conditions import WORST_CASE, Condition, find_condition
from dris.core.constants import STUDY_SEED
from dris.core.files import locked, read_json, to_json, write_atomically
from dris.core.process import end_with_parent
from dris.core.schema import header
from dris.core.typed import to_plain, with_defaults
from dris.core.validation import check_extra
from dris.evaluation.registry import PolicyHandle, find_task, full_name
from dris.evaluation.scores import score
from dris.learning.config import LITERAL_PPO, PpoConfig, TrainConfig
from dris.learning.load import load_policy_for
from dris.learning.run_folder import read_metrics, versions
from dris.learning.trainer import Trainer

SHOW_EVERY = 250
"""Iterations between signs of life of a run."""

CURVES = ("/success", "/success_0.2", "/reward")
"""Figures of a learning curve that are kept."""

_E2E = {"encoder": "learned"}

METHODS: dict[str, dict[str, Any]] = {
    # The paper's five.
    "e2e": {"instances": 1, "policy": _E2E},
    "dris-1": {"instances": 1},
    "dris-10": {"instances": 10},
    "dris-50": {"instances": 50},
    "dris-200": {"instances": 200},
    # What a reviewer asks for.
    "e2e-noise": {"instances": 1, "policy": _E2E, "noise": 2.0},
    "e2e-decay": {"instances": 1, "policy": _E2E, "ppo": {"decay_encoder": True}},
    "dris-50-noise": {"instances": 50, "noise": 2.0},
    "mean-reward-50": {"instances": 50, "policy": {"visible": "first"}},
    "dris-50-moments": {"instances": 50, "encoder": {"pooling": "moments"}},
    "dris-50-concat": {"instances": 50, "policy": {"conditioning": "concat"}},
    # As many instances as dris-50, each in an environment of its own.
    "e2e-x50": {"instances": 1, "policy": _E2E, "sets": 6400},
}
"""What defines each method: values of the recipe. All else is the same for all."""


@dataclass(frozen=True)
class Job:
    """One run of a study."""

    method: str
    preset: str
    seed: int

    @property
    def name(self) -> str:
        """Unique within a study; also the name of its files."""
        return f"{self.preset}/{self.method}/{self.seed}" if self.preset else f"{self.method}/{self.seed}"


@dataclass(frozen=True)
class Study:
    """What is run, and how the runs are scored."""

    name: str
    recipe: TrainConfig
    jobs: tuple[Job, ...]
    conditions: tuple[str, ...]
    """That every run is scored under,"""
    more_conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """and those of a preset alone."""
    tuned_apart: tuple[tuple[str, PpoConfig], ...] = ()
    """How the policies of some presets learn, where that was tuned apart from the others."""
    episodes: int = 2000
    """Per run and condition."""
    seed: int = STUDY_SEED
    """Of the scoring's episodes."""

    def config(self, job: Job) -> TrainConfig:
        """The recipe of a job."""
        recipe, changes = self.recipe_of(job), dict(METHODS[job.method])
        for part in ("policy", "encoder", "ppo"):
            if part in changes:
                changes[part] = replace(getattr(recipe, part), **changes[part])
        return replace(recipe, **changes)

    def recipe_of(self, job: Job) -> TrainConfig:
        """What all methods of a job's preset and seed have in common."""
        ppo = dict(self.tuned_apart).get(job.preset, self.recipe.ppo)
        preset = find_task(self.recipe.task).preset(job.preset)
        return replace(self.recipe, task_config=preset, seed=job.seed, ppo=ppo)

    def conditions_of(self, preset: str) -> tuple[str, ...]:
        """All that a run of a preset is scored under."""
        return self.conditions + dict(self.more_conditions).get(preset, ())

    def episodes_of(self, condition: str) -> int:
        """Episodes of a condition: fewer where each costs more.

        A quarter on ramps, which last ten times longer; an eighth at each point of the worst case's grid.
        """
        if condition == WORST_CASE:
            return max(1, self.episodes // 8)
        return max(1, self.episodes // 4) if condition.startswith("ramp") else self.episodes

    def stamp(self, job: Job) -> dict[str, Any]:
        """All that decides a job's result."""
        config = to_plain(self.config(job))
        del config["encoder_from"]  # always the same encoder: that of preset and seed
        # A condition's values, not its name alone: whoever changes one must score all runs again.
        own = find_task(self.recipe.task).conditions()
        meant = {
            name: name if name == WORST_CASE else meaning(find_condition(name, own))
            for name in self.conditions_of(job.preset)
        }
        scored = {"conditions": meant, "episodes": self.episodes, "seed": self.seed}
        return json.loads(to_json({"config": config, "scored": scored}))


def meaning(condition: Condition) -> str:
    """What a condition changes, as text; what it leaves alone is left out."""
    values = {f.name: v for f in fields(condition) if (v := getattr(condition, f.name)) != f.default}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def paper_study(quick: bool = False) -> Study:
    """The paper's simulation section, with baselines; quick: one small run of two methods.

    Presets: `released`, the environment behind the paper's figures; `paper`, its text taken literally;
    `exact`, that with balls that bounce as their numbers say.
    """
    noise = ("clean", "noise-1", "noise-2", "noise-3", "noise-4")
    recipe = TrainConfig(
        task=full_name("catching"), threads=1, evaluate_every=25, evaluate_episodes=500, evaluate_on=noise
    )
    ramps = ("ramp-1.3", "ramp-2.0", "ramp-1.3-noise-2", "ramp-2.0-noise-2")
    shifts = ("execution", "restitution", "delay-20", "delay-40", "delay-60")
    if quick:
        recipe = replace(
            recipe, sets=16, iterations=4, evaluate_every=2, evaluate_episodes=20,
            encoder=replace(recipe.encoder, episodes=1, sets=16, instances=20, set_sizes=(1, 20), passes=1),
        )  # fmt: skip
        jobs = tuple(Job(method, "released", 0) for method in ("e2e", "dris-10"))
        return Study("paper-quick", recipe, jobs, (*noise, "execution", "restitution"), episodes=50)
    five = ("e2e", "dris-1", "dris-10", "dris-50", "dris-200")
    noisy = ("e2e-noise", "dris-50-noise")
    others = ("e2e-decay", "mean-reward-50", "dris-50-moments", "dris-50-concat")
    jobs = tuple(Job(method, "released", seed) for seed in range(5) for method in five)
    jobs += tuple(Job(method, "released", seed) for seed in range(3) for method in noisy)
    jobs += tuple(Job("e2e-x50", "released", seed) for seed in range(2))
    jobs += tuple(Job(method, "paper", seed) for seed in range(5) for method in five)
    jobs += (Job("e2e-x50", "paper", 0),)  # one, as it takes as long as twenty others; so it begins early
    jobs += tuple(Job(method, "paper", seed) for seed in range(3) for method in (*noisy, *others))
    jobs += tuple(Job(method, "exact", seed) for seed in range(3) for method in five[:4])
    # Three runs tell a difference from five others; against each other it takes four.
    jobs += tuple(Job(method, "paper", 3) for method in noisy)
    sight = tuple(f"correlated-{k}" for k in (1, 2, 3, 4)) + ("dropout-20", "dropout-40")
    scored = (*noise, *shifts, *ramps, WORST_CASE)
    literal = tuple((preset, LITERAL_PPO) for preset in ("paper", "exact"))
    return Study("paper", recipe, jobs, scored, more_conditions=(("released", sight),), tuned_apart=literal)


def run_job(study: Study, job: Job, work: Path) -> dict[str, Any]:
    """Train and score one run; goes on from whatever `work` holds of it. Returns the cell."""
    config = study.config(job)
    task = find_task(config.task)
    if config.policy.encoder == "frozen":
        source = work / "encoders" / f"{job.preset}-{config.encoder.pooling}-{job.seed}"
        donor = replace(study.recipe_of(job), encoder=config.encoder)
        with locked(source.with_name(f"{source.name}.lock"), wait=True):  # jobs of one seed share it
            for _ in Trainer(task, donor, source).run(stages=("encoder",)):
                pass
        config = replace(config, encoder_from=source)
    folder = work / job.name
    trainer = Trainer(task, config, folder)
    for progress in trainer.run():
        if progress.done % SHOW_EVERY == 0:
            print(f"            {job.name:<28} {progress.done}/{progress.total}", flush=True)
    policy = load_policy_for(folder / "policy.safetensors", task.build(config.task_config))
    handle = PolicyHandle(job.name, task, config.task_config, lambda task, sets: policy)
    scores = {
        name: score(handle, name, study.episodes_of(name), study.seed)
        for name in study.conditions_of(job.preset)
    }
    metrics = read_metrics(folder / "metrics.jsonl")
    return {
        **header("study-run"),
        **asdict(job),
        "stamp": study.stamp(job),
        "versions": versions(),
        "seconds": trainer.seconds,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "scores": scores,
        "curve": [
            {key: value for key, value in row.items() if key == "iteration" or key.endswith(CURVES)}
            for row in metrics
            if any(key.endswith("/success") for key in row)
        ],
    }


def run_study(
    study: Study, out: Path, work: Path, workers: int = 1, ray: str | None = None
) -> Iterator[tuple[Job, str]]:
    """Run what is missing of a study; yields each job as it ends, with its error if it had one.

    Args:
        study: What to run.
        out: Folder of the result files.
        work: Folder of the runs themselves, for going on after an interruption.
        workers: Processes on this machine.
        ray: Address of a Ray cluster to run on instead.

    Raises:
        ValueError: `out` holds results of another recipe, or no cluster answers.
    """
    if ray is not None:
        check_extra("ray", "cluster")
        _check_answers(ray)
    described = header("study") | asdict(study) | {"recipe": None, "tuned_apart": None}
    file = out / "study.json"
    if file.exists() and (other := read_json(file)["name"]) != study.name:
        raise ValueError(f"{out} holds the study '{other}', not '{study.name}': choose another folder")
    todo = [job for job in study.jobs if not _is_done(study, job, out)]
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(file, to_json(described))
    finished = _on_ray(study, todo, work, ray) if ray is not None else _here(study, todo, work, workers)
    for job, cell, error in finished:
        if cell is not None:
            file = cell_file(out, job)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, to_json(cell))
        yield job, error


def cell_file(out: Path, job: Job) -> Path:
    """Where the result of a job belongs."""
    return out / f"{job.name}.json"


def _is_done(study: Study, job: Job, out: Path) -> bool:
    file = cell_file(out, job)
    if not file.exists():
        return False
    stamp, config = read_json(file)["stamp"], study.config(job)
    made = with_defaults(stamp["config"], config)  # a value that did not exist then was its default
    made.pop("encoder_from", None)
    if {**stamp, "config": made} != study.stamp(job):
        raise ValueError(
            f"{file} was made with another recipe or other conditions: move it away to run it again, or "
            "choose another folder"
        )
    return True


Finished = Iterator[tuple[Job, dict[str, Any] | None, str]]


def _here(study: Study, jobs: list[Job], work: Path, workers: int) -> Finished:
    """Each job in a process of its own, so that its memory can be measured."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=end_with_parent, max_tasks_per_child=1
    )
    futures = {pool.submit(run_job, study, job, work): job for job in jobs}
    try:
        for future in as_completed(futures):
            error = future.exception()
            yield futures[future], None if error else future.result(), repr(error) if error else ""
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _check_answers(address: str) -> None:
    """Refuse a cluster that does not answer, which Ray itself would try to reach for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:  # "local", "auto"
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Ray cluster answers at {address} ({error}): give HOST:PORT of its head node (`ray status` "
            'there), or "local" to start one here'
        ) from error


def _on_ray(study: Study, jobs: list[Job], work: Path, address: str) -> Finished:
    """Jobs as Ray tasks; Ray starts those of a lost node again on another."""
    import ray

    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    remote = ray.remote(num_cpus=study.recipe.threads, max_retries=-1, max_calls=1)(run_job)
    waiting = {remote.remote(study, job, work): job for job in jobs}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        job = waiting.pop(ready[0])
        try:
            yield job, ray.get(ready[0]), ""
        except ray.exceptions.RayTaskError as error:
            yield job, None, str(error.cause)
