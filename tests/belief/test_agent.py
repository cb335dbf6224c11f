"""A belief before a policy: what it is told, what it keeps, and what it brings."""

import pytest
import torch
from fakes import LineTask

from dris import Env, EnvConfig
from dris.belief.agent import BELIEFS, Belief
from dris.catching.task import CatchingTask
from dris.core.conditions import Condition, find_condition
from dris.core.rollout import make_env, replay, rollout, run_episodes
from dris.evaluation.registry import find_policy


def caught(steps=20, instances=6):
    """A catching task after some steps of a good policy: balls that fly, slip and rest."""
    task = CatchingTask()
    agent = find_policy("dris-200").make_agent(task, 8)
    for _ in rollout(Env(task, EnvConfig(sets=8, instances=instances, seed=2)), agent, steps):
        pass
    return task


def test_writing_back_what_was_read_changes_nothing():
    for steps in (1, 5, 20):
        task, same = caught(steps), caught(steps)
        before = task.read_instances()
        repaired = task.write_instances(before)
        assert not bool(repaired.any())
        torch.testing.assert_close(task.read_instances(), before, atol=2e-6, rtol=0)
        for one in (task, same):  # contact survives: both go on alike
            one.advance(one.initial_command(), 0.1)
        torch.testing.assert_close(task.states(), same.states(), atol=2e-4, rtol=0)


def test_states_are_placed_where_they_are_seen():
    task = caught(1)
    wished = task.states() + torch.tensor([0.01, -0.02, 0.03, 0.1, 0.2, -0.3])
    truth = task.states()[:, 0].clone()
    task.place_states(wished[:, 1:], first=1)
    torch.testing.assert_close(task.states()[:, 1:], wished[:, 1:], atol=1e-5, rtol=0)
    torch.testing.assert_close(task.states()[:, 0], truth, atol=0, rtol=0)


def test_what_cannot_be_is_put_right_and_told():
    task = caught(1)
    values = task.read_instances()
    plate = task.world.plate_pos[:, None]
    values[:, 0, 12] = 1.4  # restitution
    values[:, 1, 9] = -0.02  # radius
    values[:, 2, :3] = plate[:, 0]  # a centre on the plate's face
    repaired = task.write_instances(values)
    assert repaired[:, :3].all() and not repaired[:, 3:].any()
    assert float(task.world.restitution[:, 0].max()) == 1.0 and float(task.world.radius.min()) > 0
    height = ((task.world.pos - plate) * task.normal[:, None]).sum(
        dim=-1
    )  # level enough: z of both frames is one
    assert bool((height[:, 2] > 0.015).all())


def test_the_belief_does_not_know_the_truth_s_physics_nor_its_start():
    shifted = find_condition("restitution", CatchingTask.conditions())
    env = make_env(CatchingTask(), shifted, 50, 3, believed=10)
    env.reset()
    restitution = CatchingTask().domain.column(env.parameters, "restitution")
    assert float(restitution[:, 0].min()) >= 0.7 and float(restitution[:, 1:].max()) <= 0.7
    noisy = make_env(CatchingTask(), Condition(noise=4.0), 50, 3, believed=10)
    agent = Belief(instances=10).before(lambda o: torch.zeros(50, 5), noisy)
    agent(noisy.reset())
    off = (noisy.task.states()[:, 1:] - noisy.task.states()[:, :1])[..., :3]
    # Seen with 4 cm of noise and spread by as much again: 4 sqrt(2) cm.
    assert float(off.std()) == pytest.approx(0.04 * 2**0.5, rel=0.15)


def test_the_truth_is_untouched_by_the_belief():
    actions = 0.3 * torch.randn(20, 16, 5, generator=torch.Generator().manual_seed(0))
    ends = []
    for believed in (0, 20):
        env = make_env(CatchingTask(), Condition(noise=2.0), 16, 9, believed)
        agent = replay(actions.clamp(-1, 1))
        agent = Belief(instances=believed).before(agent, env) if believed else agent
        for _ in rollout(env, agent):
            pass
        ends.append(env.task.states()[:, 0])
    assert torch.equal(*ends)


def test_the_same_seed_gives_the_same_bits_and_sets_do_not_depend_on_each_other():
    policy = find_policy("e2e")

    def outcome(episodes):
        found = run_episodes(
            policy.make_task, policy.make_agent, Condition(noise=4.0), episodes, 5, Belief(instances=20)
        )
        return found.success["success_0.2"], found.reward

    one, two, few = outcome(24), outcome(24), outcome(8)
    assert torch.equal(one[1], two[1])
    torch.testing.assert_close(few[1], one[1][:8], atol=2e-3, rtol=0)


def test_a_belief_sees_through_noise():
    """E2E at 4 sigma, slower than 0.1 m/s: every second that was lost is kept; particles serve a milder noise."""
    milder = run_episodes(
        CatchingTask, find_policy("e2e").make_agent, Condition(noise=1.0), 300, 777, BELIEFS["particles"]
    )
    assert milder.score().success > 0.95
    policy, noise = find_policy("e2e"), Condition(noise=4.0)
    raw = run_episodes(policy.make_task, policy.make_agent, noise, 300, 777).score()
    believed = run_episodes(policy.make_task, policy.make_agent, noise, 300, 777, BELIEFS["ensemble"]).score()
    assert believed.success - raw.success > 0.5 * (1 - raw.success) - 0.1
    assert believed.reward > raw.reward


def test_what_makes_no_belief_is_refused():
    with pytest.raises(ValueError, match="at least 2 for a belief to have a spread, got 1"):
        Belief(instances=1)
    with pytest.raises(ValueError, match=r"jitter must lie in \(0, 100\) noise scales, got 0"):
        Belief(jitter=0.0)
    with pytest.raises(ValueError, match="LineTask has no place_states: a belief needs it"):
        run_episodes(
            LineTask, lambda t, n: lambda o: torch.zeros(n, 1), Condition(), 4, 1, Belief(instances=5)
        )
    with pytest.raises(ValueError, match="ensemble or particles, got 'kalman'"):
        Belief("kalman")
