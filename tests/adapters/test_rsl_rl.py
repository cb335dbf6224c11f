"""rsl_rl's own runner, as it comes, on our sets: with its models and with ours."""

import pytest
import torch
from fakes import LineTask
from rsl_rl.runners import OnPolicyRunner

from dris import Env, EnvConfig
from dris.adapters.rsl_rl import RslVecEnv
from dris.catching.task import CatchingTask
from dris.learning.config import EncoderConfig
from dris.learning.encoder import SetEncoder

SMALL = {"latent": 8, "widths": [16]}
SCALE = list(CatchingTask().noise_scale)
FILM = {"class_name": "dris.learning.policy:FilmModel", "hidden_dims": [8]}
RUNS = {
    "MLPModel": (["flat"], {"class_name": "MLPModel", "hidden_dims": [8], "obs_normalization": True}),
    "E2E": (["states", "condition"], {**FILM, "scale": SCALE, "encoder": SMALL, "obs_normalization": True}),
    "DRIS": (["code", "condition"], {**FILM, "state_group": "code", "conditioning": "concat"}),
}
"""Observation groups and model, as a configuration file has them."""


def catching_env() -> RslVecEnv:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = SetEncoder(6, SCALE, EncoderConfig(**SMALL))
    env = Env(CatchingTask(), EnvConfig(sets=8, instances=3))
    return RslVecEnv(env, flat=True, encode=encoder.encode_chunked)


def runner(name: str, log_dir=None) -> OnPolicyRunner:
    groups, model = RUNS[name]
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0}
    config = {
        "num_steps_per_env": 12, "save_interval": 100, "obs_groups": {"actor": groups, "critic": groups},
        "actor": {**model, "distribution_cfg": gaussian}, "critic": model,
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2},
    }  # fmt: skip
    return OnPolicyRunner(catching_env(), config, log_dir=log_dir, device="cpu")


@pytest.mark.parametrize("name", RUNS)
def test_the_stock_runner_trains_saves_and_loads(name, tmp_path):
    trained = runner(name, str(tmp_path))
    before = {n: p.detach().clone() for n, p in trained.alg.actor.named_parameters()}
    trained.learn(2, init_at_random_ep_len=True)
    after = dict(trained.alg.actor.named_parameters())
    assert all(torch.isfinite(p).all() for p in after.values())
    # Gradients reach everything: MLP, encoder and FiLM (whose first layer waits for its last, zero at first).
    still = {n for n, p in after.items() if torch.equal(before[n], p.detach())}
    assert not still
    observations = trained.env.get_observations()
    fresh = runner(name)
    with torch.no_grad():
        wanted = trained.get_inference_policy()(observations)
        assert not torch.equal(fresh.get_inference_policy()(observations), wanted)
        fresh.load(str(tmp_path / "model_1.pt"))
        assert torch.equal(fresh.get_inference_policy()(observations), wanted)


def test_the_sets_can_be_used_after_the_runner_is_done_with_them():
    trained = runner("MLPModel")
    trained.learn(1)  # in inference mode, whose tensors must not be changed outside of it
    trained.env.get_observations()["states"].zero_()
    trained.env.env.reset()


def test_groups_on_demand():
    env = catching_env()
    groups = env.get_observations()
    assert {n: tuple(t.shape) for n, t in groups.items()} == {
        "states": (8, 3, 6), "condition": (8, 2), "flat": (8, 20), "code": (8, 8),
    }  # fmt: skip
    groups, *_ = env.step(torch.full((8, 5), 0.5))
    assert torch.equal(groups["flat"][:, 6:12], groups["states"][:, 1])  # an instance after another,
    assert torch.equal(groups["flat"][:, 18:], groups["condition"])  # then the condition
    assert not groups["code"].requires_grad
    assert set(RslVecEnv(env.env).get_observations().keys()) == {"states", "condition"}


def test_time_outs_are_reported_and_episodes_go_on():
    env = RslVecEnv(Env(LineTask(), EnvConfig(sets=3, instances=4)))
    assert env.get_observations()["states"].shape == (3, 4, 2)
    for count in range(1, 9):
        observation, reward, done, extras = env.step(torch.zeros(3, 1))
        ended = count % 4 == 0
        assert bool(done.all()) == bool(extras["time_outs"].all()) == ended
        assert env.episode_length_buf.tolist() == [count % 4] * 3
        assert ("/success" in extras["log"]) == ended
    assert observation.batch_size == torch.Size([3]) and reward.shape == (3,)
