"""A study: runs of several methods and seeds, each scored under all conditions, one result file a run.

A job is one run: method, preset, seed. No job needs another, so they may run anywhere, in any order, and
again: a job's result depends on the job alone. A result file (a cell) is written once, whole, by the
process that collects; a study that is started again does what is missing. Beside it lies the policy, so that
it can be scored again by another measure: a policy without a cell, of the job's recipe, is not trained again.
"""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from dris.core.files import locked, read_json, to_json, write_atomically, write_json
from dris.core.process import in_processes
from dris.core.schema import header
from dris.core.typed import to_plain, with_defaults
from dris.core.validation import check_extra
from dris.evaluation.registry import PolicyHandle, find_task
from dris.evaluation.scores import score
from dris.experiments.study.plan import Job, Study, split
from dris.learning.checkpoint import load_checkpoint
from dris.learning.config import BEGAN_FROM, TrainConfig
from dris.learning.load import load_policy_for
from dris.learning.run_folder import read_metrics, versions
from dris.learning.trainer import Trainer

SHOW_EVERY = 250
"""Iterations between signs of life of a run."""

UNDECISIVE = (*BEGAN_FROM, "evaluate_every", "evaluate_episodes", "evaluate_on", "save_every")
"""Values of a run that its weights do not depend on."""

CURVES = ("/success", "/success_0.2", "/reward")
"""Figures of a learning curve that are kept."""


def train_job(study: Study, job: Job, work: Path) -> tuple[TrainConfig, Trainer]:
    """Train one run, and what it goes on from; goes on from whatever `work` holds of it."""
    config = study.config(job)
    task = find_task(config.task)
    before = study.before(job)
    if before is not None:
        train_job(study, before, work)
        config = replace(config, policy_from=work / before.name)
    if config.policy.encoder == "frozen":
        source = work / "encoders" / f"{job.preset}-{config.encoder.pooling}-{job.seed}"
        donor = replace(study.recipe_of(job), encoder=config.encoder)
        with locked(source.with_name(f"{source.name}.lock"), wait=True):  # jobs of one seed share it
            for _ in Trainer(task, donor, source).run(stages=("encoder",)):
                pass
        config = replace(config, encoder_from=source)
    trainer = Trainer(task, config, work / job.name)
    with locked(work / f"{job.name}.lock", wait=True):  # several jobs may go on from one
        for progress in trainer.run():
            if progress.done % SHOW_EVERY == 0:
                print(f"            {job.name:<28} {progress.done}/{progress.total}", flush=True)
    return config, trainer


def is_of(study: Study, job: Job, policy: Path) -> bool:
    """Whether a policy's file is there and its recipe, all that decides about its weights, is a job's."""
    if not policy.exists():
        return False
    config = study.config(job)
    made = with_defaults(load_checkpoint(policy, "policy").config, config)
    wanted = json.loads(to_json(to_plain(config)))
    return all(made.get(name) == value for name, value in wanted.items() if name not in UNDECISIVE)


def run_job(study: Study, job: Job, work: Path, kept: Path | None = None) -> dict[str, Any]:
    """Train and score one run; goes on from whatever `work` holds of it. Returns the cell.

    Args:
        study: What is run.
        job: Of it.
        work: Folder of the runs themselves.
        kept: A policy that this job gave before, if there is one: it is scored as it is.
    """
    config, folder = study.config(job), work / job.name
    file, seconds = folder / "policy.safetensors", None
    if kept is not None and is_of(study, job, kept):
        folder.mkdir(parents=True, exist_ok=True)
        file = kept
    else:
        config, trainer = train_job(study, job, work)
        seconds = trainer.seconds
    task = find_task(config.task)
    policy = load_policy_for(file, task.build(config.task_config))
    handle = PolicyHandle(job.name, task, config.task_config, lambda task, sets: policy, config.belief)
    stamp, so_far = study.stamp(job), folder / "scores.json"  # for going on
    known = read_json(so_far) if so_far.exists() else {}
    scores = known["scores"] if known.get("stamp") == stamp else {}
    for name in study.conditions_of(job.preset, job.method):
        if name not in scores:
            belief, condition = split(name)
            seen_by = replace(handle, belief=config.belief.named(belief)) if belief else handle
            scores[name] = score(seen_by, condition, study.episodes_of(name), study.seed)
            write_json(so_far, {"stamp": stamp, "scores": scores})
    metrics = [] if seconds is None else read_metrics(folder / "metrics.jsonl")
    return {
        **header("study-run"),
        **asdict(job),
        "stamp": stamp,
        "versions": versions(),
        "seconds": seconds,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "scores": scores,
        "curve": [
            {key: value for key, value in row.items() if key == "iteration" or key.endswith(CURVES)}
            for row in metrics
            if any(key.endswith("/success") for key in row)
        ],
    }


def job_files(study: Study, job: Job, work: Path, out: Path) -> tuple[dict[str, Any], bytes]:
    """What is kept of a run, as it travels to whoever collects: the cell and the policy's file."""
    kept = policy_file(out, job)
    cell = run_job(study, job, work, kept)
    made = kept if cell["seconds"] is None else work / job.name / "policy.safetensors"
    return cell, made.read_bytes()


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
    write_json(file, described)
    run = partial(job_files, study, work=work, out=out)
    finished = _on_ray(run, todo, study.recipe.threads, ray) if ray is not None else _here(run, todo, workers)
    for job, made, error in finished:
        if made is not None:
            cell, policy = made
            file = cell_file(out, job)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(policy_file(out, job), policy)
            write_json(file, cell)  # last: whoever finds it takes the run for done
        yield job, error


def cell_file(out: Path, job: Job) -> Path:
    """Where the result of a job belongs."""
    return out / f"{job.name}.json"


def policy_file(out: Path, job: Job) -> Path:
    """Where its policy belongs."""
    return cell_file(out, job).with_suffix(".safetensors")


def _is_done(study: Study, job: Job, out: Path) -> bool:
    file = cell_file(out, job)
    if not file.exists():
        return False
    stamp, config = read_json(file)["stamp"], study.config(job)
    made = with_defaults(stamp["config"], config)  # a value that did not exist then was its default
    for name in BEGAN_FROM:
        made.pop(name, None)
    if {**stamp, "config": made} != study.stamp(job):
        raise ValueError(
            f"{file} was made with another recipe or other conditions: move it away to run it again, or "
            "choose another folder"
        )
    return True


Files = tuple[dict[str, Any], bytes]
Finished = Iterator[tuple[Job, Files | None, str]]


def _here(run: Callable[[Job], Files], jobs: list[Job], workers: int) -> Finished:
    """Each job in a process of its own, so that its memory can be measured."""
    for job, future in in_processes(run, jobs, workers, each_anew=True):
        error = future.exception()
        yield job, None if error else future.result(), repr(error) if error else ""


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


def _on_ray(run: Callable[[Job], Files], jobs: list[Job], threads: int, address: str) -> Finished:
    """Jobs as Ray tasks; Ray starts those of a lost node again on another."""
    import ray

    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    remote: Any = ray.remote(num_cpus=threads, max_retries=-1, max_calls=1)(lambda job: run(job))
    waiting = {remote.remote(job): job for job in jobs}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        job = waiting.pop(ready[0])
        try:
            yield job, ray.get(ready[0]), ""
        except ray.exceptions.RayTaskError as error:
            yield job, None, str(error.cause)
