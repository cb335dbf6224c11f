"""A belief of what a task observes: a part of the state with a covariance, or a pixel."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from fakes import LineTask

from dris import Condition, Domain, Env, EnvConfig, Range, check_task
from dris.belief.config import BeliefConfig
from dris.belief.env import BeliefEnv
from dris.core.rollout import single_instances

STEP_S, HORIZON = 0.3, 8
ANY = (-math.inf, math.inf)
NOISE = np.array([[0.04, 0.03], [0.03, 0.09]])
START, SPREAD = np.array([0.5, -0.5, 0.0, 0.2]), np.array([1.0, 0.8, 0.5, 0.4])


class Puck(LineTask):
    """x and y are observed, with errors that go together; velocities and the push of a command are not."""

    state_names = ("x", "y", "vx", "vy")
    noise_scale = (0.2, 0.3, 0.5, 0.5)
    observation_covariance = tuple(map(tuple, NOISE.tolist()))
    horizon, step_s, substep_s = HORIZON, STEP_S, STEP_S
    instance_tensors = {"state": ANY, "push": ANY}

    def __init__(self):
        self.domain = Domain({"push": Range(1.0, 3.0, "")})

    def allocate(self, sets, instances):
        self.state, self.push = torch.zeros(sets, instances, 4), torch.ones(sets, instances)
        self.x = self.push  # whose length the fake asks

    def begin(self, sets, parameters, rng):
        self.push[sets] = parameters[..., 0]
        self.state[sets] = self.drawn(rng, 1)

    def drawn(self, rng, instances):
        return (torch.tensor(START) + torch.tensor(SPREAD) * rng.normal(instances, 4)).float()

    def draw_start(self, instances, rng):
        return self.drawn(rng, instances)

    def advance(self, command, duration_s):
        place, speed = self.state[..., :2], self.state[..., 2:]
        pushed = self.push * command * duration_s
        faster = speed + torch.stack((pushed, torch.zeros_like(pushed)), dim=-1)
        self.state = torch.cat((place + duration_s * speed, faster), dim=-1)

    def states(self):
        return self.state.clone()

    def observed(self):
        return self.state[..., :2].clone()

    def reward_terms(self):
        return {"near": -self.state[..., 0].abs()}

    def success(self):
        return self.state[..., 0].abs() < 0.5


FOCAL, PIXEL = 100.0, 2.0
AWAY, UNSURE = np.array([0.0, 3.0]), np.array([0.3, 0.25])


class Seen(Puck):
    """A point before a moving pinhole at the origin: x sideways, y its distance; one pixel is observed."""

    observation_covariance = ()
    observation_scale = (PIXEL,)

    def __init__(self):
        self.domain = Domain({"push": Range(1.5, 2.5, "")})

    def drawn(self, rng, instances):
        away = (torch.tensor(AWAY) + torch.tensor(UNSURE) * rng.normal(instances, 2)).float()
        return torch.cat((away, torch.zeros_like(away)), dim=-1)

    def observed(self):
        return FOCAL * self.state[..., :1] / self.state[..., 1:2]


class Recording(BeliefEnv):
    """Keeps what was observed, in its own units."""

    def _see(self, seen, *which, **more):
        self.heard = [*getattr(self, "heard", []), seen.double().numpy().copy()]
        super()._see(seen, *which, **more)


def believing(task, sets=1, seed=3, condition=Condition(noise=2.0), **belief):  # noqa: B008
    values = BeliefConfig(**{"jitter": 1e-5, "restart_surprise": 1e6} | belief)
    return single_instances(task, condition, sets, seed, partial(Recording, belief=values))


def run(env, steps, action=0.5):
    """What the policy saw at the end."""
    seen = env.reset()
    for _ in range(steps):
        seen = env.step(torch.full((env.config.sets, 1), action)).observation
    return seen.states


def exact(heard, command, level):
    """The Kalman filter over the state and the push: mean, covariance, log-likelihood of all but the first."""
    see, noise = np.eye(2, 5), level**2 * NOISE
    way = np.eye(5)
    way[0, 2] = way[1, 3] = STEP_S
    way[2, 4] = STEP_S * command
    mean, covariance = np.append(START, 2.0), np.diag([*SPREAD**2, 2.0**2 / 12])
    likelihood = 0.0
    for count, seen in enumerate(heard):
        if count:
            mean, covariance = way @ mean, way @ covariance @ way.T
        expected, off = see @ covariance @ see.T + noise, seen - see @ mean
        if count:
            volume = np.log(np.linalg.det(2 * np.pi * expected))
            likelihood -= 0.5 * (off @ np.linalg.solve(expected, off) + volume)
        gain = covariance @ see.T @ np.linalg.inv(expected)
        mean, covariance = mean + gain @ off, (np.eye(5) - gain @ see) @ covariance
    return mean, covariance, likelihood


@pytest.mark.parametrize(
    ("update", "instances", "steps", "within"),
    [("ensemble", 40_000, HORIZON, 0.03), ("particles", 200_000, 3, 0.06)],
)
def test_a_part_of_the_state_with_a_covariance_is_the_kalman_filter_s(update, instances, steps, within):
    """Mean within some hundredths of the exact deviations, covariance by as much; command is twice the action."""
    env = believing(Puck(), update=update, instances=instances)
    viewed = run(env, steps)
    mean, covariance, likelihood = exact([seen[0] for seen in env.heard], 1.0, 2.0)
    found = env.task.read_instances()[0, 1:].double().numpy()
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((found.mean(axis=0) - mean) / deviation, np.zeros(5), atol=within)
    np.testing.assert_allclose(
        (np.cov(found.T) - covariance) / np.outer(deviation, deviation), np.zeros((5, 5)), atol=within
    )
    assert float(env.log_likelihood) == pytest.approx(likelihood, abs=0.05)
    # The policy sees the state, with the velocities that nobody observed.
    assert viewed.shape == (1, 1, 4)
    np.testing.assert_allclose(viewed[0, 0], found.mean(axis=0)[:4], atol=1e-5)
    # Which the observations have taught: nobody told, x's would deviate by its start's and the push's.
    assert deviation[2] < 0.8 * math.hypot(SPREAD[2], steps * STEP_S * 2.0 / 12**0.5)


def by_grid(heard, command):
    """Posterior mean and deviation of x, distance and push: all pixels under every start and push of a grid."""
    fine, coarse = ((np.arange(count) + 0.5) * 2 / count - 1 for count in (120, 30))  # middles of cells
    x, y, push = np.meshgrid(*(AWAY[:, None] + 5 * UNSURE[:, None] * fine), 2 + 0.5 * coarse, indexing="ij")
    log = -0.5 * (((x - AWAY[0]) / UNSURE[0]) ** 2 + ((y - AWAY[1]) / UNSURE[1]) ** 2)
    speed = np.zeros_like(x)
    for count, seen in enumerate(heard):
        if count:
            x, speed = x + STEP_S * speed, speed + STEP_S * push * command
        log -= 0.5 * ((FOCAL * x / y - seen) / PIXEL) ** 2
    weight = np.exp(log - log.max()).ravel()
    weight /= weight.sum()
    values = np.stack((x.ravel(), y.ravel(), push.ravel()))
    mean = values @ weight
    return mean, np.sqrt((values - mean[:, None]) ** 2 @ weight)


@pytest.mark.parametrize(
    ("update", "instances", "within"), [("particles", 30_000, 0.1), ("ensemble", 2_000, 0.5)]
)
def test_a_pixel_is_understood_as_a_grid_of_all_possibilities_understands_it(update, instances, within):
    """Means within a tenth of the exact deviations; the ensemble's, which is linear, within half of one."""
    env = believing(
        Seen(), 4, condition=Condition(noise=1.0), update=update, instances=instances, jitter=1e-4
    )
    run(env, HORIZON, action=0.1)
    found = env.task.read_instances()[:, 1:, [0, 1, 4]].double().numpy()
    grids = [by_grid([seen[b, 0] for seen in env.heard], 0.2) for b in range(4)]
    mean, deviation = (np.array(part) for part in zip(*grids, strict=True))
    assert np.sqrt((((found.mean(axis=1) - mean) / deviation) ** 2).mean()) < within
    np.testing.assert_allclose((found.std(axis=1) / deviation).mean(axis=0), np.ones(3), atol=0.1)
    assert deviation[:, 0].max() < 0.5 * UNSURE[0]  # the start's, which the pixels have narrowed


def test_errors_have_the_covariance_and_last_as_they_do_for_states():
    env = believing(Puck(), sets=40_000, condition=Condition(noise=3.0, noise_correlation=0.8), instances=2)
    env.reset()
    truths = [env.task.state[:, 0, :2].double().numpy().copy()]
    env.step(torch.zeros(40_000, 1))
    truths.append(env.task.state[:, 0, :2].double().numpy())
    first, second = (seen - truth for seen, truth in zip(env.heard, truths, strict=True))
    np.testing.assert_allclose(np.cov(first.T), 9 * NOISE, atol=0.02)
    np.testing.assert_allclose(np.cov(second.T), 9 * NOISE, atol=0.02)
    np.testing.assert_allclose(first.T @ second / len(first), 0.8 * 9 * NOISE, atol=0.02)


def test_what_is_not_seen_pulls_nothing_and_a_surprise_begins_where_the_task_says():
    env = believing(Puck(), 4, condition=Condition(noise=1.0, dropout=0.999), instances=20)
    run(env, 1)
    assert bool(env.missing.all()) and float(env.log_likelihood.abs().max()) == 0
    env = believing(Puck(), 4, condition=Condition(), instances=20, restart_surprise=50.0)
    env.reset()
    env.task.place_states(env.task.states()[:, 1:] + torch.tensor([30.0, 0.0, 0.0, 0.0]), 1)
    env.step(torch.zeros(4, 1))
    assert env.restarts.tolist() == [1, 1, 1, 1]
    off = env.task.states()[:, 1:].mean(dim=1) - env.task.states()[:, 0]
    assert float(off[:, :2].abs().max()) < 0.3  # the sensor's own deviations, at a floor of 0.3: 0.06, 0.09
    assert float(off[:, 2].abs().max()) < 5 * SPREAD[2]


def test_a_task_without_a_condition_is_foreseen_over_a_delay():
    """A delay of one step: until the next command acts, the one that was given acts."""
    env = believing(Puck(), 3, condition=Condition(noise=1.0, delay_s=STEP_S), instances=5)
    env.reset()
    observation = env.step(torch.ones(3, 1)).observation
    states, push = env.task.state[:, 1:], 2.0 * env.task.push[:, 1:] * STEP_S
    ahead = torch.cat((states[..., :2] + STEP_S * states[..., 2:], states[..., 2:]), dim=-1)
    ahead[..., 2] += push
    torch.testing.assert_close(observation.states[:, 0], ahead.mean(dim=1), atol=1e-5, rtol=0)
    assert observation.condition.shape == (3, 0)


def test_sets_do_not_depend_on_each_other():
    ends = []
    for sets in (6, 2):
        env = believing(Puck(), sets, instances=10)
        ends.append(run(env, 4)[:2])
    torch.testing.assert_close(*ends, atol=1e-5, rtol=0)


def test_without_a_belief_the_policy_sees_states_with_their_own_noise():
    env = Env(Puck(), EnvConfig(sets=20_000, instances=1, noise=2.0))
    off = env.reset().states[:, 0] - env.task.state[:, 0]
    np.testing.assert_allclose(off.std(dim=0), 2 * np.array(Puck.noise_scale), rtol=0.03)


def changed(**members):
    return type("Changed", (Puck,), members)


def sensed(values):
    """observed() that answers with values of all instances [B, N, ...]."""
    return lambda self: values(self.state)


BAD = [
    (
        {"observed": sensed(lambda s: s)},
        r"observed\(\) of Changed has shape .*4\), not .*2\): as many values",
    ),
    ({"observed": sensed(lambda s: s[:, 0, :2])}, r"observed\(\) of Changed has shape \(\d, 2\), not"),
    (
        {"observed": sensed(lambda s: s[..., :2] / 0.0)},
        r"observed\(\) of Changed is not finite in set 0, instance 0: clamp what leaves",
    ),
    ({"observation_covariance": ((1.0, 2.0), (2.0, 1.0))}, "of Changed: a covariance has no negative eigen"),
    ({"observation_covariance": ((1.0, 0.5), (0.0, 1.0))}, "of Changed: a covariance is symmetric"),
    ({"observation_covariance": ((1.0, 1.0), (1.0, 1.0))}, "no sensor is exact along one, give it full rank"),
    (
        {"observation_covariance": ((1.0, math.nan), (math.nan, 1.0))},
        "of Changed: a covariance must be finit",
    ),
    (
        {"observation_covariance": ((1.0, 0.0),)},
        r"a covariance of 1 numbers has shape \(1, 1\), got \(1, 2\)",
    ),
    ({"observation_scale": (0.1, 0.1)}, "has both observation_scale and observation_covariance: keep one"),
    (
        {"observation_covariance": (), "observation_scale": (0.1, 0.0)},
        r"observation_scale of Changed must have one positive and finite deviation per value, got \(0.1, 0.0\)",
    ),
    ({"observation_covariance": ()}, r"observed\(\) of Changed has shape .*2\), not .*4\)"),
    (
        {"draw_start": lambda self, instances, rng: torch.zeros(instances, 4)},
        r"draw_start\(\) of Changed has shape \(\d, 4\), not \(2, \d, 4\)",
    ),
    (
        {"draw_start": lambda self, instances, rng: torch.full((2, instances, 4), math.inf)},
        r"draw_start\(\) of Changed is not finite in set 0, instance 0",
    ),
    (
        {"draw_start": lambda self, *given: LineTask.draw_start(self, *given)},
        r"Changed has no draw_start: .* give the task draw_start\(instances, rng\)",
    ),
]


@pytest.mark.parametrize(("members", "words"), BAD)
def test_what_makes_no_observation_is_refused_by_the_belief_and_by_the_check(members, words):
    with pytest.raises(ValueError, match=words) as refused:
        believing(changed(**members)(), 2, instances=3).reset()
    assert "\n" not in str(refused.value)
    problems = {verdict.promise: verdict.problem for verdict in check_task(changed(**members))}
    with pytest.raises(ValueError, match=words):
        raise ValueError(problems["what is observed is as declared"])


def test_a_filter_of_states_refuses_what_is_none():
    with pytest.raises(ValueError, match="kalman belief observes states .* and Puck declares something else"):
        believing(Puck(), update="kalman")


def test_the_check_asks_what_is_declared_and_says_what_is_not():
    told = {verdict.promise: verdict for verdict in check_task(Puck)}["what is observed is as declared"]
    assert not told.problem and told.offered
    plain = {verdict.promise: verdict for verdict in check_task(LineTask)}["what is observed is as declared"]
    assert not plain.problem and not plain.offered
    # What no sensor shows keeps a unit.
    unset = {v.promise: v.problem for v in check_task(changed(noise_scale=(0.2, 0.3, 0.0, 0.5)))}
    assert "leave it out of observed()" in unset["sizes are as declared"]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"observed": lambda self: self.state[..., :2] + torch.randn(self.state[..., :2].shape)}, "of torch"),
        ({"draw_start": lambda self, instances, rng: torch.randn(len(self.state), instances, 4)}, "of torch"),
        ({"observed": lambda self: self.state[..., :2] + 0.1 * np.random.random()}, "of numpy.random"),
        (
            {"observed": lambda self: self.state[..., :2].mean(1, True).expand(-1, self.state.shape[1], -1)},
            "instance 0 changes",
        ),
        ({"observed": lambda self: self.state[..., :2] - self.state[:1, :, :2].mean()}, "instance 0 changes"),
        ({"observed": lambda self: self.state[..., :2] * len(self.state)}, "when there are more sets"),
    ],
)
def test_what_is_observed_is_as_repeatable_as_the_rest(members, words):
    """`dris check` passed sensors that drew their own noise, and such that saw the other instances."""
    problems = {verdict.promise: verdict.problem for verdict in check_task(changed(**members))}
    assert words in problems["what is observed is as declared"]
