"""What frames are spared from computing twice: against the formulas written out, sight by sight."""

import math

import numpy as np
import pytest
from tests.helpers.sights import PLAIN, START, TIMES, VELOCITY, throw_sights

from dris.perception.camera import laboratory_rig
from dris.perception.detect import _kasa
from dris.perception.equations import Anchor, Equations, Sights, pixel_weight
from dris.perception.health import Sizes, sizes_m
from dris.perception.motion import FALLS_OR_ROLLS, GRAVITY_IN_BASE, NONE, Motion, fit_motion
from dris.perception.pictures import Pictures
from dris.perception.plate import Plate, impact_time

REFERENCE_S, SIGMA_PX, SIGMA_S = 0.07, 0.3, 0.0005


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("anchored", [False, True])
def test_normal_equations_are_those_of_the_design_written_out(free, anchored):
    """Row by row: a . (p + v tau + a tau^2 / 2) = s, weighed by the inverse of a 2 x 2 covariance."""
    generator = np.random.default_rng(3)
    seen = throw_sights(PLAIN, START, VELOCITY, TIMES, 0.0, SIGMA_PX, generator)
    pulls = NONE[None] if free else FALLS_OR_ROLLS
    sights = Sights.of(seen)
    equations = Equations(sights, sights.time_s - REFERENCE_S, pulls, free, SIGMA_S)
    anchor = Anchor(0.01, START + 0.02, 0.005)
    if anchored:
        equations.know(anchor, REFERENCE_S)
    unknowns = 9 if free else 6
    solutions = [generator.normal(size=(unknowns, 1)) * 0.1 for _ in pulls]
    for solution in solutions:
        solution[:3, 0] += START
    errors, depth, way = equations.residuals(solutions)
    weight = pixel_weight(depth, way, sights.focal_px, SIGMA_PX)
    normal, right = equations.normal(weight)
    squares = equations.squares(weight, errors, solutions)
    for k, pull in enumerate(pulls):
        x = solutions[k][:, 0]
        acceleration = x[6:] if free else pull
        information, told, total = np.zeros((unknowns, unknowns)), np.zeros(unknowns), 0.0
        for n, sight in enumerate(seen):
            tau = sight.time_s - REFERENCE_S
            gain = np.array((1.0, tau, 0.5 * tau**2))[: unknowns // 3]
            design = np.concatenate([one * sight.rows for one in gain], axis=1)
            target = sight.values - (0 if free else sight.rows @ pull * tau**2 / 2)
            place = x[:3] + x[3:6] * tau + acceleration * tau**2 / 2
            per_px = sight.focal_px / sight.depth(place)
            u = SIGMA_S * per_px * sight.rows @ (x[3:6] + acceleration * tau)
            inverse = np.linalg.inv(SIGMA_PX**2 * np.eye(2) + np.outer(u, u)) * per_px**2
            error = design @ x - target
            assert errors[k, n] == pytest.approx(error, rel=0, abs=1e-12)
            assert depth[k, n] == pytest.approx(sight.depth(place), rel=1e-12)
            w0, w1, w2 = weight[k, n]
            assert np.array(((w0, w2), (w2, w1))) == pytest.approx(inverse, rel=1e-9)
            information += design.T @ inverse @ design
            told += design.T @ inverse @ target
            total += error @ inverse @ error
        if anchored:
            tau = anchor.time_s - REFERENCE_S
            for axis in np.eye(3):
                row = np.concatenate([one * axis for one in (1.0, tau, 0.5 * tau**2)])[:unknowns]
                value = axis @ (anchor.ball_in_base - (0 if free else pull * tau**2 / 2))
                information += np.outer(row, row) / anchor.sigma_m**2
                told += row * value / anchor.sigma_m**2
                total += (row @ x - value) ** 2 / anchor.sigma_m**2
        scale = abs(information).max()
        assert np.abs(normal[k] - information).max() < 1e-12 * scale
        assert np.abs(right[k][:, 0] - told).max() < 1e-12 * scale
        assert squares[k] == pytest.approx(total, rel=1e-10)


def test_a_covariance_is_carried_by_the_transition():
    """C P C' with C = (I, tau I; 0, I), both ways in time."""
    motion = fit_motion(throw_sights(PLAIN, START, VELOCITY, TIMES), GRAVITY_IN_BASE, 0.3)
    for tau in (-0.05, 0.0, 0.03):
        carry = np.eye(6)
        carry[:3, 3:] = tau * np.eye(3)
        found = motion.covariance_at(motion.reference_s + tau)
        assert found == pytest.approx(carry @ motion.covariance @ carry.T, rel=1e-12, abs=1e-18)


def test_an_impact_is_when_the_gap_closes_on_a_moving_tilted_plate():
    """Against the gap itself, sampled every tenth of a millisecond; motions begin before and after."""
    generator, met = np.random.default_rng(5), 0
    for _ in range(60):
        tilt = generator.uniform(-0.2, 0.2, 2)
        normal = np.array((*tilt, math.sqrt(1 - tilt @ tilt)))
        plate = Plate(0.02, np.array((0.7, 0.0, 0.8)), normal, generator.uniform(-0.3, 0.3, 3))
        ball = np.array((0.7, 0.0, 0.9)) + generator.uniform(-0.05, 0.05, 3)
        pull = GRAVITY_IN_BASE if generator.random() < 0.7 else NONE
        reference_s, start_s = generator.uniform(-0.02, 0.02, 2)
        velocity = generator.uniform(-1, 1, 3) - (0, 0, 0.5)
        motion = Motion(reference_s, ball, velocity, pull, np.eye(6), 0.0, 0.0, 0.1)
        times = start_s + np.arange(0, 0.3, 1e-4)
        gaps = np.array([plate.gap(motion.at(t)[0], t, 0.02) for t in times])
        found, first = impact_time(motion, plate, 0.02, start_s, times[-1]), np.flatnonzero(gaps <= 0)
        if len(first) == 0 or gaps[0] <= 0:
            continue
        if not plate.under(motion.at(times[first[0]])[0], times[first[0]]):
            continue
        met += 1
        assert times[first[0]] - 1e-4 - 1e-9 <= found <= times[first[0]] + 1e-9
        assert plate.gap(motion.at(found)[0], found, 0.02) == pytest.approx(0, abs=1e-9)
    assert met > 20


def test_one_pixel_is_the_projection_of_one_point():
    """In plain numbers and by arrays; none behind the camera."""
    generator = np.random.default_rng(0)
    for camera in laboratory_rig().cameras:
        for point in generator.uniform((0.2, -0.5, 0.3), (1.2, 0.5, 1.4), (20, 3)):
            assert camera.pixel_of(point) == pytest.approx(camera.project(point), rel=1e-12)
        assert camera.pixel_of(camera.position_in_base - camera.base_to_camera[2, :3]) is None


def test_sizes_that_are_kept_are_those_of_the_present_sights():
    """Another motion, another sight: they are taken anew."""
    sights = throw_sights(PLAIN, START, VELOCITY, TIMES)
    motion = fit_motion(sights, GRAVITY_IN_BASE, 0.3)
    other = fit_motion(sights, NONE, 0.3)
    kept = Sizes()
    for of, some in ((motion, sights), (motion, sights), (other, sights), (other, sights[:-2])):
        assert kept.radius_m(some, of) == pytest.approx(np.median(sizes_m(some, of)), rel=1e-12, abs=1e-15)
        assert kept.seen(some, of) == pytest.approx(Sizes().seen(some, of), rel=1e-12, abs=1e-15)


def test_a_circle_by_least_squares_is_the_full_systems():
    """Kasa's three unknowns by NumPy's least squares, on arcs with noise; points in a line give no NaN."""
    generator = np.random.default_rng(1)
    for _ in range(20):
        angles = generator.uniform(0, 2) + np.linspace(0, generator.uniform(1, 6), 40)
        points = generator.uniform(5, 30) * np.stack((np.cos(angles), np.sin(angles)), axis=1) + (200, 90)
        points += 0.3 * generator.normal(size=points.shape)
        system = np.column_stack((2 * points, np.ones(len(points))))
        a, b, c = np.linalg.lstsq(system, (points**2).sum(axis=1), rcond=None)[0]
        centre, radius = _kasa(points)
        assert centre == pytest.approx((a, b), rel=1e-9)
        assert radius == pytest.approx(math.sqrt(c + a * a + b * b), rel=1e-7)
    centre, radius = _kasa(np.stack((np.arange(10.0), 2 * np.arange(10.0)), axis=1))
    assert np.isfinite((*centre, radius)).all()


def test_a_picture_repeats_only_if_every_row_that_counts_does():
    generator = np.random.default_rng(2)
    first = generator.integers(0, 255, (60, 40, 3), dtype=np.uint8)
    pictures = Pictures()
    assert not pictures.repeats(first, 2)
    assert pictures.repeats(first.copy(), 2)
    second = first.copy()
    second[10, 7, 1] ^= 1  # in the second row that counts
    assert not pictures.repeats(second, 2)
    assert pictures.repeats(first, 2) and pictures.repeats(second, 2)
    assert not pictures.repeats(first + np.uint8(1), 2)  # the third drives out the first
    assert pictures.repeats(second, 2) and not pictures.repeats(first, 2)
    dark = np.zeros_like(first)
    assert not pictures.repeats(dark, 2) and not pictures.repeats(dark, 2)
