"""Gymnasium's interface."""

import numpy as np
import pytest
from fakes import LineTask
from gymnasium.utils.env_checker import check_env, data_equivalence

from dris import EnvConfig
from dris.adapters.gym import GymEnv, GymVectorEnv
from dris.catching.task import CatchingTask


@pytest.mark.parametrize("make", [LineTask, CatchingTask])
@pytest.mark.filterwarnings("ignore:.*(Box observation space|infinity|render|spec).*")
def test_gymnasium_checker_passes(make):
    check_env(GymEnv(make(), EnvConfig(sets=1, instances=3)), skip_render_check=True)


@pytest.mark.parametrize("make", [LineTask, CatchingTask])
def test_vector_env_keeps_gymnasiums_contract(make):
    env = GymVectorEnv(make(), EnvConfig(sets=3, instances=4))
    env.action_space.seed(0)
    first, _ = env.reset(seed=5)
    assert first in env.observation_space
    for count in range(1, 45):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert reward.shape == terminated.shape == truncated.shape == (3,)
        assert reward.dtype == np.float32 and terminated.dtype == truncated.dtype == bool
        ended = count % env._task.horizon == 0
        assert bool(truncated.all()) == ended and ("final_obs" in info) == ended
        if ended:  # the returned observation is the next episode's first, the last one is in info
            assert not np.array_equal(info["final_obs"]["states"], observation["states"])
    again, _ = env.reset(seed=5)
    assert data_equivalence(first, again, exact=True)


def test_gym_env_is_one_set_of_the_vector_env():
    single = GymEnv(CatchingTask(), EnvConfig(sets=1, instances=4))
    vector = GymVectorEnv(CatchingTask(), EnvConfig(sets=3, instances=4))
    one, _ = single.reset(seed=2)
    many, _ = vector.reset(seed=2)
    np.testing.assert_array_equal(one["states"], many["states"][0])
    action = np.full(5, 0.3, np.float32)
    a, b = single.step(action), vector.step(np.tile(action, (3, 1)))
    np.testing.assert_array_equal(a[0]["states"], b[0]["states"][0])
    assert a[1] == b[1][0]
    with pytest.raises(ValueError, match="use GymVectorEnv"):
        GymEnv(LineTask(), EnvConfig(sets=2))
