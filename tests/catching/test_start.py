"""Where an episode begins and where the plate may go: at the arrival of the ball, in a box about that."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from dris import Env, EnvConfig
from dris.catching.frames import plate_normal
from dris.catching.settings import PRESETS, TEXT, CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.constants import GRAVITY

RELEASED = CatchingConfig()


def begin(config, sets, seed=0):
    task = CatchingTask(config)
    env = Env(task, EnvConfig(sets=sets, instances=1, seed=seed))
    env.reset()
    return task, env


def arrivals(world):
    """Where balls cross the plate's height and how fast they are then, [B, 3] each: 0 = z + v t - g t^2 / 2."""
    ball, velocity, plate = (v.double().numpy() for v in (world.pos[:, 0], world.vel[:, 0], world.plate_pos))
    rise, height = velocity[:, 2], ball[:, 2] - plate[:, 2]
    time_s = ((rise + np.sqrt(rise**2 + 2 * GRAVITY * height)) / GRAVITY)[:, None]
    gravity = np.array([0.0, 0.0, -GRAVITY])
    return ball + velocity * time_s + 0.5 * gravity * time_s**2, velocity + gravity * time_s


def normals(world):
    return Rotation.from_quat(world.plate_quat.double().numpy()).as_matrix()[:, :, 2]


def angle(a, b):
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), (a * b).sum(axis=1))


def test_the_plate_waits_where_the_ball_arrives_and_faces_it():
    task, _ = begin(replace(RELEASED, joint_noise=0.0), 1000)
    at, velocity = arrivals(task.world)
    assert np.linalg.norm(at - task.world.plate_pos.numpy(), axis=1).max() < 1e-3
    against = -velocity / np.linalg.norm(velocity, axis=1, keepdims=True)
    assert angle(normals(task.world), against).max() < 0.01
    # Not because all arrive in one place: over a disc of 0.2 m about home, from all sides but behind.
    off = (at - task.home_pos.numpy())[:, :2]
    assert 0.19 < np.linalg.norm(off, axis=1).max() < 0.202
    directions = np.arctan2(against[:, 1], against[:, 0])
    assert np.quantile(directions, 0.05) < -1.2 and np.quantile(directions, 0.95) > 1.2


def test_joints_scatter_about_that_start_and_rest():
    sharp, _ = begin(replace(RELEASED, joint_noise=0.0), 2000)
    task, _ = begin(RELEASED, 2000)
    error = task.world.q - sharp.world.q
    # 14,000 normal numbers: four standard errors of their mean and spread.
    assert float(error.std()) == pytest.approx(0.02, rel=4 / (2 * 14_000) ** 0.5)
    assert abs(float(error.mean())) < 4 * 0.02 / 14_000**0.5
    assert torch.equal(task.world.pos, sharp.world.pos)  # the throws are the same
    assert float(task.world.dq.abs().max()) == 0.0 and torch.equal(task.initial_command(), task.world.q)


def test_every_start_is_well_inside_the_joint_limits():
    """0.25 rad away, more than ten standard deviations of the joint noise."""
    task, _ = begin(RELEASED, 4000)
    low, high = np.array(task.arm.joint_range).T
    q = task.world.q.double().numpy()
    assert np.minimum(q - low, high - q).min() > 0.25


@pytest.mark.parametrize("config", [TEXT, replace(RELEASED, start="home")], ids=["paper", "released"])
def test_from_home_the_robot_knows_nothing_of_the_throw(config):
    task, _ = begin(config, 2000)
    error = task.world.q.numpy() - np.array(config.home)
    assert error.std() == pytest.approx(0.02, rel=4 / (2 * 14_000) ** 0.5)
    # Balls arrive about the plate as it stands, evenly over the disc: a quarter within half its radius.
    at, velocity = arrivals(task.world)
    off = np.linalg.norm(at - task.world.plate_pos.numpy(), axis=1)
    assert 0.19 < off.max() < 0.2001 and (off < 0.1).mean() == pytest.approx(0.25, abs=0.04)
    assert angle(normals(task.world), -velocity / np.linalg.norm(velocity, axis=1)[:, None]).min() > 0.02


def test_sets_begin_anew_where_their_own_ball_arrives():
    """A partial reset moves the box and the start of those sets alone."""
    task, env = begin(replace(RELEASED, joint_noise=0.0), 40)
    before = task.world.plate_pos.clone()
    env.step(torch.zeros(40, 5))
    moved = task.world.plate_pos.clone()
    env.reset(torch.arange(0, 40, 2))
    assert torch.equal(task.world.plate_pos[1::2], moved[1::2])
    fresh = arrivals(task.world)[0][::2]
    assert np.linalg.norm(fresh - task.world.plate_pos.numpy()[::2], axis=1).max() < 1e-3
    assert torch.equal(task._box_middle[1::2], before[1::2])
    assert torch.equal(task._box_middle[::2], task.world.plate_pos[::2])


# Workspace

WAYS = torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])


def test_a_plate_asked_to_go_on_and_on_stops_at_its_box():
    """The box stands about the start and turns with the motion frame: x is towards where the ball came from."""
    config = replace(RELEASED, joint_noise=0.0, horizon=60, region_radius=0.02)
    task, env = begin(config, 60)
    start, ball = task.world.plate_pos.clone(), task.world.pos[:, 0].clone()
    ahead = (ball - start)[:, :2] / (ball - start)[:, :2].norm(dim=1, keepdim=True)
    action = torch.cat((WAYS.repeat(10, 1), torch.zeros(60, 2)), dim=1)
    limited = torch.zeros(60)
    for _ in range(60):
        limited += env.step(action).limited
    moved = task.world.plate_pos - start
    along = (moved[:, :2] * ahead).sum(dim=1)
    left = ahead[:, 0] * moved[:, 1] - ahead[:, 1] * moved[:, 0]
    found = torch.stack((along, left, moved[:, 2]), dim=1)
    # Across its way it may drift: displacements are from where the plate is, not from where it was told to be.
    ways, side = WAYS.repeat(10, 1), torch.tensor([0.15, 0.15, 0.10])
    torch.testing.assert_close((found * ways).sum(dim=1), (ways.abs() * side).sum(dim=1), atol=0.01, rtol=0)
    assert bool((found.abs() < side + 0.01).all())
    assert float(limited.min()) > 40  # and it was told each time
    # Balls came from many sides, so this is no box of the base frame.
    assert float(moved[0::6, :2].std(dim=0).min()) > 0.03


def test_inside_the_box_nothing_is_changed():
    wide = replace(RELEASED, workspace_low=(-9.0,) * 3, workspace_high=(9.0,) * 3)
    boxed, free = begin(RELEASED, 200)[0], begin(wide, 200)[0]
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):  # three steps of at most 3 cm
        action = 0.6 * torch.rand(200, 5, generator=generator) - 0.3
        (command, cut), (expected, _) = boxed.command(action), free.command(action)
        assert torch.equal(command, expected) and not cut.any()
        boxed.advance(command, 0.05)
        free.advance(expected, 0.05)
    outside = torch.zeros(200, 5)
    outside[:, 2] = -1.0
    for _ in range(4):
        (command, cut), (expected, _) = boxed.command(outside), free.command(outside)
        boxed.advance(command, 0.05)
        free.advance(command, 0.05)
    assert float(cut.float().mean()) > 0.9 and not (command[cut] == expected[cut]).all(dim=1).any()


def test_balls_are_laid_on_a_tilted_plate():
    """30 degrees, at rest, the largest of a set touching; a share of the episodes, the others thrown as ever."""
    tilted = replace(PRESETS["fr3"], laid_share=1.0, laid_tilt=(math.pi / 6, math.pi / 6))
    task = CatchingTask(tilted)
    env = Env(task, EnvConfig(sets=20, instances=4, seed=2))
    env.reset()
    assert task.normal[:, 2].tolist() == pytest.approx([math.cos(math.pi / 6)] * 20, abs=2e-3)
    torch.testing.assert_close(task.world.plate_pos, task.home_pos.expand(20, 3), atol=2e-3, rtol=0)
    assert float(task.world.vel.abs().max()) == 0.0
    from_plate = task.world.pos - task.world.plate_pos[:, None]
    normal = plate_normal(task.world.plate_quat)  # base frame
    height = (from_plate * normal[:, None]).sum(dim=-1)
    torch.testing.assert_close(height[:, 0], task.world.radius.max(dim=1).values, atol=2e-3, rtol=0)
    assert bool((from_plate[..., 2] > height * math.cos(math.pi / 6) - 1e-3).all())  # uphill, not down

    some = CatchingTask(replace(tilted, laid_share=0.3))
    Env(some, EnvConfig(sets=400, instances=1, seed=2)).reset()
    still = some.world.vel[:, 0].norm(dim=1) == 0
    assert float(still.float().mean()) == pytest.approx(0.3, abs=0.07)
    plain = CatchingTask(PRESETS["fr3"])
    Env(plain, EnvConfig(sets=400, instances=1, seed=2)).reset()
    assert torch.equal(some.world.pos[~still], plain.world.pos[~still])
