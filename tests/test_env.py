"""Sets, time, noise, delay and errors, on a task worked out by hand."""

import pytest
import torch

from dris import DivergedError, Env, EnvConfig
from fakes import LineTask


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
