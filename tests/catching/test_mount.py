"""How the hand holds the plate: pose by hand, reach, and what the plate and balls keep clear of."""

import math
import os
import subprocess
import sys
from functools import lru_cache

import mujoco
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.spatial.transform import Rotation

from dris import Env, EnvConfig, KeyedRng
from dris.catching.frames import quat_multiply, quat_of_tilt
from dris.catching.robot_model import MOUNTS, ROBOT_XML, robot_model, robot_spec
from dris.catching.settings import TEXT, CatchingConfig
from dris.catching.task import CatchingTask
from dris.catching.throws import throw
from dris.core.constants import GRAVITY

RELEASED = CatchingConfig()
FAR = 1.0
"""Distances are looked for up to here [m]."""
LARGEST = 0.04
"""Radius of the largest ball [m]."""


def in_the_plane(home, tool, across):
    """(x, z) of a point of the hand, from Franka's Denavit-Hartenberg table, by hand.

    With q1 = q3 = q5 = 0 the arm moves in the x-z plane. Pitches are from the vertical: upper arm q2, forearm
    q2 - q4, hand q2 - q4 - q6 + pi; d1 0.333, d3 0.316, a4 0.0825, d5 0.384, a7 0.088, flange 0.107 m. `tool` is
    beyond the flange along the hand, `across` to the side that a7 points to [m].
    """
    upper, fore, hand = home[1], home[1] - home[3], home[1] - home[3] - home[5] + math.pi

    def along(pitch):
        return np.array([math.sin(pitch), math.cos(pitch)])

    def side(pitch):
        return np.array([math.cos(pitch), -math.sin(pitch)])

    elbow = np.array([0.0, 0.333]) + 0.316 * along(upper) + 0.0825 * side(upper)
    wrist = elbow - 0.0825 * side(fore) + 0.384 * along(fore)
    return wrist - (0.088 + across) * side(hand) + (0.107 + tool) * along(hand)


@pytest.mark.parametrize(
    ("config", "hand", "tool", "across"),
    [
        # Plate 0.13 m beside the flange's axis; its top face is 5 mm nearer to the flange than its centre.
        (RELEASED, (0.0, 0.0, -1.0), 0.1034 - 0.005, 0.13),
        # Plate 0.22 m ahead of the flange; its top face is 5 mm over the axis.
        (TEXT, (1.0, 0.0, 0.0), 0.22, 0.005),
    ],
    ids=["down", "level"],
)
def test_the_plate_at_home_by_hand(config, hand, tool, across):
    model = robot_model(config.mount)
    data = mujoco.MjData(model)
    data.qpos[:] = config.home
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(data.body("hand").xmat.reshape(3, 3)[:, 2], hand, atol=1e-9)
    site = data.site("plate")
    np.testing.assert_allclose(site.xmat.reshape(3, 3)[:, 2], [0, 0, 1], atol=1e-9)  # level
    x, z = in_the_plane(config.home, tool, across)
    np.testing.assert_allclose(site.xpos, [x, 0.0, z], atol=1e-9)
    # The training world has it there, too.
    task = CatchingTask(config)
    task.allocate(1, 1)
    np.testing.assert_allclose(task.home_pos, [x, 0.0, z], atol=1e-6)


def test_the_hand_down_holds_the_plate_beside_the_flanges_axis():
    """Flange by the arm's file alone, where no mount is chosen: the plate is 0.13 m further ahead."""
    model = mujoco.MjModel.from_xml_path(str(ROBOT_XML))
    data = mujoco.MjData(model)
    data.qpos[:] = RELEASED.home
    mujoco.mj_kinematics(model, data)
    flange = data.body("hand").xpos
    np.testing.assert_allclose(flange, [0.307, 0.0, 0.590], atol=5e-4)  # Franka's
    task = CatchingTask()
    task.allocate(1, 1)
    np.testing.assert_allclose(task.home_pos.numpy() - flange, [0.13, 0.0, -0.0984], atol=1e-6)


def test_mounts_differ_in_the_plates_place_alone():
    down, level = robot_model("down"), robot_model("level")
    assert set(MOUNTS) == {"down", "level"}
    assert np.array_equal(down.body_mass, level.body_mass) and np.array_equal(down.jnt_range, level.jnt_range)
    moved = [
        down.body(b).name for b in range(down.nbody) if not np.allclose(down.body_pos[b], level.body_pos[b])
    ]
    assert moved == ["plate"]
    # The level mount is the arm's file as it stands.
    file = mujoco.MjModel.from_xml_path(str(ROBOT_XML))
    np.testing.assert_allclose(level.body_pos, file.body_pos, atol=1e-12)
    np.testing.assert_allclose(level.body_quat, file.body_quat, atol=1e-9)


def test_an_unknown_mount_is_refused():
    with pytest.raises(ValueError, match="no mount 'up'; known: down, level"):
        robot_spec("up")


# Reach and clearance of the mount "down"


@lru_cache
def poses(count=1500):
    """Joints at the start [K, 7], at a place of the box about it [K, 7], the plate's wished centre and normal.

    Arrivals, directions and facing are the training's; places are even over the box, tilts over the disc.
    """
    task = CatchingTask()
    task.allocate(count, 1)
    index = torch.arange(count)
    thrown = throw(RELEASED, KeyedRng(5, index, index * 0, index * 0))
    start = task._meeting(thrown)
    generator = np.random.default_rng(0)
    low, high = np.array(RELEASED.workspace_low), np.array(RELEASED.workspace_high)
    towards = (thrown.offset - thrown.arrival).numpy()
    turn = Rotation.from_euler("z", np.arctan2(towards[:, 1:2], towards[:, :1]))
    off = turn.apply(generator.uniform(low, high, (count, 3)))
    target = task.home_pos + thrown.arrival + torch.tensor(off, dtype=torch.float32)
    azimuth = generator.uniform(0, 2 * np.pi, count)
    size = RELEASED.max_tilt * np.sqrt(generator.uniform(size=count))
    tilt = torch.tensor(np.c_[np.cos(azimuth), np.sin(azimuth)] * size[:, None], dtype=torch.float32)
    quat = quat_multiply(quat_of_tilt(tilt), task._home_quat)
    joints, _ = task.world.solve_ik(target, quat, start=start)  # what one step's command asks for
    joints, _ = task.world.solve_ik(target, quat, start=joints)
    normal = Rotation.from_quat(quat.numpy()).as_matrix()[:, :, 2]
    return start.double().numpy(), joints.double().numpy(), target.numpy(), normal


@lru_cache
def reached():
    """Which poses of the box are reached [K]: MuJoCo judges, within what the controller tolerates."""
    _, joints, target, normal = poses()
    model = robot_model("down")
    data = mujoco.MjData(model)
    good = []
    for q, place, wished in zip(joints, target, normal, strict=True):
        assert (q >= model.jnt_range[:, 0] - 1e-6).all() and (q <= model.jnt_range[:, 1] + 1e-6).all()
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        site = data.site("plate")
        off = np.linalg.norm(site.xpos - place)
        turned = site.xmat.reshape(3, 3)[:, 2]
        angle = math.atan2(np.linalg.norm(np.cross(turned, wished)), turned @ wished)
        good.append(off <= 0.005 and angle <= 0.02)
    return np.array(good)


def test_nearly_all_of_the_box_is_within_reach():
    """0.998 of 20,000 poses; what is missing is far ahead and high, near where the arm is stretched."""
    assert reached().mean() >= 0.99
    missing = poses()[2][~reached()]
    assert (np.hypot(missing[:, 0], missing[:, 1]) > 0.65).all()


def resting(count=12, off=0.069):
    """Places [count + 1, 2] of a ball on the plate: its middle, and around it 7 cm off but for a millimetre."""
    angles = np.arange(count) * 2 * np.pi / count
    return np.concatenate((np.zeros((1, 2)), off * np.c_[np.cos(angles), np.sin(angles)]))


def with_balls(places, radius=LARGEST):
    """The robot with balls that lie on the plate, and the bodies that its geoms belong to."""
    spec = robot_spec("down")
    for k, (x, y) in enumerate(places):
        spec.body("plate").add_geom(
            name=f"ball{k}", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius, 0, 0], mass=0,
            pos=[x, y, 0.005 + radius],
        )  # fmt: skip
    model = spec.compile()
    return model, [model.body(model.geom_bodyid[g]).name for g in range(model.ngeom)]


def nearest(model, data, ours, theirs):
    """Least distance between two groups of geoms as the robot stands [m]; negative inside each other."""
    fromto = np.zeros(6)
    return min(mujoco.mj_geomDistance(model, data, a, b, FAR, fromto) for a in ours for b in theirs)


def clearances(joints):
    """From the plate and from balls on it to arm and base, [K] each [m]; the hand is what holds it."""
    model, bodies = with_balls(resting(6))
    data = mujoco.MjData(model)
    arm = [g for g, body in enumerate(bodies) if body not in ("plate", "hand", "world")]
    plate = [model.geom("plate").id]
    balls = [model.geom(f"ball{k}").id for k in range(7)]
    found = []
    for q in joints:
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        found.append([nearest(model, data, group, arm) for group in (plate, balls)])
    return np.array(found).T


def test_at_every_start_plate_and_ball_keep_clear_of_the_arm():
    plate, ball = clearances(poses()[0])
    assert plate.min() > 0.05 and ball.min() > 0.01


def test_in_the_box_only_its_corner_over_the_base_is_not_clear():
    """0.002 of 20,000 poses: arrivals near the robot, and the plate drawn on towards it and down."""
    _, joints, target, _ = poses()
    radius = np.hypot(target[:, 0], target[:, 1])
    plate, ball = clearances(joints[reached() & (radius > 0.25)])
    assert plate.min() > 0.0 and ball.min() > 0.0
    near = joints[reached() & (radius <= 0.25)]
    assert len(near) < 0.08 * len(joints)
    plate, _ = clearances(near)
    assert (plate <= 0).sum() < 0.005 * len(joints)


@pytest.mark.parametrize(("radius", "free"), [(0.02, 0.0943), (0.03, 0.0801), (0.04, 0.07)])
def test_how_near_to_the_hand_a_ball_can_lie(radius, free):
    """The hand's box ends 32.4 mm over the plate and 20 mm beside its axis, 110 mm from the plate's centre.

    A ball whose centre is higher than that touches its side: 110 mm - r. A lower one goes under it until it
    touches the edge: 110 mm - sqrt(r^2 - (32.4 mm - r)^2). The fingers, 118 mm from the centre, come later.
    """
    by_hand = 0.11 - (radius if radius > 0.0324 else math.sqrt(radius**2 - (0.0324 - radius) ** 2))
    assert by_hand == pytest.approx(free, abs=5e-5) and by_hand < 0.118 - radius
    for y in (0.0, 0.05):
        model, bodies = with_balls([(-by_hand + 1e-3, y), (-by_hand - 1e-3, y)], radius)
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        hand = [g for g, body in enumerate(bodies) if body == "hand"]
        before, beyond = (nearest(model, data, [model.geom(f"ball{k}").id], hand) for k in (0, 1))
        assert before > 0.0 > beyond


def test_incoming_balls_pass_hand_and_arm():
    """On their last 0.12 s, the largest ball, the robot at its start: closed-form flight, MuJoCo's distances."""
    spec = robot_spec("down")
    body = spec.worldbody.add_body(name="ball", mocap=True)
    body.add_geom(name="ball", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[LARGEST, 0, 0])
    model = spec.compile()
    data = mujoco.MjData(model)
    ball = [model.geom("ball").id]
    robot = [g for g in range(model.ngeom) if model.body(model.geom_bodyid[g]).name not in ("plate", "ball")]
    task = CatchingTask()
    Env(task, EnvConfig(sets=1000, instances=1, seed=3)).reset()
    world = task.world
    for k in range(1000):
        at, velocity = world.pos[k, 0].double().numpy(), world.vel[k, 0].double().numpy()
        height = at[2] - float(world.plate_pos[k, 2])
        arrives_s = (velocity[2] + math.sqrt(velocity[2] ** 2 + 2 * GRAVITY * height)) / GRAVITY
        data.qpos[:] = world.q[k].numpy()
        for time_s in np.linspace(arrives_s - 0.12, arrives_s, 7):
            data.mocap_pos[0] = at + velocity * time_s - [0, 0, 0.5 * GRAVITY * time_s**2]
            mujoco.mj_kinematics(model, data)
            assert nearest(model, data, ball, robot) > 0.01


def test_the_picture_shows_plate_and_ball_on_both_mounts(tmp_path):
    file = tmp_path / "mounts.png"
    script = f"from pathlib import Path; from dris.catching.drawing import draw_mounts; draw_mounts(Path({str(file)!r}))"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "MUJOCO_GL": "egl"})
    picture = np.asarray(Image.open(file)).astype(int)
    assert picture.shape == (500, 1200, 3)
    red, green, blue = np.moveaxis(picture, -1, 0)
    for half in (slice(0, 600), slice(600, 1200)):
        orange = (red > 150) & (red - blue > 100) & (green < red)
        plate = (blue > 1.5 * red) & (blue > green) & (blue > 80)
        (ball_rows, ball_columns), (rows, columns) = np.nonzero(orange[:, half]), np.nonzero(plate[:, half])
        assert len(ball_rows) > 300 and len(rows) > 2000
        # The ball stands on the plate, not beside it.
        assert columns.min() < ball_columns.min() and ball_columns.max() < columns.max()
        assert rows.min() < ball_rows.max() < rows.max()
