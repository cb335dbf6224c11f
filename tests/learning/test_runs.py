"""Run folders and checkpoints: what they hold, and what is refused."""

import json
import warnings
from dataclasses import replace

import pytest
import torch
from fakes import LineTask
from recipes import TINY_ENCODER, tiny, train
from safetensors.torch import load_file

from dris import DivergedError
from dris.catching.task import CatchingTask
from dris.core.env import Env, EnvConfig
from dris.learning.checkpoint import Checkpoint, CheckpointError, load_checkpoint, save_checkpoint
from dris.learning.config import EncoderConfig, PpoConfig
from dris.learning.load import load_policy_for
from dris.learning.run_folder import read_metrics
from dris.learning.trainer import Trainer


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(folder, tiny())
    return folder


def test_the_folder_explains_itself(run_folder):
    config = json.loads((run_folder / "config.json").read_text())
    assert config["instances"] == 3 and config["ppo"]["gamma"] == 0.95
    versions = json.loads((run_folder / "versions.json").read_text())
    assert versions["torch"] == torch.__version__
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == list(range(6))
    assert "noise-2/success" in lines[2] and "reward" in lines[0]
    assert (run_folder / "best.safetensors").exists() and list((run_folder / "tensorboard").iterdir())


def test_the_folder_keeps_the_checksum_of_the_task_s_file(tmp_path, recwarn):
    file, run = tmp_path / "task.py", tmp_path / "run"
    file.write_bytes(b"abc")
    config = tiny(task=f"{file}:LineTask")
    train(run, config, stop_after=1)
    # FIPS 180-2, Appendix B.1: the digest of "abc".
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert json.loads((run / "versions.json").read_text())["task file sha256"] == digest
    Trainer(LineTask, config, run)
    assert not [one for one in recwarn if "has changed" in str(one.message)]
    file.write_bytes(b"abd")
    with pytest.warns(UserWarning, match=r"task.py has changed since the run in .*run began"):
        Trainer(LineTask, config, run)
    (run / "versions.json").unlink()  # as of a run from before this was kept
    with warnings.catch_warnings(action="error"):
        Trainer(LineTask, config, run)


class Scaled(LineTask):
    def policy_interface(self):
        return {"scale": (1.0, 2.0)}


def test_a_policy_keeps_its_task_s_interface(tmp_path):
    list(Trainer(Scaled, tiny(), tmp_path).run())
    load_policy_for(tmp_path / "policy.safetensors", Scaled())
    with pytest.raises(CheckpointError, match=r"trained with another scale: \[1.0, 2.0\], now None"):
        load_policy_for(tmp_path / "policy.safetensors", LineTask())


def test_another_run_s_encoder_must_be_what_is_asked_for(tmp_path):
    list(Trainer(LineTask, tiny(), tmp_path / "a").run())
    other = tiny(encoder=replace(TINY_ENCODER, unit=77.0), encoder_from=tmp_path / "a")
    with pytest.raises(ValueError, match="made with another unit: 30.0, now 77.0"):
        list(Trainer(LineTask, other, tmp_path / "b").run())


def test_a_policy_does_not_tell_where_its_runs_lay(tmp_path):
    list(Trainer(LineTask, tiny(), tmp_path / "a").run())
    list(Trainer(LineTask, tiny(encoder_from=tmp_path / "a"), tmp_path / "b").run())
    assert (
        str(tmp_path).encode() in (tmp_path / "b" / "last.safetensors").read_bytes()
    )  # to go on, it is needed
    assert str(tmp_path).encode() not in (tmp_path / "b" / "policy.safetensors").read_bytes()


def test_a_loaded_policy_acts_as_the_trained_one(tmp_path):
    trainer = Trainer(LineTask, tiny(), tmp_path)
    list(trainer.run())
    loaded = load_policy_for(tmp_path / "policy.safetensors", LineTask())
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
        load_policy_for(file, LineTask())


def test_a_flipped_bit_anywhere_in_the_header_is_found(run_folder, tmp_path):
    data = (run_folder / "policy.safetensors").read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    assert b"learning_rate" in data[8:end]  # the recipe's text is in there
    file = tmp_path / "policy.safetensors"
    for place in range(0, end, 5):
        bit = 1 << place % 8
        file.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        with pytest.raises(CheckpointError):
            load_checkpoint(file, "policy")


def test_an_older_schema_is_refused_with_a_way_out(run_folder, tmp_path, monkeypatch):
    saved = load_checkpoint(run_folder / "policy.safetensors", "policy")
    with monkeypatch.context() as patch:
        patch.setattr("dris.learning.checkpoint.SCHEMA", 1)
        save_checkpoint(tmp_path / "old.safetensors", saved)
    with pytest.raises(CheckpointError, match="schema 1, this version reads 2 and 3: train again"):
        load_checkpoint(tmp_path / "old.safetensors", "policy")


def test_a_torn_last_line_of_metrics_does_not_stop_a_resume(tmp_path):
    trainer = Trainer(LineTask, tiny(), tmp_path)
    for progress in trainer.run():
        if progress.stage == "policy" and progress.done == 3:
            break  # saved after 2
    file = tmp_path / "metrics.jsonl"
    file.write_text(file.read_text() + '{"iteration": 3, "rew')
    list(Trainer(LineTask, tiny(), tmp_path).run())
    assert [row["iteration"] for row in read_metrics(file)] == list(range(6))
    file.write_text(file.read_text().replace('"iteration": 1', '"iteration" 1'))
    with pytest.raises(ValueError, match=r"metrics.jsonl is damaged in line 2"):
        list(Trainer(LineTask, tiny(), tmp_path).run())


def test_a_kill_between_the_last_two_files_leaves_a_run_that_can_finish(tmp_path, monkeypatch):
    """Wherever the last save is cut, the same command ends with a policy."""
    import dris.learning.trainer

    for cut in (1, 2):
        folder, saves = tmp_path / str(cut), []

        def save(file, checkpoint, saves=saves, cut=cut):
            if checkpoint.progress.get("iteration") == 6:
                saves.append(file.name)
                if len(saves) == cut:
                    raise KeyboardInterrupt
            save_checkpoint(file, checkpoint)

        with monkeypatch.context() as patch:
            patch.setattr(dris.learning.trainer, "save_checkpoint", save)
            with pytest.raises(KeyboardInterrupt):
                list(Trainer(LineTask, tiny(), folder).run())
        list(Trainer(LineTask, tiny(), folder).run())
        load_policy_for(folder / "policy.safetensors", LineTask())
    one, two = (load_checkpoint(tmp_path / n / "policy.safetensors", "policy").tensors for n in ("1", "2"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_going_on_with_other_values_is_refused(tmp_path):
    def begin(folder):
        for progress in Trainer(Scaled, tiny(), folder).run():
            if progress.stage == "policy" and progress.done == 2:
                return

    begin(tmp_path / "a")
    (tmp_path / "a" / "config.json").unlink()
    with pytest.raises(ValueError, match=r"last.safetensors was made with another seed: 0, now 5"):
        list(Trainer(Scaled, tiny(seed=5), tmp_path / "a").run())
    begin(tmp_path / "b")
    with pytest.raises(ValueError, match="was made with another interface"):
        list(Trainer(LineTask, tiny(), tmp_path / "b").run())
    begin(tmp_path / "c")
    (tmp_path / "c" / "encoder.safetensors").unlink()
    list(Trainer(Scaled, tiny(seed=7), tmp_path / "other").run())
    (tmp_path / "other" / "encoder.safetensors").rename(tmp_path / "c" / "encoder.safetensors")
    with pytest.raises(ValueError, match="was made with another encoder"):
        list(Trainer(Scaled, tiny(), tmp_path / "c").run())


def test_an_encoder_of_other_units_is_refused(tmp_path):
    class Coarse(LineTask):
        noise_scale = (1.0, 1.0)

    list(Trainer(LineTask, tiny(), tmp_path / "a").run())
    with pytest.raises(ValueError, match="of a task with another noise_scale"):
        list(Trainer(Coarse, tiny(encoder_from=tmp_path / "a"), tmp_path / "b").run())


def test_two_processes_do_not_write_to_one_run(tmp_path):
    first = Trainer(LineTask, tiny(), tmp_path).run()
    next(first)
    with pytest.raises(ValueError, match="another process is writing to"):
        next(Trainer(LineTask, tiny(), tmp_path).run())
    first.close()
    list(Trainer(LineTask, tiny(), tmp_path).run())


def test_a_run_that_cannot_be_does_not_claim_its_folder(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere has no encoder.safetensors; name the folder of a run"):
        next(Trainer(LineTask, tiny(encoder_from=tmp_path / "nowhere"), tmp_path / "run").run())
    list(Trainer(LineTask, tiny(), tmp_path / "run").run())  # the corrected command is not refused


def test_a_folder_that_cannot_be_a_run_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config.json is not JSON .* mend it, or move it away"):
        Trainer(LineTask, tiny(), tmp_path)
    with pytest.raises(ValueError, match=r"config.json is a file: a run needs a folder"):
        Trainer(LineTask, tiny(), tmp_path / "config.json")


def test_files_that_do_not_fit_are_refused(run_folder, tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load_policy_for(tmp_path / "none.safetensors", LineTask())
    with pytest.raises(CheckpointError, match=r"does not fit: .* is .*, expected"):
        load_policy_for(run_folder / "policy.safetensors", CatchingTask())
    with pytest.raises(CheckpointError, match="is a encoder, expected a policy"):
        load_policy_for(run_folder / "encoder.safetensors", LineTask())
    saved = load_checkpoint(run_folder / "policy.safetensors", "policy")
    newer = tmp_path / "newer.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr("dris.learning.checkpoint.SCHEMA", 99)
        save_checkpoint(newer, saved)
    with pytest.raises(CheckpointError, match="schema 99"):
        load_policy_for(newer, LineTask())
    nan = {name: tensor * float("nan") for name, tensor in saved.tensors.items()}
    with pytest.raises(CheckpointError, match="is not finite"):
        save_checkpoint(newer, Checkpoint("policy", nan, saved.config, {}))
    with monkeypatch.context() as patch:
        patch.setattr("dris.learning.checkpoint._check_finite", lambda path, tensors: None)
        save_checkpoint(newer, Checkpoint("policy", nan, saved.config, {}))
    with pytest.raises(CheckpointError, match="is not finite"):
        load_policy_for(newer, LineTask())
    gain = {**saved.config, "interface": {"gain": 2.0}}
    save_checkpoint(newer, Checkpoint("policy", saved.tensors, gain, {}))
    with pytest.raises(CheckpointError, match="trained with another gain: 2.0, now None"):
        load_policy_for(newer, LineTask())
    unknown = {**saved.config, "policy": {**saved.config["policy"], "colour": 1}}
    save_checkpoint(newer, Checkpoint("policy", saved.tensors, unknown, {}))
    with pytest.raises(CheckpointError, match="colour"):
        load_policy_for(newer, LineTask())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sets": 0}, "sets must be at least 1"),
        ({"evaluate_on": ()}, "evaluate_on needs at least one condition"),
        ({"seed": -1}, r"seed must lie in \[0, 2147483648\), got -1"),
        ({"seed": 2**40}, "seed must lie in"),
    ],
)
def test_bad_runs_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny(**changes)


def test_conditions_that_the_task_does_not_have_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="unknown condition 'fog'; known: clean"):
        Trainer(LineTask, tiny(evaluate_on=("clean", "fog")), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_bad_values_of_its_parts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="gamma"):
        PpoConfig(gamma=1.0)
    with pytest.raises(ValueError, match="set_sizes"):
        EncoderConfig(set_sizes=())
    with pytest.raises(ValueError, match=r"set_sizes must not exceed the 20 instances a set, got \(1, 50\)"):
        EncoderConfig(instances=20, set_sizes=(1, 50))
    steps = tiny().sets * LineTask().horizon
    batches = replace(tiny().ppo, mini_batches=steps + 1)
    with pytest.raises(ValueError, match=f"{steps} steps .* cannot be cut into {steps + 1} mini-batches"):
        next(Trainer(LineTask, tiny(ppo=batches), tmp_path).run())


class Poisoned(LineTask):
    def reward_terms(self):
        return {"near": self.x * float("nan")}


def test_a_reward_that_is_not_a_number_stops_the_run(tmp_path):
    with pytest.raises(DivergedError, match="reward of set 0, instance 0 is not finite at step 1"):
        train(tmp_path, tiny(), make=Poisoned)
    assert not (tmp_path / "last.safetensors").exists()
    kept = load_file(tmp_path / "diverged-0.safetensors")
    assert {"action", "state", "reward"} == set(kept) and bool(kept["reward"].isnan().all())
