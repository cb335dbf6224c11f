"""The conformance test passes good tasks and names what bad ones break."""

import sys
from pathlib import Path

import pytest
import torch

from dris import Domain, Range, check_task
from dris.catching.task import CatchingTask
from dris.check import audit
from fakes import LineTask

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from own_task import CraneTask  # noqa: E402


@pytest.mark.parametrize("make", [LineTask, CraneTask, CatchingTask])
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

    def begin(self, sets, parameters, draws):
        super().begin(sets, parameters, draws)
        self.x[sets] = draws.uniform(self.x.shape[1])


class Careless(LineTask):
    """Draws from the global generator."""

    def begin(self, sets, parameters, draws):
        super().begin(sets, parameters, draws)
        self.x[sets] = torch.rand(1).expand(len(sets), self.x.shape[1])


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


class Misshapen(LineTask):
    def success(self):
        return self.x[:, 0].abs() < 0.5


@pytest.mark.parametrize(
    ("make", "promise", "words"),
    [
        (Idle, "every parameter has an effect", "'colour' has no effect"),
        (Coupled, "an instance does not depend on the others", "40 instances"),
        (Scattered, "all instances start alike", "differ between instances"),
        (Careless, "the same seed gives the same bits", "two runs differ"),
        (Sharing, "nothing returned is reused", "own memory"),
        (Crude, "a step can be cut", "noise deviations"),
        (Misshapen, "sizes are as declared", r"success\(\) has shape"),
    ],
)
def test_broken_tasks_are_told_what_they_break(make, promise, words):
    problems = {v.promise: v.problem for v in check_task(make) if v.problem}
    assert promise in problems
    import re

    assert re.search(words, problems[promise])
