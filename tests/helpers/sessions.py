"""Sessions that need no robot: an arm that follows at once, and a sky with one ball."""

import numpy as np
from arms_without_robots import TASK, SoftArm

from dris.catching.control import BallEstimate
from dris.catching.law import LawConfig
from dris.perception.arrival import free_fall
from dris.robot.session import Session

LAW = LawConfig(TASK.stiffness, TASK.damping, 0.9, 0.9, True)


class Sky:
    """A ball in free fall towards the plate's home, released at a time."""

    radius_m = 0.03
    trust = ("fine", "")

    def __init__(self, clock, thrown_s=2.0):
        self._clock, self.thrown_s, self.age_s, self.told = clock, thrown_s, 0.0, 0
        self.hidden, self.deviation = False, None

    def _ball(self, time_s):
        t = time_s - self.thrown_s
        start, velocity = np.array([1.9, 0.0, 0.5]), np.array([-1.3, 0.0, 5.5])
        return start + velocity * t + [0, 0, -0.5 * 9.81 * t * t], velocity + [0, 0, -9.81 * t]

    def observe_joints(self, time_s, q):
        self.told += 1

    def observe_plate(self, plate):
        pass

    def estimate(self, time_s):
        if time_s < self.thrown_s or self.hidden:
            return None
        return BallEstimate(*self._ball(time_s), age_s=self.age_s, deviation=self.deviation)

    def arrival(self, time_s, height_m):
        return None if time_s < self.thrown_s else free_fall(time_s, *self._ball(time_s), height_m)


def make(arm=None, act=None, log=None, **changes):
    arm = arm or SoftArm()
    clock = lambda: arm.ticks * 1e-3  # noqa: E731
    sky = Sky(clock)
    session = Session(arm, sky, act or (lambda s, c: np.zeros(5)), TASK, LAW, clock, log, **changes)
    return session, arm, sky


def run(session, until, most=20_000):
    for _ in range(most):
        if until():
            return
        session.tick()
    raise AssertionError(f"still {session.state}: {session.reason}")


def homed(**arguments):
    session, arm, sky = make(**arguments)
    session.connect()
    session.start()
    run(session, lambda: session.state == "homed")
    return session, arm, sky


def catching(**arguments):
    session, arm, sky = homed(**arguments)
    sky.thrown_s = arm.ticks * 1e-3
    session.arm_now()
    run(session, lambda: session.state == "catching")
    return session, arm, sky
