"""The world as a whole: independence, determinism, resampling, limits, memory."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from dris import Env, EnvConfig
from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.core import process
from dris.sim.world import PlateWorld
from dris.sim.world_config import WorldConfig


@pytest.fixture(autouse=True)
def _restore_threads():
    before = process.threads(), torch.get_num_threads()
    yield
    process.set_threads(before[0])
    torch.set_num_threads(before[1])


def episode(sets=4, instances=6, threads=1, contact="averaged", select=None):
    process.set_threads(threads)
    task = CatchingTask(CatchingConfig(contact=contact))
    env = Env(task, EnvConfig(sets=sets, instances=instances, seed=3))
    env.reset()
    if select is not None:
        task.world.gather(select)
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        action = 0.6 * torch.rand(1, 5, generator=generator) - 0.3
        env.step(action.expand(sets, 5))
    return task.world


@pytest.mark.parametrize("contact", ["averaged", "exact"])
def test_an_instance_alone_and_among_200_follows_the_same_bits(contact):
    alone, among = episode(instances=1, contact=contact), episode(instances=200, contact=contact)
    assert bool((among.impacts > 0).any())
    for name in ("pos", "vel", "spin", "mode", "impacts"):
        assert torch.equal(getattr(alone, name), getattr(among, name)[:, :1])
    assert torch.equal(alone.q, among.q)


def test_permuting_instances_permutes_results_and_nothing_else():
    order = torch.stack([torch.randperm(6, generator=torch.Generator().manual_seed(k)) for k in range(4)])
    plain, permuted = episode(), episode(select=order)
    for name in ("pos", "vel", "spin"):
        expected = torch.gather(getattr(plain, name), 1, order[..., None].expand(-1, -1, 3))
        assert torch.equal(getattr(permuted, name), expected)
    assert torch.equal(permuted.q, plain.q)


def test_resampling_copies_instances():
    twice = episode(select=torch.tensor([[0, 0, 0, 3, 3, 5]] * 4))
    assert torch.equal(twice.pos[:, 0], twice.pos[:, 2]) and torch.equal(
        twice.radius[:, 3], twice.radius[:, 4]
    )


def test_delays_that_cut_the_step_elsewhere_change_no_bit():
    """Other sets' delays cut the interval into other pieces: a set must not notice."""
    ends = []
    for sets in (4, 40):
        task = CatchingTask(CatchingConfig(contact="exact"))
        env = Env(task, EnvConfig(sets=sets, instances=20, seed=3, delay_s=(0.0, 0.08)))
        env.reset()
        generator = torch.Generator().manual_seed(1)
        for _ in range(20):
            env.step((0.6 * torch.rand(1, 5, generator=generator) - 0.3).expand(sets, 5))
        ends.append((task.world.pos[:4].clone(), task.world.q[:4].clone()))
    assert torch.equal(ends[0][0], ends[1][0]) and torch.equal(ends[0][1], ends[1][1])


def test_threads_and_batch_size_change_no_bit():
    one, two, many = (
        episode(sets=4, threads=1),
        episode(sets=4, threads=2),
        episode(sets=9, threads=2),
    )
    assert torch.equal(one.pos, two.pos) and torch.equal(one.q, two.q)
    assert torch.equal(one.pos, many.pos[:4]) and torch.equal(one.q, many.q[:4])


def small_world(**config):
    settings = CatchingConfig()
    task = CatchingTask()
    return PlateWorld(
        task.arm, settings.home, 1, 2,
        WorldConfig(**{"stiffness": settings.stiffness, "damping": settings.damping, "bounce_speed": 0.01, **config}),
    )  # fmt: skip


def spheres(**changes):
    ones = torch.ones(1, 2)
    vectors = {name: torch.full((1, 2, 3), changes.get(name, 0.0)) for name in ("pos", "vel", "spin")}
    scalars = {"radius": 0.03, "static_friction": 0.1, "dynamic_friction": 0.05, "restitution": 0.5}
    return vectors | {name: ones * changes.get(name, value) for name, value in scalars.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"radius": -0.01}, r"radius \[m\] must be positive and finite, got -0.0"),
        ({"radius": torch.inf}, r"radius \[m\] must be positive and finite, got inf"),
        ({"restitution": 1.2}, r"restitution must lie in \[0, 1\], got 1.2"),
        ({"restitution": torch.nan}, r"restitution must lie in \[0, 1\], got nan"),
        ({"dynamic_friction": 0.2}, r"dynamic friction must lie in \[0, static friction\], got 0.2"),
        ({"static_friction": torch.inf}, "static friction must be finite, got inf"),
        ({"pos": torch.nan}, r"position \[m\] must be finite, got nan"),
        ({"vel": torch.inf}, r"velocity \[m/s\] must be finite, got inf"),
        ({"spin": torch.nan}, r"spin \[rad/s\] must be finite, got nan at index \[0, 0, 0\]"),
    ],
)
def test_impossible_spheres_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_world().place_spheres(torch.arange(1), **spheres(**changes))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"stiffness": (-1.0,) * 7}, "stiffness must be finite and not negative"),
        ({"stiffness": (1.0,) * 6}, "stiffness has 6 values for an arm of 7 joints"),
        ({"substep_s": 0.1}, "substep_s must lie"),
        ({"threads": 0}, "threads"),
        ({"bounce_speed": 0.0}, "bounce_speed must be positive and finite, got 0.0"),
        ({"bounce_speed": float("nan")}, "bounce_speed must be positive and finite, got nan; 0.01 m/s"),
        ({"damping": (float("nan"),) * 7}, "damping must be finite"),
        ({"arm_steps": 0}, r"arm_steps must lie in \[1, 1000\]"),
        ({"brakes_in_time": True, "torque_rate": 1000.0}, "brakes_in_time needs a joint_speed to keep"),
    ],
)
def test_impossible_worlds_are_refused(config, message):
    with pytest.raises(ValueError, match=message):
        small_world(**config)


def test_joints_that_are_no_numbers_are_refused():
    world, one, bad = small_world(), torch.arange(1), torch.full((1, 7), torch.nan)
    with pytest.raises(ValueError, match=r"joint positions \[rad\] must be finite, got nan"):
        world.place_arms(one, bad, torch.zeros(1, 7))
    with pytest.raises(ValueError, match=r"joint velocities \[rad/s\] must be finite, got nan"):
        world.place_arms(one, world.q, bad)
    with pytest.raises(ValueError, match=r"desired joint positions \[rad\] must be finite, got nan"):
        world.advance(bad, 0.05)


def test_numpys_gains_are_gains():
    settings = CatchingConfig()
    arrays = {name: np.array(getattr(settings, name)) for name in ("stiffness", "damping")}
    plain, numpys = small_world(joint_speed=1.0), small_world(joint_speed=np.float64(1.0), **arrays)
    for world in (plain, numpys):
        world.advance(world.home[None] + 0.1, 0.05)
    assert torch.equal(plain.q, numpys.q)


def test_impossible_speeds_become_nan_but_never_hang():
    world = small_world()
    start = world.plate_pos[:, None] + torch.tensor([0.0, 0.0, 0.1])
    fast = spheres() | {"pos": start.expand(1, 2, 3), "vel": torch.tensor([0.0, 0.0, -1e8]).expand(1, 2, 3)}
    world.place_spheres(torch.arange(1), **fast)
    world.advance(world.home[None], 0.05)
    assert not torch.isfinite(world.pos).all()


def test_what_moved_is_saved_and_comes_back():
    world = small_world()
    world.advance(world.q + 0.2, 0.05)
    saved = [part.clone() for part in world.moving()]
    world.advance(world.q - 0.5, 0.1)
    assert float(world.speed_share[0]) > float(saved[4][0])
    for part, value in zip(world.moving(), saved, strict=True):
        part.copy_(value)
    assert torch.equal(world.speed_share, saved[4]) and torch.equal(world.q, saved[0])


def test_a_duration_must_be_whole_substeps():
    world = small_world()
    with pytest.raises(ValueError, match="multiple of the substep, 0.005 s, got 0.012"):
        world.advance(world.home[None], 0.012)


def test_128_sets_of_200_fit_in_300_mb():
    script = """
import resource, torch
from dris import Env, EnvConfig
from dris.catching.task import CatchingTask
import gymnasium, tensordict
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
small = Env(CatchingTask(), EnvConfig(sets=1, instances=1))
small.reset(); small.step(torch.zeros(1, 5))  # kernels are loaded: what follows is the world's own
before = peak()
env = Env(CatchingTask(), EnvConfig(sets=128, instances=200))
env.reset()
for _ in range(20):
    env.step(torch.zeros(128, 5))
print(peak() - before)
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(out.stdout) < 300
