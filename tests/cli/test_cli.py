"""The command, as a user calls it.

Long, because all share one way to call it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fakes import LineTask
from recipes import tiny

import dris as dris_package
from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.cli import learning
from dris.cli.learning import PRESETS
from dris.cli.main import _words, main
from dris.core.task import NoConfig
from dris.evaluation.registry import find_policies, find_policy
from dris.learning.config import PolicyConfig
from dris.learning.trainer import Trainer

ROOT = Path(__file__).parents[2]


def dris(*arguments, ok=True):
    out = subprocess.run(
        [sys.executable, "-m", "dris", *map(str, arguments)],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    if ok:
        assert out.returncode == 0, out.stderr
    return out


@pytest.fixture
def here(monkeypatch, capsys):
    """The command in this process, which has loaded everything: seconds less than in one of its own."""

    def call(*arguments, ok=True):
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", ["dris", *map(str, arguments)])
        monkeypatch.setattr(sys, "stderr", sys.stderr)  # main() puts its own there
        with pytest.raises(SystemExit) as end:
            main()
        out = capsys.readouterr()
        assert not ok or not end.value.code, out.err
        return SimpleNamespace(returncode=end.value.code, stdout=out.out, stderr=out.err)

    return call


def test_a_reader_that_has_had_enough_is_no_error():
    command = f"{sys.executable} -m dris train --help | head -n 1; echo ${{PIPESTATUS[0]}}"
    out = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    first, code = out.stdout.splitlines()
    assert first.startswith("usage: dris train") and code in ("0", "141") and out.stderr == ""


def task_file(folder, source):
    """A file with the tests' tasks and one more."""
    file = folder / "task.py"
    file.write_text((ROOT / "tests" / "helpers" / "fakes.py").read_text() + source)
    return file


VERBS = (
    *(
        "check",
        "train",
        "evaluate",
        "play",
        "view",
        "export",
        "deploy",
        "identify-gains",
        "replay",
        "plate",
        "soak",
        "report",
        "study",
        "trials",
        "released",
    ),
    *("bench", "lab", "fci-twin"),
)


@pytest.mark.parametrize("verb", [(), *((verb,) for verb in VERBS)])
def test_help_explains_every_verb(verb):
    said = " ".join(dris(*verb, "--help").stdout.replace("│", " ").split())
    assert "usage" in said
    if verb in (("check",), ("train",), ("evaluate",)):
        assert "robot: the text as a real FR3 allows it" in said
    if verb == ("train",):
        assert all(tag in said for tag in ("[paper] the paper's", "[released] the env", "[design] chosen"))


def test_the_help_names_the_presets_that_there_are():
    named = re.findall(r"^(\w+)(?: \((\w+)\))?:", PRESETS.partition("\n")[2], flags=re.M)
    assert named == [(name, "default" if name == "released" else "") for name in CatchingTask.presets]
    assert CatchingTask.presets["released"] == CatchingTask.Config()
    others = {"dris-robot": CatchingTask.preset("robot"), "belief-robot": CatchingTask.preset("fr3")}
    for name in CatchingTask.policies():
        assert find_policies((name,))[0].task_config == others.get(name, CatchingTask.preset("released"))


def test_check_takes_a_preset(tmp_path, capsys):
    file = task_file(
        tmp_path,
        """
from dataclasses import dataclass

@dataclass(frozen=True)
class Reach:
    reach: float = 2.0

class Numb(LineTask):
    Config = Reach
    presets = {"numb": Reach(0.0)}

    def __init__(self, config):
        super().__init__()
        self.config = config

    def command(self, action):
        return self.config.reach * action, torch.zeros(len(action), dtype=torch.bool)
""",
    )
    assert learning.check(f"{file}:Numb") == 0
    assert learning.check(f"{file}:Numb", "numb") == 1
    assert "opposite actions give the same" in capsys.readouterr().out
    with pytest.raises(ValueError, match="no preset 'deaf'; known: numb"):
        learning.check(f"{file}:Numb", "deaf")


def test_check_passes_the_example(here):
    out = here("check", "examples/own_task.py:CraneTask").stdout
    assert "18 of 18 promises kept" in out and "rope" in out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "write catching, package.module:Class"),
        ("no.such.module:Task", "cannot import 'no.such.module'"),
        ("missing.py:Task", "missing.py"),
        ("examples/own_task.py:Crate", "has no Task 'Crate'; it has: CraneTask"),
    ],
)
def test_check_says_what_is_wrong_with_a_name(name, message, here):
    out = here("check", name, ok=False)
    assert out.returncode == 2 and message in out.stderr and "Traceback" not in out.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class Bad(", "cannot be imported: SyntaxError"),
        ("from dris import Task\nclass Bad(Task): pass", "cannot be built without arguments"),
        (
            "from fakes import LineTask\nclass Bad(LineTask):\n def __init__(self, x): pass",
            "without arguments",
        ),
    ],
)
def test_a_task_that_cannot_be_built_is_named(source, message, tmp_path, here):
    file = tmp_path / "bad.py"
    file.write_text(f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'helpers')!r})\n{source}\n")
    out = here("train", f"{file}:Bad", "--out", tmp_path / "run", ok=False)
    assert out.returncode == 2 and message in out.stderr and "Traceback" not in out.stderr
    assert not (tmp_path / "run").exists()


def test_a_number_that_is_none_ends_in_one_line(tmp_path, here):
    file = task_file(
        tmp_path,
        """
class Nan(LineTask):
    def reward_terms(self):
        return {"near": self.x * float("nan")}
""",
    )
    small = ("--sets", 4, "--instances", 2, "--policy.encoder", "learned", "--out", tmp_path / "run")
    out = here("train", f"{file}:Nan", *small, ok=False)
    assert out.returncode == 2 and len(out.stderr.splitlines()) == 1
    assert "reward of set 0" in out.stderr and "diverged-0.safetensors" in out.stderr


def test_check_fails_a_broken_task(tmp_path, here):
    broken = task_file(
        tmp_path,
        """
class Idle(LineTask):
    def __init__(self):
        super().__init__()
        self.domain = Domain({"gain": Range(1.0, 2.0, ""), "colour": Range(0.0, 1.0, "")})
""",
    )
    out = here("check", f"{broken}:Idle", ok=False)
    assert out.returncode == 1 and "'colour' has no effect" in out.stdout


def test_play_writes_a_video_and_a_picture(tmp_path):
    import imageio.v2 as imageio
    from imageio_ffmpeg import count_frames_and_secs

    out = dris("play", "still", "--instances", 5, "--seed", 1, "--out", tmp_path)
    assert "% of the set, mean reward" in out.stdout
    picture = imageio.imread(tmp_path / "still-n5-1.png")
    assert picture.shape == (720, 1920, 3) and picture.std() > 20
    orange = (picture[..., 0] > 200) & (picture[..., 1].astype(int) - picture[..., 2] > 60)
    assert orange.sum() > 200  # balls are to be seen
    first, last = picture[:360, :640].astype(int), picture[360:, 1280:].astype(int)
    assert np.abs(first - last).mean() > 0.2  # something happens
    frames, seconds = count_frames_and_secs(str(tmp_path / "still-n5-1.mp4"))
    assert frames == 126 and seconds == pytest.approx(126 / 25, abs=0.05)  # the last one for a second


def test_play_takes_a_policy_by_name_and_refuses_another_task_s(tmp_path, here):
    out = here("play", "dris-robot", "--instances", 1, "--out", tmp_path)
    assert "dris-robot, N = 1" in out.stdout
    other = here("play", "dris-robot", "--preset", "released", "--out", tmp_path, ok=False)
    assert other.returncode == 2 and "was trained with" in other.stderr and "Traceback" not in other.stderr


def test_play_plots_a_task_that_does_not_draw_itself(tmp_path, here):
    import imageio.v2 as imageio

    name = f"{ROOT / 'tests' / 'helpers' / 'fakes.py'}:LineTask"
    list(Trainer(LineTask, tiny(task=name), tmp_path / "line").run())
    out = here("play", tmp_path / "line", "--instances", 4, "--out", tmp_path)
    assert "picture" in out.stdout and "video" not in out.stdout
    assert imageio.imread(tmp_path / "line-n4-3.png").std() > 10


def test_a_missing_file_and_a_missing_module_are_told_with_the_way_out():
    """`[Errno 2]` and `No module named 'cv2'`, which no page of the documentation knows."""
    assert _words(FileNotFoundError(2, "No such file or directory", "log.jsonl")) == (
        "log.jsonl: No such file or directory"
    )
    assert _words(ModuleNotFoundError("No module named 'cv2'", name="cv2")) == (
        "this needs cv2: pip install 'dris[eyes]'"
    )
    assert str(_words(OSError("plain"))) == "plain" and _words(KeyError("'quoted'")) == "'quoted'"


def test_going_on_with_a_changed_task_file_is_told_in_one_line(tmp_path, capsys):
    file, out = task_file(tmp_path, ""), tmp_path / "run"
    config = tiny(iterations=2, policy=PolicyConfig(encoder="learned", hidden=(8,)))
    found = []
    for addition in ("", "", "# a comment"):
        file.write_text(file.read_text() + addition)
        assert learning._train(f"{file}:LineTask", NoConfig(), config, out) == 0
        found.append([line for line in capsys.readouterr().err.splitlines() if line.startswith("dris:")])
    assert found[:2] == [[], []] and len(found[2]) == 1
    assert f"{file} has changed since the run in {out} began" in found[2][0]


def test_a_run_knows_its_task_s_configuration(tmp_path, here):
    """Trained with a joint speed of its own, evaluated with nothing else said; another is refused."""
    small = ("--sets", 4, "--instances", 1, "--iterations", 1, "--threads", 1, "--evaluate-episodes", 4)
    run = ("train", "catching", "--out", tmp_path / "run", "--policy.encoder", "learned", *small)
    here(*run, "--task.joint-speed", "1.0")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["task_config"]["joint_speed"] == 1.0 and config["task_config"]["max_tilt"] == 0.3
    assert find_policy(str(tmp_path / "run")).task_config == CatchingConfig(joint_speed=1.0)
    out = here("evaluate", tmp_path / "run", "--conditions", "clean", "noise-2.5", "--episodes", 4)
    assert "noise-2.5" in out.stdout
    refused = here(*run, "--task.joint-speed", "0.5", ok=False)
    assert "made with another task_config.joint_speed: 1.0, now 0.5" in refused.stderr


def test_a_baseline_acts_in_the_world_of_the_policy_beside_it(tmp_path, here):
    robot, still = find_policies(("dris-robot", "still"))
    assert still.task_config == robot.task_config != CatchingConfig()
    assert find_policies(("still", "dris-200"))[0].task_config == find_policies(("still",))[0].task_config
    file = task_file(
        tmp_path,
        """
class Mine(LineTask):
    @classmethod
    def baselines(cls):
        return {"lazy": lambda task, sets: lambda observation: torch.zeros(sets, 1)}
""",
    )
    missing = here("evaluate", "lazy", ok=False)
    assert missing.returncode == 2 and "add --task path/file.py:Class" in missing.stderr
    found = here("evaluate", "lazy", "--task", f"{file}:Mine", "--conditions", "clean", "--episodes", 50)
    assert "lazy" in found.stdout and "success" in found.stdout
    assert "picture" in here("play", "lazy", "--task", f"{file}:Mine", "--out", tmp_path).stdout


@pytest.mark.parametrize(("verb", "goes_on"), [("train", True), ("trials", True), ("evaluate", False)])
def test_an_interrupt_says_whether_the_command_goes_on(verb, goes_on, here, monkeypatch):
    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("tyro.extras.subcommand_cli_from_dict", interrupted)
    out = here(verb, ok=False)
    assert out.returncode == 130 and out.stderr.startswith("dris: interrupted")
    assert ("the same command goes on" in out.stderr) == goes_on


def test_verbs_that_draw_do_so_without_a_screen(here, monkeypatch):
    """`dris deploy NAME --twin` once exported the policy first, and MuJoCo had chosen how to draw by then."""
    for name in ("MUJOCO_GL", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    seen = []
    monkeypatch.setattr(
        "tyro.extras.subcommand_cli_from_dict", lambda *_, **__: seen.append(os.environ.get("MUJOCO_GL")) or 0
    )
    here("deploy", "e2e", "--twin")
    assert seen == ["egl"]
    monkeypatch.delenv("MUJOCO_GL")
    here("evaluate", "e2e")  # where nothing is drawn nothing is needed to draw
    assert seen == ["egl", None]


def test_a_belief_before_a_policy_is_named_in_every_row(tmp_path, here):
    file = tmp_path / "scores.json"
    asked = "--conditions", "noise-2", "--episodes", 20, "--json", file
    for name, expected in (("own", "none"), ("none", "none"), ("kalman", "kalman")):
        here("evaluate", "e2e", "--belief", name, *asked)
        (row,) = json.loads(file.read_text())
        assert row["belief"] == expected and ("belief_restarts" in row) == (expected != "none")
    out = here("evaluate", "e2e", "--belief", "None", *asked, ok=False)
    assert out.returncode == 2 and "own" in out.stdout + out.stderr  # which is none and which the policy's?


def test_a_world_without_beliefs_refuses_them_before_anything_runs(here):
    """The first policy once ran, and its score was lost with the refusal of the second."""
    for world, belief in (("physx", "own"), ("twin", "kalman")):
        asked = "--world", world, "--belief", belief, "--conditions", "clean", "--episodes", 1
        out = here("evaluate", "still", "belief-robot", *asked, ok=False)
        assert out.returncode == 2 and out.stdout == "" and "belief" in out.stderr


def test_the_version_is_told():
    assert dris("--version").stdout == f"dris {dris_package.__version__}\n"


def test_evaluate_tells_success_at_both_speeds(tmp_path, here):
    file, named = tmp_path / "scores.json", ("clean", "correlated-2", "dropout-40")
    out = here("evaluate", "still", "veltrack", "--conditions", *named, "--episodes", 200, "--json", file)
    rows = json.loads(file.read_text())
    assert [(r["policy"], r["condition"]) for r in rows] == [
        (p, c) for p in ("still", "veltrack") for c in named
    ]
    for row, line in zip(rows, out.stdout.splitlines(), strict=True):
        assert {"policy", "condition", "seed", "episodes", "success", "low", "high", "reward"} < row.keys()
        assert 0 <= row["low"] <= row["success"] <= row["success_0.2"] <= 1
        assert f"success_0.2 {row['success_0.2']:.3f} [" in line and f"reward {row['reward']:.3f}" in line
    still = rows[0]
    # Some balls roll at 0.1 to 0.2 m/s; who stands still sees nothing, so nothing changes what it does.
    assert 0 < still["success"] < still["success_0.2"]
    assert all(r["success"] == still["success"] and r["reward"] == still["reward"] for r in rows[:3])
    assert len({r["reward"] for r in rows[3:]}) == 3


def test_bench_writes_ratios_by_instances(tmp_path):
    file = tmp_path / "bench.json"
    out = dris("bench", "world", "--sets", 16, "--instances", 1, 20, "--repeats", 2, "--json", file)
    result = json.loads(file.read_text())
    assert set(result["ratio_to_mujoco"]) == {"1", "20"}
    assert "mujoco" in out.stdout
    for rows in result["worlds"].values():
        assert 0.3 <= rows["20"]["touched"] <= 1.0  # every world really has balls meet the plate
        assert rows["20"]["instance_seconds_per_second"] > 0
    # A ratio in one run, with a wide margin: full size gives hundreds.
    assert result["ratio_to_mujoco"]["20"] > 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate",), "name at least one of policies"),
        (("evaluate", "still", "--episodes", 0), "episodes must be at least 1"),
        (("evaluate", "still", "--drive", "rate-limit"), "add --world twin"),
        (
            ("evaluate", "still", "--world", "twin", "--conditions", "delay-20"),
            "take --world training or physx",
        ),
        (("train", "catching", "--noise", "nan"), "noise must be 0 or more"),
        (("train", "catching", "--noise", -1), "noise must be 0 or more"),
        (("train", "catching", "--ppo.weight-decay", "nan"), "weight_decay must be 0 or more and finite"),
        (
            ("train", "catching", "--encoder.instances", 0),
            "Error parsing encoder: instances must be at least 1",
        ),
        (("train", "catching", "--encoder.widths", 64, 0), "widths must be at least 1 each"),
        (
            ("train", "examples/own_task.py:CraneTask", "--preset", "released"),
            "no preset 'released'; known: calm",
        ),
        (("evaluate", "still", "--json", "results"), "ends in .json"),
        (("evaluate", "still", "--json", "config.json"), "none of config.json"),
        (("evaluate", "still", "--seed", -1), "seed must lie in"),
        (("evaluate", "still", "--conditions"), "name at least one of conditions"),
        (("report", "nowhere"), "there is no folder nowhere"),
        (("report", "results"), "neither a run (it has no config.json"),
        (("report", "results/paper", "--out", "README.md"), "is a file: name a folder"),
        (("evaluate", "still", "--conditions", "clean", "fog"), "unknown condition 'fog'"),
        (("play", "still", "--out", "README.md"), "--out README.md is a file"),
        (("trials", "--policies", "still", "still"), "name each policy once"),
        (("trials", "--sight", "perfect", "--films"), "show what cameras see"),
        (("trials", "--workers", 0), "workers must be at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_work(arguments, message, here):
    assert_refused(here(*arguments, ok=False), message)


def test_a_cluster_that_does_not_answer_is_named():  # in a process of its own, which Ray may leave as it likes
    refused = dris("study", "paper", "--quick", "--ray", "localhost:1", ok=False)
    assert_refused(refused, "no Ray cluster answers at localhost:1")


def assert_refused(refused, message):
    said = " ".join((refused.stderr + refused.stdout).replace("│", " ").split())  # out of tyro's box
    assert refused.returncode == 2 and message in said
    assert "Traceback" not in refused.stderr


def test_a_missing_extra_is_named():
    from dris.core.validation import check_extra

    check_extra("json", "none")
    with pytest.raises(ImportError, match=r"this needs no_such_module: pip install 'dris\[eyes\]'"):
        check_extra("no_such_module", "eyes")
