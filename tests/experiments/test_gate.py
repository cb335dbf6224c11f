"""A simulated robot's time passes by itself, or a millisecond at a time for whoever works on each."""

import threading
import time

import pytest

from dris.experiments.gate import Gate


class Clock:
    """Counts milliseconds, and in which thread they passed."""

    def __init__(self):
        self.now, self.threads, self._lock = 0, set(), threading.Lock()
        self.gate = Gate(self.step, self.step)

    def step(self):
        assert self._lock.acquire(blocking=False), "two threads let time pass at once"
        self.now += 1
        self.threads.add(threading.current_thread())
        time.sleep(1e-5)
        self._lock.release()

    def passes(self):
        """Whether time passes by itself."""
        before, end = self.now, time.monotonic() + 5
        while self.now < before + 3 and time.monotonic() < end:
            time.sleep(1e-3)
        return self.now >= before + 3


@pytest.fixture
def clock():
    clock = Clock()
    clock.gate.start()
    yield clock
    clock.gate.end()


def test_time_stands_while_somebody_works_on_a_millisecond(clock):
    assert clock.passes()
    seen = []

    def work():
        before = clock.now
        time.sleep(2e-3)
        seen.append(clock.now)
        assert clock.now == before

    for _ in range(20):
        clock.gate.tick(work)
    assert seen == list(range(seen[0], seen[0] + 20))  # not one passed unseen
    clock.threads.clear()
    clock.gate.tick(lambda: None)
    assert clock.threads == {threading.current_thread()}
    clock.gate.release()
    assert clock.passes()


def test_time_passes_during_work_that_does_not_hold_it(clock):
    clock.gate.tick(lambda: None)
    found = []
    clock.gate.tick(lambda: found.append(clock.passes()), holds=lambda: False)
    assert found == [True]


def test_work_may_let_time_pass_in_the_middle(clock):
    """As a soft stop does."""
    found = []

    def work():
        clock.gate.release()
        found.append(clock.passes())

    clock.gate.tick(work)
    clock.gate.tick(lambda: found.append(clock.now))
    clock.gate.tick(lambda: found.append(clock.now))
    assert found[0] and found[2] == found[1] + 1


def test_work_that_fails_is_told_of(clock):
    with pytest.raises(ValueError, match="no"):
        clock.gate.tick(lambda: (_ for _ in ()).throw(ValueError("no")))
    clock.gate.release()
    assert clock.passes()


def test_a_robot_that_does_not_stop_for_us_is_told_of(monkeypatch):
    """A millisecond that never ends, in its own thread."""
    ends = threading.Event()
    gate = Gate(lambda: None, ends.wait)
    monkeypatch.setattr("dris.experiments.gate.LONGEST_WAIT_S", 0.1)
    gate.start()
    try:
        with pytest.raises(RuntimeError, match="does not stop for us"):
            gate.tick(lambda: None)
    finally:
        ends.set()
        gate.end()


def test_time_that_has_ended_stands(clock):
    clock.gate.end()
    now = clock.now
    time.sleep(5e-3)
    assert clock.now == now
