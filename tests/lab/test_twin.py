"""The twin against closed forms, and against the training world where they must agree."""

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from dris.catching.kinematics import Kinematics
from dris.catching.settings import ROBOT, TEXT, CatchingConfig
from dris.core.constants import GRAVITY
from dris.experiments import contact, gains
from dris.lab.drives import drive
from dris.lab.launch import RAMP_RADII, SLOW_THROW, Drop, Laid, Placed, Ramp, Scene, Throw, fly
from dris.lab.model import LabConfig, damping_ratio, stepped_damping_ratio
from dris.lab.objects import BALLS, SHELL, SOLID, ball
from dris.lab.twin import Twin, TwinConfig

TASK = CatchingConfig()
VACUUM = LabConfig(air_density=0.0)
IDEAL = drive("ideal")  # what the training world has


# Flight


def test_free_fall_is_a_parabola():
    twin = Twin(TwinConfig(lab=VACUUM))
    start = twin.reset(BALLS["foam"], Placed((2.0, 0.0, 2.0), (0.3, -0.2, 1.0)), 0)
    twin.advance(500)
    seen = twin.state()
    expected = start.thing_position + 0.5 * np.array([0.3, -0.2, 1.0]) - [0, 0, 0.5 * GRAVITY * 0.25]
    # Semi-implicit Euler is off by g t dt / 2 = 0.6 mm.
    np.testing.assert_allclose(seen.thing_position, expected, atol=8e-4)
    np.testing.assert_allclose(seen.thing_velocity, [0.3, -0.2, 1.0 - GRAVITY * 0.5], atol=1e-9)


@pytest.mark.parametrize("name", ["ping-pong", "foam"])
def test_air_slows_a_fall_by_the_closed_form(name):
    thing, density = BALLS[name], LabConfig().air_density
    twin = Twin()
    twin.reset(thing, Placed((2.0, 0.0, 5.0), (0.0, 0.0, 0.0)), 0)
    twin.advance(800)
    volume = 4 / 3 * math.pi * thing.radius**3
    pull = GRAVITY * (1 - density * volume / thing.mass)
    drag = 0.5 * density * math.pi * thing.radius**2 * thing.drag / thing.mass
    terminal = math.sqrt(pull / drag)
    speed = -twin.state().thing_velocity[2]
    assert speed == pytest.approx(terminal * math.tanh(pull * 0.8 / terminal), rel=2e-3)
    assert speed < 0.95 * GRAVITY * 0.8


# Contact


def test_damping_ratio_returns_what_it_is_asked_for():
    # Integrated finely: the closed form and the stepped one meet.
    assert damping_ratio(0.5) == pytest.approx(stepped_damping_ratio(0.5, 0.002), abs=1e-3)
    assert stepped_damping_ratio(0.5, 0.15) != pytest.approx(damping_ratio(0.5), abs=1e-3)


def test_contact_measures_as_asked():
    for row in contact.calibration():
        if row.quantity.startswith("restitution"):
            assert row.measured == pytest.approx(row.asked, abs=0.01), row
            assert row.high - row.low < 0.05, row  # the time grid's doing
        else:
            assert row.measured == pytest.approx(row.asked, rel=0.015), row


@pytest.mark.parametrize("factor, share", [(SOLID, 5 / 7), (SHELL, 3 / 5)])
def test_a_ball_rolls_down_at_its_share_of_g_sin(factor, share):
    marble = ball(
        "marble",
        radius=0.03,
        mass=0.1,
        inertia_factor=factor,
        restitution=0.5,
        friction=0.5,
        rolling=0.0,
        drag=0.0,
    )
    _, measured = contact.rolling_acceleration(VACUUM, marble, tilt=0.2)
    assert measured == pytest.approx(share * GRAVITY * math.sin(0.2), rel=3e-3)


def test_impact_pushes_the_arm_by_what_the_ball_loses():
    config = replace(IDEAL, stiffness=(0.0,) * 7, damping=(0.0,) * 7)
    twin = Twin(config)
    thing = replace(BALLS["rubber"], mass=0.2)
    twin.reset(thing, Drop(0.3, offset=(0.05, 0.03)), 0)
    while twin.data.ncon == 0:
        before = twin.state()
        twin.advance(1)
    began = before.time_s
    while twin.data.ncon > 0:
        twin.advance(1)
    after = twin.state()
    assert after.thing_velocity[2] > 0
    lost = thing.mass * (after.thing_velocity - before.thing_velocity)
    lost[2] += thing.mass * GRAVITY * (after.time_s - began)
    # M dq' = J^T p for the opposite impulse at the point of contact.
    point = before.thing_position - [0, 0, thing.radius]
    model, data = twin.model, twin.data
    jacobian, mass = np.zeros((3, model.nv)), np.zeros((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    mujoco.mj_jac(model, data, jacobian, None, point, model.body("plate").id)
    mujoco.mj_fullM(model, data, mass)
    expected = np.linalg.solve(mass[:7, :7], jacobian[:, :7].T @ -lost)
    np.testing.assert_allclose(after.dq, expected, atol=0.03 * np.abs(expected).max())
    assert np.abs(expected).max() > 0.05


# Drives


def test_torques_and_their_rate_stay_inside_fcis_limits():
    twin = Twin(drive("fci", TEXT))  # stiff enough to ask for more than there is
    twin.reset(BALLS["foam"], Drop(2.0), 0)
    twin.set_reference(np.array(TEXT.home) + [0.6, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5])
    torques = [twin.torque]
    for _ in range(200):
        twin.advance(1)
        torques.append(twin.torque)
    torques = np.array(torques)
    assert (np.abs(torques) <= twin.torque_limit + 1e-9).all()
    assert np.abs(np.diff(torques, axis=0)).max() == pytest.approx(1.0, abs=1e-9)  # and it is reached
    assert (np.abs(torques).max(axis=0) >= twin.torque_limit - 1e-9).any()  # and so is this
    assert twin.limited_ticks > 100


def test_an_unlimited_arm_answers_at_once_and_a_reference_waits_for_its_latency():
    twin = Twin(replace(IDEAL, latency_s=0.005))
    twin.reset(BALLS["foam"], Drop(2.0), 0)
    held = twin.torque
    twin.set_reference(np.array(TASK.home) + 0.01)
    twin.advance(5)
    np.testing.assert_allclose(twin.torque, held, atol=1e-6)
    twin.advance(1)
    np.testing.assert_allclose(twin.torque - held, 0.01 * np.array(TASK.stiffness), rtol=1e-3)


@pytest.mark.parametrize("task", [TASK, TEXT], ids=["released", "paper"])
def test_the_arm_holds_its_home(task):
    twin = Twin(drive("fci", task))
    twin.reset(BALLS["foam"], Drop(3.0), 0)
    twin.advance(300)
    np.testing.assert_allclose(twin.state().q, task.home, atol=1e-6)


@pytest.mark.parametrize(("policy", "task"), [("veltrack", TASK), ("dris-robot", ROBOT)])
def test_without_its_own_faults_the_arm_answers_as_the_training_world(policy, task):
    ideal = drive("ideal", task)
    motions = gains.catch_motions(policy, 3, 1)
    assert gains.rms(gains.errors(ideal, motions)) < 0.004
    slow = replace(ideal, damping=tuple(2 * d for d in task.damping))
    assert gains.rms(gains.errors(slow, motions)) > 0.01


def test_same_seed_same_bits():
    def run(seed):
        twin = Twin()
        twin.reset(BALLS["ping-pong"], Ramp(0.13), seed)
        twin.set_reference(np.array(TASK.home) + 0.05)
        twin.advance(700)
        return twin.state()

    first, again, other = run(3), run(3), run(4)
    assert (first.thing_position == again.thing_position).all() and (first.q == again.q).all()
    assert (first.thing_position != other.thing_position).any()


def test_a_twin_used_again_forgets():
    fresh, used = Twin(), Twin()
    used.reset(BALLS["rubber"], Drop(0.1), 0)
    used.set_reference(np.array(TASK.home) + 0.3)
    used.advance(400)
    for twin in (fresh, used):
        twin.reset(BALLS["foam"], Drop(0.1), 1)
        twin.advance(400)
    assert (fresh.state().thing_position == used.state().thing_position).all()
    assert (fresh.state().q == used.state().q).all()


# Launches


def scene(thing=BALLS["foam"], task=TASK):
    return Scene(LabConfig(), thing, Kinematics(task.home, task.mount))


@pytest.mark.parametrize("radius", RAMP_RADII)
def test_a_ball_rolls_down_the_ramp_at_the_speed_of_energy(radius):
    marble = ball(
        "marble",
        radius=0.02,
        mass=0.01,
        inertia_factor=SOLID,
        restitution=0.5,
        friction=0.3,
        rolling=0.0,
        drag=0.0,
    )
    twin = Twin(TwinConfig(lab=replace(VACUUM, ramp_friction=2.0)))
    below = math.pi / 6  # two thirds of the quarter circle; with this friction it does not slip there
    ramp = Ramp(radius, below_top=(below, below), scatter_sideways=0.0)
    start = twin.reset(marble, ramp, 0)
    end = np.array(ramp.shape(scene(marble)).end)
    while twin.state().thing_position[0] > end[0]:
        twin.advance(1)
    seen = twin.state()
    drop = start.thing_position[2] - end[2] - marble.radius
    assert drop == pytest.approx((radius - marble.radius) / 2, rel=1e-6)
    assert -seen.thing_velocity[0] == pytest.approx(math.sqrt(10 / 7 * GRAVITY * drop), rel=0.02)
    assert abs(seen.thing_velocity[2]) < 0.03  # it leaves level,
    assert seen.thing_spin[1] * marble.radius == pytest.approx(seen.thing_velocity[0], rel=0.02)  # rolling


@pytest.mark.parametrize("launch", [Throw(), SLOW_THROW])
def test_throws_arrive_in_the_catching_region_in_spite_of_air(launch):
    there = scene()
    for seed in range(5):
        start = launch.start(there, np.random.default_rng(seed))
        flights = np.arange(0.5, 1.5, 0.01)
        heights = np.array([fly(there, start.position, start.velocity, t)[2] for t in flights])
        level = there.plate[2] + BALLS["foam"].radius
        arrival = fly(there, start.position, start.velocity, flights[np.argmax(heights < level)])
        assert np.linalg.norm((arrival - there.plate)[:2]) < TASK.region_radius + 0.03


@pytest.mark.parametrize("task", [TASK, TEXT], ids=["released", "paper"])
def test_the_plate_can_be_laid_on_whichever_way_it_tilts(task):
    there = scene(task=task)
    for seed in range(12):
        start = Laid().start(there, np.random.default_rng(seed))
        _, rotation = there.kinematics.plate(np.array(start.joints))
        assert math.degrees(math.acos(rotation[2, 2])) == pytest.approx(30.0, abs=1.2)


def test_a_thing_laid_on_the_tilted_plate_rolls_down():
    twin = Twin()
    state = twin.reset(BALLS["foam"], Laid(axis=1.0), 0)
    assert math.degrees(math.acos(state.plate_rotation[2, 2])) == pytest.approx(30.0, abs=1.0)
    assert state.on_plate(BALLS["foam"].radius)
    twin.advance(100)
    assert twin.state().thing_velocity[2] < -0.1


def test_less_speed_is_allowed_near_the_end_of_a_joints_range():
    """At home the elbow is 0.686 rad from its end: sqrt(2 x 4.0 x 0.686) - 0.3533 = 1.989 rad/s, not 2.62."""
    kinematics = Kinematics()
    down, up = kinematics.speed_limits_at(kinematics.home)
    assert down[3] == pytest.approx(np.sqrt(2 * 4.0 * (3.0421 - 3 * np.pi / 4)) - 0.3533)
    assert up[3] == down[0] == up[0] == 2.62  # far from the other end, and in the middle
    down, up = kinematics.speed_limits_at(kinematics.high)
    assert not up.any() and (down > 0).all()
