"""What the safety filter must keep, by other code: Franka's published limits and kinematics in plain Python."""

import itertools
import math

import numpy as np

from dris.catching.kinematics import Kinematics
from dris.catching.settings import PRESETS
from dris.robot.clearance import Clearance
from dris.robot.safety import filter_reference
from dris.robot.safety_config import SafetyConfig
from dris.robot.safety_limits import Measured

TASK = PRESETS["released"]
HOME = np.array(TASK.home)
ARM = Kinematics(TASK.home, TASK.mount)
LIMITS = ARM.limits
CLEARANCE = Clearance(HOME, TASK.mount)
CONFIG = SafetyConfig(TASK.stiffness, TASK.damping, hold_age_s=0.075)
K, D = np.array(TASK.stiffness), np.array(TASK.damping)

# Published by Franka for FCI, written down again.
LOW = np.array([-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159])
HIGH = np.array([2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159])
SPEED = np.array([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
OFFSET = np.array([0.6599, 0.2517, 0.2, 0.3533, 0.5757, 0.4878, 0.4628])
DECELERATION = np.array([6.0, 2.585, 3.5, 4.0, 17.0, 5.5, 17.0])
ALL_TO_ONE_SIDE = np.array([-1, 1, -1, -1, -1, -1, 1])
TORQUE = np.array([87.0] * 4 + [12.0] * 3)
NOTHING = np.zeros(7)
REACTION = np.array([0.10, 0.13, 0.10, 0.06, 0.03, 0.04, 0.03])
INERTIA = np.diag(REACTION * D / 1.2)
"""Of an arm whose joints look ahead by REACTION: 1.25, 1.19, 0.83, 0.7, 0.1, 0.1, 0.125 kg m2."""


def filtered(
    wished, q=HOME, dq=None, last=None, dt_s=0.001, age_s=0.0, config=CONFIG, bias=NOTHING, torque=None,
    inertia=INERTIA,
):  # fmt: skip
    """The filter's answer; by default the arm is where it was when it was told its last reference."""
    q, dq = np.array(q), NOTHING if dq is None else np.array(dq)
    last = q if last is None else np.array(last)
    torque = K * (last - q) - D * dq + np.array(bias) if torque is None else np.array(torque)
    now = Measured(q, dq, last, torque, dt_s, np.array(bias), inertia, age_s)
    return filter_reference(config, LIMITS, CLEARANCE, np.asarray(wished), now)


# An oracle of its own: Franka's kinematics by Denavit and Hartenberg, limits joint by joint in plain Python.
DH = [(0, 0.333, 0), (0, 0, -math.pi / 2), (0, 0.316, math.pi / 2), (0.0825, 0, math.pi / 2),
      (-0.0825, 0.384, -math.pi / 2), (0, 0, math.pi / 2), (0.088, 0, math.pi / 2)]  # fmt: skip


def dh_flange(q):
    """Poses [..., 4, 4] of the flange at joints q [..., 7]."""
    q = np.asarray(q, dtype=float)
    pose = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
    for j, (a, d, alpha) in enumerate(DH):
        ca, sa, ct, st_ = math.cos(alpha), math.sin(alpha), np.cos(q[..., j]), np.sin(q[..., j])
        step = np.zeros_like(pose)
        step[..., 0, :] = np.stack((ct, -st_, 0 * ct, a + 0 * ct), axis=-1)
        step[..., 1, :] = np.stack((st_ * ca, ct * ca, -sa + 0 * ct, -d * sa + 0 * ct), axis=-1)
        step[..., 2, :] = np.stack((st_ * sa, ct * sa, ca + 0 * ct, d * ca + 0 * ct), axis=-1)
        step[..., 3, 3] = 1.0
        pose = pose @ step
    return pose @ np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.107], [0, 0, 0, 1]])


def dh_plate(q):
    """Centres [..., 3] of the plate's top face, and its corners [..., 8, 3]: mounted by hand, see test_export."""
    flange = dh_flange(q)
    c = math.sqrt(0.5)
    hand = flange[..., :3, :3] @ np.array([[c, c, 0], [-c, c, 0], [0, 0, 1]])  # turned by -45 degrees
    middle = flange[..., :3, 3] + hand @ np.array([0.13, 0, 0.1034])
    axes = hand @ np.diag([1.0, -1.0, -1.0])  # turned by pi about x
    sides = np.array(list(itertools.product((-0.12, 0.12), (-0.12, 0.12), (-0.005, 0.005))))
    corners = middle[..., None, :] + sides @ np.swapaxes(axes, -1, -2)
    return middle + axes @ np.array([0, 0, 0.005]), corners


def allowed_speeds(j, q):
    def towards(distance):
        return min(SPEED[j], max(0.0, math.sqrt(2 * DECELERATION[j] * max(distance, 0.0)) - OFFSET[j]))

    return towards(q - LOW[j]), towards(HIGH[j] - q)


def limits_to_come(q, dq, bias, torque, inertia):
    """Per joint: largest speeds down and up until its torque is taken back, and 0.9 of what is allowed then."""
    servo = torque - bias
    end = dq + np.linalg.solve(inertia, servo * abs(servo)) / (2 * 700)
    for j in range(7):
        reaction = max(REACTION[j], 1.2 * inertia[j, j] / D[j])
        most_down, most_up = min(dq[j], end[j]), max(dq[j], end[j])
        down = 0.9 * allowed_speeds(j, q[j] + reaction * most_down)[0]
        up = 0.9 * allowed_speeds(j, q[j] + reaction * most_up)[1]
        yield most_down, most_up, down, up


def breaks_soft(reference, q, dq, bias, torque, inertia):
    """Which of the joints' soft limits a reference breaks, by hand."""
    per_torque, push = np.linalg.inv(inertia), K * (reference - q) - D * dq
    found = set()
    for j, (most_down, most_up, down, up) in enumerate(limits_to_come(q, dq, bias, torque, inertia)):
        if not -D[j] * (down + most_down) - 1e-6 <= push[j] <= D[j] * (up - most_up) + 1e-6:
            found.add("speed")
        if abs(push[j] + bias[j]) > 0.9 * TORQUE[j] + 1e-6:
            found.add("torque")
        side = 1 if most_up > up else -1 if -most_down > down else 0
        for k in range(7):
            drives_on = side * per_torque[j, k] * push[k] > 1e-6
            if drives_on and abs(per_torque[j, k]) * TORQUE[k] > 0.05 * per_torque[j, j] * TORQUE[j]:
                found.add("coupling")
    return found
