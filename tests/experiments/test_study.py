"""Studies: cells are whole or absent, once each, and pages are made from them alone.

Long, because all share one small study that has been run.
"""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from recipes import same, tiny, weights

from dris.belief.config import BELIEFS
from dris.catching.settings import PRESETS, CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.conditions import Condition, find_condition
from dris.evaluation.registry import find_policy, full_name
from dris.evaluation.registry import policy_file as shipped_file
from dris.evaluation.scores import check_conditions, score
from dris.experiments.study.claims import CLAIMS, Claim, answers, summary
from dris.experiments.study.filters import FiltersConfig, measure_filters
from dris.experiments.study.plan import (
    METHODS,
    PAPER_METHODS,
    Job,
    Study,
    belief_study,
    meaning,
    paper_study,
    split,
)  # fmt: skip
from dris.experiments.study.published import load_published
from dris.experiments.study.results import estimate, load_results, makespan
from dris.experiments.study.runner import cell_file, is_of, policy_file, run_job, run_study
from dris.learning.config import LITERAL_PPO, TrainConfig
from dris.report.pages import report_folder
from dris.report.study_page import markdown_table, report_study, theirs

ROOT = Path(__file__).parents[2]
JOBS = (Job("e2e", "", 0), Job("dris-10", "", 0), Job("dris-10", "", 1))


def small(**changes) -> Study:
    """A study of a tiny task: three runs of seconds."""
    recipe = replace(tiny(), task=f"{ROOT / 'tests' / 'helpers' / 'fakes.py'}:LineTask")
    return replace(Study("small", recipe, JOBS, ("clean", "noise-2"), episodes=50), **changes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    done = dict(run_study(small(), folder / "out", folder / "work"))
    assert done == {job: "" for job in JOBS}
    return folder


def test_a_study_leaves_a_cell_per_run_and_runs_nothing_twice(finished):
    for job in JOBS:
        cell = json.loads(cell_file(finished / "out", job).read_text())
        assert (cell["method"], cell["seed"]) == (job.method, job.seed)
        assert cell["scores"].keys() == {"clean", "noise-2"} and cell["seconds"] > 0
        assert [row["iteration"] for row in cell["curve"]] == [2, 5]
        assert (cell["kind"], cell["schema"]) == ("study-run", 1)
    assert list(run_study(small(), finished / "out", finished / "elsewhere")) == []


def test_a_run_s_policy_is_kept_and_gives_its_scores_again(finished):
    for job in JOBS:
        file = cell_file(finished / "out", job)
        told = json.loads(file.read_text())["scores"]["noise-2"]
        again = score(find_policy(str(file.with_suffix(".safetensors"))), "noise-2", 50, small().seed)
        assert again["success"] == told["success"] and again["reward"] == told["reward"]
        assert str(finished).encode() not in file.with_suffix(".safetensors").read_bytes()  # no path of here


def test_a_cell_run_again_gives_the_same_number_to_the_last_digit(finished, tmp_path):
    job = JOBS[2]
    cell = json.loads(cell_file(finished / "out", job).read_text())
    again = json.loads(json.dumps(run_job(small(), job, tmp_path)))
    assert again["scores"] == cell["scores"] and again["curve"] == cell["curve"]
    kept = tmp_path / job.name / "scores.json"  # a run that was interrupted while it was scored
    told = json.loads(kept.read_text())
    del told["scores"]["noise-2"]
    told["scores"]["clean"]["reward"] = 0.123  # not measured again: it stays
    kept.write_text(json.dumps(told))
    again = json.loads(json.dumps(run_job(small(), job, tmp_path)))
    assert again["scores"]["clean"]["reward"] == 0.123
    assert again["scores"]["noise-2"] == cell["scores"]["noise-2"]
    more = replace(small(), episodes=small().episodes + 1)  # other scores: measured anew
    assert run_job(more, job, tmp_path)["scores"]["clean"]["reward"] != 0.123


def test_a_kept_policy_of_the_recipe_is_scored_and_not_trained_again(finished, tmp_path):
    job = JOBS[0]
    cell, kept = (f(finished / "out", job) for f in (cell_file, policy_file))
    again = run_job(small(), job, tmp_path, kept)
    assert again["scores"] == json.loads(cell.read_text())["scores"]
    assert again["seconds"] is None and again["curve"] == []
    assert [file.name for file in (tmp_path / job.name).iterdir()] == ["scores.json"]  # no run was begun
    other = small(recipe=replace(small().recipe, iterations=7))
    assert is_of(small(), job, kept) and not is_of(other, job, kept) and not is_of(small(), JOBS[1], kept)
    # How often a run is looked at does not change its weights.
    assert is_of(small(recipe=replace(small().recipe, evaluate_every=99)), job, kept)


def test_results_of_another_recipe_are_not_mixed_in(finished):
    other = small(recipe=replace(small().recipe, iterations=7))
    with pytest.raises(ValueError, match="another recipe"):
        list(run_study(other, finished / "out", finished / "work"))


def test_results_under_a_condition_that_meant_something_else_are_not_mixed_in(finished, monkeypatch):
    changed = lambda name, own: Condition(noise=2.5) if name == "noise-2" else find_condition(name, own)  # noqa: E731
    monkeypatch.setattr("dris.experiments.study.plan.find_condition", changed)
    with pytest.raises(ValueError, match="other conditions"):
        list(run_study(small(), finished / "out", finished / "work"))


def test_a_stamp_says_what_a_condition_changes_and_nothing_else():
    assert meaning(find_condition("clean", {})) == ""
    assert meaning(find_condition("noise-2", {})) == "noise=2"
    assert meaning(find_condition("correlated-2", {})) == "noise=2, noise_correlation=0.8"


def test_a_run_goes_on_from_the_one_that_its_method_names(finished, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "more", {**METHODS["e2e"], "iterations": 2, "after": "e2e"})
    study, job = small(), Job("more", "", 0)
    run_job(study, job, tmp_path)  # which also trains what comes before
    made_with = json.loads((tmp_path / "more" / "0" / "config.json").read_text())
    assert Path(made_with["policy_from"]) == tmp_path / "e2e" / "0"
    assert same(weights(tmp_path / "e2e" / "0"), weights(finished / "work" / "e2e" / "0"))
    assert study.stamp(job)["before"] == study.stamp(JOBS[0])["config"]
    assert "before" not in study.stamp(JOBS[0])


def test_the_policy_that_ships_for_a_robot_is_a_run_of_the_study():
    assert is_of(belief_study(), Job("belief-robot", "fr3", 0), shipped_file("belief-robot"))


def test_scores_name_the_belief_that_they_were_made_with():
    assert split("noise-2") == ("", "noise-2") and split("ensemble/noise-2") == ("ensemble", "noise-2")
    study = belief_study()
    assert study.episodes_of("ensemble/ramp-1.3") == 125 and study.episodes_of("none/clean") == 500
    stamp = study.stamp(Job("belief-robot", "fr3", 1))
    assert stamp["scored"]["conditions"]["ensemble/noise-2"].startswith("BeliefConfig(update='ensemble'")
    assert stamp["before"]["randomize"][0] == ["restitution", 0.5, 0.85]  # of robot-livelier
    for job in study.jobs:  # every belief and condition exists, and every run that one goes on from
        check_conditions(CatchingTask, tuple(split(name)[1] for name in study.conditions_of(job.preset)))
        assert all(split(name)[0] in BELIEFS for name in study.conditions_of(job.preset))
        assert study.before(job) is None or study.config(study.before(job))
    assert "kalman/clean" in study.conditions_of("released", "e2e")
    assert "kalman/clean" not in study.conditions_of("released", "loop")
    assert "ensemble/clean" in study.conditions_of("released", "loop")


def test_the_quick_size_of_the_belief_s_study_runs(tmp_path):
    study = belief_study(quick=True)
    assert dict(run_study(study, tmp_path / "out", tmp_path / "work", workers=2)) == dict.fromkeys(
        study.jobs, ""
    )
    scores = json.loads(cell_file(tmp_path / "out", study.jobs[0]).read_text())["scores"]
    assert set(scores) == set(study.conditions) and len(scores) == 20
    found = measure_filters(FiltersConfig(episodes=20, repeats=8))
    (tmp_path / "out" / "filters.json").write_text(json.dumps(found))
    page = report_folder(tmp_path / "out", tmp_path / "page").read_text()
    assert "2 of 2 runs" in page and "Missing" not in page and "The filter itself" in page
    assert {"belief.png", "belief-size.png"} <= {file.name for file in (tmp_path / "page").iterdir()}


def test_methods_that_are_not_looked_at_widely_have_fewer_scores(tmp_path):
    """A page of the belief's study wanted the wide conditions of every method, and there was none."""
    wide = (("", ("noise-4",)),)
    study = small(jobs=JOBS[:2], episodes=10, widely=("e2e",), wide_conditions=wide)
    assert dict(run_study(study, tmp_path / "out", tmp_path / "work")) == dict.fromkeys(JOBS[:2], "")
    results = load_results(tmp_path / "out")
    assert len(results.scores("", "e2e", "noise-4")) == 1 and results.scores("", "dris-10", "noise-4") == []


def test_a_run_that_fails_is_told_and_the_others_go_on(tmp_path):
    bad = small(jobs=(Job("e2e", "nonsense", 0), JOBS[0]))
    done = dict(run_study(bad, tmp_path / "out", tmp_path / "work"))
    assert "no preset 'nonsense'" in done[bad.jobs[0]] and done[JOBS[0]] == ""
    assert not cell_file(tmp_path / "out", bad.jobs[0]).exists()


def test_runs_end_with_the_process_that_collects_them(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import multiprocessing, os, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from dris.core.process import end_with_parent\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    pool = ProcessPoolExecutor(1, mp_context=context, initializer=end_with_parent)\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    pool.submit(time.sleep, 600)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert int(parent.stdout.readline()) != parent.pid
        parent.kill()
        # The child has the pipe too: it ends when both have.
        assert parent.communicate(timeout=20)[0] == ""


def test_the_quick_size_of_the_paper_s_study_runs_from_training_to_page(tmp_path):
    study = paper_study(quick=True)
    assert dict(run_study(study, tmp_path / "out", tmp_path / "work", workers=2)) == {
        j: "" for j in study.jobs
    }
    page = report_study(tmp_path / "out", tmp_path / "page", load_published()).read_text()
    assert "2 of 2 runs" in page and "Missing" not in page
    assert (tmp_path / "page" / "released-noise.png").exists()
    assert (tmp_path / "page" / "claims.png").exists()


def test_methods_differ_in_what_defines_them_alone():
    study = paper_study()
    released = study.config(Job("dris-200", "released", 0))
    assert released == replace(study.recipe, task_config=CatchingConfig(), instances=200)
    plain = study.config(Job("dris-200", "paper", 0))
    assert plain == replace(released, task_config=PRESETS["paper"], ppo=LITERAL_PPO)
    for method in PAPER_METHODS:
        config = study.config(Job(method, "paper", 3))
        ppo = replace(plain.ppo, decay_encoder=method == "e2e-decay")
        iterations = 200 if method.endswith("-short") else 1000
        assert (config.iterations, config.ppo, config.seed) == (iterations, ppo, 3)
        assert config.sets == (6400 if method.startswith("e2e-x50") else 128)
        assert config.noise == (2.0 if method.endswith("noise") else 0.0)
        newer = study.config(Job(method, "released", 3))
        assert newer.ppo == study.recipe.ppo and newer.ppo.decay_encoder
        assert replace(newer, task_config=PRESETS["paper"], ppo=config.ppo) == config
    seeds = {m: sum(j.method == m and j.preset == "paper" for j in study.jobs) for m in PAPER_METHODS}
    assert list(seeds.values()) == [5, 5, 5, 5, 5, 4, 3, 4, 3, 3, 3, 1, 0, 0]
    seeds = {m: sum(j.method == m and j.preset == "released" for j in study.jobs) for m in PAPER_METHODS}
    assert list(seeds.values()) == [5, 5, 5, 5, 5, 3, 0, 3, 0, 0, 0, 0, 2, 3]
    # What only the newer runs are scored under.
    assert "correlated-2" in study.conditions_of("released") and "clean" in study.conditions_of("released")
    assert "correlated-2" not in study.conditions_of("paper")


# Pages


def cell(method: str, seed: int, success: float) -> dict:
    scores = {c: {"success": success, "reward": success} for c in ("clean", "noise-1", "noise-2")}
    curve = [{"iteration": i, "clean/success": success, "clean/reward": success} for i in (949, 999)]
    curve += [{"iteration": i, "noise-2/success": success + early} for i, early in ((374, 0.1), (924, 0.0))]
    stamp = {"config": {"iterations": 1000, "sets": 128}}
    return {
        "method": method, "preset": "paper", "seed": seed, "scores": scores, "curve": curve, "stamp": stamp,
        "seconds": 60.0, "peak_memory_mb": 512.0,
    }  # fmt: skip


def write_study(folder: Path, successes: dict[tuple[str, int], float], seeds: int = 2) -> None:
    jobs = tuple(Job(m, "paper", s) for m in ("e2e", "dris-10") for s in range(seeds))
    study = Study("paper", TrainConfig(task=full_name("catching")), jobs, ("clean", "noise-1", "noise-2"))
    folder.mkdir(exist_ok=True)
    (folder / "study.json").write_text(json.dumps(asdict(study) | {"recipe": None, "tuned_apart": None}))
    for (method, seed), success in successes.items():
        file = cell_file(folder, Job(method, "paper", seed))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(cell(method, seed, success)))


def test_the_page_follows_the_files(tmp_path):
    write_study(tmp_path / "a", {("e2e", 0): 0.31, ("e2e", 1): 0.33, ("dris-10", 0): 0.75})
    page = report_study(tmp_path / "a", tmp_path / "out", load_published()).read_text()
    assert "0.32 <small>[0.31, 0.33]" in page  # two seeds: mean and range
    assert "0.75 <small>[0.75, 0.75]</small>" in page and "<small>1 of 2 seeds</small>" in page
    assert "paper/dris-10/1" in page and "1 runs have no result yet" in page  # the missing one is named
    assert "0.47 to 0.61" in page  # the paper's band for E2E at 2 sigma
    # While training on, every run loses a tenth.
    assert (
        "<td>dris-10</td><td>0.85 <small>[0.85, 0.85]</small></td><td>0.75 <small>[0.75, 0.75]</small></td>"
        "<td>-0.10" in page
    )
    write_study(tmp_path / "a", {("e2e", 0): 0.51})
    assert "0.42 <small>[0.33, 0.51]" in report_study(tmp_path / "a", tmp_path / "out", {}).read_text()


def test_short_runs_stand_beside_the_papers_long_ones():
    claim = next(
        c for c in CLAIMS if c.preset == "released" and ("dris-50-short", "e2e-x50-short") in c.pairs
    )
    paper = load_published()
    # The paper's text has 0.73 for 128 x 50 environments; its bands for DRIS-50 and E2E at 2 sigma, by hand.
    low, high = paper["success"]["dris-50"]["noise-2"]
    assert theirs(claim, ("dris-50-short", "e2e-x50-short"), paper) == [pytest.approx((low + high) / 2), 0.73]
    assert theirs(claim, ("e2e-x50-short", "e2e"), paper) == [
        0.73,
        pytest.approx((0.47 + 0.61) / 2, abs=0.005),
    ]


def test_cells_that_are_not_there_are_shown_as_missing(tmp_path):
    write_study(tmp_path / "a", {("e2e", 0): 0.25})
    table = markdown_table(load_results(tmp_path / "a"), load_published(), "paper")
    e2e, dris = table.splitlines()[2:]
    assert e2e.startswith(
        "| e2e | 1 of 2 | 0.25 [0.25, 0.25] | 0.93 | 0.25 [0.25, 0.25] | 0.54 | missing | 0.23 |"
    )
    assert dris.startswith("| dris-10 | 0 of 2 | missing | 0.98 | missing | 0.89 |")


def test_the_readme_has_the_table_of_the_results_that_are_here():
    results = load_results(ROOT / "results/paper")
    table = markdown_table(results, load_published(), "released")
    assert table == (ROOT / "results/paper/table.md").read_text(), "run: dris report results/paper"
    head, rows = table.splitlines()[:2], table.splitlines()[2:]
    methods = ("e2e", "dris-1", "dris-10", "dris-50", "dris-200")
    shown = "\n".join([*head, *(row for row in rows if row.split(" | ")[0] in [f"| {m}" for m in methods])])
    assert shown.count("\n") == 6 and f"\n\n{shown}\n\n" in (ROOT / "README.md").read_text(), shown


def test_figures_by_hand(tmp_path):
    scores = {("e2e", 0): 0.2, ("e2e", 1): 0.4, ("dris-10", 0): 0.6, ("dris-10", 1): 0.4}
    write_study(tmp_path, scores)
    results = load_results(tmp_path)
    found = estimate(results.scores("paper", "e2e", "clean"))
    assert (found.value, found.low, found.high, found.seeds) == pytest.approx((0.3, 0.2, 0.4, 2))
    # Of the four pairs of runs, dris-10 wins three and ties one.
    assert results.improvement("paper", "dris-10", "e2e", ["noise-1"])[0] == 3.5 / 4
    assert results.late("paper", "e2e", "clean") == [0.2, 0.4]
    assert results.late("paper", "e2e", "noise-2", until=0.4) == pytest.approx([0.3, 0.5])
    assert results.run_means("paper", "dris-10", ["clean", "noise-1"]) == pytest.approx([0.6, 0.4])
    with pytest.raises(ValueError, match="holds no study"):
        load_results(tmp_path / "paper")


def test_a_claim_is_seen_if_luck_would_seldom_do_the_same(tmp_path):
    """Four against four that all lie higher: two of the 70 ways to deal them; three against three: of 20."""
    claim = Claim("more is better", (("dris-10", "e2e"),), ("noise-1", "noise-2"))
    high, low = (0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4)
    for ours, others, p, verdict in (
        (high, low, 2 / 70, "seen"),
        (low, high, 2 / 70, "the reverse is seen"),
        ((0.1, 0.4, 0.6, 0.9), (0.2, 0.3, 0.7, 0.8), 1.0, "not seen"),
        (high[:3], low[:3], 0.1, "too few runs to say, but all agree"),
        (low[:1], high, 0.4, "too few runs to say, but all point the other way"),
        ((0.1, 0.4, 0.6), (0.2, 0.3, 0.7), 1.0, "too few runs to say"),
    ):
        folder = tmp_path / f"{verdict}-{len(others)}"
        runs = {("dris-10", seed): value for seed, value in enumerate(ours)}
        write_study(folder, runs | {("e2e", seed): value for seed, value in enumerate(others)}, seeds=4)
        (answer,) = answers(load_results(folder), claim)
        assert answer.verdict == verdict and answer.runs == (len(ours), len(others))
        assert answer.p == pytest.approx(p)
        better = "e2e over dris-10" if verdict == "the reverse is seen" else "dris-10 over e2e"
        assert summary([answer]) == {verdict: better}
    assert answers(load_results(folder), replace(claim, pairs=(("dris-50", "e2e"),))) == []


def test_a_claim_is_answered_by_every_measure_that_all_runs_have(tmp_path):
    """The order of the methods turns with the speed that success asks for: so do the verdicts."""
    claim = Claim("more is better", (("dris-10", "e2e"),), ("noise-1",))
    low, high = (0.1, 0.2, 0.3, 0.4), (0.6, 0.7, 0.8, 0.9)
    runs = {("dris-10", seed): value for seed, value in enumerate(low)}
    write_study(tmp_path, runs | {("e2e", seed): value for seed, value in enumerate(high)}, seeds=4)
    assert load_results(tmp_path).measures("paper") == ["success"]
    for method, values in (("dris-10", high), ("e2e", low)):
        for seed, value in enumerate(values):
            file = cell_file(tmp_path, Job(method, "paper", seed))
            cell = json.loads(file.read_text())
            for told in cell["scores"].values():
                told["success_0.2"] = value
            file.write_text(json.dumps(cell))
    results = load_results(tmp_path)
    assert results.measures("paper") == ["success", "success_0.2"]
    (strict,), (mild,) = answers(results, claim), answers(results, claim, "success_0.2")
    assert (strict.verdict, mild.verdict) == ("the reverse is seen", "seen")
    assert mild.rates == pytest.approx((0.75, 0.25)) and strict.p == mild.p == pytest.approx(2 / 70)


def test_a_claim_names_the_conditions_that_disagree_with_its_average(tmp_path):
    """Worse by 0.1 without noise, better by 0.3 with it: better on average, but not everywhere."""
    claim = Claim("more is better", (("dris-10", "e2e"),), ("clean", "noise-1"))
    runs = {(method, seed): 0.5 + 0.01 * seed for method in ("dris-10", "e2e") for seed in range(4)}
    write_study(tmp_path, runs, seeds=4)
    for seed in range(4):
        file = cell_file(tmp_path, Job("dris-10", "paper", seed))
        cell = json.loads(file.read_text())
        cell["scores"]["clean"]["success"] -= 0.1
        cell["scores"]["noise-1"]["success"] += 0.3
        file.write_text(json.dumps(cell))
    (answer,) = answers(load_results(tmp_path), claim)
    assert answer.by_condition == {"clean": 0.0, "noise-1": 1.0} and answer.p == pytest.approx(2 / 70)
    assert answer.rates == pytest.approx((0.615, 0.515))  # IQM of 0.5 to 0.53 is 0.515
    assert summary([answer]) == {"seen": "dris-10 over e2e (not under clean)"}


def test_the_study_has_the_runs_that_its_claims_ask_for():
    planned = {(job.preset, job.method) for job in paper_study().jobs}
    assert {(c.preset, method) for c in CLAIMS for pair in c.pairs for method in pair} <= planned
    assert all(set(c.conditions) <= set(paper_study().conditions_of(c.preset)) for c in CLAIMS)


def test_the_time_of_a_cluster_by_hand(tmp_path):
    # 7, 4, 3, 2, 2 on two cores, longest first: 7 + 2 on one, 4 + 3 + 2 on the other.
    assert makespan([2, 4, 3, 7, 2], 2) == 9 and makespan([2, 4, 3, 7, 2], 1) == 18
    assert makespan([2, 4, 3, 7, 2], 9) == 7
    write_study(tmp_path, {("e2e", 0): 0.2})  # the other e2e counts like it, dris-10 was never timed
    assert load_results(tmp_path).seconds() == ([60.0, 60.0], 1)


def test_a_file_in_the_wrong_place_is_refused(tmp_path):
    write_study(tmp_path, {("e2e", 0): 0.2})
    wrong = cell_file(tmp_path, Job("dris-10", "paper", 0))
    wrong.parent.mkdir()
    wrong.write_text(cell_file(tmp_path, Job("e2e", "paper", 0)).read_text())
    with pytest.raises(ValueError, match="is not the result of paper/dris-10/0"):
        load_results(tmp_path)
