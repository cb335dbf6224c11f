"""Contact of spheres with a moving plate, against closed forms."""

import numpy as np
import pytest
from rig import GRAVITY, HALF_SIZE, energy, in_plate, moving, normal, run, spheres, still

SPEEDS = np.geomspace(0.05, 8.0, 24)


def approach_along(n, speed, plate_velocity, radius=0.03, gap=0.004):
    """Centres and velocities that meet the plate at `speed` along n, from `gap` metres away.

    Gravity changes the speed over the short flight; the closed form takes it into account.
    """
    pos = n * (radius + gap) + np.zeros((len(speed), 3))
    vel = plate_velocity - np.outer(speed, n)
    return pos, vel


def impact_velocity(vel, n, plate_velocity, gap=0.004):
    """Velocity at the moment the gap closes: gap = u t + a t^2 / 2 along -n."""
    a = GRAVITY * n[2]
    u = -(vel - plate_velocity) @ n
    t = (-u + np.sqrt(u**2 + 2 * a * gap)) / a
    return vel + np.outer(t, [0, 0, -GRAVITY]), t


@pytest.mark.parametrize("tilt_deg", [0, 20, 45])
@pytest.mark.parametrize("plate_speed", [-2.0, 0.0, 2.0])
@pytest.mark.parametrize("restitution", [0.3, 0.55, 0.9])
def test_restitution_is_the_one_set_at_every_speed(tilt_deg, plate_speed, restitution):
    azimuth = 0.7
    n = normal(np.radians(tilt_deg), azimuth)
    plate_velocity = plate_speed * n
    pos, vel = approach_along(n, SPEEDS, plate_velocity)
    at_impact, t_impact = impact_velocity(vel, n, plate_velocity)
    rebound = restitution * -((at_impact - plate_velocity) @ n)
    hop = 2 * rebound / (GRAVITY * n[2])
    # Look half way through the hop after the impact, each ball at its own time.
    for k, when in enumerate(t_impact + 0.5 * hop):
        h = when / np.ceil(when / 0.005)
        ball = spheres(1, pos=pos[k], vel=vel[k], restitution=restitution)
        run(ball, moving(plate_velocity, np.radians(tilt_deg), azimuth), when, h=h)
        after = (ball.vel[0] - plate_velocity) @ n
        expected = rebound[k] - GRAVITY * n[2] * 0.5 * hop[k]  # zero at the top of the hop
        assert ball.impacts[0] == 1
        assert after == pytest.approx(expected, abs=0.01 * rebound[k])


def test_paper_threshold_stops_slow_impacts_only():
    ball = spheres(2, pos=[0, 0, 0.0301], vel=[[0, 0, -1.9], [0, 0, -2.1]], restitution=0.4)
    run(ball, still(), 0.005, bounce_speed=2.0)
    assert ball.vel[0, 2] == pytest.approx(0.0, abs=1e-6)
    assert (ball.mode > 0).tolist() == [True, False]
    assert ball.vel[1, 2] == pytest.approx(0.4 * 2.1, rel=0.06)


def test_nothing_tunnels_at_8_m_per_s():
    rng = np.random.default_rng(0)
    n = 100_000
    radius = rng.uniform(0.02, 0.04, n)
    pos = np.c_[rng.uniform(-0.11, 0.11, (n, 2)), rng.uniform(0.05, 0.3, n) + radius]
    vel = np.c_[rng.uniform(-1, 1, (n, 2)), np.full(n, -8.0)]
    balls = spheres(n, pos=pos, vel=vel, radius=radius, restitution=rng.uniform(0, 0.7, n))
    run(balls, moving((0, 0, 2.0)), 0.03)
    arrived = balls.impacts > 0
    run(balls, moving((0, 0, 2.0)), 0.02, start=0.03)
    inside = np.abs(balls.pos[:, :2]).max(1) < 0.12
    plate_height = 2.0 * 0.05
    assert arrived.sum() > 50_000
    tunnelled = inside & (balls.pos[:, 2] < plate_height + 0.99 * radius)
    assert tunnelled.sum() == 0


def test_small_fast_ball_does_not_tunnel_either():
    balls = spheres(1000, pos=np.c_[np.zeros((1000, 2)), np.linspace(0.01, 0.2, 1000)],
                    vel=[0, 0, -40.0], radius=0.002, restitution=0.1)  # fmt: skip
    run(balls, still(), 0.02)
    assert (balls.pos[:, 2] > 0).all()


def test_flight_is_a_parabola():
    ball = spheres(1, pos=[0, 0, 1.0], vel=[1.0, 2.0, 3.0])
    run(ball, still(), 0.5)
    np.testing.assert_allclose(ball.pos[0], [0.5, 1.0, 1 + 1.5 - GRAVITY / 8], atol=1e-5)
    np.testing.assert_allclose(ball.vel[0], [1, 2, 3 - GRAVITY / 2], atol=2e-5)


def test_sliding_slows_by_mu_g_and_ends_rolling_at_five_sevenths():
    mu, speed = 0.1, 0.6
    ball = spheres(1, pos=[-0.1, 0, 0.03], vel=[speed, 0, 0], friction=mu, restitution=0.0)
    run(ball, still(), 0.1)
    assert ball.vel[0, 0] == pytest.approx(speed - mu * GRAVITY * 0.1, rel=1e-3)
    assert ball.pos[0, 0] == pytest.approx(-0.1 + speed * 0.1 - 0.5 * mu * GRAVITY * 0.01, abs=1e-4)
    # Slip ends after t = 2 v / (7 mu g) = 0.175 s; from then on v = 5/7 v0 and v = w r.
    run(ball, still(), 0.1, start=0.1)
    assert ball.vel[0, 0] == pytest.approx(speed * 5 / 7, rel=1e-3)
    assert ball.spin[0, 1] * 0.03 == pytest.approx(ball.vel[0, 0], rel=1e-3)


@pytest.mark.parametrize("tilt_deg", [2, 10])
def test_rolling_on_an_incline_accelerates_by_five_sevenths_g_sin(tilt_deg):
    tilt = np.radians(tilt_deg)
    # A tilt about y lowers +x; friction needed to roll is 2/7 tan(tilt), far below 0.5.
    n = normal(tilt, np.pi / 2)
    ball = spheres(1, pos=n * 0.03, vel=[0, 0, 0], friction=0.5, restitution=0.0)
    run(ball, still(tilt, np.pi / 2), 0.2)
    downhill = np.array([n[2], 0, -n[0]])
    assert ball.vel[0] @ downhill == pytest.approx(5 / 7 * GRAVITY * np.sin(tilt) * 0.2, rel=2e-3)
    assert abs(ball.vel[0] @ n) < 1e-5


def test_frictionless_ball_slides_at_g_sin():
    tilt = np.radians(10)
    n = normal(tilt, np.pi / 2)
    ball = spheres(1, pos=n * 0.03, vel=[0, 0, 0], friction=0.0, restitution=0.0)
    run(ball, still(tilt, np.pi / 2), 0.2)
    assert np.linalg.norm(ball.vel[0]) == pytest.approx(GRAVITY * np.sin(tilt) * 0.2, rel=2e-3)


def test_static_friction_holds_where_dynamic_would_slip():
    # Rolling at 30 degrees needs mu = 2/7 tan 30 = 0.165: held by 0.2 static, not by 0.1 dynamic.
    tilt = np.radians(30)
    n = normal(tilt, np.pi / 2)
    accelerations = []
    for static in (0.2, 0.1):
        ball = spheres(1, pos=n * 0.03, vel=[0, 0, 0], friction=0.1, static=static, restitution=0.0)
        ball.mode[:] = 2
        run(ball, still(tilt, np.pi / 2), 0.1)
        accelerations.append(np.linalg.norm(ball.vel[0]) / 0.1)
    rolling = 5 / 7 * GRAVITY * np.sin(tilt)
    slipping = GRAVITY * (np.sin(tilt) - 0.1 * np.cos(tilt))
    assert accelerations[0] == pytest.approx(rolling, rel=0.01)
    assert accelerations[1] == pytest.approx(slipping, rel=0.01)


@pytest.mark.parametrize(("mu", "sticks"), [(0.05, False), (0.5, True)])
def test_spin_after_an_oblique_impact(mu, sticks):
    e, down, along, r = 0.5, 3.0, 2.0, 0.03
    ball = spheres(1, pos=[0, 0, r + 1e-5], vel=[along, 0, -down], radius=r, friction=mu, restitution=e)
    run(ball, still(), 0.005)
    impulse = (1 + e) * down
    drop = 2 / 7 * along if sticks else mu * impulse
    assert (2 / 7 * along <= mu * impulse) == sticks
    assert ball.vel[0, 0] == pytest.approx(along - drop, rel=2e-3)
    assert ball.spin[0, 1] == pytest.approx(2.5 * drop / r, rel=2e-3)
    assert ball.vel[0, 2] == pytest.approx(e * down - GRAVITY * 0.005, rel=2e-3)


def energy_scale(balls):
    """Sum of a ball's energies, each taken positive: what float32 rounds in proportion to."""
    return energy(balls) + 2 * GRAVITY * np.maximum(-balls.pos[:, 2], 0)


@pytest.mark.parametrize("tilt", [0.0, 0.3, 0.7])
def test_energy_never_rises_on_a_still_plate(tilt):
    """Every ball by its own energy; those that turn about an edge have a test of their own."""
    rng = np.random.default_rng(1)
    n = 2000
    balls = spheres(
        n,
        pos=np.c_[rng.uniform(-0.15, 0.15, (n, 2)), rng.uniform(0.15, 0.5, n)],
        vel=rng.uniform(-3, 3, (n, 3)),
        spin=rng.uniform(-50, 50, (n, 3)),
        radius=rng.uniform(0.02, 0.04, n),
        friction=rng.uniform(0, 0.3, n),
        restitution=rng.uniform(0, 1, n),
    )
    before, turned = energy(balls), np.zeros(n, bool)
    for _ in range(200):
        touching = balls.mode > 0
        run(balls, still(tilt, 0.4), 0.005)
        touching |= balls.mode > 0
        turned |= touching & (np.abs(in_plate(balls.pos, tilt, 0.4))[:, :2] > HALF_SIZE[:2]).any(1)
        now = energy(balls)
        rise = (now - before) / energy_scale(balls)
        assert rise[~turned].max() < 5e-7  # a few roundings of float32
        assert rise[turned].max(initial=0) < 2e-4
        before = now
    assert 0 < turned.sum() < 0.02 * n


@pytest.mark.parametrize(("friction", "speed"), [(0.0, 0.05), (0.1, 0.3), (0.5, 0.01)])
def test_energy_gained_over_an_edge_is_small_and_of_first_order(friction, speed):
    """A ball that turns about an edge does so in steps of 1 ms or of the substep, if that is shorter."""

    def gain(h):
        spin = speed / 0.03 if friction else 0.0
        ball = spheres(1, pos=[0.118, 0, 0.03], vel=[speed, 0, 0], spin=[0, spin, 0], friction=friction)
        ball.mode[:] = 2 if friction else 1
        before = most = energy(ball)[0]
        while abs(ball.pos[0, 0]) <= HALF_SIZE[0] or ball.mode[0] > 0:
            run(ball, still(), 0.005, h=h)
            most = max(most, energy(ball)[0])
        return (most - before) / before

    assert gain(0.005) < 2e-3  # 0.17 % found, of the energy of a ball at rest at the edge
    assert gain(0.0001) < 0.25 * gain(0.001)


def test_a_bouncing_ball_comes_to_rest_when_the_series_says():
    # Drop from height H: bounces end after t = sqrt(2H/g) (1 + e) / (1 - e).
    height, e = 0.1, 0.5
    end = np.sqrt(2 * height / GRAVITY) * (1 + e) / (1 - e)
    ball = spheres(1, pos=[0, 0, 0.03 + height], vel=[0, 0, 0], restitution=e)
    run(ball, still(), round(end - 0.03, 2))
    assert ball.mode[0] == 0
    run(ball, still(), 0.06)
    assert ball.mode[0] > 0
    assert ball.pos[0, 2] == pytest.approx(0.03, abs=1e-6)
    assert abs(ball.vel[0, 2]) < 1e-6


def test_a_resting_ball_rides_an_accelerating_plate_without_bouncing():
    def lift(t):  # 20 m/s2 upwards
        return [0, 0, 10 * t * t], [0, 0, 0, 1], [0, 0, 20 * t], [0, 0, 0]

    ball = spheres(1, pos=[0, 0, 0.03], vel=[0, 0, 0], restitution=0.7)
    run(ball, still(), 0.05)
    run(ball, lift, 0.1)
    assert ball.mode[0] > 0
    assert ball.vel[0, 2] == pytest.approx(2.0, abs=1e-4)
    assert ball.pos[0, 2] == pytest.approx(0.1 + 0.03, abs=1e-5)


def test_a_plate_that_drops_faster_than_gravity_leaves_the_ball():
    def drop(t):
        return [0, 0, -7.5 * t * t], [0, 0, 0, 1], [0, 0, -15 * t], [0, 0, 0]

    ball = spheres(1, pos=[0, 0, 0.03], vel=[0, 0, 0], restitution=0.7)
    run(ball, still(), 0.05)
    run(ball, drop, 0.1)
    assert ball.mode[0] == 0
    assert ball.vel[0, 2] == pytest.approx(-GRAVITY * 0.1, abs=2e-3)


def test_a_ball_rolls_over_the_edge_and_falls():
    ball = spheres(1, pos=[0.11, 0, 0.03], vel=[0.3, 0, 0], friction=0.1, restitution=0.3)
    run(ball, still(), 0.5)
    assert ball.pos[0, 0] > HALF_SIZE[0]
    assert ball.pos[0, 2] < -0.3


def test_the_underside_and_the_rim_push_too():
    below = spheres(1, pos=[0, 0, -0.01 - 0.03 - 0.002], vel=[0, 0, 2.0], restitution=0.5)
    run(below, still(), 0.005)
    assert below.vel[0, 2] < -0.9
    rim = spheres(1, pos=[0.12 + 0.03 + 0.002, 0, -0.005], vel=[-2.0, 0, 0], restitution=0.5)
    run(rim, still(), 0.005)
    assert rim.vel[0, 0] == pytest.approx(1.0, rel=1e-3)


def test_halving_the_substep_reduces_the_error_and_5_ms_is_fine():
    """A ball caught by a plate that swings and dives, against a run with 0.1 ms substeps."""

    def swing(t):
        angle = 0.3 * np.sin(6 * t)
        half = 0.5 * angle
        return (
            [0.05 * np.sin(8 * t), 0, 0.05 * np.cos(8 * t)],
            [0, np.sin(half), 0, np.cos(half)],
            [0.4 * np.cos(8 * t), 0, -0.4 * np.sin(8 * t)],
            [0, 1.8 * np.cos(6 * t), 0],
        )

    def end(h):
        rng = np.random.default_rng(2)
        balls = spheres(
            400,
            pos=np.c_[rng.uniform(-0.05, 0.05, (400, 2)), np.full(400, 0.25)],
            vel=np.c_[rng.uniform(-0.3, 0.3, (400, 2)), rng.uniform(-4, -2, 400)],
            friction=rng.uniform(0.0, 0.1, 400),
            restitution=rng.uniform(0.3, 0.45, 400),
        )
        return run(balls, swing, 0.3, h=h, bounce_speed=2.0).pos

    truth = end(0.0001)
    errors = {h: np.sqrt(((end(h) - truth) ** 2).sum(1).mean()) for h in (0.02, 0.01, 0.005)}
    # Second order until float32 itself shows, at about 15 micrometres.
    assert errors[0.01] < 0.35 * errors[0.02]
    assert errors[0.005] < 5e-5
