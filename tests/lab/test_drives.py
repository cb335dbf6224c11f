"""Drives: what stands between a reference and the joints keeps to an FR3's limits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dris.catching.control import BallEstimate, Controller
from dris.catching.kinematics import Kinematics
from dris.catching.settings import PRESETS, TEXT, CatchingConfig
from dris.catching.task import CatchingTask
from dris.lab.drives import drive
from dris.lab.launch import Drop
from dris.lab.model import LabConfig
from dris.lab.objects import BALLS
from dris.lab.twin import Twin, TwinConfig

TASK = CatchingConfig()


def test_the_law_drives_no_faster_than_its_share_of_the_speed_limits():
    home = np.array(TASK.home)
    for share, low, high in ((0.3, 0.27, 0.33), (None, 1.0, 10.0)):
        # Soft gains: the torque rate then hardly matters, and K e = D dq settles at the share.
        soft = TwinConfig(stiffness=(300.0,) * 7, damping=(60.0,) * 7, torque_rate=None, joint_speed=share)
        twin = Twin(soft)
        twin.reset(BALLS["foam"], Drop(1.5, offset=(0.5, 0.5)), 0)
        twin.set_reference(home + [1.2, 0, 0, 0, 0, 0, 0])
        twin.advance(300)
        assert low <= twin.speed_share <= high


def test_what_drives_a_joint_shrinks_towards_the_end_of_its_range():
    kinematics = Kinematics(TASK.home, TASK.mount)
    gains = ((300.0,) * 7, (60.0,) * 7)  # D / K = 0.2 s
    q = np.array(TASK.home)
    q[1] = kinematics.low[1] + 0.1  # FCI: sqrt(2 x 2.585 x 0.1) - 0.2517 = 0.4673 rad/s downwards
    down, up = kinematics.position_error_bounds(q, 0.5, *gains)
    assert down[1] == pytest.approx(0.2 * 0.95 * 0.4673, rel=1e-3)
    assert up[1] == pytest.approx(0.2 * 0.5 * 2.62)  # far from the other end: the share counts
    assert np.isinf(kinematics.position_error_bounds(q, None, *gains)).all()
    # Inverse kinematics keeps off where less than 0.5 rad/s is allowed: (0.5 + 0.2517)^2 / (2 x 2.585).
    behind = kinematics.home_position - [0.6, 0.0, 0.0]
    joints, reached = kinematics.solve(behind, np.zeros(2), q, iterations=60)
    assert not reached and joints[1] == pytest.approx(kinematics.low[1] + 0.1093, abs=1e-4)


@pytest.mark.parametrize(("joint", "sign"), [(1, -1), (3, -1), (5, -1), (6, 1)])
def test_no_joint_outruns_what_is_allowed_near_the_end_of_its_range(joint, sign):
    twin = Twin(drive("fitted-gains", TASK))
    twin.reset(BALLS["foam"], Drop(3.0, offset=(0.5, 0.5)), 0)
    end = twin.joints()
    end[joint] = 10.0 * sign
    end = twin.kinematics.reachable(end)[joint]
    for _ in range(40):  # as a controller: from where the arm is, a little further each time
        q = twin.joints()
        q[joint] += np.clip(end - q[joint], -0.3, 0.3)
        twin.set_reference(q)
        twin.advance(50)
    assert abs(twin.joints()[joint] - end) < 0.02  # it went there
    assert twin.speed_share <= 1.0


def test_a_law_that_brakes_in_time_does_not_overshoot_where_torques_change_slowly():
    """Three joints are called to and fro: by 1000 Nm/s their torques follow late."""
    chosen, share = drive("fitted-gains", PRESETS["fr3"]), {}
    for in_time in (True, False):
        twin = Twin(replace(chosen, brakes_in_time=in_time))
        twin.reset(BALLS["foam"], Drop(3.0, offset=(0.5, 0.5)), 0)
        home = twin.joints()
        for step in range(8):
            twin.set_reference(home + 0.3 * (-1) ** step * np.array([0, 1, 0, 1, 0, 1, 0]))
            twin.advance(100)
        share[in_time] = twin.speed_share
    assert share[True] <= 1.0 < share[False]
    # M^-1 S |S| / (2 rate): 30 Nm, taken back at 900 Nm/s, are still a push of 0.5 Nm s.
    twin.law._servo = np.full(7, -30.0)
    to_come = twin.law._to_come(twin._gained_speed)
    push = twin.kinematics.inertial_torque(twin.joints(), to_come)
    assert push.tolist() == pytest.approx([-0.5] * 7, rel=0.01)
    with pytest.raises(ValueError, match="brakes_in_time needs a governor"):
        replace(chosen, governor=None)


def test_the_training_worlds_law_brakes_as_the_twins_does():
    """Both are called to and fro; MuJoCo at 1 kHz and the implicit rule agree on how fast that goes."""
    task = CatchingTask(PRESETS["fr3"])
    task.allocate(1, 1)
    still = LabConfig(joint_friction=(0.0,) * 7, air_density=0.0)
    twin = Twin(replace(drive("fitted-gains", task.config), governor=1.0, latency_s=0.0, lab=still))
    twin.reset(BALLS["foam"], Drop(3.0, offset=(0.5, 0.5)), 0)
    speeds = []  # over the limits, of twin and training world
    for step in range(8):
        reference = np.array(task.config.home) + 0.3 * (-1) ** step * np.array([0, 1, 0, 1, 0, 1, 0])
        twin.set_reference(reference)
        for _ in range(20):
            twin.advance(5)
            task.world.advance(torch.tensor(reference, dtype=torch.float32)[None], 0.005)
            both = np.array([twin.state().dq, task.world.dq[0].numpy()])
            speeds.append(both / task.arm.velocity_limit)
    twins, ours = np.array(speeds).swapaxes(0, 1)
    assert 0.5 < np.abs(twins).max() < 0.9
    assert np.abs(ours).max() == pytest.approx(np.abs(twins).max(), abs=0.04)
    assert np.sqrt(np.square(ours - twins).mean(axis=0)).max() < 0.04


@pytest.mark.parametrize(("joint", "sign"), [(1, -1), (3, -1), (5, -1), (6, 1)])
def test_in_training_too_no_joint_outruns_what_is_allowed_near_the_end_of_its_range(joint, sign):
    task = CatchingTask(PRESETS["fr3"])
    task.allocate(1, 1)
    world = task.world
    end = float(world.arm.joint_range[joint, (sign + 1) // 2]) - sign * 0.02
    for _ in range(60):
        wish = world.q.clone()
        wish[0, joint] += (end - wish[0, joint]).clamp(-0.3, 0.3)
        world.advance(wish, 0.05)
    assert abs(float(world.q[0, joint]) - end) < 0.1  # it went there
    assert 0.3 < float(world.speed_share[0]) <= 1.0


def test_references_may_lead_by_more_where_the_law_keeps_the_speed():
    config = replace(TASK, joint_speed=0.3)
    ball = BallEstimate(np.array([0.5, 0.0, 0.8]), np.zeros(3))
    q, ways = np.array(TASK.home), []
    for lead in (1.0, 1.2):
        leading = replace(config, reference_lead=lead)
        controller = Controller(lambda states, tilt: np.array([1.0, 1.0, 1.0, 0.0, 0.0]), leading)
        ways.append(controller.step(0.0, ball, q).joints - q)
    np.testing.assert_allclose(ways[1], 1.2 * ways[0], atol=1e-12)


def test_a_drive_takes_the_gains_of_the_policy_that_it_serves():
    robot = PRESETS["robot"]
    assert drive("rate-limit", robot).stiffness == drive("no-rate-limit", robot).stiffness == robot.stiffness
    assert drive("rate-limit", robot).joint_speed == 0.9
    assert drive("ideal", robot).torque_rate == 1000.0 and drive("ideal", TASK).torque_rate is None
    # Fitted gains are for the stiff ones of the text; soft ones stay, inside the limits.
    assert drive("fitted-gains", robot) == drive("rate-limit", robot)
    assert drive("fitted-gains", TEXT).stiffness != TEXT.stiffness == drive("rate-limit", TEXT).stiffness
    soft = drive("fitted-gains", TASK)
    assert (soft.stiffness, soft.damping) == (TASK.stiffness, TASK.damping)
    assert (soft.joint_speed, soft.governor) == (0.95, 0.9) and drive("rate-limit", TASK).governor is None
    assert (soft.brakes_in_time, soft.reference_lead) == (True, 1.5)
    jumping = drive("no-rate-limit", PRESETS["fr3"])  # torques may jump: nothing holds the law back
    assert (jumping.torque_rate, jumping.governor, jumping.brakes_in_time) == (None, None, False)
    assert drive("ideal", replace(PRESETS["fr3"], torque_rate=500.0)).governor == 0.5
    assert drive("ideal", PRESETS["fr3"]).brakes_in_time and not drive("ideal", TASK).brakes_in_time
    with pytest.raises(
        ValueError, match="no drive 'magic'; known: ideal, no-rate-limit, rate-limit, fitted-gains"
    ):
        drive("magic")


def test_a_governed_drive_never_asks_for_more_than_fci_accepts():
    """Also where C + g of a fast arm change faster than what the governor leaves them."""
    chosen = drive("fitted-gains", PRESETS["fr3"])
    assert (chosen.governor, chosen.joint_speed) == (0.9, PRESETS["fr3"].joint_speed)
    assert chosen.brakes_in_time
    home, largest = np.array(PRESETS["fr3"].home), {}
    for governor in (0.9, None):
        twin = Twin(replace(chosen, governor=governor, brakes_in_time=False))
        twin.reset(BALLS["foam"], Drop(1.5, offset=(0.5, 0.5)), 0)
        for k in range(12):
            twin.set_reference(home + 0.4 * (-1) ** k * np.array([0, 1, 0, -1, 0, 1, 0]))
            twin.advance(40)
        largest[governor] = float(twin.largest_rate.max())
    assert largest[0.9] <= 990.0 + 1e-6 and twin.limited_ticks > 0
    assert largest[None] > 2000.0
