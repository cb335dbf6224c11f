"""Training with a belief in the loop: exact resume, what a policy keeps of it, what it begins from."""

import json
from dataclasses import replace

import pytest
import torch
from recipes import same, tiny, train, weights

from dris.belief.config import BELIEFS, BeliefConfig
from dris.catching.task import CatchingTask
from dris.evaluation.registry import find_policy
from dris.evaluation.scores import evaluate
from dris.learning.config import PolicyConfig

IN_LOOP = {
    "task": "dris.catching.task:CatchingTask",
    "policy": PolicyConfig(encoder="learned"),
    "noise": 4.0,
    "least_noise": 0.0,
    "delay_s": (0.0, 0.04),
    "randomize": (("restitution", 0.3, 0.85),),
    "belief": BeliefConfig(instances=4, prior=(("restitution", 0.3, 0.85),)),
}


def in_loop(**values):
    return replace(tiny(), **(IN_LOOP | values))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("belief") / "whole"
    train(folder, in_loop(), make=CatchingTask)
    return folder


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(whole, tmp_path):
    train(tmp_path / "cut", in_loop(), stop_after=2, make=CatchingTask)
    train(tmp_path / "cut", in_loop(), make=CatchingTask)
    assert same(weights(whole), weights(tmp_path / "cut"))


def test_the_belief_changes_what_is_learned_and_comes_with_the_policy(whole, tmp_path):
    train(tmp_path / "raw", in_loop(belief=BELIEFS["none"]), make=CatchingTask)
    assert not same(weights(whole), weights(tmp_path / "raw"))
    handle = find_policy(str(whole))
    assert handle.belief == IN_LOOP["belief"]
    own, other = evaluate(handle, "noise-4", 20, 5), evaluate(handle, "noise-4", 20, 5, BELIEFS["none"])
    assert own.reward != other.reward
    assert own.reward == evaluate(handle, "noise-4", 20, 5, handle.belief).reward


@pytest.mark.parametrize("prior", [(0.9, 0.3), (0.3, 3.0)])
def test_ranges_that_physics_refuses_leave_the_folder_to_the_next_try(prior, tmp_path):
    wrong = in_loop(belief=BeliefConfig(instances=4, prior=(("restitution", *prior),)))
    with pytest.raises(ValueError, match=r"belief.prior \(\('restitution'"):
        train(tmp_path / "run", wrong, make=CatchingTask)
    assert not (tmp_path / "run/config.json").exists()


def test_a_world_of_one_instance_can_be_trained_with_ranges(tmp_path):
    class Single(CatchingTask):
        def allocate(self, sets, instances):
            if instances > 1:
                raise ValueError("one ball a world")
            super().allocate(sets, instances)

    alone = in_loop(instances=1, belief=BELIEFS["none"], task="dris.catching.task:CatchingTask")
    train(tmp_path / "run", alone, stop_after=1, make=Single)
    assert (tmp_path / "run/config.json").exists()


def test_a_run_can_begin_with_what_another_has_learned(whole, tmp_path):
    """With a learning rate of next to nothing it stays there."""
    still = replace(tiny().ppo, learning_rate=1e-12, ema_window=0.0, weight_decay=0.0)
    train(tmp_path / "on", in_loop(policy_from=whole, ppo=still, seed=5), make=CatchingTask)
    before, after = weights(whole), weights(tmp_path / "on")
    names = [name for name in before if name.startswith("actor") and "mlp" in name]
    assert names
    for name in names:
        torch.testing.assert_close(after[name], before[name], atol=1e-5, rtol=0)
    with pytest.raises(
        ValueError, match=r"policy_from: .* has no last.safetensors; name the folder of a run"
    ):
        train(tmp_path / "no", in_loop(policy_from=tmp_path), make=CatchingTask)


def test_a_run_from_before_a_value_existed_goes_on(whole, tmp_path):
    """A configuration without today's new fields means their defaults; one with another value is refused."""
    folder = tmp_path / "old"
    train(folder, in_loop(delay_s=(0.0, 0.0)), stop_after=2, make=CatchingTask)
    file = folder / "config.json"
    config = json.loads(file.read_text())
    del config["delay_s"], config["belief"]["view"]
    file.write_text(json.dumps(config))
    train(folder, in_loop(delay_s=(0.0, 0.0)), make=CatchingTask)
    with pytest.raises(ValueError, match="delay_s"):
        train(folder, in_loop(), make=CatchingTask)
