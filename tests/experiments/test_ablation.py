"""What a belief is told that it cannot know, is told it, and nothing else changes."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from dris.belief.config import BELIEFS
from dris.belief.env import belief_env
from dris.catching.task import CatchingTask
from dris.cli.experiments import study
from dris.core.env import EnvConfig
from dris.experiments.study.ablation import KNOWN, NOISE, KnowingEnv

POLICY = Path(__file__).parents[2] / "results/belief/paper/e2e/0.safetensors"


def begun(known):
    env = KnowingEnv(CatchingTask(), EnvConfig(sets=16, instances=1, noise=4.0, seed=3), None, known)
    env.reset()
    return env


def test_it_knows_what_it_is_told_and_nothing_else():
    plain = belief_env(
        CatchingTask(), EnvConfig(sets=16, instances=1, noise=4.0, seed=3), belief=BELIEFS["ensemble"]
    )
    plain.reset()
    for known in KNOWN:
        env = begun(known)
        assert torch.equal(env.task.states()[:, 0], plain.task.states()[:, 0])  # the same balls
        off = (env.task.states()[:, 1:, :3] - env.task.states()[:, :1, :3]).abs()
        physics = (env.parameters[:, 1:] - env.parameters[:, :1]).abs()
        # Seen at 4 sigma, 4 cm; the parameters' ranges are 2 cm to 0.3 wide.
        assert (float(off.max()) < 1e-4) == ("start" in known) and float(off.max()) < 0.5
        assert (float(physics.max()) == 0) == ("physics" in known)


def test_the_command_writes_a_row_for_each(tmp_path):
    (tmp_path / "paper/e2e").mkdir(parents=True)
    shutil.copy(POLICY, tmp_path / "paper/e2e/0.safetensors")
    (tmp_path / "ablation.json").write_text("of hours")
    assert study("ablation", quick=True, out=tmp_path) == 0
    assert (tmp_path / "ablation.json").read_text() == "of hours"  # which figures of a minute do not replace
    rows = json.loads((tmp_path / "ablation-quick.json").read_text())["rows"]
    assert [(r["policy"], tuple(r["known"]), r["noise"]) for r in rows] == [
        ("paper/e2e/0", known, noise) for known in KNOWN for noise in NOISE
    ]
    # Interrupted after two rows it goes on, and keeps those.
    file = tmp_path / "ablation-quick.json"
    found = json.loads(file.read_text())
    found["rows"] = [row | {"success": 2.0} for row in rows[:2]]
    file.write_text(json.dumps(found))
    assert study("ablation", quick=True, out=tmp_path) == 0
    again = json.loads(file.read_text())["rows"]
    assert [row["success"] for row in again] == [2.0, 2.0] + [row["success"] for row in rows[2:]]


def test_a_folder_without_policies_is_refused(tmp_path):
    with pytest.raises(ValueError, match=f"holds no .*: run `dris study belief --out {tmp_path}` first"):
        study("ablation", out=tmp_path)
