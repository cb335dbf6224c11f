"""The conformance test passes good tasks and names what bad ones break."""

import math
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes import LineTask

from dris import Condition, Domain, Range, check_task
from dris.catching.task import CatchingTask
from dris.core.promises import audit

ANY = (-math.inf, math.inf)
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from own_sensor import EncoderCrane  # noqa: E402
from own_task import CraneTask  # noqa: E402


@pytest.mark.parametrize("make", [LineTask, CraneTask, EncoderCrane, CatchingTask, lambda: Ending()])
def test_good_tasks_keep_all_promises(make):
    assert [v for v in check_task(make) if v.problem] == []


def test_every_catching_parameter_matters():
    assert min(audit(CatchingTask).values()) > 1.0


class Idle(LineTask):
    """Has a parameter nobody reads."""

    def __init__(self):
        super().__init__()
        self.domain = Domain({"gain": Range(1.0, 2.0, ""), "colour": Range(0.0, 1.0, "")})


class Coupled(LineTask):
    """Instances feel the set's mean."""

    def advance(self, command, duration_s):
        super().advance(command, duration_s)
        self.x = self.x + 0.01 * self.x.mean(dim=1, keepdim=True) * self.gain.mean(dim=1, keepdim=True)


class Scattered(LineTask):
    """Instances start apart."""

    def begin(self, sets, parameters, rng):
        super().begin(sets, parameters, rng)
        self.x[sets] = rng.uniform(self.x.shape[1])


def careless(draw):
    """A task that starts where a function without arguments says."""

    class Careless(LineTask):
        def begin(self, sets, parameters, rng):
            super().begin(sets, parameters, rng)
            self.x[sets] = draw()

    return Careless


def seeded():
    torch.manual_seed(0)
    return float(torch.rand(1))


class Sharing(LineTask):
    """Hands out its own memory."""

    def allocate(self, sets, instances):
        super().allocate(sets, instances)
        self.memory = torch.zeros(sets, instances, 2)

    def states(self):
        self.memory[..., 0] = self.x
        return self.memory


class Crude(LineTask):
    """One Euler step whatever the duration."""

    def advance(self, command, duration_s):
        self.x = self.x + self.gain * command * duration_s - 3.0 * duration_s * self.x


class Comparing(LineTask):
    """The reward of an instance depends on the others."""

    def reward_terms(self):
        return {"near": -(self.x - self.x.mean(dim=1, keepdim=True)).abs()}


class Precise(LineTask):
    def states(self):
        return super().states().double()


class Silent(LineTask):
    def reward_terms(self):
        return {}


class Nameless(LineTask):
    """Forgets an attribute."""

    def __init__(self):
        super().__init__()
        del self.domain


class Overwriting(LineTask):
    """A partial begin changes every set's physics."""

    def begin(self, sets, parameters, rng):
        super().begin(sets, parameters, rng)
        self.gain[:] = self.gain[sets[:1]]


class Remembering(LineTask):
    """Hidden state survives the episode."""

    def allocate(self, sets, instances):
        super().allocate(sets, instances)
        self.wear = torch.zeros(sets, 1)

    def advance(self, command, duration_s):
        self.wear = self.wear + command * duration_s
        super().advance(command + self.wear, duration_s)


class Numb(LineTask):
    def command(self, action):
        return 0.0 * action + 0.1, torch.zeros(len(action), dtype=torch.bool)


class Leaking(LineTask):
    """The condition tells the set's mean."""

    condition_size = 1

    def condition(self):
        return self.gain.mean(dim=1, keepdim=True)


class Ending(LineTask):
    """A valid task whose sets end at different times."""

    horizon = 12

    def terminated(self):
        return (self.x.abs() > 1.1).any(dim=1)


class Misshapen(LineTask):
    def success(self):
        return self.x[:, 0].abs() < 0.5


@pytest.mark.parametrize(
    ("make", "promise", "words"),
    [
        (Idle, "every parameter has an effect", "'colour' has no effect"),
        (Coupled, "an instance does not depend on the others", "40 instances"),
        (Scattered, "all instances start alike", "differ between instances"),
        (Sharing, "nothing returned is reused", "own memory"),
        (Crude, "a step can be cut", "noise deviations"),
        (Comparing, "an instance does not depend on the others", "rewards of instance 0"),
        (Precise, "sizes are as declared", r"states\(\) is torch.float64"),
        (Silent, "sizes are as declared", "at least one term"),
        (Nameless, "it can be built and begun", "has no domain"),
        (Overwriting, "a partial reset leaves the others alone", "what becomes of sets 0 and 2"),
        (Remembering, "an episode leaves nothing behind", "second episode"),
        (Numb, "actions have an effect", "opposite actions"),
        (Leaking, "an instance does not depend on the others", "instance 0"),
        (Misshapen, "sizes are as declared", r"success\(\) has shape"),
    ],
)
def test_broken_tasks_are_told_what_they_break(make, promise, words):
    problems = {v.promise: v.problem for v in check_task(make) if v.problem}
    assert promise in problems
    assert re.search(words, problems[promise])


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (
            lambda: float(torch.rand(1)),
            "differ, first at step 0, .* the global generator of torch. Take random",
        ),
        (lambda: float(torch.randn(1)), "the global generator of torch. Take"),
        (np.random.random, "the global generator of numpy.random. Take"),
        (random.random, "the global generator of random. Take random numbers from the rng that begin"),
        (lambda: random.random() + np.random.normal(), "generator of numpy.random and of random. Take"),
        (lambda: np.random.default_rng().random(), "look for a generator of its own"),
        (seeded, "^the task uses the global generator of torch. Take"),
        (lambda: 0.0, "^$"),
    ],
)
def test_random_numbers_that_are_not_the_rng_s_are_named(draw, words):
    problems = {v.promise: v.problem for v in check_task(careless(draw))}
    assert re.search(words, problems["the same seed gives the same bits"])


def test_a_belief_needs_instances_that_can_be_written_back():
    class Forgets(CraneTask):
        """Writes states, but not the rope."""

        def write_instances(self, values, first=0):
            self.state[:, first:] = values[..., :4]
            return torch.zeros(values.shape[:2], dtype=torch.bool)

    by_name = {v.promise: v for v in check_task(Forgets)}
    assert "in another order, instances differ by" in by_name["a belief can write instances"].problem
    plain = {v.promise: v for v in check_task(LineTask)}["a belief can write instances"]
    assert not plain.problem and "does not offer it" in plain.detail and not plain.offered
    assert by_name["a belief can write instances"].offered

    class Careless(CraneTask):
        """Writes the real one, too."""

        def place_states(self, states, first=0):
            self.state[:, first:] = states
            self.state[:, 0] += 0.01
            return torch.zeros(states.shape[:2], dtype=torch.bool)

    by_name = {v.promise: v for v in check_task(Careless)}
    assert "from instance 1 on, instance 0 changes" in by_name["a belief can write instances"].problem


class Timed(CraneTask):
    """A crane whose wind changes with a clock that the loads of a set share."""

    def allocate(self, sets, instances):
        super().allocate(sets, instances)
        self.clock = torch.zeros(sets, 1)

    def begin(self, sets, parameters, rng):
        super().begin(sets, parameters, rng)
        self.clock[sets] = 0.0

    def advance(self, command, duration_s):
        super().advance(command, duration_s)
        self.state[..., 3] += duration_s * torch.sin(3.0 * self.clock)
        self.clock = self.clock + duration_s


class Elsewhere(CraneTask):
    """Such a clock where nobody looks for it."""

    def begin(self, sets, parameters, rng):
        super().begin(sets, parameters, rng)
        self.simulator = {"clock": 0.0}

    def advance(self, command, duration_s):
        super().advance(command, duration_s)
        self.state[..., 3] += duration_s * math.sin(3.0 * self.simulator["clock"])
        self.simulator["clock"] += duration_s


class Landed(CraneTask):
    """Keeps another name for its state, a view of one number for all, and something that is not always there."""

    def allocate(self, sets, instances):
        super().allocate(sets, instances)
        self.last = torch.zeros(sets, instances, 4)
        self.wind = torch.zeros(sets, 1)
        self.winds = self.wind.expand(sets, instances)
        self.cache = torch.zeros(1)

    def advance(self, command, duration_s):
        super().advance(command, duration_s)
        self.wind += 0.1 * duration_s
        self.state[..., 3] += duration_s * self.winds
        self.last = self.state
        self.cache = None if self.cache is not None else torch.zeros(1)


def test_what_a_task_keeps_is_brought_back_as_it_was():
    """Saved zeros were once written into the state, which went by another name after the step."""
    problems = [v for v in check_task(Landed) if v.problem]
    assert problems == []


class Buffered(CraneTask):
    """Buffers at the ends of the rail that no integrator bears far beyond them."""

    def advance(self, command, duration_s):
        super().advance(command, duration_s)
        beyond = (self.state[..., 0].abs() - 6.0).clamp_min(0.0)
        self.state[..., 1] -= 1e6 * beyond**3 * self.state[..., 0].sign()


def test_what_is_believed_far_away_may_leave_physics():
    promise = "the real instance alone ends an episode"
    assert {v.promise: v.problem for v in check_task(Buffered)}[promise] == ""


def test_looking_ahead_must_leave_nothing_behind():
    """A clock went on for good each time a belief looked ahead, and the real system with it."""
    promise = "looking ahead changes nothing"
    assert {v.promise: v.problem for v in check_task(Timed)}[promise] == ""
    problem = {v.promise: v.problem for v in check_task(Elsewhere)}[promise]
    assert "goes on otherwise" in problem and "save all that advance changes" in problem


def test_only_the_real_instance_ends_an_episode():
    class Railed(CraneTask):
        def terminated(self):
            off = self.state[..., 0].abs() > 4.0
            return off[:, 0] if self.first_is_real else off.any(dim=1)

    class Imagining(CraneTask):
        def terminated(self):
            return (self.state[..., 0].abs() > 4.0).any(dim=1)

    class Latched(CraneTask):
        """Keeps what it found when it advanced: the step itself ends the episode."""

        def begin(self, sets, parameters, rng):
            super().begin(sets, parameters, rng)
            self.ended = torch.zeros(len(self.state), dtype=torch.bool)

        def advance(self, command, duration_s):
            super().advance(command, duration_s)
            self.ended |= (self.state[..., 0].abs() > 4.0).any(dim=1)

        def terminated(self):
            return self.ended

    class Waiting(CraneTask):
        """The real load has left the rail, and the episode goes on until all are believed to have."""

        def terminated(self):
            return (self.state[..., 0].abs() > 4.0).all(dim=1)

    promise = "the real instance alone ends an episode"
    assert {v.promise: v.problem for v in check_task(Railed)}[promise] == ""
    for task in (Imagining, Latched):
        assert "only believed" in {v.promise: v.problem for v in check_task(task)}[promise]
    assert "real instance alone" in {v.promise: v.problem for v in check_task(Waiting)}[promise]


def test_hooks_are_asked_for():
    class Method(LineTask):
        def conditions(self):
            return {}

    class Odd(LineTask):
        @classmethod
        def conditions(cls):
            return {"windy": Condition(domain=(("gust", 0.0, 1.0),))}

    class Grey(LineTask):
        def draw(self, which):
            return np.zeros((10, 10))

    for task, words in ((Method, "make it a classmethod"), (Odd, "gust"), (Grey, r"[height, width, 3]")):
        by_name = {v.promise: v for v in check_task(task)}
        assert words in by_name["its hooks answer as declared"].problem


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"state": ANY, "ropes": ANY, "drag": ANY}, "names 'ropes', and there is no such tensor"),
        ({"rope": ANY, "state": ANY, "drag": ANY}, "must name the states first, and 'rope' does not hold"),
        ({"state": ANY, "rope": ANY}, "missing from instance_tensors?"),
        ({"state": ANY, "rope": (1.0, math.inf), "drag": ANY}, "narrower than what the domain draws?"),
    ],
)
def test_what_differs_between_instances_must_be_named(tensors, words):
    """A wrong name was a traceback, and the others did not say where to look."""

    class Misnamed(CraneTask):
        instance_tensors = tensors

    problems = {verdict.promise: verdict.problem for verdict in check_task(Misnamed)}
    assert words in problems["a belief can write instances"]
