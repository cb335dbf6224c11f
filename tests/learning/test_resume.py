"""Runs that stop and go on, and runs in several processes: the same bits, nothing lost."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fakes import LineTask
from recipes import same, tiny, train, weights

from dris.core.env import Env, EnvConfig
from dris.learning.checkpoint import load_checkpoint
from dris.learning.config import PpoConfig
from dris.learning.trainer import LEAST_RATE, Trainer


def test_same_seed_same_weights_other_seed_other_weights(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(tmp_path / name, tiny(seed=seed))
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


@pytest.mark.parametrize("stop_after", [1, 2, 4, 5, 8])
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(tmp_path, stop_after):
    train(tmp_path / "whole", tiny())
    train(tmp_path / "cut", tiny(), stop_after=stop_after)
    train(tmp_path / "cut", tiny())
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))
    whole, cut = ((tmp_path / n / "metrics.jsonl").read_text() for n in ("whole", "cut"))
    assert whole == cut


def test_a_resumed_run_goes_on_with_the_learning_rate_that_it_had_come_to(tmp_path):
    config = tiny(ppo=PpoConfig(desired_kl=1e-2))
    train(tmp_path / "whole", config)
    train(tmp_path / "cut", config, stop_after=6)
    saved = load_checkpoint(tmp_path / "cut" / "last.safetensors", "training").progress
    assert (
        2 * LEAST_RATE < saved["learning_rate"] < 0.8 * PpoConfig.learning_rate
    )  # neither beginning nor end
    train(tmp_path / "cut", config)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_the_time_of_a_run_is_that_of_its_iterations_however_often_it_stopped(tmp_path, monkeypatch):
    """A clock that ticks once at each look makes every iteration a second long. After three reports of the
    encoder the eighth is of the fifth iteration, which is lost with the stop and counts once."""
    monkeypatch.setattr("dris.learning.trainer.time", SimpleNamespace(perf_counter=partial(next, count())))
    for folder, stops in ((tmp_path / "whole", ()), (tmp_path / "cut", (8,))):
        for stop_after in stops:
            assert train(folder, tiny(), stop_after=stop_after)[-1].done == 5
        train(folder, tiny())
        assert load_checkpoint(folder / "last.safetensors", "training").progress["seconds"] == 6.0


class EndsEarly(LineTask):
    """Sets whose first instance is far out begin anew."""

    def terminated(self):
        return self.x[:, 0].abs() > 0.7


def test_a_resumed_run_of_a_task_that_terminates_has_the_same_bits(tmp_path):
    train(tmp_path / "whole", tiny(), make=EndsEarly)
    for stop_after in (2, 5, 7):
        train(tmp_path / "cut", tiny(), stop_after=stop_after, make=EndsEarly)
    train(tmp_path / "cut", tiny(), make=EndsEarly)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))
    assert (tmp_path / "whole/metrics.jsonl").read_text() == (tmp_path / "cut/metrics.jsonl").read_text()


def test_sets_that_end_early_leave_the_next_episode_of_all_alone():
    """Whoever began anew in between: the next common beginning is the same, and the one between is not."""
    starts = []
    for early in (False, True):
        env = Env(LineTask(), EnvConfig(sets=3, instances=2))
        first = env.reset().states
        if early:
            between = env.restart(torch.tensor([False, True, False])).states
            assert not torch.equal(between[1], first[1]) and torch.equal(between[0], first[0])
        env.episodes.fill_(1)
        starts.append(env.reset().states)
        if early:
            assert not torch.equal(starts[-1][1], between[1])
    assert torch.equal(*starts)


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from recipes import LineTask, Trainer, tiny
for _ in Trainer(LineTask, tiny(iterations=60, save_every=1), Path({folder!r})).run():
    print("step", flush=True)
"""


def test_twenty_kills_at_random_moments_lose_nothing(tmp_path):
    """SIGKILL, also while saving: each resume goes on, and the end has the uninterrupted bits."""
    script = KILLED.format(tests=str(Path(__file__).parents[1] / "helpers"), folder=str(tmp_path / "killed"))
    rng = random.Random(0)
    kills = 0
    while kills < 20:
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        started = process.stdout.readline()  # the first step is done: from now on anything may happen
        if started:
            time.sleep(rng.uniform(0.0, 0.06))
        finished = process.poll() == 0
        os.kill(process.pid, signal.SIGKILL) if process.poll() is None else None
        process.stdout.close()
        process.wait()
        if finished or (tmp_path / "killed" / "policy.safetensors").exists():
            break
        kills += 1
        last = tmp_path / "killed" / "last.safetensors"
        if last.exists():
            load_checkpoint(last, "training")  # never half-written
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
    train(tmp_path / "whole", tiny(iterations=60, save_every=1))
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))
    assert kills >= 10


def test_another_configuration_does_not_overwrite_a_run(tmp_path):
    train(tmp_path, tiny())
    before = (tmp_path / "policy.safetensors").read_bytes()
    with pytest.raises(ValueError, match="was made with another"):
        Trainer(LineTask, tiny(instances=4), tmp_path)
    assert (tmp_path / "policy.safetensors").read_bytes() == before


def test_two_processes_learn_together(tmp_path):
    """torchrun with gloo: both end with the same weights, and learn as well as one."""
    script = tmp_path / "job.py"
    script.write_text(
        f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "helpers")!r})
from pathlib import Path
from recipes import LineTask, Trainer, tiny
config = tiny(iterations=60, sets=64, evaluate_every=60, evaluate_episodes=200, evaluate_on=("clean",))
for report in Trainer(LineTask, config, Path({str(tmp_path / "run")!r})).run():
    pass
Path({str(tmp_path)!r}, "rank" + os.environ["RANK"]).write_text(str(report.figures["clean/success"]))
"""
    )
    out = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", str(script)],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert out.returncode == 0, out.stderr[-2000:]
    rates = [float((tmp_path / f"rank{rank}").read_text()) for rank in (0, 1)]
    assert rates[0] == rates[1] > 0.95
