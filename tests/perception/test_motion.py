"""Triangulation and motion, against closed forms and independent formulas."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from scipy.optimize import least_squares
from sights import (
    NEAR_PLATE,
    PLAIN,
    RIG,
    START,
    TIMES,
    VELOCITY,
    G,
    exact_sight,
    parabola,
    pinhole,
    throw_sights,
)

from dris.lab.drawn_scene import Scene, clutter
from dris.perception.detect import Detection, detect
from dris.perception.motion import GRAVITY_IN_BASE, NONE, Sights, arrival_of, doubt, fit_motion
from dris.perception.track_config import TrackerConfig
from dris.perception.triangulate import sight_of, triangulate, triangulate_detections

# Triangulation.


def test_exact_sights_give_the_exact_point():
    for point in NEAR_PLATE + np.random.default_rng(0).uniform(-0.3, 0.3, (10, 3)):
        fix = triangulate((exact_sight(PLAIN, 0.0, 0, point), exact_sight(PLAIN, 0.0, 1, point)))
        assert fix.ball_in_base == pytest.approx(point, abs=1e-9)
        assert fix.reprojection_px < 1e-6


def test_the_covariance_is_what_noise_does():
    generator, sigma = np.random.default_rng(0), 0.5
    fixes = [
        triangulate(
            tuple(exact_sight(PLAIN, 0.0, k, NEAR_PLATE, generator.normal(0, sigma, 2)) for k in (0, 1)),
            sigma,
        )
        for _ in range(2000)
    ]
    found = np.cov(np.array([fix.ball_in_base for fix in fixes]).T)
    assert found == pytest.approx(fixes[0].covariance, abs=0.1 * np.trace(found) / 3)
    assert np.sqrt(np.trace(found) / 3) == pytest.approx(1.4e-3, rel=0.25)  # facts: 1.4 mm per axis at 0.5 px


def test_a_wrong_match_is_gated():
    right = exact_sight(PLAIN, 0.0, 0, NEAR_PLATE)
    assert triangulate((right, exact_sight(PLAIN, 0.0, 1, NEAR_PLATE, (0.0, 1.0)))) is not None
    assert triangulate((right, exact_sight(PLAIN, 0.0, 1, NEAR_PLATE, (0.0, 15.0)))) is None
    with pytest.raises(ValueError, match="two cameras"):
        triangulate((right, right))


def test_a_spheres_outline_is_led_back_to_its_centre():
    """Outline points by tangent cone: c (1 - r^2/d^2) + r sqrt(1 - r^2/d^2) u for u across c."""
    camera, radius = replace(PLAIN[0], width=4000, height=4000), 0.2  # large, so that the effect is
    ball = camera.position_in_base + camera.camera_to_base[:3, :3] @ np.array([0.9, 0.5, 2.0])
    towards = ball - camera.position_in_base
    shrink = 1 - radius**2 / (towards @ towards)
    across = np.linalg.svd(towards[None])[2][1:]
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    circle = np.cos(angles)[:, None] * across[0] + np.sin(angles)[:, None] * across[1]
    outline = camera.position_in_base + towards * shrink + radius * np.sqrt(shrink) * circle
    (x, y), axes, _ = cv2.fitEllipse(np.array([pinhole(camera, p) for p in outline], np.float32))
    assert np.hypot(*np.subtract((x, y), pinhole(camera, ball))) > 2.0
    sight = sight_of(0.0, 0, camera, Detection((x, y), min(axes) / 2, 1.0))
    assert np.abs(sight.error_px(ball)).max() < 0.05


def test_drawn_balls_are_triangulated_to_a_millimetre():
    generator = np.random.default_rng(0)
    scenes = [Scene(camera, clutter(camera, generator)) for camera in RIG.cameras]
    for radius in (0.02, 0.04):
        for _ in range(5):
            ball = NEAR_PLATE + generator.uniform(-0.2, 0.2, 3)
            found = tuple(detect(scene.draw(ball, radius)) for scene in scenes)
            fix = triangulate_detections(RIG, found)
            assert np.linalg.norm(fix.ball_in_base - ball) < 1.2e-3
            size = found[0].radius_px * RIG[0].to_camera(ball)[2] / 600
            assert size == pytest.approx(radius, rel=0.08)


# Motion.


def test_a_parabola_is_recovered_exactly_from_unsynchronised_cameras():
    motion = fit_motion(throw_sights(PLAIN, START, VELOCITY, TIMES), GRAVITY_IN_BASE, 0.3, reference_s=0.0)
    assert motion.ball_in_base == pytest.approx(START, abs=1e-9)
    assert motion.velocity_in_base == pytest.approx(VELOCITY, abs=1e-7)
    assert motion.rms_px < 1e-6


def test_a_straight_line_lags_by_half_a_window_of_gravity():
    sights = throw_sights(PLAIN, START, VELOCITY, TIMES, offset_s=0.0)
    line = fit_motion(sights, NONE, 0.3)
    # A line's slope is the velocity of the window's middle: it misses -g T / 2 by the end.
    # 3 %: pixels weigh near frames more, a line through positions does not.
    assert line.velocity_in_base[2] - (VELOCITY[2] - G * 0.1) == pytest.approx(G * 0.05, rel=0.03)
    assert line.velocity_in_base[:2] == pytest.approx(VELOCITY[:2], abs=0.02)


def test_the_velocitys_spread_is_the_closed_form_and_the_covariance():
    generator, sigma = np.random.default_rng(0), 0.3
    fits = [
        fit_motion(throw_sights(PLAIN, START, VELOCITY, TIMES, 0.0, sigma, generator), GRAVITY_IN_BASE, sigma)
        for _ in range(400)
    ]
    found = np.std([fit.velocity_in_base for fit in fits], axis=0)
    assert found == pytest.approx(np.sqrt(np.diag(fits[0].covariance)[3:]), rel=0.12)
    # Ordinary least squares: sigma_v = sigma_p / sqrt(sum (t - mean)^2)
    middle = parabola(START, VELOCITY, 0.05)
    one = triangulate((exact_sight(PLAIN, 0, 0, middle), exact_sight(PLAIN, 0, 1, middle)), sigma)
    expected = np.sqrt(np.diag(one.covariance) / np.sum((TIMES - TIMES.mean()) ** 2))
    assert found == pytest.approx(expected, rel=0.15)
    chi_square = np.mean([fit.chi_square for fit in fits])
    assert chi_square == pytest.approx(2 * 2 * len(TIMES) - 6, rel=0.05)


FAST = np.array([-1.0, 1.5, -6.5])
STAMP_S = 0.0005


def late_sights(generator):
    """Of a ball at 6.7 m/s by cameras whose stamps are off by half a millisecond: some 0.5 px of its way."""
    times = [(t + 0.005 * k, k) for t in TIMES for k in (0, 1)]
    path = lambda t: parabola(START, FAST, t)  # noqa: E731
    true = [exact_sight(PLAIN, t, k, path(t), generator.normal(0, 0.3, 2)) for t, k in times]
    return [replace(s, time_s=s.time_s + STAMP_S * generator.standard_normal()) for s in true]


def test_stamps_that_are_off_make_a_fast_ball_no_less_believable():
    """Once sights of fast throws lay too far from any parabola, and the eyes held through a whole flight."""
    generator, freedom = np.random.default_rng(2), 4 * len(TIMES) - 6
    plain, aware = [], []
    for _ in range(300):
        sights = late_sights(generator)
        plain.append(fit_motion(sights, GRAVITY_IN_BASE, 0.3))
        aware.append(fit_motion(sights, GRAVITY_IN_BASE, 0.3, sigma_s=STAMP_S))
    assert np.mean([fit.chi_square for fit in plain]) > 1.5 * freedom
    assert np.mean([fit.chi_square for fit in aware]) == pytest.approx(freedom, rel=0.05)
    errors = [fit.velocity_in_base - FAST - GRAVITY_IN_BASE * fit.reference_s for fit in aware]
    expected = np.sqrt(np.mean([np.diag(fit.covariance)[3:] for fit in aware], axis=0))
    assert np.std(errors, axis=0) == pytest.approx(expected, rel=0.12)


def test_a_fit_with_stamps_that_are_off_is_generalised_least_squares():
    """By SciPy, on pixels, each whitened by the Cholesky factor of its covariance where the solution has it."""
    sights = late_sights(np.random.default_rng(5))
    fit = fit_motion(sights, GRAVITY_IN_BASE, 0.3, reference_s=0.05, sigma_s=STAMP_S)

    def point(state, time_s):
        tau = time_s - 0.05
        return state[:3] + state[3:] * tau + 0.5 * GRAVITY_IN_BASE * tau**2

    def whitened(state):
        errors = []
        for sight in sights:
            ahead, back = (point(near, sight.time_s + d) for d in (1e-5, -1e-5))
            way = (sight.error_px(back) - sight.error_px(ahead)) / 2e-5
            root = np.linalg.cholesky(0.09 * np.eye(2) + STAMP_S**2 * np.outer(way, way))
            errors.append(np.linalg.solve(root, sight.error_px(point(state, sight.time_s))))
        return np.concatenate(errors)

    near = np.concatenate((fit.ball_in_base, fit.velocity_in_base))
    found = least_squares(whitened, near, x_scale="jac", xtol=1e-14, ftol=1e-14, gtol=1e-14)
    spread = np.sqrt(np.diag(fit.covariance))
    assert (np.abs(found.x - near) / spread).max() < 0.05
    assert fit.chi_square == pytest.approx(2 * found.cost, rel=0.01)
    assert np.linalg.inv(found.jac.T @ found.jac) == pytest.approx(fit.covariance, rel=0.05, abs=1e-9)


def test_too_few_sights_give_no_motion():
    sights = throw_sights(PLAIN, START, VELOCITY, TIMES)
    assert fit_motion([s for s in sights if s.camera == 0], GRAVITY_IN_BASE, 0.3) is None
    assert fit_motion(sights[:3], GRAVITY_IN_BASE, 0.3) is None
    assert fit_motion([], GRAVITY_IN_BASE, 0.3) is None


def test_arrival_is_the_root_of_the_parabola():
    motion = fit_motion(throw_sights(PLAIN, START, VELOCITY, TIMES), GRAVITY_IN_BASE, 0.3)
    arrival = arrival_of(motion, 0.6, 0.3)
    fall = (VELOCITY[2] + np.sqrt(VELOCITY[2] ** 2 + 2 * G * (START[2] - 0.6))) / G
    assert arrival.time_s == pytest.approx(fall, abs=1e-7)
    assert arrival.ball_in_base == pytest.approx([*(START + VELOCITY * fall)[:2], 0.6], abs=1e-7)
    assert arrival_of(motion, 5.0, 0.3) is None
    generator = np.random.default_rng(0)
    times, places = [], []
    for _ in range(300):
        noisy = fit_motion(
            throw_sights(PLAIN, START, VELOCITY, TIMES, 0.005, 0.3, generator), GRAVITY_IN_BASE, 0.3
        )
        guess = arrival_of(noisy, 0.6, 0.3)
        times.append(guess.time_s)
        places.append(guess.ball_in_base[:2])
    assert np.std(times) == pytest.approx(arrival.time_sigma_s, rel=0.15)
    assert np.sqrt(np.linalg.eigvalsh(np.cov(np.array(places).T))[-1]) == pytest.approx(
        arrival.place_sigma_m, rel=0.15
    )


def test_an_acceleration_is_found_when_it_is_not_known():
    """A ball that brakes at 3 m/s2 along x under half of gravity; exact sights give it back."""
    pull = np.array([3.0, 0.0, -0.5 * G])
    path = lambda t: START + VELOCITY * t + 0.5 * pull * t * t  # noqa: E731
    sights = [exact_sight(PLAIN, t + 0.005 * k, k, path(t + 0.005 * k)) for t in TIMES for k in (0, 1)]
    free = fit_motion(sights, None, 0.3)
    assert free.acceleration_in_base == pytest.approx(pull, abs=1e-6)
    assert free.ball_in_base == pytest.approx(path(0.105), abs=1e-9)
    assert free.velocity_in_base == pytest.approx(VELOCITY + pull * 0.105, abs=1e-8)
    assert free.covariance.shape == (6, 6)
    known = fit_motion(sights, pull, 0.3)
    # Of n even samples the end velocity of a parabola has 4 times the deviation of a line's, for large n.
    ratio = np.sqrt(np.diag(free.covariance)[3:] / np.diag(known.covariance)[3:])
    assert ratio == pytest.approx(np.full(3, 4.0), rel=0.15)
    assert fit_motion(sights[:4], None, 0.3) is None  # two of each camera do not tell


def test_a_motion_is_doubted_where_another_acceleration_explains_the_sights_far_better():
    """Half of gravity: free fall over 0.105 s leaves chi^2 to win, and the velocity at the end is off by much.

    A straight line through free fall is doubted, too; free fall itself, seen with a fifth of the noise that
    is reckoned with, is not, and no third fit is made for it.
    """
    config, generator = TrackerConfig(), np.random.default_rng(4)
    slow = np.array([0.0, 0.0, -0.5 * G])
    path = lambda t: START + VELOCITY * t + 0.5 * slow * t * t  # noqa: E731
    times = [(t + 0.005 * k, k) for t in TIMES for k in (0, 1)]
    pushed = [exact_sight(PLAIN, t, k, path(t), generator.normal(0, 0.06, 2)) for t, k in times]
    fallen = throw_sights(PLAIN, START, VELOCITY, TIMES, 0.005, 0.06, generator)
    for seen, assumed, least in ((pushed, GRAVITY_IN_BASE, 0.1), (fallen, NONE, 0.3)):
        motion = fit_motion(seen, assumed, config.sigma_px, sigma_s=config.sigma_s)
        free = fit_motion(seen, None, config.sigma_px, sigma_s=config.sigma_s)
        assert motion.chi_square - free.chi_square > 0.5 * config.change_chi_square
        expected = np.linalg.norm(free.velocity_in_base - motion.velocity_in_base)
        assert (
            doubt(Sights.of(seen), motion, motion, config) == pytest.approx(expected, rel=1e-6)
            and expected > least
        )
    right = fit_motion(fallen, GRAVITY_IN_BASE, config.sigma_px, sigma_s=config.sigma_s)
    assert right.chi_square < 0.5 * config.change_chi_square
    assert doubt(Sights.of(fallen), right, right, config) == 0.0
