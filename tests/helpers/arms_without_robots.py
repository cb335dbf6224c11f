"""Arms that need no robot: one that follows at once, in this process or in another."""

import time

import numpy as np

from dris.catching.kinematics import Kinematics
from dris.catching.settings import PRESETS
from dris.robot.arm import ArmError, ArmState, Carried, Payload
from dris.robot.payload import payload_of

TASK = PRESETS["released"]
HOME = np.array(TASK.home)
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

    def state(self):
        return ArmState(self.ticks * 1e-3, self.q.copy(), self.dq.copy(), self.moving, self.error)

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


def fails(config):
    return 1 / 0


def refuses(config):
    raise ArmError(f"no FCI answers at {config}")
