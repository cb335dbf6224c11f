"""Stable-Baselines3's interface."""

import numpy as np
import pytest
import torch
from fakes import LineTask
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from dris import EnvConfig
from dris.adapters.gym import GymEnv
from dris.adapters.sb3 import Sb3VecEnv
from dris.catching.task import CatchingTask


class ShortLine(LineTask):
    """Ends by itself where x > 0.9."""

    def terminated(self):
        return (self.x > 0.9).any(dim=1)


def gym_sets(make, sets: int, instances: int) -> DummyVecEnv:
    """The same sets one by one, in Stable-Baselines3's own vector environment."""

    def one(index: int):
        config = EnvConfig(sets=1, instances=instances, seed=5, first_set=index)
        return lambda: GymEnv(make(), config)

    return DummyVecEnv([one(index) for index in range(sets)])


@pytest.mark.parametrize("make", [LineTask, ShortLine, CatchingTask])
def test_it_does_what_stable_baselines_does_with_single_environments(make):
    ours, theirs = Sb3VecEnv(make(), EnvConfig(sets=3, instances=4, seed=5)), gym_sets(make, 3, 4)
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    ours.action_space.seed(0)
    seen, expected = ours.reset(), theirs.reset()
    ended = 0
    for _ in range(45):
        for name, space in ours.observation_space.spaces.items():
            assert seen[name].shape == (3, *space.shape) and seen[name].dtype == space.dtype
            np.testing.assert_allclose(seen[name], expected[name], atol=1e-6)
        actions = np.stack([ours.action_space.sample() for _ in range(3)])
        seen, reward, done, infos = ours.step(actions)
        expected, *others, their_infos = theirs.step(actions)
        np.testing.assert_allclose(reward, others[0], atol=1e-6)
        assert reward.dtype == np.float32 and done.dtype == bool
        np.testing.assert_array_equal(done, others[1])
        for row, (info, their_info) in enumerate(zip(infos, their_infos, strict=True)):
            assert info["TimeLimit.truncated"] == their_info["TimeLimit.truncated"]
            assert ("terminal_observation" in info) == ("is_success" in info) == done[row]
            if done[row]:
                ended += 1
                assert info["is_success"] == pytest.approx(their_info["success"])
                for name, last in their_info["terminal_observation"].items():
                    np.testing.assert_allclose(info["terminal_observation"][name], last, atol=1e-6)
    assert ended >= 3 * (45 // ours._task.horizon)


def test_an_early_end_is_no_time_limit():
    env = Sb3VecEnv(ShortLine(), EnvConfig(sets=8, instances=2))
    env.reset()
    ends = set()
    for _ in range(4):  # at full speed to the right, x grows by 0.2 to 0.4 a step
        *_, done, infos = env.step(np.ones((8, 1), np.float32))
        for info in (info for over, info in zip(done, infos, strict=True) if over):
            past = info["terminal_observation"]["states"][:, 0].max() > 0.9
            assert info["TimeLimit.truncated"] != past
            ends.add(bool(past))
    assert ends == {True, False}


def test_a_seed_starts_the_episodes_again_and_sets_are_one_environment():
    env = Sb3VecEnv(LineTask(), EnvConfig(sets=3, instances=2))
    env.seed(7)
    first, second = env.reset(), env.reset()  # a seed counts once
    assert not np.array_equal(first["states"], second["states"])
    env.seed(7)
    np.testing.assert_array_equal(env.reset()["states"], first["states"])
    assert env.get_attr("num_envs", [0, 2]) == [3, 3] and env.env_is_wrapped(VecMonitor) == [False] * 3
    with pytest.raises(NotImplementedError, match="no gain of their own"):
        env.set_attr("gain", 1.0)
    with pytest.raises(NotImplementedError, match="no reset of their own"):
        env.env_method("reset")
    env.close()


def test_ppo_learns_from_it():
    """Points on a line are brought to the origin: the mean reward of an episode rises."""
    env = VecMonitor(Sb3VecEnv(LineTask(), EnvConfig(sets=32, instances=2)))
    model = PPO(
        "MultiInputPolicy", env, n_steps=4, batch_size=32, learning_rate=3e-3, gamma=0.9, seed=0, device="cpu"
    )
    before, _ = evaluate_policy(model, env, 64)
    model.learn(32 * 4 * 8)
    after, _ = evaluate_policy(model, env, 64)
    assert after > before + 0.2
    assert all(torch.isfinite(p).all() for p in model.policy.parameters())
