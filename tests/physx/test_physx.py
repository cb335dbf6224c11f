"""PhysX against closed forms and against the training world's arm."""

import importlib.util
import math

import numpy as np
import pytest
import torch
from fakes import LineTask

from dris import Env, EnvConfig
from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.conditions import find_condition
from dris.core.constants import GRAVITY
from dris.core.rollout import run_episodes, single_instances
from dris.core.task import NoConfig
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.experiments.worlds import check_world, score_in_physx
from dris.physx import scene as physx_scene
from dris.physx.scene import Ball, Material, PhysxConfig, PhysxScene
from dris.physx.task import PhysxTask, plate_material
from dris.sim.contact import PRESETS

# `make test` installs sapien; a user without the extra still runs the rest.
needs_sapien = pytest.mark.skipif(importlib.util.find_spec("sapien") is None, reason="needs the extra physx")
TASK = CatchingConfig()


def one_ball(offset, velocity, material, preset="averaged", radius=0.03, config=PhysxConfig()):  # noqa: B008
    """The arm at home, its plate level, and a ball whose lowest point starts `offset` from the plate's centre."""
    task = CatchingTask()
    task.allocate(1, 1)
    position = task.home_pos.double().numpy() + np.array(offset) + [0.0, 0.0, radius]
    ball, contact = Ball(position, np.array(velocity), radius, material), PRESETS[preset]
    gains, plate = (TASK.stiffness, TASK.damping), plate_material(contact, material)
    home = np.array(TASK.home)
    return PhysxScene(task.arm, home, gains, plate, [ball], contact.bounce_speed, config), position


@needs_sapien
def test_free_flight_is_a_parabola():
    start = np.array([0.3, -0.2, 1.0])
    scene, position = one_ball([0.5, 0.0, 1.0], start, Material(0.1, 0.1, 0.5))
    scene.advance(50)
    t, dt = 0.5, 0.01
    # Semi-implicit Euler falls ahead of the parabola by g t dt / 2.
    expected = position + start * t - [0, 0, 0.5 * GRAVITY * t * (t + dt)]
    np.testing.assert_allclose(scene.ball_positions[0], expected, atol=1e-4)
    np.testing.assert_allclose(scene.ball_velocities[0], start - [0, 0, GRAVITY * t], atol=1e-4)


def rebound(speed, material, preset, config):
    """Speed after the impact over that before it, of a ball that meets the middle of the plate."""
    scene, _ = one_ball([0.0, 0.0, 0.002], [0.0, 0.0, -speed], material, preset, config=config)
    last = -speed
    for _ in range(20):
        scene.advance(1)
        rise = float(scene.ball_velocities[0, 2])
        if rise > last + 0.01:
            return rise / -last
        last = rise
    raise AssertionError("the ball never met the plate")


@needs_sapien
@pytest.mark.parametrize("nominal", [0.4, 0.7, 0.8])
def test_restitution_is_the_average_above_the_threshold_and_nothing_below(nominal):
    material, fine = Material(0.0, 0.0, nominal), PhysxConfig(step_s=0.001)
    for speed in (2.2, 5.0, 7.0):
        assert rebound(speed, material, "averaged", fine) == pytest.approx((nominal + 0.2) / 2, abs=0.01)
        # At the released step of 10 ms gravity acts on either side of the impact: 0.1 m/s.
        coarse = rebound(speed, material, "averaged", PhysxConfig())
        assert coarse == pytest.approx((nominal + 0.2) / 2, abs=0.1 / speed + 0.01)
    for speed in (0.5, 1.8):
        assert rebound(speed, material, "averaged", fine) == pytest.approx(0.0, abs=0.01)


@needs_sapien
def test_exact_contact_bounces_as_the_ball_alone_would_at_any_speed():
    for speed in (0.5, 5.0):
        material = Material(0.05, 0.05, 0.6)
        assert rebound(speed, material, "exact", PhysxConfig(step_s=0.001)) == pytest.approx(0.6, abs=0.02)
    assert plate_material(PRESETS["averaged"], Material(0.1, 0.1, 0.6)) == (0.0, 0.0, 0.2)


@needs_sapien
@pytest.mark.parametrize("preset, share", [("averaged", 0.5), ("exact", 1.0)])
def test_a_sliding_ball_is_slowed_by_the_pairs_friction(preset, share):
    scene, _ = one_ball([-0.08, 0.0, 0.0], [0.5, 0.0, 0.0], Material(0.1, 0.1, 0.0), preset)
    scene.advance(20)
    # It hardly spins, being so light that SAPIEN's least inertia is fifty times its own: friction stays mu g.
    lost = 0.5 - float(scene.ball_velocities[0, 0])
    assert lost == pytest.approx(share * 0.1 * GRAVITY * 0.2, rel=0.1)
    gap = float(scene.ball_positions[0, 2]) - 0.03 - plate_height()
    assert abs(gap) < 1e-3  # on the plate, which is where ours is


def plate_height():
    task = CatchingTask()
    task.allocate(1, 1)
    return float(task.home_pos[2])


@needs_sapien
@pytest.mark.parametrize("joint_speed", [None, 0.3])
def test_the_arm_answers_as_the_training_worlds(joint_speed):
    ours = CatchingTask(CatchingConfig(joint_speed=joint_speed))
    theirs = PhysxTask(ours.config)
    for task in (ours, theirs):
        Env(task, EnvConfig(sets=8, instances=1, seed=3)).reset()
    assert torch.equal(ours.states(), theirs.states())
    generator, square, travel = torch.Generator().manual_seed(0), [], []
    for _ in range(10):
        way = 0.6 * torch.rand(8, 7, generator=generator) - 0.3
        reference = ours.initial_command() + way
        for task in (ours, theirs):
            task.advance(reference, 0.05)
        square.append((ours.world.q - theirs.world.q) ** 2)
        travel.append((ours.world.q - ours.initial_command()).abs().amax())
    assert max(travel) > 0.1  # it moves
    # 1 mrad, about 1 mm at the plate; against MuJoCo the training world itself has up to 2 mrad.
    assert float(torch.stack(square).mean().sqrt()) < 1e-3


@needs_sapien
def test_episodes_are_the_training_worlds_up_to_the_impact():
    env = {
        cls: single_instances(cls(), find_condition("noise-2", CatchingTask.conditions()), 6, 5)
        for cls in (CatchingTask, PhysxTask)
    }
    first = {cls: env[cls].reset() for cls in env}
    assert torch.equal(first[CatchingTask].states, first[PhysxTask].states)  # the noise, too
    action = torch.zeros(6, 5)
    ours, theirs = (env[cls].step(action).observation.states for cls in (CatchingTask, PhysxTask))
    # Ball and plate after 0.05 s of flight: semi-implicit Euler is off by g t dt / 2 = 2.5 mm.
    np.testing.assert_allclose(ours[..., :3], theirs[..., :3], atol=3e-3)
    np.testing.assert_allclose(ours[..., 3:], theirs[..., 3:], atol=1e-3)


@needs_sapien
def test_a_score_stands_beside_the_training_worlds():
    policy = find_policy("still")
    row = score_in_physx(policy, "restitution", 8, 3)
    assert (row["world"], row["condition"], row["episodes"]) == ("physx", "restitution", 8)
    assert 0 <= row["success"] <= row["success_0.2"] <= 1 and -1 <= row["reward"] <= 1
    alone = run_episodes(
        policy.make_task, policy.make_agent, find_condition("restitution", CatchingTask.conditions()), 8, 3
    ).score()
    assert row["training_success"] == alone.success
    assert (
        score_in_physx(policy, "execution", 8, 3)["reward"] != score_in_physx(policy, "clean", 8, 3)["reward"]
    )


def test_what_physx_is_not_for_is_refused():
    with pytest.raises(ValueError, match=r"1000 Nm/s: take --world twin"):
        PhysxTask(CatchingConfig(torque_rate=1000.0))
    with pytest.raises(ValueError, match="'worst-case' runs 81 conditions"):
        check_world("physx", [find_policy("still")], ("worst-case",))
    with pytest.raises(ValueError, match="LineTask is no catching task"):
        check_world("physx", [PolicyHandle("x", LineTask, NoConfig(), None)], ("clean",))
    with pytest.raises(ValueError, match="ball_density must be positive and finite, got 0"):
        PhysxConfig(ball_density=0.0)
    with pytest.raises(ValueError, match="step_s must be positive and finite, got inf"):
        PhysxConfig(step_s=math.inf)


@needs_sapien
def test_sets_of_more_than_one_ball_are_refused():
    with pytest.raises(ValueError, match="one ball at a time, got sets of 2"):
        Env(PhysxTask(), EnvConfig(sets=1, instances=2))


def test_without_sapien_the_way_to_it_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"this needs sapien: pip install 'dris\[physx\]'"):
        physx_scene.load_sapien()
    with pytest.raises(ImportError, match="sapien"):
        PhysxTask()
