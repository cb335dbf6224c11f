"""Run folders and checkpoints: what they hold, and what is refused."""

import json
from dataclasses import replace

import pytest
import torch

from dris import DivergedError
from dris.catching.task import CatchingTask
from dris.encoder import EncoderConfig
from dris.env import Env, EnvConfig
from dris.load import load_policy
from dris.recipe import PpoConfig
from dris.runs import Checkpoint, CheckpointError, load_checkpoint, save_checkpoint
from dris.train import Trainer
from fakes import LineTask
from test_learning import TINY_ENCODER, tiny, train


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(folder, tiny())
    return folder


def test_the_folder_explains_itself(run_folder):
    config = json.loads((run_folder / "config.json").read_text())
    assert config["instances"] == 3 and config["ppo"]["discount"] == 0.95
    versions = json.loads((run_folder / "versions.json").read_text())
    assert versions["torch"] == torch.__version__
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == list(range(6))
    assert "noise-2/success" in lines[2] and "reward" in lines[0]
    assert (run_folder / "best.safetensors").exists() and list((run_folder / "tensorboard").iterdir())


class Scaled(LineTask):
    def contract(self):
        return {"scale": (1.0, 2.0)}


def test_a_policy_keeps_its_task_s_contract(tmp_path):
    list(Trainer(Scaled, tiny(), tmp_path).run())
    load_policy(tmp_path / "policy.safetensors", Scaled)
    with pytest.raises(CheckpointError, match=r"trained with scale = \[1.0, 2.0\], this task has None"):
        load_policy(tmp_path / "policy.safetensors", LineTask)


def test_another_run_s_encoder_must_be_what_is_asked_for(tmp_path):
    list(Trainer(LineTask, tiny(), tmp_path / "a").run())
    other = tiny(encoder=replace(TINY_ENCODER, unit=77.0), encoder_from=tmp_path / "a")
    with pytest.raises(ValueError, match="'unit': 30.0.* this run asks for .*'unit': 77.0"):
        list(Trainer(LineTask, other, tmp_path / "b").run())


def test_a_loaded_policy_acts_as_the_trained_one(tmp_path):
    trainer = Trainer(LineTask, tiny(), tmp_path)
    list(trainer.run())
    loaded = load_policy(tmp_path / "policy.safetensors", LineTask)
    observation = Env(LineTask(), EnvConfig(sets=5, instances=1)).reset()
    assert torch.equal(loaded(observation), trainer.averaged(observation))


def spoil(data: bytes, how: str) -> bytes:
    if how == "truncated":
        return data[: len(data) // 2]
    if how == "flipped":
        return data[:-100] + bytes([data[-100] ^ 0x10]) + data[-99:]
    if how == "pickle":
        return b"\x80\x04\x95" + data
    if how == "archive":
        return b"PK\x03\x04" + data
    return b"hello"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("truncated", "damaged or not a safetensors"),
        ("flipped", "checksum does not match"),
        ("pickle", "can run code"),
        ("archive", "can run code"),
        ("text", "damaged or not a safetensors"),
    ],
)
def test_damaged_files_are_refused(run_folder, tmp_path, how, message):
    file = tmp_path / "policy.safetensors"
    file.write_bytes(spoil((run_folder / "policy.safetensors").read_bytes(), how))
    with pytest.raises(CheckpointError, match=message):
        load_policy(file, LineTask)


def test_files_that_do_not_fit_are_refused(run_folder, tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load_policy(tmp_path / "none.safetensors", LineTask)
    with pytest.raises(CheckpointError, match=r"does not fit: .* has shape"):
        load_policy(run_folder / "policy.safetensors", CatchingTask)
    with pytest.raises(CheckpointError, match="is a encoder, expected a policy"):
        load_policy(run_folder / "encoder.safetensors", LineTask)
    saved = load_checkpoint(run_folder / "policy.safetensors", "policy")
    newer = tmp_path / "newer.safetensors"
    import dris.runs

    old, dris.runs.SCHEMA = dris.runs.SCHEMA, 99
    try:
        save_checkpoint(newer, saved)
    finally:
        dris.runs.SCHEMA = old
    with pytest.raises(CheckpointError, match="schema 99"):
        load_policy(newer, LineTask)
    nan = {name: tensor * float("nan") for name, tensor in saved.tensors.items()}
    save_checkpoint(newer, Checkpoint("policy", nan, saved.config, {}))
    with pytest.raises(CheckpointError, match="is not finite"):
        load_policy(newer, LineTask)
    gain = {**saved.config, "contract": {"gain": 2.0}}
    save_checkpoint(newer, Checkpoint("policy", saved.tensors, gain, {}))
    with pytest.raises(CheckpointError, match="trained with gain = 2.0, this task has None"):
        load_policy(newer, LineTask)
    unknown = {**saved.config, "policy": {**saved.config["policy"], "colour": 1}}
    save_checkpoint(newer, Checkpoint("policy", saved.tensors, unknown, {}))
    with pytest.raises(CheckpointError, match="colour"):
        load_policy(newer, LineTask)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sets": 0}, "sets must be at least 1"),
        ({"evaluate_on": ("fog",)}, "unknown condition 'fog'; known: clean"),
    ],
)
def test_bad_runs_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny(**changes)
    with pytest.raises(ValueError, match="discount"):
        PpoConfig(discount=1.0)
    with pytest.raises(ValueError, match="set_sizes"):
        EncoderConfig(set_sizes=())


class Poisoned(LineTask):
    def reward_terms(self):
        return {"near": self.x * float("nan")}


def test_a_reward_that_is_not_a_number_stops_the_run(tmp_path):
    with pytest.raises(DivergedError, match="reward of set 0, instance 0 is not finite at step 1"):
        train(tmp_path, tiny(), make=Poisoned)
    assert not (tmp_path / "last.safetensors").exists()
