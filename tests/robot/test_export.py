"""An exported policy answers as the trained one does, without torch, and refuses what is not its own.

Long, because all share one export.
"""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import onnxruntime
import pytest
import torch
from bare_environment import bare_environment

from dris import Observation, find_policy, load_policy
from dris.catching.task import CatchingTask
from dris.core.typed import to_plain
from dris.learning.config import EncoderConfig, PolicyConfig
from dris.learning.policy import Policy
from dris.robot.card import model_card
from dris.robot.contract import ContractError, check_folder, check_unchanged, read_contract
from dris.robot.describe import contract_of
from dris.robot.export import _onnx, export
from dris.robot.runtime import Runtime

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from own_task import CraneTask  # noqa: E402


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "dris-10"
    export("dris-10", folder, episodes=20)
    return folder


@pytest.fixture
def copied(exported, tmp_path):
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.mark.parametrize("name", sorted(CatchingTask.policies()))
def test_every_shipped_policy_answers_as_in_torch(name):
    policy = load_policy(name)
    session = onnxruntime.InferenceSession(_onnx(policy, {}), providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(4)
    scale = torch.tensor(policy.task.noise_scale)
    for batch, size in ((1, 1), (7, 1), (3, 200)):
        states = 30 * scale * torch.randn(batch, size, 6, generator=generator)
        condition = 0.2 * torch.randn(batch, 2, generator=generator)
        given = {"states": states.numpy(), "condition": condition.numpy()}
        found = session.run(["actions"], given)[0]
        assert found.shape == (batch, 5)
        np.testing.assert_allclose(found, policy.act(Observation(states, condition)).numpy(), atol=1e-5)


def test_actions_are_clamped_in_the_graph():
    policy = load_policy("e2e")
    session = onnxruntime.InferenceSession(_onnx(policy, {}), providers=["CPUExecutionProvider"])
    states, condition = np.full((50, 1, 6), 3.0, np.float32), np.full((50, 2), 3.0, np.float32)
    states *= np.linspace(-9, 9, 50, dtype=np.float32)[:, None, None]
    raw = policy(Observation(torch.tensor(states), torch.tensor(condition)))
    assert float(raw.abs().max()) > 1  # or there would be nothing to clamp
    assert np.abs(session.run(["actions"], {"states": states, "condition": condition})[0]).max() == 1.0


def test_a_task_without_a_condition(tmp_path):
    """The crane sees nothing besides its set; an untrained network will do."""
    torch.manual_seed(0)
    policy = Policy(CraneTask(), EncoderConfig(), PolicyConfig(visible="first"))
    model = _onnx(policy, {})
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    states = np.random.default_rng(1).normal(size=(4, 5, len(policy.task.state_names))).astype(np.float32)
    given = {"states": states}
    if policy.task.condition_size:
        given["condition"] = np.zeros((4, policy.task.condition_size), np.float32)
    found = session.run(["actions"], given)[0]
    condition = torch.zeros(4, policy.task.condition_size)
    np.testing.assert_allclose(
        found, policy.act(Observation(torch.tensor(states), condition)).numpy(), atol=1e-5
    )
    # It sees the first instance alone.
    given["states"] = states[:, :1]
    np.testing.assert_allclose(found, session.run(["actions"], given)[0], atol=1e-6)


def test_the_contract_holds_the_whole_task(exported):
    contract = read_contract(exported)
    handle = find_policy("dris-10")
    assert contract.catching() == handle.task_config
    assert contract.filter() == handle.belief
    assert contract.step_s == 0.05 and contract.action.size == 5 and contract.condition.size == 2
    assert contract.states.noise_scale == pytest.approx((0.01,) * 3 + (0.05,) * 3)
    robot = json.loads((exported / "contract.json").read_text())["robot"]
    # Hand down, plate 0.13 m beside it: from the mount by hand. The hand is turned by -45 degrees on the
    # flange; the plate's box is 0.1034 m out, its top face 5 mm above its centre, towards the flange.
    side = 0.13 * np.sqrt(0.5)
    np.testing.assert_allclose(robot["plate_in_flange"]["position"], [side, -side, 0.1034 - 0.005], atol=1e-6)
    assert robot["limits"]["speed"] == [2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26]
    assert robot["stiffness"] == to_plain(handle.task_config)["stiffness"]


def test_belief_policies_carry_their_filter_and_their_ranges():
    contract = contract_of(find_policy("belief-robot"))
    assert contract["belief"]["update"] == "ensemble"
    assert contract["task_config"]["contact"] == "exact"
    # Its recipe, docs/reports/policies.md: livelier and rougher balls, 0 to 4 sigma, up to 50 ms.
    trained = contract["trained_on"]
    ends = {name: (r["low"], r["high"], r["unit"]) for name, r in trained["ranges"].items()}
    assert ends == {
        "radius": (0.02, 0.04, "m"), "static_friction": (0.0, 0.5, ""), "dynamic_friction": (0.0, 0.5, ""),
        "restitution": (0.4, 0.85, ""),
    }  # fmt: skip
    assert trained["ranges"]["restitution"]["of_task"] == [0.4, 0.7]
    assert trained["noise"] == [0.0, 4.0] and trained["delay_s"] == [0.0, 0.05]
    assert trained["contact"]["plate_restitution"] is None
    limits = contract["robot"]["limits"]
    assert limits["torque_rate"] == 1000.0 and limits["joint_speed_share"] == 0.85
    assert "0.85 speed" in contract["action"]["formula"][-1]
    card = model_card(contract, [])
    assert "| restitution | 0.4 to 0.85 |  | 0.4 to 0.7 |" in card and "distance 1 to 2 m" in card


def test_the_contract_says_what_an_action_means(exported):
    contract = json.loads((exported / "contract.json").read_text())
    action, limits = contract["action"], contract["robot"]["limits"]
    assert action["scale"] == [0.1, 0.1, 0.1, 0.3, 0.3] and action["units"] == ["m", "m", "m", "rad", "rad"]
    assert "delta = 0.1 a[0:3]" in action["formula"][1] and "no speed limit" in action["formula"][-1]
    assert limits["torque"] == [87.0] * 4 + [12.0] * 3  # Franka's, Nm
    # Preset `released` limits torques alone.
    without = {name for name, value in limits.items() if value is None}
    assert without == {"joint_speed_share", "torque_rate", "plate_speed", "flange_speed"}
    assert without <= limits["units"].keys() and "no such limit" in limits["null"]


def test_the_runtime_acts_as_torch(exported):
    runtime, policy = Runtime(exported), load_policy("dris-10")
    states = np.array([0.1, -0.2, 0.5, 1.0, 0.5, -5.0])
    tilt = np.array([0.1, -0.05])
    seen = Observation(
        torch.tensor(states, dtype=torch.float32)[None, None], torch.tensor(tilt, dtype=torch.float32)[None]
    )
    np.testing.assert_allclose(runtime.act_one(states, tilt), policy.act(seen)[0].numpy(), atol=1e-5)
    with pytest.raises(ValueError, match=r"states must be \[B, N, 6\] \(dx, .*got \[1, 1, 5\]"):
        runtime.act(np.zeros((1, 1, 5)), np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"condition must be \[1, 2\], got \[1, 3\]"):
        runtime.act(np.zeros((1, 1, 6)), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="not finite"):
        runtime.act_one(states * np.nan, tilt)
    with pytest.raises(ValueError, match="not finite"):  # in the network's own numbers
        runtime.act_one(np.full(6, 1e39), tilt)
    with pytest.raises(ValueError, match="states must be"):
        runtime.act_one(np.zeros(5), tilt)
    assert (runtime.act_one(states, tilt) == runtime.act(states[None, None], tilt[None])[0]).all()


def test_run_py_needs_neither_dris_nor_torch(exported):
    blocked = "import runpy, sys; sys.modules.update(dris=None, torch=None, mujoco=None, warp=None); "
    script = blocked + f"runpy.run_path({str(exported / 'run.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dris-10: within ")


def test_run_py_runs_where_nothing_else_is_installed(exported, tmp_path):
    """A virtual environment of NumPy, onnxruntime and what that requires, and a folder that was moved."""
    folder, elsewhere = shutil.copytree(exported, tmp_path / "moved"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    python = bare_environment(tmp_path / "bare", ("numpy", "onnxruntime"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*words):
        return subprocess.run([python, *words], capture_output=True, text=True, cwd=elsewhere, env=clean)

    done = run(folder / "run.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dris-10: within ")
    for name in ("torch", "dris", "mujoco", "warp", "msgspec"):
        assert f"No module named '{name}'" in run("-c", f"import {name}").stderr
    with open(folder / "policy.onnx", "ab") as network:
        network.write(b"x")
    assert "policy.onnx is not the file that was exported" in run(folder / "run.py").stderr


@pytest.mark.parametrize(("update", "warns"), [("ensemble", True), ("none", False)])
def test_run_py_says_that_it_has_no_belief(exported, monkeypatch, capsys, update, warns):
    names = runpy.run_path(str(exported / "run.py"))
    contract = json.loads((exported / "contract.json").read_text()) | {"belief": {"update": update}}
    known = SimpleNamespace(contract=contract, largest_error=0.0)
    monkeypatch.setitem(names["main"].__globals__, "Policy", lambda: known)
    assert names["main"]() == 0
    assert ("which this file does not have" in capsys.readouterr().out) == warns


@pytest.mark.parametrize(
    ("modules", "without"),
    [
        ("dris.robot.runtime, dris.catching.loop", {"torch", "warp", "tensordict"}),
        # A session in the twin and one on an arm; a belief needs Warp.
        ("dris.experiments.deploy, dris.experiments.real_arm", {"torch", "tensordict"}),
    ],
)
def test_what_runs_on_a_robot_loads_no_torch(modules, without):
    script = f"import sys, {modules}; print(sorted({without} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_run_py_refuses_other_arithmetic(copied):
    """A wrong golden case is what a wrong frame or scale would look like."""
    with np.load(copied / "golden.npz") as golden:
        cases = dict(golden)
    cases["expected"][3, 1] += 1e-3
    np.savez(copied / "golden.npz", **cases)
    _sign(copied)
    done = subprocess.run([sys.executable, copied / "run.py"], capture_output=True, text=True)
    assert done.returncode == 2 and "run.py: answers 1.0e-03 away" in done.stderr


def _not_a_number(folder):
    with np.load(folder / "golden.npz") as golden:
        cases = dict(golden)
    cases["expected"][3, 1] = np.nan
    np.savez(folder / "golden.npz", **cases)
    _sign(folder)


def _truncated(folder):
    network = folder / "policy.onnx"
    network.write_bytes(network.read_bytes()[:5000])
    _sign(folder)


def _no_hashes(folder):
    contract = json.loads((folder / "contract.json").read_text()) | {"files": {}}
    (folder / "contract.json").write_text(json.dumps(contract))
    with open(folder / "model.safetensors", "ab") as weights:
        weights.write(b"x")


@pytest.mark.parametrize(
    ("damage", "words", "runtime_words"),
    [
        (_not_a_number, "answers nan away from its golden cases", "come out nan away"),
        (_truncated, "policy.onnx cannot be run", "policy.onnx cannot be run"),
        (_no_hashes, "contract.json has no hash of policy.onnx", "contract.json has no hash of policy.onnx"),
        (
            lambda folder: (folder / "contract.json").write_text("[]"),
            "no hash of policy.onnx",
            "Expected `object`",
        ),
        (lambda folder: (folder / "contract.json").write_text("{"), "Expecting property name", "is not JSON"),
        (
            lambda folder: (folder / "golden.npz").write_bytes(b"") or _sign(folder),
            "No data left",
            "cannot be",
        ),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(copied, damage, words, runtime_words, capsys):
    """NaN passed for a golden case, and no hashes for good ones; the others were tracebacks."""
    damage(copied)
    assert runpy.run_path(str(copied / "run.py"))["main"]() == 2
    told = capsys.readouterr()
    assert told.err.startswith("run.py: ") and words in told.err and told.err.count("\n") == 1, told.err
    with pytest.raises(ContractError, match=runtime_words):
        Runtime(copied)


@pytest.mark.parametrize("there", ["README.md", "contract.json"])
def test_a_folder_of_something_else_is_not_exported_into(there, tmp_path):
    """README.md and run.py of any folder were overwritten."""
    (tmp_path / there).write_text("{}")
    with pytest.raises(ValueError, match=r"--out .* holds files, and no export .* name a new or an empty"):
        export("dris-10", tmp_path, 0)
    assert [file.name for file in tmp_path.iterdir()] == [there] and (tmp_path / there).read_text() == "{}"


def test_an_export_may_be_made_again(exported, tmp_path):
    check_folder(exported)
    check_folder(tmp_path)
    unfinished = tmp_path / "unfinished"  # contract and card are written last
    unfinished.mkdir()
    for name in ("model.safetensors", "run.py"):
        shutil.copy(exported / name, unfinished)
    check_folder(unfinished)
    (unfinished / "README.md").write_text("somebody else's")
    with pytest.raises(ValueError, match="no export"):
        check_folder(unfinished)
    check_folder(tmp_path / "new")


def _sign(folder):
    """Put the hashes of today's files into the contract."""
    import hashlib

    contract = json.loads((folder / "contract.json").read_text())
    for name in contract["files"]:
        contract["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "contract.json").write_text(json.dumps(contract))


def test_a_changed_network_is_refused(copied):
    content = bytearray((copied / "policy.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (copied / "policy.onnx").write_bytes(content)
    with pytest.raises(ContractError, match=r"policy.onnx is not the file that was exported"):
        Runtime(copied)


def test_another_network_with_good_hashes_is_refused_by_its_answers(copied):
    contract = json.loads((copied / "contract.json").read_text())
    del contract["files"]
    (copied / "policy.onnx").write_bytes(_onnx(load_policy("e2e"), contract))
    _sign(copied)
    with pytest.raises(ContractError, match="away from its golden cases"):
        Runtime(copied)


def test_a_network_of_another_shape_is_refused_by_name(copied):
    contract = json.loads((copied / "contract.json").read_text())
    contract["action"]["size"] = 4
    (copied / "contract.json").write_text(json.dumps(contract))
    with pytest.raises(ContractError, match=r"gives \{'actions': 5\}, the contract says .* 4 actions"):
        Runtime(copied)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(kind="study"), "is of kind 'study'"),
        (lambda c: c.update(schema=9), "schema 9"),
        (lambda c: c.pop("step_s"), "step_s"),
        (lambda c: c.update(states=3), "states"),
        (lambda c: c["files"].pop("run.py"), "no hash of run.py"),
    ],
)
def test_damaged_contracts_are_refused_in_one_line(copied, change, words):
    contract = json.loads((copied / "contract.json").read_text())
    change(contract)
    (copied / "contract.json").write_text(json.dumps(contract))
    with pytest.raises(ContractError, match=words) as refused:
        Runtime(copied)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_named(copied):
    (copied / "golden.npz").unlink()
    with pytest.raises(ContractError, match="has no golden.npz"):
        Runtime(copied)
    with pytest.raises(ContractError, match="no exported policy"):
        Runtime(copied / "nowhere")


def test_a_policy_of_another_task_does_not_catch(exported):
    other = msgspec.structs.replace(read_contract(exported), task="examples.own_task:CraneTask")
    with pytest.raises(ContractError, match="was trained on examples.own_task:CraneTask"):
        other.catching()


@pytest.mark.parametrize(
    ("key", "value", "was"),
    [
        ("task_config.displacement", 0.2, "0.1"),
        ("task_config.max_tilt", 0.2, "0.3"),
        ("task_config.stiffness", [1.0] * 7, r"\[120.0, 70.0, .*\]"),
        ("step_s", 0.02, "0.05"),
        ("belief.update", "ensemble", "none"),
        ("robot.limits.torque", [1.0] * 7, r"\[87.0, .*\]"),
    ],
)
def test_an_edited_contract_is_refused_by_the_key(copied, key, value, was):
    contract = json.loads((copied / "contract.json").read_text())
    *way, last = key.split(".")
    place = contract
    for name in way:
        place = place[name]
    place[last] = value
    (copied / "contract.json").write_text(json.dumps(contract))
    now = re.escape(str(value))
    with pytest.raises(ContractError, match=f"not the one that was exported .{key}: {was}, now {now}.*copy"):
        Runtime(copied)
    done = subprocess.run([sys.executable, copied / "run.py"], capture_output=True, text=True)
    assert done.returncode == 2 and re.search(f"changed .* contract.{key} was {was}, now {now}", done.stderr)


def test_a_network_without_a_contract_is_refused(exported):
    with pytest.raises(ContractError, match=r"policy.onnx carries no contract: export the policy again"):
        check_unchanged(exported, None)


def test_a_contract_may_not_contradict_itself(exported):
    """As if the network's copy had been edited, too."""
    other = msgspec.structs.replace(read_contract(exported), step_s=0.02)
    with pytest.raises(ContractError, match=r"step_s is 0.02 s, but 0.05 s in task_config"):
        other.catching()


def test_the_runtime_refuses_other_frames(copied):
    """What an export by a dris with another motion frame would look like."""
    with np.load(copied / "golden.npz") as golden:
        cases = dict(golden)
    cases["expected"][3, 9] += 1e-3
    np.savez(copied / "golden.npz", **cases)
    _sign(copied)
    with pytest.raises(ContractError, match=r"frames and actions come out 1.0e-03 away"):
        Runtime(copied)


def test_baselines_have_no_network(tmp_path):
    with pytest.raises(ValueError, match="'veltrack' is a baseline"):
        export("veltrack", tmp_path / "x")


def test_the_model_card_tells_scores_and_what_it_is_not_fit_for(exported):
    card = (exported / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: dris\n")
    assert "| restitution |" in card and "20 episodes a row" in card and "No robot has run it" in card
    assert "| radius | 0.02 to 0.04 | m | 0.02 to 0.04 |" in card
