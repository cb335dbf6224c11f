"""The verbs about one task and its policies: check, train, evaluate, play."""

import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro

from dris.belief.config import BeliefName
from dris.cli import logs
from dris.core import validation
from dris.core.constants import EVALUATION_SEED
from dris.experiments import World
from dris.lab import Drive
from dris.learning.config import TrainConfig

TaskName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
PRESETS = """Presets of catching:
released (default): the environment behind the paper's figures;
paper: its text taken literally;
exact: that, with balls that bounce and rub as their numbers say;
robot: the text as a real FR3 allows it;
fr3: the released environment as a real FR3 allows it."""
"""In words, since asking the task would take seconds; a test compares."""
Preset = Annotated[str, tyro.conf.arg(metavar="NAME", help=f"Variant of the task. {PRESETS}")]
Policies = Annotated[
    tyro.conf.Positional[tuple[str, ...]],
    tyro.conf.arg(
        metavar="POLICY...",
        help="Run folders, policy files, policies that ship (e2e, dris-10, dris-50, dris-200, dris-robot, "
        "belief-robot), or baselines of their task (catching: still, random, veltrack), which act in the "
        "world of the first trained policy beside them. A policy acts in the preset that it was trained in: "
        "dris-robot in robot, belief-robot in fr3, the others that ship in released. "
        f"{PRESETS}",
    ),
]
_SHOWN = ("chamfer", "reward", "set_success")


def check(task: TaskName, preset: Preset = "") -> int:
    """Ask whether a task keeps the promises DRIS rests on.

    Args:
        task: catching, package.module:Class or path/file.py:Class.
        preset: See `Preset`.
    """
    from dris.core.check import check_task
    from dris.core.promises import PROMISES
    from dris.evaluation.registry import find_task

    found = find_task(task)
    verdicts = check_task(partial(found.build, found.preset(preset)))
    for verdict in verdicts:
        print(f"{'FAILED' if verdict.problem else 'ok' if verdict.offered else '-':>6}  {verdict.promise}")
        if verdict.problem or verdict.detail:
            print(f"        {verdict.problem or verdict.detail}")
    failed = sum(bool(verdict.problem) for verdict in verdicts)
    asked = sum(verdict.offered for verdict in verdicts)
    missing = {"not offered": len(verdicts) - asked, "not asked": len(PROMISES) - len(verdicts)}
    rest = "".join(f"; {count} {why}" for why, count in missing.items() if count)
    print(f"{asked - failed} of {asked} promises kept{rest}")
    return 1 if failed else 0


def train_verb(arguments: list[str]) -> Callable[..., int]:
    """`dris train`, with the flags of the task that the arguments name, set to the preset that they name."""
    kind = default = None
    if arguments and not arguments[0].startswith("-"):
        from dris.evaluation.registry import find_task

        task_class = find_task(arguments[0])
        words = " ".join(arguments).replace("--preset=", "--preset ").split()
        preset = words[words.index("--preset") + 1] if "--preset" in words[:-1] else ""
        kind, default = task_class.Config, task_class.preset(preset)

    def train(
        task_name: TaskName,
        preset: Preset = "",
        task: Any = default,
        config: Annotated[TrainConfig, tyro.conf.arg(name="")] = TrainConfig(),  # noqa: B008 - frozen
        out: Path = Path("runs/train"),
        view: bool = False,
        view_port: int = 8080,
    ) -> int:
        """Train a policy: encoder, then PPO. Interrupt at will; the same command goes on where it stopped.

        Values tell their source: [paper] the paper's text; [released] the environment that its laboratory
        published later, where its figures come from; [design] chosen here, where both are silent.

        Args:
            task_name: catching, package.module:Class or path/file.py:Class. With it, --help also tells the
                values of the task itself: --task.NAME VALUE.
            preset: See `Preset`.
            task: Values of the task, which change its preset further.
            config: The run; defaults are the paper's recipe with 200 instances. E2E: --instances 1
                --policy.encoder learned.
            out: Run folder.
            view: Show a set of the present policy and the learning curve in a page while it trains; the task
                needs a stage (docs/guides/view.md).
            view_port: Of that page.
        """
        return _train(task_name, task, config, out, view_port if view else None)

    train.__annotations__["task"] = tyro.conf.Suppress[Any] if kind is None else kind  # type: ignore[misc]
    return train


def _train(
    task_name: str, task_config: Any, config: TrainConfig, out: Path, view_port: int | None = None
) -> int:
    from dris.core.files import read_json
    from dris.core.typed import from_plain
    from dris.evaluation.registry import find_task, full_name
    from dris.learning.config import EncoderConfig
    from dris.learning.trainer import Trainer

    task = find_task(task_name)
    config = replace(config, task=full_name(task_name), task_config=task_config)
    if config.encoder_from is not None and config.encoder == EncoderConfig():  # nothing else said: as it is
        made = read_json(config.encoder_from / "config.json")["encoder"]
        config = replace(config, encoder=from_plain(EncoderConfig, made, str(config.encoder_from)))
    started, first = time.perf_counter(), os.environ.get("RANK", "0") == "0"  # of torchrun's processes
    with warnings.catch_warnings(record=True, action="always") as said:
        trainer = Trainer(task, config, out)
    for warning in said if first else ():
        print(f"dris: {warning.message}", file=sys.stderr)
    with _page(task, task_config, out, view_port if first else None):
        _follow(trainer, first)
    if first:
        print(f"{out} is trained ({time.perf_counter() - started:.0f} s): try `dris evaluate {out}`")
    return 0


def _page(task: Any, task_config: Any, out: Path, port: int | None) -> AbstractContextManager[None]:
    """A page beside the run on a port of this machine, if there is one."""
    if port is None:
        return nullcontext()
    validation.check_extra("viser", "view")
    from dris.view.live import watched
    from dris.view.run import stage_of
    from dris.view.serve import LOOPBACK, check_address

    check_address(LOOPBACK, port)
    stage_of(task.build(task_config))
    print(f"page     http://{LOOPBACK}:{port}", flush=True)
    return watched(out, port)


def _follow(trainer: Any, first: bool) -> None:
    """Train to the end, and, in the first process, tell how it goes."""
    bar, stage = None, ""
    for progress in trainer.run():
        if not first:
            continue
        if bar is None or progress.stage != stage:
            if bar is not None:
                bar.close()
            stage = progress.stage
            bar = _bar(stage, progress.total, progress.done - 1)
        shown = {n: v for n, v in progress.figures.items() if n in _SHOWN or n.endswith("/success")}
        figures = "  ".join(f"{name} {value:.3f}" for name, value in shown.items())
        bar.set_postfix_str(figures, refresh=False)
        bar.update(progress.done - bar.n)
        if "/success" in figures:
            bar.write(f"{stage:>7} {progress.done}/{progress.total}  {figures}")
    if bar is not None:
        bar.close()


def _bar(stage: str, total: int, done: int) -> Any:
    """A line of progress with the time left; into a file, one line every half minute."""
    from tqdm import tqdm

    often = 0.5 if sys.stderr.isatty() else 30.0
    layout = "{desc:>7} |{bar:20}| {n}/{total}  {remaining} left{postfix}"
    return tqdm(total=total, initial=done, desc=stage, mininterval=often, bar_format=layout, ascii=".#")


def evaluate(
    policies: Policies,
    conditions: tuple[str, ...] = ("clean", "noise-2", "noise-4"),
    episodes: int = 2000,
    seed: int = EVALUATION_SEED,
    world: World = "training",
    drive: Drive = "ideal",
    belief: BeliefName = "own",
    task: str | None = None,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Success and mean reward of policies on a single object, with Wilson intervals (95 %).

    Args:
        policies: See `Policies`.
        conditions: clean, noise-X, correlated-X, dropout-PERCENT, delay-MS, execution-X, worst-case (a grid
            over the domain), and the task's own; of catching: execution, restitution, ramp-1.3, ramp-2.0
            (m/s; also with -noise-2).
        episodes: Episodes per policy and condition.
        seed: Seed of the episodes; by default one that training never uses.
        world: twin or physx (needs the extra physx): the same throws there and in training, with perfect
            sight; some 5 and 50 episodes a second, so ask for fewer.
        drive: What stands between reference and torque in the twin: ideal: as in training; no-rate-limit:
            with friction and latency; rate-limit: and FCI's 1000 Nm/s; fitted-gains: and gains fitted to it.
        belief: What stands between what is seen and the policy, in training and twin. own: what the policy
            was trained with, none if it was trained without. ensemble: 50 instances that run on beside the
            real one, pulled by every observation (ensemble Kalman); the policy sees their mean. particles:
            the same by a particle filter. kalman: a filter without a simulator. none: what is seen.
        task: Where the policies' task is now, if not where their files say.
        json_file: Also write the scores to this file.
    """
    from dris.core.files import write_json
    from dris.evaluation.registry import find_policies
    from dris.evaluation.scores import in_words
    from dris.experiments.worlds import check_world, score_in

    validation.check_at_least_one(episodes=episodes)
    validation.check_named(policies=policies, conditions=conditions)
    validation.check_seed(seed)
    validation.check_json(json_file)
    handles = find_policies(policies, task)
    handles = [replace(handle, belief=handle.belief.named(belief)) for handle in handles]
    check_world(world, handles, conditions, drive)
    rows = []
    for handle in handles:
        for condition in conditions:
            row = score_in(world, handle, condition, episodes, seed, drive)
            rows.append({"policy": handle.name, "belief": handle.belief.update, **row})
            print(f"{handle.name:<28} {condition:<16} {in_words(row)}", flush=True)
    write_json(json_file, rows)
    return 0


def play(
    policy: tyro.conf.Positional[str],
    preset: str = "",
    instances: int = 50,
    seed: int = 3,
    condition: str = "clean",
    belief: BeliefName = "own",
    task: str | None = None,
    html: bool = False,
    out: Path = Path("runs/play"),
) -> int:
    """Watch an attempt: writes a slow-motion video and a picture of one set, or a replay in 3-D.

    Args:
        policy: Who acts: a baseline (veltrack), a policy that ships (dris-200), a run folder or a file. Or a
            log of `dris deploy --logs`, a .jsonl file, whose first catch is shown; then only --html and --out
            count.
        preset: Variant of the task; by default the configuration that the policy was made for.
        instances: Of the set, all visible.
        seed: Which start.
        condition: What makes it harder, as in `dris evaluate`: clean, noise-2, delay-40, ramp-1.3 and others.
            Of a ball that is not seen where it is, what the policy sees is shown, too.
        belief: What stands between what is seen and the policy; own: what it was trained with. With one,
             the instances are the real one and the belief's.
        task: Where the policy's task is now, if not where its file says; whose baseline, too.
        html: Write a replay in place of video and picture: one file that opens in a browser from the disk,
            and can be turned and stopped.
        out: Folder for the files.
    """
    if policy.endswith(logs.SUFFIX):
        return logs.play_log(Path(policy), html, out)
    validation.check_seed(seed)
    validation.check_at_least_one(instances=instances)
    validation.check_out(out)
    if html:
        validation.check_extra("viser", "view")
    from dris.evaluation.registry import find_policy, policy_file
    from dris.evaluation.scores import one_condition
    from dris.learning.load import load_policy_for
    from dris.view.play import record, save

    handle = find_policy(policy, task)
    if preset:
        handle = replace(handle, task_config=handle.task.preset(preset))
        if policy not in handle.task.baselines():
            load_policy_for(policy_file(policy), handle.make_task())  # refuses what it was not trained for
    believed = handle.belief.named(belief)
    if believed.beside:
        believed = replace(believed, instances=instances)
    handle = replace(handle, belief=believed)
    harder = one_condition(handle.task, condition)
    believes, clean = believed.update != "none", condition == "clean"
    name = Path(policy).name.removesuffix(".safetensors")
    said = [name, preset and f"preset {preset}", "" if clean else condition]
    said += [f"belief {believed.update}" if believes else "", f"N = {instances}", f"seed {seed}"]
    title = ", ".join(part for part in said if part)
    parts = [name, preset, "" if clean else condition, believed.update if believes else ""]
    file_name = "-".join(part for part in (*parts, f"n{instances}", str(seed)) if part)
    if html:
        from dris.view.replay import save_replay

        file, words = save_replay(handle, instances, seed, harder, title, out / f"{file_name}.html")
        print(f"{title}: {words}\nreplay   {file}")
        return 0
    attempt = record(handle, instances, seed, harder)
    files = save(attempt, title, out, file_name)
    print(f"{title}: success {attempt.success:.0%} {attempt.what}, mean reward {attempt.reward:.2f} a step")
    for file in files:
        print(f"{'picture' if file.suffix == '.png' else 'video':<8} {file}")
    return 0
