"""The case study against the paper's equations, by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from dris import Env, EnvConfig, KeyedRng
from dris.catching import frames
from dris.catching.actions import decode, encode
from dris.catching.baselines import BASELINES
from dris.catching.kinematics import Kinematics
from dris.catching.settings import PRESETS, TEXT, CatchingConfig
from dris.catching.success import normal_tangential
from dris.catching.task import CatchingTask
from dris.catching.throws import throw
from dris.core.conditions import find_condition
from dris.core.constants import GRAVITY
from dris.sim.contact import AVERAGED, EXACT


def make(sets=4, instances=3, noise=0.0, preset="released", **config):
    task = CatchingTask(replace(PRESETS[preset], **config))
    env = Env(task, EnvConfig(sets=sets, instances=instances, noise=noise))
    return task, env


both_presets = pytest.mark.parametrize("preset", ["released", "paper"])


# Frames


def test_tilts_are_rotations_about_a_horizontal_axis():
    rng = np.random.default_rng(0)
    alpha, beta = rng.uniform(0, 2 * np.pi, 50), rng.uniform(0, np.pi / 4, 50)
    axis = np.c_[np.cos(alpha), np.sin(alpha), np.zeros(50)]
    oracle = Rotation.from_rotvec(axis * beta[:, None])
    tilt = torch.tensor(axis[:, :2] * beta[:, None], dtype=torch.float32)
    normal = oracle.as_matrix()[:, :, 2]
    np.testing.assert_allclose(frames.normal_of_tilt(tilt), normal, atol=1e-6)
    np.testing.assert_allclose(frames.tilt_of_normal(torch.tensor(normal)), tilt, atol=1e-6)
    np.testing.assert_allclose(frames.quat_of_tilt(tilt), oracle.as_quat(), atol=1e-6)
    np.testing.assert_allclose(frames.plate_normal(torch.tensor(oracle.as_quat())), normal, atol=1e-6)
    # n = (sin a sin b, -cos a sin b, cos b)
    paper = np.c_[np.sin(alpha) * np.sin(beta), -np.cos(alpha) * np.sin(beta), np.cos(beta)]
    np.testing.assert_allclose(normal, paper, atol=1e-12)


def test_level_is_no_tilt_and_no_singularity():
    level = torch.tensor([[0.0, 0.0, 1.0]])
    assert frames.tilt_of_normal(level).tolist() == [[0.0, 0.0]]
    assert frames.quat_of_tilt(torch.zeros(1, 2)).tolist() == [[0, 0, 0, 1]]


def test_quaternions_multiply_as_scipy_does():
    a, b = Rotation.random(20, rng=1), Rotation.random(20, rng=2)
    product = frames.quat_multiply(torch.tensor(a.as_quat()), torch.tensor(b.as_quat()))
    np.testing.assert_allclose(
        Rotation.from_quat(product.numpy()).as_matrix(), (a * b).as_matrix(), atol=1e-9
    )


@both_presets
def test_the_motion_frame_looks_at_the_ball(preset):
    task, env = make(sets=200, instances=2, preset=preset)
    states = env.reset().states
    assert float(states[..., 1].abs().max()) < 1e-5  # in the x-z plane,
    assert float(states[..., 0].min()) >= 0  # on the positive side of x
    base = task.world.pos - task.world.plate_pos[:, None]
    torch.testing.assert_close(states[..., :3].norm(dim=-1), base.norm(dim=-1))
    torch.testing.assert_close(states[..., 2], base[..., 2])
    torch.testing.assert_close(states[..., 3:].norm(dim=-1), task.world.vel.norm(dim=-1))


# Throws


def test_balls_from_a_ramp_leave_it_level_and_meet_the_plate():
    """Released 0.3 m up with no speed downwards; where they come down to the plate is within 5 cm."""
    config = (
        CatchingTask().with_config(**dict(find_condition("ramp-1.3", CatchingTask.conditions()).task)).config
    )
    sets = torch.arange(500)
    thrown = throw(config, KeyedRng(0, sets, sets, sets))
    position, velocity = thrown.offset, thrown.velocity
    fall_s = (2 * 0.3 / GRAVITY) ** 0.5
    # z + v_z t = g t^2 / 2 at the arrival; the fall before the first state is what is left of the drop.
    t = (velocity[:, 2] + (velocity[:, 2] ** 2 + 2 * GRAVITY * position[:, 2]).sqrt()) / GRAVITY
    before = fall_s - t
    torch.testing.assert_close(velocity[:, 2], -GRAVITY * before, rtol=0, atol=1e-4)
    torch.testing.assert_close(position[:, 2] + 0.5 * GRAVITY * before**2, torch.full((500,), 0.3))
    miss = (position + velocity * t[:, None])[:, :2].norm(dim=1)
    assert 0.045 < float(miss.max()) <= 0.05
    # The release lies 1.3 m/s times the fall from the middle, the arrival up to 5 cm off it.
    off = (velocity[:, :2].norm(dim=1) - 1.3).abs() * fall_s
    assert float(off.max()) <= 0.05 + 1e-4


def test_throws_arrive_where_and_when_they_should():
    config = CatchingConfig()
    index = torch.arange(5000)
    thrown = throw(config, KeyedRng(0, index, index * 0, index * 0))
    offset, velocity = thrown.offset, thrown.velocity
    # Fly on until the plate's height: 0 = z + v t - g t^2 / 2.
    z, fall = offset[:, 2], velocity[:, 2]
    lead = (fall + (fall**2 + 2 * GRAVITY * z).sqrt()) / GRAVITY
    assert float(lead.min()) >= 0.08 - 1e-4 and float(lead.max()) <= 0.12 + 1e-4
    arrival = offset[:, :2] + velocity[:, :2] * lead[:, None]
    radius = arrival.norm(dim=1)
    assert float(radius.max()) <= 0.2 + 1e-4
    assert float((radius < 0.1).float().mean()) == pytest.approx(0.25, abs=0.02)  # even over the disc
    # Fly back by T - lead: thrown from 1 to 2 m away.
    down = -(fall - GRAVITY * lead)
    assert float(down.min()) > 4.6 and float(down.max()) < 7.6
    sideways = velocity[:, :2].norm(dim=1)
    assert float(sideways.min()) > 0.8 / 1.5 - 1e-3 and float(sideways.max()) < 2.2
    direction = torch.atan2(-velocity[:, 1], -velocity[:, 0])
    assert float(direction.abs().max()) < np.pi / 2 + 0.3
    # What a throw says of its arrival is where the flight ends.
    torch.testing.assert_close(thrown.arrival[:, :2], arrival, rtol=0, atol=1e-4)
    assert float(thrown.arrival[:, 2].abs().max()) == 0.0
    falling = velocity - torch.tensor([0.0, 0.0, GRAVITY]) * lead[:, None]
    torch.testing.assert_close(thrown.arrival_velocity, falling, rtol=0, atol=1e-3)


def test_robots_start_near_home_and_at_rest():
    task, env = make(sets=2000, instances=1, preset="paper")
    env.reset()
    error = task.world.q - task.world.home
    assert float(error.std()) == pytest.approx(0.02, rel=0.03)
    assert float(task.world.dq.abs().max()) == 0.0
    torch.testing.assert_close(task.initial_command(), task.world.q)


def test_presets_combine_materials_as_they_say():
    nominal = torch.tensor([0.4, 0.7, 0.8])
    torch.testing.assert_close(AVERAGED.pair_restitution(nominal), torch.tensor([0.30, 0.45, 0.50]))
    torch.testing.assert_close(AVERAGED.pair_friction(torch.tensor([0.1])), torch.tensor([0.05]))
    assert torch.equal(EXACT.pair_restitution(nominal), nominal)
    assert AVERAGED.bounce_speed == 2.0
    task, env = make(sets=50, instances=20, contact="averaged")
    env.reset()
    assert float(task.world.restitution.min()) >= 0.30 and float(task.world.restitution.max()) <= 0.45
    assert bool((task.world.dynamic_friction <= task.world.static_friction).all())


# Reward and success


def place(task, states, tilt=(0.0, 0.0), radius=0.03):
    """Put one ball per set at (d, v) in the motion frame of a plate with a given tilt."""
    sets = len(states)
    task._states = torch.tensor(states, dtype=torch.float32)[:, None]
    task.normal = frames.normal_of_tilt(torch.tensor([tilt] * sets, dtype=torch.float32))
    task.world.radius.fill_(radius)


def test_reward_by_hand():
    task, env = make(sets=6, instances=1)
    env.reset()
    place(
        task,
        [
            [0.0, 0, 0.03, 0, 0, 0],  # at rest on the plate
            [0.0, 0, 0.03, 0.25, 0, 0],  # sideways at eta
            [0.0, 0, 0.10, 0, 0, -0.5],  # falling: max(-0.5, -0.1) counts
            [0.0, 0, 0.10, 0, 0, 0.25],  # rising at eta
            [0.12001, 0, 0.03, 0, 0, 0],  # just outside
            [0.0, 0, -0.001, 0, 0, 0],  # just below
        ],
    )
    terms = task.reward_terms()
    e = np.exp(-1)
    slow = [1.0, 0.5 * e + 0.5, 0.5 + 0.5 * np.exp(-0.16), 0.5 + 0.5 * e, 1.0, 1.0]
    np.testing.assert_allclose(terms["velocity"][:, 0], slow, rtol=1e-5)
    assert terms["lost"][:, 0].tolist() == [0, 0, 0, 0, -1, -1]


def test_reward_is_taken_along_the_tilted_normal():
    task, env = make(sets=1, instances=1)
    env.reset()
    beta = 0.5
    # Tilt about y: n = (sin b, 0, cos b). A ball that slides down the plate at 0.25 m/s.
    downhill = [0.25 * np.cos(beta), 0, -0.25 * np.sin(beta)]
    place(task, [[0.03 * np.sin(beta), 0, 0.03 * np.cos(beta), *downhill]], tilt=(0.0, beta))
    np.testing.assert_allclose(task.reward_terms()["velocity"], 0.5 * np.exp(-1) + 0.5, rtol=1e-5)
    along, across = normal_tangential(task._states[..., :3], task.normal[:, None])
    assert float(along) == pytest.approx(0.03, abs=1e-6) and float(across) < 1e-4


def test_success_needs_plate_touch_and_rest():
    task, env = make(sets=6, instances=1)
    env.reset()
    place(
        task,
        [
            [0.0, 0, 0.03, 0.09, 0, 0],
            [0.0, 0, 0.03, 0.08, 0, 0.08],  # 0.113 m/s in all
            [0.0, 0, 0.05, 0, 0, 0],  # at the top of a hop
            [0.119, 0, 0.03, 0, 0, 0],
            [0.121, 0, 0.03, 0, 0, 0],
            [0.0, 0, -0.03, 0, 0, 0],
        ],
    )
    assert task.success()[:, 0].tolist() == [True, False, False, True, False, False]
    # At 0.2 m/s the second counts as well, and what is not on the plate still does not.
    others = task.other_successes()
    assert {n: s[:, 0].tolist() for n, s in others.items()} == {
        "success_0.2": [True, True, False, True, False, False],
        "success_released": [True, True, False, False, False, False],  # within 0.1 m of the centre
    }


def test_success_is_told_at_the_speeds_asked_for():
    task, env = make(sets=4, instances=1, success_speed=0.15, other_success_speeds=(0.05, 0.2))
    env.reset()
    # Speeds of 0.04, 0.1, 0.173 and 0.3 m/s, in all directions.
    place(task, [[0, 0, 0.03, 0, -0.04, 0], [0, 0, 0.03, -0.1, 0, 0], [0, 0, 0.03, 0.1, 0.1, -0.1], [0, 0, 0.03, 0.3, 0, 0]])  # fmt: skip
    assert task.success()[:, 0].tolist() == [True, True, False, False]
    told = {name: caught[:, 0].tolist() for name, caught in task.other_successes().items()}
    at_two = [True, True, True, False]
    assert told == {"success_0.05": [True] + 3 * [False], "success_0.2": at_two, "success_released": at_two}


# Action


@both_presets
def test_action_becomes_plate_pose(preset):
    """One action held for a second and a half: the plate ends at its target, tilted as asked."""
    task, env = make(sets=3, instances=1, joint_noise=0.0, preset=preset)
    env.reset()
    tilt = torch.tensor([[0.1, 0.0], [0.0, -0.1], [0.07, 0.07]])
    delta = torch.tensor([[0.03, 0.0, 0.0], [0.0, 0.03, 0.01], [0.0, 0.0, -0.03]])
    command, limited = task.command(encode(task.config, delta, tilt))
    target = task.world.plate_pos + (task._rotation @ delta[..., None])[..., 0]
    for _ in range(30):
        task.advance(command, 0.05)
    assert not limited.any()
    torch.testing.assert_close(task.world.plate_pos, target, atol=3e-3, rtol=0)
    torch.testing.assert_close(task.condition(), tilt, atol=0.01, rtol=0)


@pytest.mark.parametrize(
    ("preset", "half_way"),
    [("released", 0.1 / 2), ("paper", 0.15 / 4)],  # in proportion; by the signed square
)
def test_encode_inverts_decode(preset, half_way):
    task, _ = make(preset=preset)
    action = 1.4 * torch.rand(100, 5, generator=torch.Generator().manual_seed(0)) - 0.7
    displacement, tilt, cut = decode(task.config, action)
    assert not cut.any()
    torch.testing.assert_close(encode(task.config, displacement, tilt), action, atol=1e-5, rtol=0)
    displacement, tilt, _ = decode(task.config, torch.tensor([[-0.5, 0, 0, 0, -0.5]]))
    assert float(displacement[0, 0]) == pytest.approx(-half_way)
    assert float(tilt[0, 1]) == pytest.approx(-task.config.max_tilt / 2)


def test_tilt_is_cut_at_a_disc_and_position_at_a_box():
    task, env = make(sets=1, instances=1, preset="paper")
    env.reset()
    _, tilt, cut = decode(task.config, torch.tensor([[0.0, 0, 0, 1.0, 1.0]]))
    assert bool(cut) and float(tilt.norm()) == pytest.approx(task.config.max_tilt)
    low, high = (task.home_pos + torch.tensor(b) for b in (TEXT.workspace_low, TEXT.workspace_high))
    limited = torch.zeros(1, dtype=torch.bool)
    for _ in range(19):
        step = env.step(torch.tensor([[1.0, 0.0, 1.0, 0.0, 0.0]]))
        limited |= step.limited
    assert bool(limited)
    assert bool((task.world.plate_pos > low - 0.01).all() and (task.world.plate_pos < high + 0.01).all())


def test_a_joint_near_the_end_of_its_range_is_asked_to_go_slowly():
    task = CatchingTask(replace(PRESETS["fr3"], joint_speed=0.5, reference_lead=1.2))
    task.allocate(1, 1)
    task.world.q[0, 1] = -1.7837 + 0.1  # FCI: sqrt(2 x 2.585 x 0.1) - 0.2517 = 0.4673 rad/s downwards
    away = torch.zeros(1, 7)
    away[0, 1] = -0.5
    joints, slowed = task._slow_down(task.world.q + away)
    assert float((task.world.q - joints)[0, 1]) == pytest.approx(1.2 * 40 / 300 * 0.95 * 0.4673, rel=1e-3)
    joints, _ = task._slow_down(task.world.q - away)  # upwards, half of 2.62 rad/s
    assert float((joints - task.world.q)[0, 1]) == pytest.approx(1.2 * 40 / 300 * 0.5 * 2.62, rel=1e-3)
    assert bool(slowed)


@pytest.mark.parametrize("trouble", [{}, {"execution_error": 0.05}, {"delay_s": (0.05, 0.1)}])
@pytest.mark.parametrize(
    ("preset", "joint_speed", "most"),
    [
        ("fr3", 0.85, 1.0),
        *((preset, *speeds) for preset in ("released", "paper") for speeds in ((0.75, 1.0), (1.0, 1.3))),
    ],
)
def test_no_joint_outruns_its_limit(preset, trouble, joint_speed, most):
    task = CatchingTask(replace(PRESETS[preset], joint_speed=joint_speed))
    env = Env(task, EnvConfig(sets=64, instances=1, **trouble))
    env.reset()
    generator = torch.Generator().manual_seed(0)
    fastest, share, kinematics = torch.zeros(7), np.zeros(64), Kinematics(task.config.home, task.config.mount)
    advance = task.advance

    def advance_and_watch(command, duration_s):
        nonlocal fastest, share
        for _ in range(round(duration_s / task.substep_s)):
            advance(command, task.substep_s)
            fastest = torch.maximum(fastest, task.world.dq.abs().amax(dim=0))
            dq, (down, up) = task.world.dq.numpy(), kinematics.speed_limits_at(task.world.q.numpy())
            share = np.maximum(share, (np.abs(dq) / np.where(dq > 0, up, down).clip(1e-6)).max(axis=1))

    task.advance = advance_and_watch
    for _ in range(20):  # the harshest there is: full actions either way
        env.step(torch.randint(0, 2, (64, 5), generator=generator) * 2.0 - 1.0)
    np.testing.assert_allclose(task.world.speed_share, share, rtol=1e-3)  # by FCI's formula, in NumPy
    assert (task.other_successes()["within_speed_limits"][:, 0].numpy() == (share <= 1)).all()
    assert bool((fastest <= most * torch.tensor(task.arm.velocity_limit)).all())


# Agents


def play(preset):
    """Mean reward and success of every agent without training, over 256 sets of two."""
    reward, success = {}, {}
    for name, agent_of in BASELINES.items():
        task, env = make(sets=256, instances=2, preset=preset)
        observation = env.reset()
        agent = agent_of(task, 256)
        total = 0.0
        for _ in range(task.horizon):
            step = env.step(agent(observation))
            observation = step.observation
            total += float(step.reward.mean()) / task.horizon
        reward[name], success[name] = total, float(step.success.float().mean())
    return reward, success


def test_agents_rank_as_they_should():
    """From home, VelTrack beats standing still and moving at random, and none of them solves the task."""
    reward, success = play("paper")
    assert reward["veltrack"] > 0.1 > reward["still"] and reward["veltrack"] > reward["random"] + 0.4
    assert 0.03 < success["veltrack"] < 0.5
    assert success["still"] < 0.02 and success["random"] < 0.02


def test_where_the_plate_meets_the_ball_standing_still_is_worth_something():
    """At the point of arrival, the ball at least hits the plate of those who stand still or track it."""
    reward, success = play("released")
    assert min(reward["still"], reward["veltrack"]) > 0.0 > reward["random"]
    assert success["random"] < 0.02 < success["still"] < 0.5 and success["veltrack"] < 0.5


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"distance": (2.0, 1.0)}, "distance .* is reversed"),
        ({"max_tilt": 1.0}, "max_tilt"),
        ({"contact": "soft"}, "contact must be one of averaged, exact, got 'soft'"),
        ({"mount": "up"}, "mount must be one of down, level, got 'up'"),
        ({"start": "there"}, "start must be one of arrival, home, got 'there'"),
        ({"displacement_curve": "cube"}, "displacement_curve must be one of linear, square"),
        ({"workspace_around": "base"}, "workspace_around must be one of start, home"),
        ({"displacement": -0.1}, "displacement must be positive"),
        ({"joint_speed": 2.0}, "joint_speed must be None or"),
        ({"workspace_low": (0.1, -0.1, -0.1)}, "enclose"),
    ],
)
def test_bad_settings_are_refused(config, message):
    with pytest.raises(ValueError, match=message):
        CatchingConfig(**config)
