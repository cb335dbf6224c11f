"""The belief beside one robot, against closed forms: flights, bounces, a plate that moves, what it refuses."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from dris.catching import ball_belief
from dris.catching.ball_belief import BallBelief, PlatePast
from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.instances import keep_possible
from dris.catching.plate_past import SAMPLE, quaternion_of
from dris.perception.camera import laboratory_rig
from dris.perception.triangulate import sight_through

G = 9.81
HALF = (0.12, 0.12, 0.005)
SIGMA = np.array([0.005] * 3 + [0.2] * 3)


def bounce(time_s, restitution=0.6, radius=0.03):
    """Position and velocity of a ball that falls from 1 m onto a level plate at rest, and bounces once."""
    height, down = 1.0, -1.0
    impact_s = (down + math.sqrt(down**2 + 2 * G * (height - radius))) / G
    if time_s < impact_s:
        return np.array(
            [0.2 * time_s, 0, height + down * time_s - G * time_s**2 / 2, 0.2, 0, down - G * time_s]
        )
    up, tau = -restitution * (down - G * impact_s), time_s - impact_s
    return np.array([0.2 * time_s, 0, radius + up * tau - G * tau**2 / 2, 0.2, 0, up - G * tau])


def believing(seed=0, until_s=0.0, **values):
    """A belief over a level plate at rest in the origin, which has been measured for a while."""
    belief = BallBelief(HALF, BallBeliefConfig(**values), seed)
    for k in range(round(until_s / 0.005) + 1):
        belief.track_plate(0.005 * k, np.zeros(3), np.eye(3))
    return belief


def followed(end_s, seed=0, **values):
    """A belief that has seen noisy states of a falling and bouncing ball, 160 a second."""
    belief, draw = believing(seed, **values), np.random.default_rng(seed)
    belief.begin(0.0, bounce(0.0), np.diag(SIGMA**2), 0.03)
    for k in range(1, round(160 * end_s) + 1):
        time_s = k / 160
        for step in range(3):
            belief.track_plate(time_s - 0.0021 * (2 - step), np.zeros(3), np.eye(3))
        belief.see_state(time_s, bounce(time_s) + SIGMA * draw.standard_normal(6), SIGMA)
    return belief


def test_it_follows_a_ball_through_a_bounce_and_learns_its_restitution():
    belief = followed(0.6)
    mean, deviation = belief.at(0.61)
    error = mean - bounce(0.61)
    assert np.abs(error[:3]).max() < 0.01 and np.abs(error[3:]).max() < 0.2
    assert (np.abs(error) < 4 * deviation).all()
    restitution = belief._balls.restitution[0]
    # A velocity to 0.2 m/s after an impact at 4.5 m/s, seen about twenty times: 0.01, and its own walk of 0.03.
    assert restitution.mean() == pytest.approx(0.6, abs=0.05) and restitution.std() < 0.06


def test_a_ball_that_came_to_lie_where_the_real_one_flies_flies_again_with_the_next_sight():
    belief = followed(0.6)
    balls = belief._balls
    balls.mode[0, 0] = 2
    balls.pos[0, 0], balls.vel[0, 0] = (0.12, 0.0, 0.03), 0.0  # it lies 20 cm below the others
    for k in range(97, 113):  # 0.1 s: up to there the real ball does not land again
        belief.track_plate(k / 160, np.zeros(3), np.eye(3))
        belief.see_state(k / 160, bounce(k / 160), SIGMA)
        assert np.count_nonzero(balls.mode) == 0
    mean, _ = belief.at(0.7)
    error = mean - bounce(0.7)
    assert np.abs(error[:3]).max() < 0.005 and np.abs(error[3:]).max() < 0.1
    assert np.ptp(balls.pos[0, :, 2]) < 0.02  # it is among the others


def test_velocities_walk_further_after_a_bounce_than_in_flight_and_only_for_a_while():
    """By sights that tell nothing: across, without friction, a bounce itself changes nothing."""
    exact = {"static_friction": (0.0, 0.0), "restitution": (0.6, 0.6), "drag": (0.0, 0.0)}
    belief = believing(until_s=0.8, instances=4000, speed_walk=0.03, bounce_walk=0.06, **exact)
    belief.begin(0.0, bounce(0.0), 1e-8 * np.eye(6), 0.03)
    walked = {}
    for k in range(1, 113):
        belief.see_state(k / 160, bounce(k / 160), np.full(6, 1e3))
        walked[k] = belief._balls.vel[0, :, 1].std()
    # It meets the plate at 0.354 s, 56.7 sights, some balls 3 ms before or after: at sights 57 and perhaps 58.
    flight, after, end = 56 / 160, 16.5 / 160, (112 - 56 - 16.5) / 160  # 0.1 s are 16 sights
    assert walked[56] == pytest.approx(0.03 * math.sqrt(flight), rel=0.05)
    assert walked[112] == pytest.approx(math.sqrt(0.03**2 * (flight + end) + 0.06**2 * after), rel=0.05)
    assert walked[112] > 1.1 * 0.03 * math.sqrt(112 / 160)


def test_a_ball_that_is_seen_to_lie_keeps_lying():
    belief, draw = believing(), np.random.default_rng(3)
    sigma = np.array([0.001] * 3 + [0.03] * 3)
    state = np.array([0.0, 0.0, 0.03, 0.0, 0.0, 0.0])
    belief.begin(0.0, state, np.diag(sigma**2), 0.03)
    for k in range(1, 60):
        belief.track_plate(k / 160, np.zeros(3), np.eye(3))
        belief.see_state(k / 160, state + sigma * draw.standard_normal(6), sigma)
        lying = np.count_nonzero(belief._balls.mode)
        assert k < 40 or lying == 50, (k, lying)  # until then the liveliest of them hop


def test_what_no_sight_tells_of_stays_as_uncertain_as_it_was():
    """Before an impact, restitution, friction and spin keep the spread that they were drawn with."""
    belief, fresh = followed(0.3), believing()
    fresh.begin(0.0, bounce(0.0), np.diag(SIGMA**2), 0.03)
    for name in ("restitution", "static_friction", "spin"):
        assert np.array_equal(getattr(belief._balls, name), getattr(fresh._balls, name))


def test_a_sight_that_surprises_too_much_leaves_the_belief_as_it_was():
    """One stamped 0.28 s ahead was refused, and 41 of the next 45 good ones as too old."""
    belief = followed(0.12)
    values, time_s, ahead = belief._balls.values.copy(), belief.time_s, belief.at(0.125)
    assert belief.see_state(time_s + 0.28, bounce(time_s), SIGMA) > 3 * belief.config.gate
    assert belief.refused == 1 and belief.time_s == time_s
    assert np.array_equal(belief._balls.values, values)
    np.testing.assert_array_equal(belief.at(0.125), ahead)
    for k in range(20, 65):
        belief.track_plate(k / 160, np.zeros(3), np.eye(3))
        belief.see_state(k / 160, bounce(k / 160), SIGMA)
        assert belief.refused == 0


def test_looking_ahead_is_free_fall_and_changes_nothing():
    belief = believing(until_s=0.2, drag=(0.0, 0.0))
    belief.begin(0.0, bounce(0.0), np.zeros((6, 6)), 0.03)
    for time_s in (0.05, 0.2, 0.05):
        np.testing.assert_allclose(belief.at(time_s)[0], bounce(time_s), atol=2e-6)
    assert belief.time_s == 0.0


def test_air_slows_a_ball_as_its_drag_says():
    belief = believing(until_s=0.2, drag=(0.1, 0.1))
    belief.begin(0.0, np.array([0, 0, 5.0, 10.0, 0, 0]), np.zeros((6, 6)), 0.03)
    # v' = -c v^2 along a level path: v = v0 / (1 + c v0 t), 10 / 1.1 after 0.1 s; falling adds a little.
    mean = belief.at(0.1)[0]
    assert mean[3] == pytest.approx(10 / 1.1, abs=0.02)
    # The way is ln(1 + c v0 t) / c = 0.953 m, where one without air goes 1 m.
    assert mean[0] == pytest.approx(math.log(1.1) / 0.1, abs=0.003)


def test_a_camera_s_sight_pulls_across_its_ray_and_not_along_it():
    camera = laboratory_rig()[0]
    truth = np.array([0.69, 0.05, 0.9])
    belief = believing(until_s=0.1, instances=200)
    belief.begin(
        0.0, np.append(truth + (0.02, -0.01, 0.015), (0, 0, 0)), np.diag([4e-4] * 3 + [1e-6] * 3), 0.03
    )
    point = camera.to_camera(truth)
    sight = sight_through(0.0, 0, camera, (point[0] / point[2], point[1] / point[2]), 0.03)
    before = belief.at(0.0)
    surprise = belief.see(sight, 0.5)
    mean, deviation = belief.at(0.0)
    off = np.linalg.norm(sight.error_px(mean[:3]))
    assert off < 0.5 < np.linalg.norm(sight.error_px(before[0][:3])) and surprise < 30
    # Across the ray half a pixel is left, and jitter; along it the 2 cm of before.
    ray, spread = truth - camera.position_in_base, np.cov(belief._balls.pos[0].T)
    ray /= np.linalg.norm(ray)
    across = 0.5 * point[2] / camera.mean_focal_px
    variance = 1 / (1 / 4e-4 + 1 / across**2) + belief.config.jitter_m**2
    assert np.linalg.eigvalsh(spread)[:2].mean() == pytest.approx(variance, rel=0.15)
    assert ray @ spread @ ray == pytest.approx(4e-4, rel=0.3)
    assert (deviation[:3] > 0).all()


def test_a_sight_with_a_covariance_pulls_along_the_axis_that_is_exact():
    camera, truth = laboratory_rig()[0], np.array([0.69, 0.05, 0.9])
    point = camera.to_camera(truth)
    sight = sight_through(0.0, 0, camera, (point[0] / point[2], point[1] / point[2]), 0.03)
    start = np.append(truth + (0.02, -0.01, 0.015), (0, 0, 0)), np.diag([4e-4] * 3 + [1e-6] * 3)

    def after(noise_px):
        belief = believing(until_s=0.1, instances=200)
        belief.begin(0.0, *start, 0.03)
        before = belief.at(0.0)[0]
        belief.see(sight, noise_px)
        return sight.error_px(before[:3]), sight.error_px(belief.at(0.0)[0][:3]), belief.at(0.0)[0]

    np.testing.assert_allclose(after(0.5)[2], after(0.25 * np.eye(2))[2], atol=1e-12)
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])  # exact along its first column, worth nothing along the other
    before, now, _ = after(turn @ np.diag([0.25, 1e8]) @ turn.T)
    assert abs(turn[:, 0] @ now) < 0.5 < 3 < abs(turn[:, 0] @ before)
    # The ensemble's axes are correlated by chance, 1 / sqrt(200) of what was moved.
    assert abs(turn[:, 1] @ (now - before)) < 0.25 * abs(turn[:, 0] @ before)


def test_a_sight_of_something_else_pulls_nothing_and_is_counted():
    belief = believing(until_s=0.1)
    belief.begin(0.0, bounce(0.0), np.diag(SIGMA**2), 0.03)
    before = belief.at(0.02)[0]
    assert belief.see_state(0.01, bounce(0.01) + 1.0, SIGMA) > 90 and belief.refused == 1
    np.testing.assert_allclose(belief.at(0.02)[0], before, atol=0.05)
    belief.see_state(0.015, bounce(0.015), SIGMA)
    assert belief.refused == 0


def test_balls_that_are_not_finite_are_replaced_and_counted():
    belief = followed(0.1)
    belief._balls.pos[0, 3], belief._balls.restitution[0, 7] = np.nan, np.inf
    belief.see_state(0.105, bounce(0.105), SIGMA)
    assert belief.repaired == 2
    mean, deviation = belief.at(0.11)
    assert (np.abs(mean - bounce(0.11)) < 4 * deviation).all()
    assert all(np.isfinite(values).all() for values in belief.physics.values())
    belief._balls.vel[:] = np.nan
    with pytest.raises(ValueError, match="no ball of the belief is finite any more: begin anew"):
        belief.see_state(0.11, bounce(0.11), SIGMA)
    assert belief.time_s is None


def test_a_little_before_the_last_sight_balls_go_back_on_a_line():
    belief = believing(until_s=0.1)
    belief.begin(0.05, bounce(0.05), np.zeros((6, 6)), 0.03)
    np.testing.assert_allclose(
        belief.at(0.04)[0][:3], (bounce(0.05)[:3] - 0.01 * bounce(0.05)[3:]), atol=1e-6
    )


def by_name(samples):
    """The plate's samples [n, 22] as arrays by name, axes [n, 3, 3]."""
    parts = np.split(samples, np.cumsum(list(SAMPLE.values()))[:-1], axis=1)
    found = dict(zip(SAMPLE, parts, strict=True))
    return found | {"axes": found["axes"].reshape(-1, 3, 3)}


def test_the_plate_s_past_is_that_of_a_plate_that_swings():
    """Position, orientation and both velocities of a plate that moves on a circle and turns, at any time."""
    past = PlatePast()

    def pose(t):
        turn = Rotation.from_rotvec((0.2 * np.sin(4 * t), 0, 0.3 * t))
        return np.array([0.1 * np.cos(5 * t), 0.1 * np.sin(5 * t), 0.0]), turn

    for k in range(60):
        position, turn = pose(0.005 * k)
        past.add(0.005 * k, position, turn.as_matrix())
    found = by_name(past.between(0.1, 0.2, 9))
    for k, t in enumerate(np.linspace(0.1, 0.2, 9)):
        position, turn = pose(t)
        np.testing.assert_allclose(found["pos"][k], position, atol=1e-5)
        np.testing.assert_allclose(found["axes"][k], turn.as_matrix(), atol=1e-5)
        np.testing.assert_allclose(
            Rotation.from_quat(found["quat"][k]).as_matrix(), turn.as_matrix(), atol=1e-5
        )
        np.testing.assert_allclose(
            found["vel"][k], 0.5 * np.array([-np.sin(5 * t), np.cos(5 * t), 0]), atol=1e-3
        )
        omega = (pose(t + 1e-4)[1] * pose(t - 1e-4)[1].inv()).as_rotvec() / 2e-4
        np.testing.assert_allclose(found["omega"][k], omega, atol=2e-3)
    ahead = by_name(
        past.between(0.295, 0.315, 2)
    )  # a little further than was measured: it goes on as it does
    np.testing.assert_allclose(ahead["pos"][1], pose(0.315)[0], atol=1e-3)


def test_a_clock_that_begins_again_forgets_where_the_plate_was():
    past, up = PlatePast(), np.array([0.0, 0.0, 0.3])
    for k in range(60):
        past.add(100 + 0.005 * k, np.zeros(3), np.eye(3))
    past.add(100.29, up, np.eye(3))  # a little older than the last: left out
    np.testing.assert_array_equal(past.between(100.29, 100.29, 1)[0, :3], 0.0)
    for k in range(60):
        past.add(0.005 * k, up, np.eye(3))
    np.testing.assert_allclose(past.between(0.2, 0.2, 1)[0, :3], up)


def test_a_ball_that_nothing_is_near_is_kept_possible_as_any_other(monkeypatch):
    """In flight only parameters are looked at: the same bits as with the plate."""

    def seen():
        belief, camera = followed(0.2, drag=(0.0, 0.02)), laboratory_rig()[0]
        point = camera.to_camera(bounce(0.205)[:3])
        belief.see(sight_through(0.205, 0, camera, (point[0] / point[2], point[1] / point[2]), 0.03), 0.5)
        return belief._balls.values.copy(), belief.repaired

    quick, repaired = seen()
    monkeypatch.setattr(ball_belief, "RADII", (0.01, math.inf))  # any height counts as near
    slow, as_many = seen()
    assert np.array_equal(quick, slow) and repaired == as_many
    assert quick[:, 13].min() >= 0.0 and quick[:, 13].max() <= 0.02 + 1e-9


def test_balls_on_a_plate_that_lifts_and_turns_move_with_it():
    """n . (v - v_p - w x r) = 0 of a ball that lies, worked out by hand; one that flies inside is only lifted."""
    sample = np.zeros(22)
    sample[:3], sample[7:10], sample[10:13] = (0, 0, 0.5), (0.3, 0, 0.1), (0, 2, 0)
    sample[13:] = np.eye(3).ravel()
    values = np.zeros((3, 13))
    values[:, :3] = (0.05, 0, 0.52), (0.05, 0, 0.52), (0.05, 0, 0.54)
    values[:, 9:] = (0.03, 0.2, 0.3, 1.5), (0.03, -0.1, 0.1, 0.5), (0.07, 0.2, 0.1, 0.5)
    plate = ball_belief._motion(sample)
    found, changed = keep_possible(values, np.array([True, False, False]), plate, 0.12)
    # At x = 0.05 a plate that turns by 2 rad/s about y sinks by 0.1 m/s, and all of it rises by 0.1 m/s.
    np.testing.assert_allclose(found[0, :6], (0.05, 0, 0.53, 0, 0, 0), atol=1e-12)
    np.testing.assert_allclose(found[1, :6], (0.05, 0, 0.53, 0, 0, 0), atol=1e-12)
    np.testing.assert_allclose(found[2, :3], (0.05, 0, 0.56), atol=1e-12)  # of 0.06 m, 0.04 m high
    expected = [(0.03, 0.2, 0.2, 1.0), (0.03, 0.0, 0.0, 0.5), (0.06, 0.2, 0.1, 0.5)]
    np.testing.assert_allclose(found[:, 9:], expected, atol=1e-12)
    assert changed.tolist() == [True, True, True]
    # At rest otherwise, it takes on what the plate does along its normal.
    sample[10:13] = (0, 4, 0)
    found, _ = keep_possible(values, np.ones(3, bool), ball_belief._motion(sample), 0.12)
    np.testing.assert_allclose(found[:, 3:6], np.full((3, 3), (0, 0, -0.1)), atol=1e-12)


def test_the_same_seed_gives_the_same_belief():
    one, two, other = (followed(0.2, seed).at(0.2)[0] for seed in (3, 3, 4))
    assert np.array_equal(one, two) and not np.array_equal(one, other)


def test_what_makes_no_sense_is_refused_and_the_belief_unharmed():
    belief = believing(until_s=0.1)
    with pytest.raises(ValueError, match="no ball yet: call begin"):
        belief.at(0.0)
    with pytest.raises(ValueError, match="no negative eigenvalue, got -1"):
        belief.begin(0.0, bounce(0.0), -np.eye(6), 0.03)
    with pytest.raises(ValueError, match="begins at finite numbers"):
        belief.begin(0.0, np.full(6, np.nan), np.eye(6), 0.03)
    with pytest.raises(ValueError, match="begins at finite numbers, below 1000 m"):
        belief.begin(0.0, np.full(6, 1e30), np.eye(6), 0.03)
    askew = np.diag(SIGMA**2)
    askew[0, 1] = 1e-5
    for covariance, radius_m, message in (
        (np.eye(5), 0.03, r"a covariance of 6 numbers has shape \(6, 6\), got \(5, 5\)"),
        (SIGMA**2, 0.03, r"has shape \(6, 6\), got \(6,\)"),
        (askew, 0.03, "a covariance is symmetric"),
        (np.full((6, 6), np.nan), 0.03, "a covariance must be finite"),
        (np.diag(SIGMA**2), math.nan, "radius must be positive and finite, got nan"),
    ):
        with pytest.raises(ValueError, match=message):
            belief.begin(0.0, bounce(0.0), covariance, radius_m)
    assert belief.time_s is None
    belief.begin(0.05, bounce(0.05), np.diag(SIGMA**2), 0.03)
    before = belief.at(0.06)[0]
    with pytest.raises(ValueError, match=r"0.0100 s is more than 0.02 s before the belief's last sight"):
        belief.see_state(0.01, bounce(0.01), SIGMA)
    with pytest.raises(ValueError, match=r"carried on by at most 0.3 s, to 0.350 s, got 1.0: begin anew"):
        belief.at(1.0)
    for seen, deviation, message in (
        (np.zeros(5), SIGMA, r"an observation has shape \(6,\), got \(5,\)"),
        (np.full(6, np.inf), SIGMA, "an observation is not finite"),
        (bounce(0.055), -SIGMA, "deviations must be positive"),
        (bounce(0.055), np.diag(SIGMA), r"deviations have shape \(6,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            belief.see_state(0.055, seen, deviation)
    point = laboratory_rig()[0].to_camera(bounce(0.05)[:3])
    for at, sigma_px in ((math.nan, 0.5), (point[0] / point[2], 0.0), (point[0] / point[2], math.nan)):
        with pytest.raises(ValueError, match="a sight must be finite and its deviation positive"):
            belief.see(sight_through(0.055, 0, laboratory_rig()[0], (at, point[1] / point[2])), sigma_px)
    sight = sight_through(0.055, 0, laboratory_rig()[0], (point[0] / point[2], point[1] / point[2]))
    for covariance, message in (
        (np.eye(3), r"2 numbers has shape \(2, 2\), got \(3, 3\)"),
        (np.diag([1.0, -1.0]), "no negative eigenvalue"),
        (np.diag([1.0, 0.0]), "full rank"),
    ):
        with pytest.raises(ValueError, match=message):
            belief.see(sight, covariance)
    with pytest.raises(ValueError, match="joints must be finite"):
        belief.track_plate(math.nan, np.zeros(3), np.eye(3))
    with pytest.raises(ValueError, match=r"a rotation \(3, 3\), got \(2,\) and \(3, 3\)"):
        belief.track_plate(0.2, np.zeros(2), np.eye(3))
    for turned in (np.zeros((3, 3)), np.diag([1.0, 1.0, -1.0]), np.diag([3**0.5, 0.0, 0.0])):
        with pytest.raises(ValueError, match="is no rotation"):
            belief.track_plate(0.2, np.zeros(3), turned)
    assert belief.time_s == 0.05 and np.array_equal(belief.at(0.06)[0], before)
    for name, value in (("instances", 1), ("gate", 0.0), ("restitution", (0.9, 0.2))):
        with pytest.raises(ValueError, match="at least 2 instances|gate must be|restitution must be"):
            BallBeliefConfig(**{name: value})
    with pytest.raises(ValueError, match="has not been measured yet"):
        PlatePast().between(0.0, 0.1, 3)


def test_it_needs_no_torch():
    code = "import sys, dris.catching.ball_belief, dris.catching.loop; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_quaternions_are_scipy_s_to_the_last_bit():
    turns = Rotation.random(500, random_state=1).as_matrix()
    turns = np.concatenate(
        (turns, Rotation.from_euler("xyz", np.pi * np.eye(3)).as_matrix(), np.eye(3)[None])
    )
    found = np.array([quaternion_of(turn) for turn in turns])
    np.testing.assert_array_equal(found, Rotation.from_matrix(turns).as_quat())
