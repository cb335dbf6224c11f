"""Sets, time, noise, delay and errors, on a task worked out by hand."""

import pytest
import torch
from fakes import LineTask

from dris import DivergedError, Env, EnvConfig, KeyedRng


def make(**config):
    task = LineTask()
    return task, Env(task, EnvConfig(**{"sets": 3, "instances": 5, **config}))


def test_reward_is_the_mean_over_the_set_of_the_sum_of_terms():
    task, env = make()
    start = env.reset().states[..., 0]
    step = env.step(torch.full((3, 1), 0.5))
    x = start + task.gain * (2 * 0.5) * 0.1
    torch.testing.assert_close(step.observation.states[..., 0], x)
    torch.testing.assert_close(step.reward, (0.25 - x.abs()).mean(dim=1))
    torch.testing.assert_close(step.terms["near"], -x.abs().mean(dim=1))
    assert torch.equal(step.success, x.abs() < 0.5)


def test_time_up_is_a_truncation_and_then_reset_is_due():
    _, env = make()
    env.reset()
    for count in range(1, 5):
        step = env.step(torch.zeros(3, 1))
        assert bool(step.truncated.all()) == (count == 4)
        assert not step.terminated.any()
    with pytest.raises(ValueError, match="episode of set 0 is over"):
        env.step(torch.zeros(3, 1))
    env.reset(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="set 2"):
        env.step(torch.zeros(3, 1))


def test_termination_is_kept_apart():
    task, env = make()
    task.terminated = lambda: torch.tensor([False, True, False])
    env.reset()
    step = env.step(torch.zeros(3, 1))
    assert step.terminated.tolist() == [False, True, False]
    assert not step.truncated.any() and step.done.tolist() == [False, True, False]


def test_noise_has_the_declared_scale_and_leaves_the_reward_alone():
    """And it is one error a set, whatever its size: averaged out over instances it would be none."""
    task, env = make(sets=5000, instances=3, noise=3.0)
    _, clean = make(sets=5000, instances=3)
    noisy, true = env.reset().states, clean.reset().states
    error = noisy - true
    assert float(error[:, 0].std()) == pytest.approx(0.3, rel=0.03)
    assert abs(float(error.mean())) < 0.02
    torch.testing.assert_close(error[:, 1:], error[:, :1].expand(-1, 2, -1), rtol=0, atol=1e-6)
    _, alone = make(sets=5000, instances=1, noise=3.0)
    torch.testing.assert_close(error[:, :1], alone.reset().states - true[:, :1], rtol=0, atol=1e-6)
    action = torch.zeros(5000, 1)
    assert torch.equal(env.step(action).reward, clean.step(action).reward)


def test_execution_error_is_uniform_on_the_command():
    task, env = make(sets=4000, instances=1, execution_error=0.05)
    env.reset()
    env.step(torch.zeros(4000, 1))
    error = task.commands[-1][0]
    assert float(error.abs().max()) <= 0.05 and float(error.abs().max()) > 0.049
    assert float(error.std()) == pytest.approx(0.05 / 3**0.5, rel=0.05)


def test_an_action_outside_its_range_is_bounded_and_counted():
    task, env = make()
    env.reset()
    step = env.step(torch.tensor([[3.0], [0.5], [-1.0]]))
    assert step.limited.tolist() == [True, False, False]
    assert task.commands[-1][0].flatten().tolist() == [2.0, 1.0, -2.0]


@pytest.mark.parametrize(
    ("delay", "expected"),
    [  # pieces of the second step: (command, seconds); commands are 2 and -2
        (0.0, [(-2, 0.1)]),
        (0.04, [(2, 0.04), (-2, 0.06)]),
        (0.1, [(2, 0.1)]),
        (0.12, [(0, 0.02), (2, 0.08)]),
    ],
)
def test_a_delayed_command_acts_when_its_delay_is_over(delay, expected):
    task, env = make(sets=1, delay_s=(delay, delay))
    env.reset()
    env.step(torch.tensor([[1.0]]))
    task.commands.clear()
    env.step(torch.tensor([[-1.0]]))
    pieces = [(float(c), pytest.approx(s)) for c, s in task.commands]
    assert pieces == expected


def test_sets_can_have_different_delays():
    task, env = make(sets=40, delay_s=(0.0, 0.06))
    env.reset()
    before = task.x.clone()
    env.step(torch.ones(40, 1))
    acted_s = ((task.x - before) / (2 * task.gain))[:, 0]
    assert float(acted_s.min()) >= 0.04 - 1e-6 and float(acted_s.max()) <= 0.1 + 1e-6
    assert len(acted_s.mul(50).round().unique()) == 4  # delays of 0, 20, 40 and 60 ms


def test_draws_of_a_set_survive_other_sets_and_partial_resets():
    _, env = make(sets=2, noise=1.0)
    _, more = make(sets=6, noise=1.0)
    a, b = env.reset().states, more.reset().states
    assert torch.equal(a, b[:2])
    more.reset(torch.tensor([3]))  # set 3 is now in its second episode
    a, b = env.step(torch.zeros(2, 1)), more.step(torch.zeros(6, 1))
    assert torch.equal(a.observation.states, b.observation.states[:2])


def test_errors_name_set_and_step():
    task, env = make()
    env.reset()
    env.step(torch.zeros(3, 1))
    with pytest.raises(ValueError, match="action of set 1 at step 1 is not finite"):
        env.step(torch.tensor([[0.0], [float("nan")], [0.0]]))
    with pytest.raises(ValueError, match=r"shape \(3, 2\), expected \(3, 1\)"):
        env.step(torch.zeros(3, 2))
    task.poison_at = (2, 4)
    with pytest.raises(DivergedError, match="state of set 2, instance 4 is not finite at step 2") as caught:
        env.step(torch.zeros(3, 1))
    assert torch.isnan(caught.value.snapshot["state"][2, 4, 0])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"instances": 0}, "at least 1"),
        ({"sets": -1}, "at least 1"),
        ({"noise": -1.0}, "noise must be"),
        ({"execution_error": float("nan")}, "execution_error must be"),
        ({"delay_s": (0.06, 0.0)}, "0 <= low <= high"),
        ({"noise_correlation": 1.1}, r"noise_correlation must lie in \[0, 1\], got 1.1"),
        ({"dropout": -0.1}, r"dropout must lie in \[0, 1\), got -0.1"),
    ],
)
def test_bad_configurations_are_refused(config, message):
    with pytest.raises(ValueError, match=message):
        EnvConfig(**config)


def test_a_shifted_domain_is_drawn_from():
    task = LineTask()
    env = Env(task, EnvConfig(sets=2, instances=50), domain=task.domain.shifted(gain=(5.0, 6.0)))
    env.reset()
    assert float(task.gain.min()) >= 5.0


def test_reset_takes_indices_or_a_mask_and_nothing_else():
    _, env = make(sets=4)
    _, twin = make(sets=4)
    env.reset()
    twin.reset()
    mask = torch.tensor([True, False, True, False])
    assert torch.equal(env.reset(mask).states, twin.reset(torch.tensor([0, 2])).states)
    assert env.episodes.tolist() == [2, 1, 2, 1]
    for bad in (torch.tensor([4]), torch.tensor([-1]), torch.tensor([1, 1])):
        with pytest.raises(ValueError, match="different indices in 0 to 3"):
            env.reset(bad)
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        env.reset(torch.tensor([True]))
    assert env.episodes.tolist() == [2, 1, 2, 1]


# Observations: correlated noise and missing ones


def errors_of(steps, **config):
    """Observation minus state [T, B] of the first number, over an episode that is long and stands still."""
    task, env = make(instances=1, **config)
    task.horizon = steps
    seen = [env.reset().states]
    seen += [env.step(torch.zeros(env.config.sets, 1)).observation.states for _ in range(steps - 1)]
    return (torch.stack(seen) - task.states())[:, :, 0, 0]


def test_correlated_noise_is_an_ar1_of_the_same_spread():
    """Correlation c^k at lag k, and the standard deviation of white noise at every step, the first included.

    Tolerances are four standard errors over the sets alone: 1 / sqrt(2 B) for a spread, 1 / sqrt(B) for a
    correlation.
    """
    sets = 40_000
    error = errors_of(8, sets=sets, noise=3.0, noise_correlation=0.8)
    assert error.std(dim=1).tolist() == pytest.approx([0.3] * 8, rel=4 / (2 * sets) ** 0.5)
    lags = torch.corrcoef(error)
    for first in range(8):
        for later in range(first, 8):
            expected = 0.8 ** (later - first)
            assert float(lags[first, later]) == pytest.approx(expected, abs=4 / sets**0.5)


def test_a_bias_is_one_error_for_the_whole_episode():
    error = errors_of(5, sets=4000, noise=2.0, noise_correlation=1.0)
    assert float((error - error[0]).abs().max()) < 1e-6
    assert float(error[0].std()) == pytest.approx(0.2, rel=4 / 8000**0.5)


def test_correlated_noise_is_each_set_s_own_and_fresh_at_reset():
    sets, steps = 30, 1500
    error = errors_of(steps, sets=sets, noise=1.0, noise_correlation=0.8)
    between = torch.corrcoef(error.T) - torch.eye(sets)
    # A correlation of two AR(1) over T steps has the error sqrt((1 + c^2) / (1 - c^2) / T); 435 pairs.
    assert float(between.abs().max()) < 5 * ((1 + 0.64) / (1 - 0.64) / steps) ** 0.5

    _, env = make(sets=20_000, instances=1, noise=1.0, noise_correlation=0.8)
    before = env.reset()
    some = torch.arange(0, 20_000, 2)
    after = env.reset(some)
    _, clean = make(sets=20_000, instances=1)
    truth_before, truth_after = clean.reset().states, clean.reset(some).states
    errors = [(o.states - t)[some, 0, 0] for o, t in ((before, truth_before), (after, truth_after))]
    assert abs(float(torch.corrcoef(torch.stack(errors))[0, 1])) < 4 / 10_000**0.5
    assert torch.equal(before.states[1::2], after.states[1::2])  # those that went on keep their error


def test_without_correlation_noise_has_the_bits_of_white_noise():
    """It is drawn for each set, episode and moment alone, and added: whatever came before."""
    task, env = make(sets=50, instances=1, noise=2.0, noise_correlation=0.0)
    seen, sets = [env.reset().states], torch.arange(50)
    start = task.states()
    seen += [env.step(torch.zeros(50, 1)).observation.states for _ in range(3)]
    for k, states in enumerate(seen):
        rng = KeyedRng(0, sets, torch.ones(50, dtype=torch.long), torch.full((50,), 4 * k + 1))
        assert torch.equal(states, start + torch.tensor([0.2, 0.2]) * rng.normal(1, 2))
    # Undo the recursion e' = c e + sqrt(1 - c^2) w: what is left of correlated noise is the same white noise.
    white, correlated = (errors_of(6, sets=50, noise=2.0, noise_correlation=c) for c in (0.0, 0.8))
    torch.testing.assert_close(correlated[0], white[0], rtol=0, atol=1e-6)
    torch.testing.assert_close((correlated[1:] - 0.8 * correlated[:-1]) / 0.6, white[1:], rtol=0, atol=1e-5)


class Turning(LineTask):
    """A condition that tells the time."""

    condition_size = 1

    def condition(self):
        return torch.full((len(self.x), 1), float(len(self.commands)))


def test_a_missing_observation_is_the_last_one_that_was_seen():
    task = Turning()
    task.horizon = 200
    env = Env(task, EnvConfig(sets=300, instances=2, noise=1.0, dropout=0.3, seed=4))
    fresh = Env(Turning(), EnvConfig(sets=300, instances=2, noise=1.0, seed=4))  # the same, nothing missing
    fresh.task.horizon = 200
    seen, full = env.reset().states, fresh.reset().states
    assert torch.equal(seen, full)  # the first is never missing
    missed = 0
    for k in range(1, 101):
        action = torch.full((300, 1), 0.2)
        step, whole = env.step(action), fresh.step(action).observation.states
        held = (step.observation.states == seen).flatten(1).all(dim=1)
        assert torch.equal(step.observation.states[~held], whole[~held])
        assert torch.equal(step.observation.condition, torch.full((300, 1), float(k)))  # always of now
        missed += int(held.sum())
        seen = step.observation.states
    # 30,000 chances, each by itself: four standard errors.
    assert missed / 30_000 == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / 30_000) ** 0.5)


def test_sets_miss_observations_each_by_itself_and_alone_as_in_company():
    few, many = (
        Env(LineTask(), EnvConfig(sets=sets, instances=1, dropout=0.5, seed=1)) for sets in (40, 400)
    )
    few.reset()
    last = many.reset().states
    patterns = []
    for _ in range(4):
        a = few.step(torch.ones(40, 1)).observation.states
        b = many.step(torch.ones(400, 1)).observation.states
        assert torch.equal(a, b[:40])
        patterns.append((b == last).flatten(1).all(dim=1))
        last = b
    # Half of the sets at each step, and not the same half: agreement of two steps is a coin's.
    agree = float((patterns[0] == patterns[1]).float().mean())
    assert agree == pytest.approx(0.5, abs=4 * 0.5 / 400**0.5)


def test_a_partial_reset_leaves_what_the_others_saw():
    env = Env(LineTask(), EnvConfig(sets=200, instances=1, noise=1.0, dropout=0.6, seed=2))
    start = env.reset().states
    seen = env.step(torch.ones(200, 1)).observation.states
    stale = (seen == start).flatten(1).all(dim=1)
    assert 0.4 < float(stale.float().mean()) < 0.8
    again = env.reset(torch.arange(0, 200, 2)).states
    assert torch.equal(again[1::2], seen[1::2])  # what was missing does not come back
    own = Env(LineTask(), EnvConfig(sets=200, instances=1, noise=1.0, seed=2))
    own.reset()
    own.step(torch.ones(200, 1))
    assert torch.equal(again[::2], own.reset(torch.arange(0, 200, 2)).states[::2])  # a new start is seen


def test_sets_may_begin_one_after_the_other_with_dropout():
    env = Env(LineTask(), EnvConfig(sets=3, instances=2, dropout=0.5))
    whole = Env(LineTask(), EnvConfig(sets=3, instances=2)).reset().states
    assert torch.equal(env.reset(torch.tensor([0])).states[0], whole[0])
    assert torch.equal(env.reset(torch.tensor([1, 2])).states, whole)
