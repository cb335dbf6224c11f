"""The arm kernel and inverse kinematics, with MuJoCo as the oracle; on three different arms."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch
import warp as wp
from arms import GANTRY_HOME, SERVO_HOME, fr3_down_model, fr3_model, gantry_model, servo_model
from scipy.spatial.transform import Rotation

from dris.catching.settings import CONTROL_IK, TEXT, CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.env import Env, EnvConfig
from dris.core.process import start_warp
from dris.sim.chain import Chain, chain_functions, upload
from dris.sim.model import load_arm
from dris.sim.world import PlateWorld
from dris.sim.world_config import WorldConfig

FR3_HOME = TEXT.home
FR3 = {"fr3": TEXT, "fr3-down": CatchingConfig()}  # stiff with a level hand, soft with the hand down
ARMS = {
    "fr3": (fr3_model, TEXT.home, TEXT.stiffness, TEXT.damping),
    "fr3-down": (fr3_down_model, *(getattr(FR3["fr3-down"], n) for n in ("home", "stiffness", "damping"))),
    "gantry": (gantry_model, GANTRY_HOME, (900.0, 300, 300, 60), (120.0, 30, 30, 6)),
    "servo": (servo_model, SERVO_HOME, (400.0, 400, 400, 100), (20.0, 20, 20, 5)),
    "servo-stiff": (servo_model, SERVO_HOME, (2000.0, 2000, 2000, 500), (200.0, 200, 200, 50)),
}


def mass_and_bias(model, q, dq):
    """Mass matrix and bias of our functions at one state."""
    start_warp()
    arm = load_arm(model)
    m = arm.num_joints
    fn = chain_functions(m)
    dynamics = fn.dynamics

    @wp.kernel(module="unique", enable_backward=False)
    def evaluate(
        chain: Chain,
        q: wp.array(dtype=fn.vec),
        dq: wp.array(dtype=fn.vec),
        mass: wp.array(dtype=fn.mat),
        bias: wp.array(dtype=fn.vec),
    ):
        a, b = dynamics(chain, q[0], dq[0])
        mass[0] = a
        bias[0] = b

    mass = wp.zeros(1, dtype=fn.mat, device="cpu")
    bias = wp.zeros(1, dtype=fn.vec, device="cpu")
    state = [wp.array(np.array([v], np.float32), dtype=fn.vec, device="cpu") for v in (q, dq)]
    wp.launch(evaluate, dim=1, inputs=[upload(arm, "cpu"), *state, mass, bias], device="cpu")
    return mass.numpy()[0], bias.numpy()[0]


@pytest.mark.parametrize("name", list(ARMS))
def test_mass_matrix_and_bias_match_mujoco(name):
    make, home, _, _ = ARMS[name]
    model = make()
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(5):
        data.qpos[:] = np.array(home) + rng.normal(size=model.nv) * 0.4
        data.qvel[:] = rng.normal(size=model.nv) * 2
        mujoco.mj_forward(model, data)
        expected = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, expected)
        mass, bias = mass_and_bias(model, data.qpos, data.qvel)
        np.testing.assert_allclose(mass, expected, atol=2e-5 * expected.max())
        np.testing.assert_allclose(bias, data.qfrc_bias, atol=2e-4 * np.abs(data.qfrc_bias).max())


def world_for(name, sets=1, **config):
    make, home, stiffness, damping = ARMS[name]
    return PlateWorld(
        load_arm(make()), home, sets, 1,
        WorldConfig(stiffness=stiffness, damping=damping, bounce_speed=0.01, **config),
    )  # fmt: skip


@pytest.mark.parametrize("name", list(ARMS))
def test_plate_pose_and_velocity_match_mujoco(name):
    make, home, _, _ = ARMS[name]
    world, model = world_for(name), make()
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    data.qpos[:] = np.array(home) + rng.normal(size=model.nv) * 0.3
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    world.place_arms(torch.arange(1), torch.tensor(data.qpos)[None], torch.tensor(data.qvel)[None])
    np.testing.assert_allclose(world.plate_pos[0], data.site("plate").xpos, atol=2e-6)
    ours = Rotation.from_quat(world.plate_quat[0].numpy()).as_matrix()
    np.testing.assert_allclose(ours, data.site("plate").xmat.reshape(3, 3), atol=2e-6)
    twist = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_SITE, data.site("plate").id, twist, 0)
    np.testing.assert_allclose(world.plate_omega[0], twist[:3], atol=1e-5)
    np.testing.assert_allclose(world.plate_vel[0], twist[3:], atol=1e-5)


def mujoco_episode(model, home, commands, stiffness, damping, most=np.inf, h=0.00025):
    """The torque law once a step in MuJoCo; joint and plate positions every 50 ms.

    Servos become motors of the same limits, so that MuJoCo itself clips what they give.
    """
    model.opt.timestep = h
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.jnt_limited[:] = 0
    model.actuator_ctrllimited[:] = 0
    model.actuator_gainprm[:, 0], model.actuator_biasprm[:] = 1, 0
    limit = np.where(model.jnt_actfrclimited, model.jnt_actfrcrange[:, 1], np.inf)
    data = mujoco.MjData(model)
    data.qpos[:] = home
    joints, plates, clipped = [], [], 0
    for command in commands:
        for _ in range(round(0.05 / h)):
            mujoco.mj_step1(model, data)
            error = np.clip(command - data.qpos, -most, most)
            wish = stiffness * error - damping * data.qvel + data.qfrc_bias
            if model.nu:
                data.ctrl[:] = wish / model.actuator_gear[:, 0]
            else:
                data.qfrc_applied[:] = np.clip(wish, -limit, limit)
            mujoco.mj_step2(model, data)
            clipped += int((np.abs(wish - data.qfrc_applied - data.qfrc_actuator) > 1e-9).sum())
        mujoco.mj_kinematics(model, data)
        joints.append(data.qpos.copy())
        plates.append(data.site("plate").xpos.copy())
    return np.array(joints), np.array(plates), clipped


def random_commands(name, episodes, joint_speed):
    """[20, E, M] desired joints: on the FR3 the task's own under random actions, else a random walk."""
    if name.startswith("servo"):
        return np.array(SERVO_HOME) + np.random.default_rng(0).uniform(-0.4, 0.4, (20, episodes, 4))
    if name == "gantry":
        steps = np.random.default_rng(2).normal(size=(20, episodes, 4)) * [0.03, 0.1, 0.1, 0.1]
        return np.array(GANTRY_HOME) + np.cumsum(steps, axis=0)
    task = CatchingTask(replace(FR3[name], start="home", joint_noise=0.0, joint_speed=joint_speed))
    env = Env(task, EnvConfig(sets=episodes, instances=1))
    env.reset()
    generator = torch.Generator().manual_seed(0)
    commands = []
    for _ in range(20):
        action = 2 * torch.rand(episodes, 5, generator=generator) - 1
        commands.append(task.command(action)[0].numpy().astype(np.float64))
        env.step(action)
    return np.array(commands)


@pytest.mark.parametrize(
    ("name", "joint_speed", "arm_steps", "limit_mrad"),
    [
        ("fr3", None, 1, 3.0), ("fr3", 1.0, 1, 3.0), ("fr3-down", None, 1, 3.0), ("gantry", None, 1, 3.0),
        ("servo", None, 5, 1.0), ("servo-stiff", None, 5, 1.0),
    ],
)  # fmt: skip
def test_a_second_of_random_commands_follows_mujoco(name, joint_speed, arm_steps, limit_mrad):
    make, home, stiffness, damping = ARMS[name]
    episodes = 2 if name.startswith("servo") else 4
    world = world_for(name, sets=episodes, joint_speed=joint_speed)
    assert world.arm_steps == arm_steps
    commands = random_commands(name, episodes, joint_speed)
    joints, plates = [], []
    for command in commands:
        world.advance(torch.tensor(command, dtype=torch.float32), 0.05)
        joints.append(world.q.numpy().copy())
        plates.append(world.plate_pos.numpy().copy())
    clipped = 0
    for e in range(episodes):
        gains = np.array(stiffness), np.array(damping)
        h = 0.00005 if name.startswith("servo") else 0.00025  # an explicit law needs h < 2 M / D
        oracle = mujoco_episode(make(), home, commands[:, e], *gains, world.max_position_error.numpy(), h)
        rms = np.sqrt(((np.array(joints)[:, e] - oracle[0]) ** 2).mean(axis=0))
        off = np.linalg.norm(np.array(plates)[:, e] - oracle[1], axis=1)
        clipped += oracle[2]
        assert rms.max() < 0.001 * limit_mrad
        assert off.max() < 0.002
    if name in ("fr3", "servo", "servo-stiff"):
        assert clipped > 100  # the stiff gains saturate: the clipped law is what is compared
        assert int(world.torque_clips.sum()) > 0


def hinge_world(friction, stiffness, soft=""):
    """One hinge of 0.1 kg m2 about the vertical with Coulomb friction [Nm]; steps of 1 ms."""
    xml = f"""<mujoco><worldbody><body><joint axis="0 0 1" frictionloss="{friction}" {soft}/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
      <geom name="plate" type="box" size="0.1 0.1 0.01"/><site name="plate" pos="0 0 0.01"/>
      </body></worldbody></mujoco>"""
    config = WorldConfig(stiffness=(stiffness,), damping=(0.0,), bounce_speed=0.01)
    return PlateWorld(load_arm(mujoco.MjModel.from_xml_string(xml)), (0.0,), 1, 1, config)


def test_friction_slows_a_spinning_joint_by_f_over_i_and_stops_it():
    world = hinge_world(0.5, 0.0)
    world.place_arms(torch.arange(1), torch.zeros(1, 1), torch.tensor([[2.0]]))
    world.advance(torch.zeros(1, 1), 0.2)
    assert float(world.dq) == pytest.approx(2.0 - 0.5 / 0.1 * 0.2, rel=1e-5)
    assert float(world.q) == pytest.approx(2.0 * 0.2 - 0.5 * 5 * 0.2**2, rel=3e-4)  # 5 % of the step late
    world.advance(torch.zeros(1, 1), 0.8)  # it stops after I v / f = 0.4 s
    assert abs(float(world.dq)) < 1e-6


@pytest.mark.parametrize(("push", "moves"), [(0.45, False), (0.55, True)])
def test_a_joint_sticks_until_the_push_exceeds_friction(push, moves):
    world = hinge_world(0.5, 10.0, 'solreffriction="0.002 1" solimpfriction="0.9999 0.9999 0.001"')
    world.advance(torch.tensor([[push / 10.0]]), 0.1)
    if moves:  # I q'' = K (q* - q) - f from rest: q = (q* - f/K) (1 - cos w t), w = sqrt(K/I) = 10
        assert float(world.q) == pytest.approx(0.005 * (1 - np.cos(1.0)), rel=0.03)
    else:
        assert abs(float(world.q)) < 1e-5


def test_torque_rate_limit_slows_the_torque():
    step = torch.tensor([FR3_HOME]) + torch.tensor([0.2, 0, 0, 0, 0, 0, 0])
    torques = {}
    for rate in (None, 1000.0):
        world = world_for("fr3", torque_rate=rate)
        world.advance(step, 0.005)
        torques[rate] = float(world.torque[0, 0])
    assert torques[1000.0] == pytest.approx(5.0, abs=1e-3)  # joint 1 bears no gravity: 1 Nm per ms
    assert torques[None] > 50


@pytest.mark.parametrize("torque_rate", [None, 1000.0])
def test_at_rest_the_torque_is_gravity(torque_rate):
    world, model = world_for("fr3", torque_rate=torque_rate), fr3_model()
    world.advance(torch.tensor([FR3_HOME]), 0.05)
    data = mujoco.MjData(model)
    data.qpos[:] = FR3_HOME
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(world.torque[0], data.qfrc_bias, atol=5e-3)
    np.testing.assert_allclose(world.q[0], FR3_HOME, atol=1e-5)


def test_plate_velocity_trails_its_position_by_a_twentieth_of_a_substep():
    """The theta rule moves joints by 0.45 of a substep's first and 0.55 of its last velocity.

    So plate_vel differs from the derivative of plate_pos by 0.05 h times the acceleration: 8.3 mm/s here.
    """
    world, h = world_for("fr3"), 0.005
    samples = []
    for k in range(100):
        wave = 0.3 * np.sin(2 * np.pi * 4 * k * h)  # 4 Hz, up to 33 m/s2 at the plate
        world.advance(torch.tensor([FR3_HOME]) + wave * torch.tensor([0.0, 1, 0, 1, 0, 1, 0]), h)
        samples.append(
            [v[0].double().numpy().copy() for v in (world.q, world.dq, world.plate_pos, world.plate_vel)]
        )
    q, dq, pos, vel = (np.array(column)[20:] for column in zip(*samples, strict=True))
    np.testing.assert_allclose(np.diff(q, axis=0) / h, 0.45 * dq[:-1] + 0.55 * dq[1:], atol=1e-4)
    off = np.diff(pos, axis=0) / h - 0.5 * (vel[1:] + vel[:-1])
    np.testing.assert_allclose(off, 0.05 * np.diff(vel, axis=0), atol=2e-3)
    assert 0.005 < np.linalg.norm(off, axis=1).max() < 0.009


def workspace_targets(world, count):
    rng = np.random.default_rng(3)
    low, high = np.array(TEXT.workspace_low), np.array(TEXT.workspace_high)
    position = world.plate_pos[0].numpy() + rng.uniform(low, high, (count, 3))
    azimuth, size = (
        rng.uniform(0, 2 * np.pi, count),
        np.pi / 4 * np.sqrt(rng.uniform(0, 1, count)),  # the paper's whole range
    )
    axis = np.c_[np.cos(azimuth), np.sin(azimuth), np.zeros(count)]
    turn = Rotation.from_rotvec(axis * size[:, None]) * Rotation.from_quat(world.plate_quat[0].numpy())
    return torch.tensor(position, dtype=torch.float32), torch.tensor(turn.as_quat(), dtype=torch.float32)


def test_inverse_kinematics_reaches_the_workspace():
    world, model = world_for("fr3"), fr3_model()
    count = 10_000
    position, quat = workspace_targets(world, count)
    joints, reached = world.solve_ik(position, quat, retries=4)
    limits = torch.tensor(world.arm.joint_range, dtype=torch.float32)
    assert bool((joints >= limits[:, 0]).all()) and bool((joints <= limits[:, 1]).all())
    # MuJoCo judges, not the solver's own flag.
    data = mujoco.MjData(model)
    good = np.zeros(count, bool)
    goal_normal = Rotation.from_quat(quat.numpy()).as_matrix()[:, :, 2]
    for k in range(count):
        data.qpos[:] = joints[k].numpy()
        mujoco.mj_kinematics(model, data)
        off = np.linalg.norm(data.site("plate").xpos - position[k].numpy())
        normal = data.site("plate").xmat.reshape(3, 3)[:, 2]
        angle = np.arctan2(np.linalg.norm(np.cross(normal, goal_normal[k])), normal @ goal_normal[k])
        good[k] = off <= 1.0e-3 and angle <= np.radians(0.2)
    assert good.mean() >= 0.999
    assert (good == reached.numpy()).mean() > 0.9995


def test_unreachable_targets_give_the_nearest_pose_and_say_so():
    world = world_for("fr3")
    far = torch.tensor([[2.0, 0.0, 0.6], [0.6, 0.0, 0.6]])
    level = world.plate_quat[:1].repeat(2, 1)
    joints, reached = world.solve_ik(far, level)
    assert reached.tolist() == [False, True]
    world.place_arms(torch.arange(1), joints[:1], torch.zeros(1, 7))
    # The arm's reach from the shoulder, about 1.19 m with the plate ahead of it.
    assert 0.95 < float(world.plate_pos[0, 0]) < 1.25


@pytest.mark.parametrize("name", list(FR3))
def test_a_moving_target_seldom_swings_the_elbow(name):
    """Targets that wander by a centimetre and two degrees: the controller's joints follow smoothly."""
    world = world_for(name, ik=CONTROL_IK)
    rng = np.random.default_rng(5)
    home_pos, home_quat = (
        world.plate_pos[0].numpy(),
        Rotation.from_quat(world.plate_quat[0].numpy()),
    )
    low, high = np.array(FR3[name].workspace_low), np.array(FR3[name].workspace_high)
    rows = 300
    offset, tilt = np.zeros((rows, 3)), np.zeros((rows, 2))
    last = world.home.expand(rows, -1)
    moves, reached = [], []
    for _ in range(60):
        offset = np.clip(offset + rng.normal(size=(rows, 3)) * 0.01, low, high)
        tilt = np.clip(tilt + rng.normal(size=(rows, 2)) * 0.03, -0.5, 0.5)
        quat = (Rotation.from_rotvec(np.c_[tilt, np.zeros(rows)]) * home_quat).as_quat()
        target = torch.tensor(home_pos + offset, dtype=torch.float32)
        joints, ok = world.solve_ik(target, torch.tensor(quat, dtype=torch.float32), start=last)
        moves.append((joints - last).abs().amax(dim=1))
        reached.append(ok)
        last = joints
    assert float((torch.stack(moves) > 0.3).float().mean()) < 0.01
    assert float(torch.stack(reached).float().mean()) > 0.99
