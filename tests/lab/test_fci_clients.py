"""The server against clients as they are installed: franky-control and pylibfranka, in processes of their own.

They cannot share a process with each other, nor, since pylibfranka keeps Python's lock while it waits, with
the server.
"""

import importlib.util
import math
import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from fci import AWAY, Served, plant, run_elsewhere, skip_if_starved

from dris.lab.fci.faults import Faults
from dris.lab.fci.server import Server
from dris.lab.fci.server_config import ServerConfig
from dris.lab.objects import BALLS
from dris.lab.twin import Twin, TwinConfig

ADDRESS = "127.0.2.1"
STIFFNESS, DAMPING = (600, 600, 600, 600, 250, 150, 50), (50, 50, 50, 50, 30, 25, 15)
WAY = 0.1
"""Every joint's way to the reference [rad]."""
FAST = {"pace": math.inf, "patience_s": 0.6}


def needs(name):
    missing = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(missing, reason=f"{name} is not installed: pip install 'dris[fr3]'")


franky, pylibfranka = needs("franky"), needs("pylibfranka")

FRANKY = f"""
import json, sys, time
import franky, numpy as np
def connect():
    return franky.Robot(sys.argv[1], realtime_config=franky.RealtimeConfig.Ignore)
def told(error):
    return [type(error).__name__, str(error)]
def impedance(robot, way):
    motion = franky.JointImpedanceTrackingMotion(stiffness={STIFFNESS}, damping={DAMPING})
    motion.set_reference(franky.JointReference(q=np.array(robot.state.q) + way))
    robot.move(motion, asynchronous=True, limit_rate=True, cutoff_frequency=1000.0)
def run(robot, seconds):
    start = now = robot.state.time.to_sec()
    while now < start + seconds and not robot.join_motion(timeout=0.005):
        try:
            now = robot.state.time.to_sec()
        except RuntimeError:  # the connection is lost: join_motion tells how
            pass
"""

TRACK = (
    FRANKY
    + f"""
robot = connect()
impedance(robot, {WAY})
run(robot, 1.1)
errors = robot.has_errors
robot.move(franky.TorqueStopMotion(), asynchronous=True)
robot.join_motion(timeout=10)
print(json.dumps([errors, str(robot.state.robot_mode)]))
"""
)


def twin_path(ticks, **changes):
    """Joints of the twin in this process under the same law and reference, after every millisecond."""
    twin = Twin(replace(TwinConfig(stiffness=STIFFNESS, damping=DAMPING, latency_s=0.0), **changes))
    twin.reset(BALLS["foam"], AWAY, 0)
    twin.set_reference(twin.joints() + WAY)
    path = []
    for _ in range(ticks):
        twin.advance(1)
        path.append(twin.joints())
    return np.array(path)


def outside_path(ticks):
    """The same by this test's own law on the plant, its change limited as a client's."""
    robot, path, torque = plant(), [], np.zeros(7)
    goal, data = robot.q + WAY, mujoco.MjData(robot.model)
    for _ in range(ticks):
        data.qpos[:], data.qvel[:] = robot.q, robot.dq
        mujoco.mj_forward(robot.model, data)
        coriolis = data.qfrc_bias - robot.gravity
        wished = STIFFNESS * (goal - robot.q) - DAMPING * robot.dq + coriolis
        torque = torque + np.clip(wished - torque, -1, 1)
        robot.advance_with(torque)
        path.append(robot.q)
    return np.array(path)


def rms(difference):
    return float(np.sqrt(np.mean(difference**2)))


@franky
def test_franky_moves_the_arm_as_the_twin_in_process():
    with Served(ADDRESS, **FAST) as served:
        assert run_elsewhere(served, TRACK) == [False, "RobotMode.Idle"]
    assert served.server.cabinet.reflexes == []
    path = np.array(served.path[:1000])
    expected = twin_path(1000)
    assert rms(path - expected) < 1e-4  # the twin cuts changes of torque with gravity, FCI without it
    assert rms(path - outside_path(1000)) < 1e-6  # but for single precision, the same law
    # Not because nothing moves, and not whatever the gains.
    assert np.abs(path[-1, :4] - expected[0, :4] - WAY).max() < 2e-3
    assert rms(path - twin_path(1000, damping=tuple(1.1 * d for d in DAMPING))) > 1e-3


@franky
def test_franky_downloads_our_dynamics():
    script = (
        FRANKY
        + """
robot = connect()
state, model = robot.state, robot.model
total = (state.I_total, state.m_total, state.F_x_Ctotal)
generator = np.random.default_rng(0)
found = []
for _ in range(4):
    q, dq = np.array(state.q) + generator.uniform(-0.5, 0.5, 7), generator.normal(0, 1, 7)
    found.append([q.tolist(), dq.tolist(), list(model.coriolis(q, dq, *total))])
print(json.dumps([found, list(model.gravity(state, [0, 0, -9.81])), list(state.q)]))
"""
    )
    with Served(ADDRESS) as served:
        found, gravity, home = run_elsewhere(served, script)
    model = served.robot.model
    data = mujoco.MjData(model)

    def bias(q, dq):
        data.qpos[:], data.qvel[:] = q, dq
        mujoco.mj_forward(model, data)
        return data.qfrc_bias.copy()

    np.testing.assert_allclose(gravity, bias(home, 0), atol=1e-4)
    for q, dq, coriolis in found:
        expected = bias(q, dq) - bias(q, 0)
        assert np.abs(expected).max() > 0.3
        np.testing.assert_allclose(coriolis, expected, atol=1e-4)


@franky
def test_franky_goes_home_and_a_second_client_is_refused():
    script = (
        FRANKY
        + """
robot = connect()
try:
    connect()
except franky.NetworkException as error:
    second = told(error)
robot.relative_dynamics_factor = 0.3
goal = np.array(robot.state.q) + 0.1
robot.move(franky.JointMotion(goal))
off = float(np.abs(np.array(robot.state.q) - goal).max())
robot.relative_dynamics_factor = 1.0  # 20 rad/s2 in joint 6: franky plans with the Panda's limits
try:
    robot.move(franky.JointMotion(goal - 0.2))
except franky.ControlException as error:
    planned = told(error)
recovered = robot.recover_from_errors()
print(json.dumps([second, off, planned, recovered, str(robot.state.robot_mode)]))
"""
    )
    with Served(ADDRESS, **FAST) as served:
        second, off, planned, recovered, mode = run_elsewhere(served, script)
    assert second[0] == "NetworkException" and served.server.counts.refused == 1
    assert off < 5e-4
    assert "joint_motion_generator_velocity_discontinuity" in planned[1]
    assert recovered and mode == "RobotMode.Idle"


STRUCK = (
    FRANKY
    + """
robot, outcome, recovery = None, None, None
try:
    robot = connect()
    impedance(robot, 0.02)
    run(robot, 0.3)
    robot.move(franky.TorqueStopMotion(), asynchronous=True)
    robot.join_motion(timeout=10)
    outcome = ["survived", ""]
except Exception as error:
    outcome = told(error)
if robot is not None and outcome[0] != "survived":
    try:
        recovery = robot.recover_from_errors()
    except Exception as error:
        recovery = told(error)[1]
print(json.dumps([outcome, recovery]))
"""
)
LOST = "communication_constraints_violation"


@franky
@pytest.mark.parametrize(
    ("faults", "outcome", "words"),
    [
        (Faults(lost_states=0.2, late_states=0.1), "survived", ""),
        (Faults(lost_commands=0.2, late_commands=0.2), "survived", ""),
        (Faults(duplicated_states=0.2, reordered_states=0.2), "survived", ""),
        (Faults(duplicated_commands=0.2, reordered_commands=0.2), "survived", ""),
        (Faults(deaf_at_ms=50, deaf_ms=19), "survived", ""),
        (Faults(deaf_at_ms=50, deaf_ms=20), "ControlException", LOST),
        (Faults(silent_at_ms=50, silent_ms=30), "ControlException", LOST),
        (Faults(silent_at_ms=50), "NetworkException", "UDP receive: Timeout"),
        (Faults(garbage_at_ms=50), "ProtocolException", "incorrect object size"),
        (Faults(close_at_ms=50), "NetworkException", "UDP receive: Timeout"),
        (Faults(user_stop_at_ms=50, user_stop_ms=50), "ControlException", "User Stop pressed!"),
        (Faults(version=9), "IncompatibleVersionException", "server version: 9"),
    ],
)
def test_each_fault_has_its_outcome(faults, outcome, words):
    with Served(ADDRESS, faults=faults, **FAST) as served:
        (found, said), recovery = run_elsewhere(served, STRUCK)
        served.wait_for(lambda: np.abs(served.robot.dq).max() < 0.01)  # never in motion
    if found != outcome:
        skip_if_starved(served)
    assert found == outcome and words in said
    if outcome == "ControlException" and words == LOST:
        assert served.server.cabinet.reflexes == [(LOST,)] and recovery is True
    if outcome == "survived":
        assert served.server.cabinet.reflexes == []
        assert served.server.counts.missed > 0 or faults.duplicated_states > 0


LOOP = f"""
import json, sys, time
import numpy as np
import pylibfranka as fci
robot = fci.Robot(sys.argv[1], fci.RealtimeConfig.kIgnore)
model = robot.load_model()
robot.set_collision_behavior([100.0] * 7, [100.0] * 7, [100.0] * 6, [100.0] * 6)
stiffness, damping = np.array({STIFFNESS}), np.array({DAMPING})
control = robot.start_torque_control()
began, goal = time.perf_counter(), None
for tick in range(1000):
    state, _ = control.readOnce()
    q, dq, last = (np.array(getattr(state, name)) for name in ("q", "dq", "tau_J_d"))
    goal = q + {WAY} if goal is None else goal
    wished = stiffness * (goal - q) - damping * dq + np.array(model.coriolis(state))
    torques = fci.Torques((last + np.clip(wished - last, -1, 1)).tolist())
    torques.motion_finished = tick == 999
    control.writeOnce(torques)
rate = 1000 / (time.perf_counter() - began)
idle = str(robot.read_once().robot_mode)
control = robot.start_torque_control()
try:
    for _ in range(10):
        control.readOnce()
        control.writeOnce(fci.Torques([1.1] + [0.0] * 6))
except fci.ControlException as error:
    said = str(error)
del control
stopped = str(robot.read_once().robot_mode)
robot.automatic_error_recovery()
print(json.dumps([rate, idle, said, stopped, str(robot.read_once().robot_mode)]))
"""


@pylibfranka
def test_pylibfranka_holds_torque_control_for_a_second_and_recovers():
    with Served(ADDRESS, **FAST) as served:
        rate, idle, said, stopped, recovered = run_elsewhere(served, LOOP)
    print(f"{rate:.0f} robot milliseconds a second")
    assert (idle, stopped, recovered) == ("RobotMode.Idle", "RobotMode.Reflex", "RobotMode.Idle")
    assert "controller_torque_discontinuity" in said
    assert served.server.cabinet.reflexes == [("controller_torque_discontinuity",)]
    path = np.array(served.path[:999])
    assert rms(path - twin_path(999)) < 1e-4


def test_the_arm_can_be_driven_while_a_ball_flies_and_is_seen():
    """A caller owns twin and server: it launches a ball and draws it between two milliseconds."""
    robot = plant()
    pictures, heights = [], []

    def on_tick():
        heights.append(robot.twin.state().thing_position[2])
        if len(heights) % 20 == 0:
            pictures.append(robot.twin.render("left"))

    with Server(robot, ServerConfig(address=ADDRESS, pace=math.inf), on_tick=on_tick) as server:
        robot.start_trial(BALLS["foam"], replace(AWAY, position=(0.6, 0.3, 1.5)), 0)
        for _ in range(40):
            server.step()
    assert len(heights) == 40 and heights[-1] < heights[0] - 0.005
    assert len(pictures) == 2 and pictures[0].shape == (480, 640, 3)
    assert (pictures[0] != pictures[1]).any()


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "fci-twin.md"


@franky
@pylibfranka
def test_the_guide_s_examples_run():
    """Two clients, and a server in the caller's own program."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), flags=re.M | re.S)
    clients, own = [block.replace("127.0.0.1", ADDRESS) for block in blocks[:2]], blocks[2]
    for block in clients:
        with Served(ADDRESS, **FAST) as served:
            assert run_elsewhere(served, block + "\nprint('[]')") == []
        assert served.server.cabinet.reflexes == [] and served.said[-2] == "motion ended: success"
    scope = {}
    exec(compile(own.replace("127.0.0.1", ADDRESS), "own", "exec"), scope)
    assert scope["server"].counts.ticks == len(scope["heights"]) == 200
