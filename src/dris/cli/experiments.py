"""The verbs of `dris` that run experiments and write pages about them: bench, study, trials, report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dris.core import validation
from dris.core.constants import STUDY_SEED
from dris.core.files import read_json, write_json
from dris.core.schema import header
from dris.experiments import World
from dris.experiments.trials.config import TrialsConfig

PAPER_TRIALS = TrialsConfig()
PAPER_CONDITIONS = ("clean", "noise-1", "noise-2", "noise-3", "noise-4", "execution", "restitution")
"""Those of the paper's figures."""


def bench(
    what: tyro.conf.Positional[Literal["world", "physics", "train", "belief", "robot"]],
    sets: int | None = None,
    instances: tuple[int, ...] = (1, 10, 50, 200),
    repeats: int = 5,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
    picture: Path | None = None,
) -> int:
    """Measure speed beside peers, or accuracy, in one run on this machine.

    Args:
        what: world: speed of this world, MuJoCo and (if installed) SAPIEN; physics: errors of this world
            against its own substep and against MuJoCo; train: where an iteration's time goes; belief: what
            one costs, beside a robot and in training; robot: how much of its time a robot's computer needs.
        sets: Sets that evolve side by side (world, physics).
        instances: Set sizes to measure (world, train; belief, from 2 on).
        repeats: Throws per world and size (world), iterations per size (train, belief), lives of a trial
            (robot).
        json_file: Also write the result to this file.
        picture: Also draw it, a .png file (robot).
    """
    if picture is not None and (what != "robot" or picture.suffix != ".png" or not picture.parent.is_dir()):
        raise ValueError(f"--picture {picture}: for `robot` alone, a .png file in a folder that is there")
    if repeats < 2 or not instances:
        raise ValueError(f"bench needs at least two repeats and one set size, got {repeats} and {instances}")
    validation.check_json(json_file)
    if what == "world":
        from dris.experiments.bench.world import bench_world, table

        result = bench_world(instances, 128 if sets is None else sets, repeats)
    elif what == "train":
        from dris.experiments.bench.train import bench_train, table

        result = bench_train(instances, repeats)
    elif what == "belief":
        from dris.experiments.bench.belief import bench_belief, table

        if not (beliefs := tuple(n for n in instances if n > 1)):
            raise ValueError(f"a belief has at least two instances, got --instances {instances}: take 50")
        result = bench_belief(beliefs, repeats)
    elif what == "robot":
        from dris.experiments.bench.robot import bench_robot, table

        result = bench_robot(repeats=repeats)
    else:
        from dris.experiments.bench.physics import bench_physics, table

        result = bench_physics(64 if sets is None else sets)
    print(table(result))
    write_json(json_file, result)
    if picture is not None:
        from dris.report.figures import time_budget

        picture.write_bytes(time_budget(result))
    return 0


def study(
    what: tyro.conf.Positional[Literal["paper", "belief", "ablation", "theory", "distance"]],
    quick: bool = False,
    out: Path | None = None,
    work: Path = Path("runs/study"),
    workers: int = 1,
    ray: str | None = None,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Run what is missing of a study. Interrupt at will; the same command goes on where it stopped.

    Args:
        what: paper: every figure of the paper's simulation section, with baselines; belief: what a filter
            between sensor and policy brings; ablation: what a belief loses by not knowing where a ball
            starts, or its physics, before the E2E of that study, which lie in --out (by default that
            study's); theory: what the paper's Appendix B predicts of N, measured; distance: how far the
            results that are there are from the paper's 70 published means, by preset (runs nothing).
        quick: A small size of it, in minutes, to see that it works; its figures mean nothing.
        out: Folder of the results; by default runs/ and its name, with --quick the name and -quick. What this
            repository holds is in results/paper, results/belief and results/theory.
        work: Folder of the runs themselves.
        workers: Runs at a time on this machine, one thread each.
        ray: Address of a Ray cluster to run on instead; "local" starts one here.
        json_file: Also write the distances to this file.
    """
    from dris.experiments.study.plan import belief_study, paper_study
    from dris.experiments.study.runner import run_study

    if what == "distance":
        return _distance(out or Path("results/paper"), json_file)
    if json_file is not None:
        raise ValueError("--json is of `dris study distance`; other studies write to --out")

    validation.check_at_least_one(workers=workers)
    if what == "ablation":  # of the belief's study
        return _ablation(out or Path("runs") / ("belief-quick" if quick else "belief"), quick)
    folder = out or Path("runs") / (f"{what}-quick" if quick else what)
    if what == "theory":
        from dris.experiments.study.theory import TheoryConfig, measure

        found = measure(TheoryConfig(sets=8) if quick else TheoryConfig())
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "theory.json", found)
        print(f"{folder}: measured; `dris report {folder}` makes the page")
        return 0
    plan = belief_study(quick) if what == "belief" else paper_study(quick)
    start, failed, done = time.perf_counter(), 0, 0
    for job, error in run_study(plan, folder, work / plan.name, workers, ray):
        done, failed = done + 1, failed + bool(error)
        minutes = (time.perf_counter() - start) / 60
        outcome = f"FAILED: {error}" if error else "done"
        print(f"{minutes:6.1f} min  {job.name:<28} {outcome}  ({done} of this go)", flush=True)
    if what == "belief" and not (folder / "filters.json").exists():
        from dris.experiments.study.filters import FiltersConfig, measure_filters

        found = measure_filters(FiltersConfig(episodes=20, repeats=8) if quick else FiltersConfig())
        write_json(folder / "filters.json", found)
    missing = f", {failed} FAILED: repeat the command to try them again" if failed else ""
    print(f"{folder}: {done - failed} runs added, {len(plan.jobs)} in all{missing}")
    return 1 if failed else 0


def _ablation(folder: Path, quick: bool) -> int:
    """Write what a belief loses by not knowing, with every E2E of the belief's study in a folder."""
    from dris.experiments.study.ablation import KNOWN, NOISE, AblationConfig, measure, result, rows_of, table

    if not (files := sorted(folder.glob("*/e2e/*.safetensors"))):
        first = f"dris study belief{' --quick' if quick else ''} --out {folder}"
        raise ValueError(f"{folder} holds no PRESET/e2e/SEED.safetensors: run `{first}` first")
    config = AblationConfig(episodes=20) if quick else AblationConfig()
    file = folder / ("ablation-quick.json" if quick else "ablation.json")
    measured = measure(files, config, rows_of(file, config))
    rows, start = next(measured), time.perf_counter()
    known, whole = len(rows), len(files) * len(KNOWN) * len(NOISE)
    for rows in measured:
        write_json(file, result(config, rows))
        each_s = (time.perf_counter() - start) / (len(rows) - known)
        left = f"{each_s * (whole - len(rows)) / 60:.0f} min left"
        print(f"{len(rows)} of {whole}; {left}", flush=True)
    print(table(rows))
    return 0


def _distance(folder: Path, json_file: Path | None) -> int:
    """Print how far a study's results are from the paper's means."""
    from dris.experiments.study.distance import distances, in_words, outside_file
    from dris.experiments.study.published import load_published
    from dris.experiments.study.results import load_results

    validation.check_json(json_file)
    found = distances(load_results(folder), load_published(), outside_file(folder))
    print("root mean square of our means minus the paper's:")
    for preset, values in found.items():
        print(in_words(preset, values))
    write_json(json_file, found)
    return 0


def trials(
    config: Annotated[TrialsConfig, tyro.conf.arg(name="")] = PAPER_TRIALS,
    out: Path = Path("runs/trials"),
    name: str = "",
    workers: int = 1,
    films: bool = False,
) -> int:
    """Trials in the twin laboratory, from rendered images to torques. Interrupt and repeat to go on.

    Args:
        config: Which trials.
        out: Folder of the results.
        name: Of the file; by default the kind of trials.
        workers: Trials at a time on this machine.
        films: Afterwards, also film a catch and a loss of every policy, and write replays of them, which open
            in a browser and can be turned and stopped.
    """
    validation.check_at_least_one(workers=workers)
    if films and config.sight != "cameras":
        raise ValueError("--films show what cameras see: leave them out, or take --sight cameras")
    validation.check_extra("cv2", "eyes")
    if films:  # before hours of trials
        validation.check_extra("imageio", "video")
        validation.check_extra("viser", "view")
    from dris.experiments.trials.table import film_table, run_table

    out.mkdir(parents=True, exist_ok=True)
    file, done = out / f"{name or config.kind}.json", 0
    for done, (trial, caught) in enumerate(run_table(config, file, workers), start=1):
        print(f"{done:>5}  {trial:<44} {'caught' if caught else 'lost'}", flush=True)
    print(f"{done} trials added; all that are now in {file}:")
    for policy, total in read_json(file)["totals"].items():
        rate = f"{total['rate']:.2f} [{total['low']:.2f}, {total['high']:.2f}]"
        slow = f"{total['within_speed']} of them with no joint beyond its speed limit"
        slow += f", {total['within_limits']} with no torque or torque rate beyond FCI's either"
        print(f"{policy:<28} {total['caught']} of {total['trials']} caught, {rate}; {slow}")
    for found in film_table(file) if films else ():
        from dris.view.replay import save_frames

        print(f"film     {found.video}", flush=True)
        replay = save_frames(found.stage, found.frames, found.title, found.video.with_suffix(".html"))
        print(f"replay   {replay}", flush=True)
    return 0


def released(
    encoder_file: tyro.conf.Positional[Path],
    policy_file: tyro.conf.Positional[Path],
    worlds: tuple[World, ...] = ("training", "twin", "physx"),
    conditions: tuple[str, ...] = PAPER_CONDITIONS,
    episodes: int | None = None,
    seed: int = STUDY_SEED,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Evaluate the policy that the paper's laboratory published, beside the paper's figures for DRIS-200.

    Args:
        encoder_file: Its set encoder, dris_encoder.pt of the laboratory's repository ManiDreams.
        policy_file: Its policy, policy_ckpt.pt.
        worlds: training, twin, physx (which needs the extra physx).
        conditions: clean, noise-1 to noise-4, execution, restitution.
        episodes: Per world and condition; by default 2000 in training, 100 in the twin, 200 in PhysX.
        seed: Seed of the episodes; by default that of the study's final figures.
        json_file: Also write the scores to this file.
    """
    validation.check_named(worlds=worlds, conditions=conditions)
    validation.check_at_least_one(episodes=1 if episodes is None else episodes)
    validation.check_seed(seed)
    validation.check_json(json_file)
    from dris.catching.released import load_released
    from dris.evaluation.registry import find_policy
    from dris.evaluation.scores import in_words
    from dris.experiments.released import published_row, scores, table
    from dris.experiments.worlds import check_world

    for world in worlds:
        check_world(world, [find_policy("still")], conditions)
    weights, rows = load_released(encoder_file, policy_file), []
    for row in scores(weights, worlds, conditions, episodes, seed):
        rows.append(row)
        print(f"{row['world']:<10} {row['condition']:<12} {in_words(row)}", flush=True)
    print(table(rows, published_row()))
    write_json(json_file, header("outside") | {"paper_dris_200": published_row(), "rows": rows})
    return 0


def report(folder: tyro.conf.Positional[Path], out: Path | None = None) -> int:
    """Write a page about a run (success table, learning curve, videos), a study or trials, from files alone.

    Args:
        folder: Run folder, with scores.json (of `dris evaluate --json`) if it is there; or the results of a
            study (the theory's page also takes the gap from the folder `paper` beside it) or of trials.
        out: Folder of the page; by default that folder itself.
    """
    validation.check_folder(folder)
    validation.check_out(out)
    from dris.report.pages import report_folder

    page = report_folder(folder, out or folder)
    print(f"page     {page}")
    return 0
