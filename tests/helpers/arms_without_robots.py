"""Arms that need no robot: one that follows at once, in this process or in another."""

import signal
import time
from types import SimpleNamespace

import numpy as np

from dris.belief.config import BELIEFS
from dris.catching.kinematics import Kinematics
from dris.catching.settings import PRESETS
from dris.robot.arm import ArmError, ArmState, Carried, Payload, RestsAlready
from dris.robot.payload import payload_of

TASK = PRESETS["released"]
HOME = np.array(TASK.home)
MASSES = (2.9274653454, 2.9355370338, 2.2449013699, 2.6155955791, 2.3271207594, 1.8170376524, 0.6271432862)
"""Of an FR3's links 1 to 7, as Franka publishes them in franka_description [kg]."""
LIMITS = Kinematics(TASK.home, TASK.mount).limits


class SoftArm:
    """K (q~ - q) = D dq: the law without inertia, a millisecond an exchange."""

    def __init__(self, config=None, q=HOME):
        self.q, self.dq = np.array(q, dtype=float), np.zeros(7)
        self.ticks, self.moving, self.error = 0, False, ""
        self.asked: list[str] = []
        self.recovers = True

    def limits(self):
        return LIMITS

    def masses(self):
        return MASSES

    def state(self):
        return ArmState(self.ticks * 1e-3, self.q.copy(), self.dq.copy(), self.moving, self.error)

    def versions(self):
        return "of no robot"

    def carries(self):
        return Carried(payload_of(TASK.mount, "hand"), Payload())

    def begin(self, reference):
        self.asked.append("begin")
        self.moving, self.error = True, ""

    def exchange(self, reference):
        if self.moving:
            self.dq = np.array(TASK.stiffness) / np.array(TASK.damping) * (np.asarray(reference) - self.q)
            self.q = self.q + 1e-3 * self.dq
            self.ticks += 1
        return self.state()

    def stop(self):
        self.asked.append("stop")
        self.moving, self.dq = False, np.zeros(7)

    def recover(self):
        self.asked.append("recover")
        self.error = "" if self.recovers else self.error
        return self.recovers

    def close(self):
        self.stop()


class UnstoppableArm(SoftArm):
    """Never comes to rest, and says so."""

    def stop(self):
        if self.moving:
            raise ArmError("the arm may still move")

    def close(self):
        pass


class NotedArm(SoftArm):
    """Writes down when it is stopped, for a test in another process to read."""

    def __init__(self, file):
        super().__init__()
        self._file = file

    def stop(self):
        if self.moving:
            with open(self._file, "a") as file:
                file.write(f"{time.monotonic()}\n")
        super().stop()


class StubbornArm(NotedArm):
    """Comes to rest when it is asked to for the third time."""

    times = 0

    def stop(self):
        with open(self._file, "a") as file:
            file.write(f"{time.monotonic()}\n")
        self.times += 1
        if self.moving and self.times < 3:
            raise ArmError("the arm may still move")
        self.moving = False


class HalfBegun(NotedArm):
    """Moves, and says that it does not."""

    def begin(self, reference):
        super().begin(reference)
        raise ArmError("the robot does not begin to move")


class StruckArm(SoftArm):
    """Is stopped by a reflex whenever it is asked to stop."""

    def stop(self):
        if self.moving:
            self.moving = False
            raise RestsAlready("it rests, but not by this stop alone: reflex")


class SlowArm(SoftArm):
    """Takes its time to tell its limits [s]."""

    def __init__(self, takes_s):
        super().__init__()
        self._takes_s = takes_s

    def limits(self):
        time.sleep(self._takes_s)
        return LIMITS


class Clearing(SoftArm):
    """Its error clears after so many tries."""

    def __init__(self, tries):
        super().__init__()
        self._tries = tries

    def recover(self):
        self._tries -= 1
        return self._tries < 0


def quick_runtime(act=lambda states, condition: np.zeros(5), task=TASK, belief="none"):
    """As much of a policy's runtime as is looked at before an arm moves."""
    contract = SimpleNamespace(
        policy="none", dris="0", states=SimpleNamespace(names=("x",)), condition=SimpleNamespace(size=1),
        catching=lambda: task, filter=lambda: BELIEFS[belief],
    )  # fmt: skip
    return SimpleNamespace(contract=contract, act_one=act)


def fails(config):
    return 1 / 0


def hangs(config):
    """As libfranka while it waits for an answer: nothing but SIGKILL ends it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(30)


def refuses(config):
    raise ArmError(f"no FCI answers at {config}")
