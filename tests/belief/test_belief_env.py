"""A belief before a policy: what it is told, what it keeps, and what it brings."""

import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from fakes import LineTask

from dris import Env, EnvConfig
from dris.belief.config import BELIEFS, BeliefConfig
from dris.belief.env import BeliefEnv, belief_env
from dris.catching.task import CatchingTask
from dris.core.conditions import Condition, find_condition
from dris.core.env import DivergedError
from dris.core.rollout import replay, rollout, run_episodes, single_instances
from dris.evaluation.registry import find_policy
from dris.evaluation.scores import evaluate

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from own_task import CraneTask  # noqa: E402


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


def believing(condition, episodes, seed, **values):
    """Catching under a condition, with an ensemble of 10 instances unless said otherwise."""
    belief = BeliefConfig(**({"instances": 10} | values))
    return single_instances(CatchingTask(), condition, episodes, seed, partial(belief_env, belief=belief))


def test_the_belief_does_not_know_the_truth_s_physics_nor_its_start():
    env = believing(find_condition("restitution", CatchingTask.conditions()), 50, 3)
    env.reset()
    restitution = CatchingTask().domain.column(env.parameters, "restitution")
    assert float(restitution[:, 0].min()) >= 0.7 and float(restitution[:, 1:].max()) <= 0.7
    noisy = believing(Condition(noise=4.0), 50, 3)
    noisy.reset()
    off = (noisy.task.states()[:, 1:] - noisy.task.states()[:, :1])[..., :3]
    # Seen with 4 cm of noise and spread by as much again: 4 sqrt(2) cm.
    assert float(off.std()) == pytest.approx(0.04 * 2**0.5, rel=0.15)


def test_nominal_physics_is_the_middle_of_the_ranges():
    env = believing(Condition(), 4, 3, physics="nominal")
    env.reset()
    middle = torch.tensor([0.03, 0.05, 0.05, 0.55])  # of [0.02, 0.04], [0, 0.1] twice, [0.4, 0.7]
    torch.testing.assert_close(env.parameters[:, 1:], middle.expand(4, 10, 4))
    assert float(env.parameters[:, 0].std()) > 0


def test_the_truth_is_untouched_by_the_belief():
    actions = 0.3 * torch.randn(20, 16, 5, generator=torch.Generator().manual_seed(0))
    ends = []
    for update in ("none", "ensemble", "particles", "kalman"):
        make_env = partial(belief_env, belief=BeliefConfig(update, instances=20))
        env = single_instances(CatchingTask(), Condition(noise=2.0, delay_s=0.04), 16, 9, make_env)
        for _ in rollout(env, replay(actions.clamp(-1, 1))):
            pass
        ends.append(env.task.states()[:, 0])
    assert all(torch.equal(ends[0], end) for end in ends[1:])


def test_instances_that_leave_physics_are_replaced_and_counted():
    env, twin = (believing(Condition(noise=2.0), 4, 3) for _ in range(2))
    for one in (env, twin):
        one.reset()
    env.task.world.pos[0, 3] = float("nan")
    env.task.world.vel[2, 1:6] = float("inf")
    before = env.repaired
    for one in (env, twin):
        one._advance(one.task.initial_command())
    assert env.repaired - before == 6  # an update may put others right, besides
    actions = torch.zeros(4, 5)
    step, other = env.step(actions), twin.step(actions)
    assert bool(
        torch.isfinite(env.task.read_instances()).all() and torch.isfinite(step.observation.states).all()
    )
    assert torch.equal(
        env.task.states()[:, 0], twin.task.states()[:, 0]
    )  # the truth, and sets that lost none
    assert torch.equal(env.task.states()[[1, 3]], twin.task.states()[[1, 3]])
    assert torch.equal(step.reward[[1, 3]], other.reward[[1, 3]]) and bool(torch.isfinite(env.spread).all())
    env.task.world.pos[1, 0] = float("nan")  # but the truth must not
    with pytest.raises(DivergedError, match="state of set 1, instance 0 is not finite"):
        env.step(actions)


def test_what_no_state_shows_is_put_right_too():
    """One ball whose spin was no number made all balls of its set so, by the mean of the ensemble."""
    env = believing(Condition(noise=2.0), 4, 3)
    env.reset()
    env.task.world.spin[0, 3] = float("nan")
    before, actions = env.repaired, torch.zeros(4, 5)
    env.step(actions)
    assert bool(torch.isfinite(env.task.world.spin).all()) and env.repaired > before


def test_a_set_that_loses_all_its_instances_says_so():
    env = believing(Condition(noise=2.0), 4, 3)
    env.reset()
    env.task.world.spin[2, 1:] = float("nan")
    with pytest.raises(DivergedError, match="what is believed of set 2"):
        env.step(torch.zeros(4, 5))


class Leaving(CraneTask):
    """Half of the cranes end after three steps."""

    def begin(self, sets, parameters, rng):
        super().begin(sets, parameters, rng)
        self.age = torch.zeros(len(self.state))

    def advance(self, command, duration_s):
        super().advance(command, duration_s)
        self.age = self.age + 1

    def terminated(self):
        return (self.age == 3) & (torch.arange(len(self.age)) % 2 == 0)


def test_notes_are_of_the_episodes_that_are_scored_not_of_those_that_follow():
    """A belief that is told far too little begins anew at nearly every step: three times, or sixty."""
    belief = BeliefConfig(instances=5, told_noise=0.3, restart_surprise=0.001)
    found = run_episodes(
        Leaving, lambda task, sets: lambda seen: torch.zeros(sets, 1), Condition(noise=4.0), 8, 5,
        partial(belief_env, belief=belief),
    )  # fmt: skip
    restarts = found.notes["belief_restarts"]
    assert bool((restarts[::2] == 3).all()) and bool((restarts[1::2] == 60).all())
    assert found.score().notes["belief_restarts"] == 31.5


class Echoing(CraneTask):
    """Shows its state forty times, each time with an error of its own."""

    observation_scale = CraneTask.noise_scale * 40

    def observed(self):
        return self.state.repeat(1, 1, 40)

    def draw_start(self, instances, rng):
        return torch.tensor([2.0, 0.3, 0.3, 0.3]) * rng.uniform(instances, 4, low=-1.0, high=1.0)


def test_much_that_is_observed_does_not_surprise_by_its_size():
    """The surprise of 160 numbers is about 160: more than the 100 at which a belief of few begins anew."""
    make_env = partial(belief_env, belief=BeliefConfig(instances=30))
    env = single_instances(Echoing(), Condition(noise=4.0), 40, 3, make_env)
    env.reset()
    for _ in range(10):
        env.step(torch.zeros(40, 1))
    notes = {name: float(values.mean()) for name, values in env.notes().items()}
    assert notes["belief_restarts"] == 0 and 0.8 < notes["belief_surprise"] < 1.3


def test_how_surprising_observations_were_tells_a_wrong_belief():
    found = {}
    for told in (None, 0.5):
        belief = BeliefConfig(instances=30, told_noise=told)
        score = evaluate("e2e", "noise-2", 100, 777, belief)
        found[told] = score.notes
    assert found[None]["belief_surprise"] == pytest.approx(1.0, abs=0.1)  # chi-squared over its size
    assert (
        found[0.5]["belief_surprise"] > 3 and found[0.5]["belief_restarts"] > found[None]["belief_restarts"]
    )


def test_a_prior_over_what_is_no_parameter_is_refused():
    with pytest.raises(
        ValueError, match=r"prior is over parameters of the task \(.*restitution.*\), not bounce"
    ):
        believing(Condition(), 4, 3, prior=(("bounce", 0.0, 1.0),))


def test_a_policy_keeps_the_belief_that_it_was_trained_with():
    own = BeliefConfig(view="spread", prior=(("restitution", 0.3, 0.85),))
    assert own.named("ensemble") is own
    assert own.named("none") == BELIEFS["none"] and own.named("nominal").physics == "nominal"
    assert BeliefConfig("none").named("ensemble") == BeliefConfig()


def test_a_ball_laid_on_the_plate_touches_it_whatever_is_believed_of_its_size():
    starts = []
    for update in ("none", "ensemble", "particles", "kalman"):
        make_env = partial(belief_env, belief=BeliefConfig(update, instances=20))
        condition = find_condition("balancing", CatchingTask.conditions())
        env = single_instances(CatchingTask(), condition, 16, 9, make_env)
        env.reset()
        starts.append(env.task.states()[:, 0])
        height = (starts[-1][:, :3] * env.task.normal).sum(dim=-1)
        torch.testing.assert_close(height, env.task.world.radius[:, 0], atol=1e-4, rtol=0)
    assert all(torch.equal(starts[0], start) for start in starts[1:])


def test_with_no_update_the_bits_are_those_of_the_paper_s_sets():
    assert type(belief_env(LineTask(), EnvConfig(sets=2, instances=3))) is Env
    assert type(belief_env(LineTask(), EnvConfig(sets=2, instances=3), belief=BELIEFS["none"])) is Env
    with pytest.raises(ValueError, match="belief_env gives the plain environment"):
        BeliefEnv(LineTask(), EnvConfig(sets=2, instances=3), None, BELIEFS["none"])


def test_the_same_seed_gives_the_same_bits_and_sets_do_not_depend_on_each_other():
    policy = find_policy("e2e")

    def outcome(episodes):
        make_env = partial(belief_env, belief=BeliefConfig(instances=20))
        found = run_episodes(policy.make_task, policy.make_agent, Condition(noise=4.0), episodes, 5, make_env)
        return found.reward

    one, two, few = outcome(24), outcome(24), outcome(8)
    assert torch.equal(one, two)
    torch.testing.assert_close(few, one[:8], atol=2e-3, rtol=0)


def test_a_belief_sees_through_noise():
    """E2E at 4 sigma, slower than 0.1 m/s: every second that was lost is kept."""
    raw = evaluate("e2e", "noise-4", 300, 777)
    believed = evaluate("e2e", "noise-4", 300, 777, BELIEFS["ensemble"])
    assert believed.success - raw.success > 0.5 * (1 - raw.success) - 0.1
    assert believed.reward > raw.reward
    assert evaluate("e2e", "noise-1", 300, 777, BELIEFS["particles"]).success > 0.95


def test_what_the_policy_sees_is_a_set_of_one_of_thirteen_or_of_all():
    for view, points in (("mean", 1), ("spread", 13), ("set", 10)):
        env = believing(Condition(noise=2.0), 3, 4, view=view)
        seen, instances = env.reset().states, env.task.states()[:, 1:]
        assert seen.shape == (3, points, 6)
        torch.testing.assert_close(seen.mean(dim=1), instances.mean(dim=1), atol=1e-5, rtol=0)
    # The points of a spread: all squared distances from the mean are two variances a component.
    env = believing(Condition(noise=2.0), 3, 4, view="spread")
    seen, instances = env.reset().states, env.task.states()[:, 1:]
    apart = (seen - seen[:, :1]).square().sum(dim=1)
    torch.testing.assert_close(apart, 2 * instances.var(dim=1), atol=1e-6, rtol=1e-3)


def test_the_reward_to_learn_from_is_the_belief_s_the_worst_of_it_or_the_truth_s():
    rewards = torch.tensor([[100.0, *range(10, 0, -1)]])  # the truth's, then 10 to 1
    for values, expected in (({}, 5.5), ({"worst_share": 0.2}, 1.5), ({"reward": "truth"}, 100.0)):
        env = believing(Condition(noise=4.0), 1, 4, **values)
        assert env._counted(rewards)(rewards).tolist() == [expected]
        # Another term counts for the same instances: those with 2 and 1 are the last.
        assert env._counted(rewards)(10 * rewards).tolist() == [10 * expected]
        env.reset()
        step = env.step(torch.zeros(1, 5))
        torch.testing.assert_close(torch.stack(list(step.terms.values())).sum(dim=0), step.reward)
        assert step.rewards.shape == step.success.shape == (1, 1)  # what is told is of the true one
        assert (step.reward[0] == step.rewards[0, 0]) == ("reward" in values)


def test_what_was_not_seen_pulls_nothing():
    env = believing(Condition(noise=1.0, dropout=0.999), 4, 4)
    env.reset()
    env.step(torch.zeros(4, 5))
    assert bool(env.missing.all()) and float(env.log_likelihood.abs().max()) == 0
    seen = believing(Condition(noise=1.0), 4, 4)
    seen.reset()
    seen.step(torch.zeros(4, 5))
    assert float(seen.log_likelihood.abs().min()) > 0


def test_a_surprise_begins_the_belief_anew():
    env = believing(Condition(), 8, 4, restart_surprise=50.0)
    env.reset()
    action = torch.zeros(8, 5)
    env.step(action)
    assert not env.restarts.any()
    jump = torch.tensor([0.3, 0.0, 0.3, 1.0, 0.0, 0.0])
    env.task.place_states(
        (env.task.states()[:4] + jump).repeat(2, 1, 1)[:, 1:], 1
    )  # the belief is led astray
    env.step(action)
    assert bool((env.restarts == 1).all())
    off = env.task.states()[:, 1:].mean(dim=1) - env.task.states()[:, 0]
    assert float((off / torch.tensor(env.task.noise_scale)).abs().max()) < 1.0


def test_looking_ahead_is_what_then_happens():
    """The truth's state 40 ms on, under the command that is on its way, against a world that is let run."""
    for delay_s in (0.02, 0.05, 0.07):
        env = believing(Condition(delay_s=delay_s), 3, 4, instances=2)
        env.reset()
        actions = 0.5 * torch.ones(4, 3, 5)
        for action in actions[:3]:
            env.step(action)
        before = env.task.states()
        ahead, condition = env.look_ahead()
        assert torch.equal(env.task.states(), before)
        reached = {}

        def watch(piece_s, env=env, reached=reached, delay_s=delay_s):
            reached["s"] = reached.get("s", 0.0) + piece_s
            if abs(reached["s"] - delay_s) < 1e-9:
                reached["states"], reached["condition"] = env.task.states(), env.task.condition().clone()

        env.on_advance, env.watch_every_s = watch, 0.005
        for action in (actions[3], actions[3]):
            env.step(action)
            env.on_advance = watch if "states" not in reached else None
            if "states" in reached:
                break
        truth = ahead[:, 0], reached["states"][:, 0]
        torch.testing.assert_close(*truth, atol=2e-4, rtol=0)
        torch.testing.assert_close(condition, reached["condition"], atol=1e-4, rtol=0)


def test_looking_ahead_does_not_know_the_error_of_execution():
    """After one step with a delay of one step no command has acted: the worlds with and without error are one.

    What is foreseen must then be the same too, though what will happen differs.
    """
    foreseen, happened = [], []
    for width in (0.0, 0.05):
        env = believing(Condition(delay_s=0.05, execution_error=width), 3, 4, instances=2)
        env.reset()
        env.step(0.5 * torch.ones(3, 5))
        foreseen.append(env.look_ahead())
        env.step(torch.zeros(3, 5))
        happened.append(env.task.condition())
    for without, with_error in zip(*foreseen, strict=True):
        assert torch.equal(without, with_error)
    assert float((happened[0] - happened[1]).abs().max()) > 1e-3


def test_noise_is_drawn_for_every_episode_and_told():
    config = EnvConfig(sets=400, instances=1, noise=4.0, least_noise=1.0)
    env = belief_env(CatchingTask(), config, belief=BeliefConfig(instances=3))
    env.reset()
    assert float(env.noise_level.min()) >= 1.0 and float(env.noise_level.max()) <= 4.0
    assert float(env.noise_level.mean()) == pytest.approx(2.5, abs=0.2)
    apart = (env.task.states()[:, 1:] - env.task.states()[:, :1])[..., 0].square().mean(dim=1).sqrt()
    low, high = env.noise_level < 2, env.noise_level > 3
    assert float(apart[high].mean()) > 1.5 * float(apart[low].mean())


def test_what_makes_no_belief_is_refused():
    for count in (1, 2.5):
        with pytest.raises(ValueError, match=f"at least 2 instances to have a spread, got {count}: take 50"):
            BeliefConfig(instances=count)
    with pytest.raises(ValueError, match=r"jitter must lie in \(0, 100\) noise scales, got 0"):
        BeliefConfig(jitter=0.0)
    with pytest.raises(ValueError, match="one of none, ensemble, particles, kalman, got 'unscented'"):
        BeliefConfig("unscented")
    with pytest.raises(ValueError, match="no instances to show"):
        BeliefConfig("kalman", view="set")
    for update, hook in (("ensemble", "place_states"), ("kalman", "free_motion")):
        env = belief_env(LineTask(), EnvConfig(sets=2, instances=1), belief=BeliefConfig(update))
        with pytest.raises(ValueError, match=f"LineTask has no {hook}: a"):
            env.reset()
            env.step(torch.zeros(2, 1))
