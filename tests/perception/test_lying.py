"""A ball that lies on the plate, as one camera or two see it, against closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sights import NEAR_PLATE, PLAIN, exact_sight, feed, parabola, pinhole

from dris.perception.detect import Detection
from dris.perception.monitor import Monitor
from dris.perception.plate import Plate, lying, places_apart, resting_place
from dris.perception.track import BallTracker

TILTED = Plate(0.0, NEAR_PLATE, np.array([math.sin(0.5), 0.0, math.cos(0.5)]), np.array([0.0, 0.0, 0.0]))


def on_plate(along, across, radius=0.03):
    """Centre of a ball that lies on the tilted plate, so far along it and across [m]."""
    lengthwise = np.array([math.cos(0.5), 0.0, -math.sin(0.5)])
    return NEAR_PLATE + radius * TILTED.normal_in_base + along * lengthwise + np.array([0.0, across, 0.0])


def one_sight(ball, time_s=0.0, camera=0, radius=0.03):
    exact = exact_sight(PLAIN, time_s, camera, ball)
    return replace(exact, size=radius / exact.depth(ball))


@pytest.mark.parametrize("camera", [0, 1])
def test_one_camera_and_the_plate_tell_where_a_ball_lies(camera):
    for along, across, radius in ((0.0, 0.0, 0.03), (0.05, -0.08, 0.02), (-0.1, 0.02, 0.04)):
        ball = on_plate(along, across, radius)
        found = resting_place(one_sight(ball, 0.0, camera, radius), TILTED)
        assert found == pytest.approx(ball, abs=1e-9)
    assert resting_place(one_sight(on_plate(0.2, 0.0), 0.0, camera), TILTED) is None  # beside the plate
    # half way to the camera a ball of 3 cm looks like one of 6 cm and more on the plate: it is not on it
    near = 0.4 * on_plate(0.0, 0.0) + 0.6 * PLAIN[camera].position_in_base
    assert resting_place(one_sight(near, 0.0, camera), TILTED) is None


def test_a_ball_that_rolls_on_the_plate_has_its_velocity_from_one_camera():
    path = lambda t: on_plate(0.4 * t, -0.1 * t)  # noqa: E731
    first = lying([one_sight(path(0.0))], TILTED, 0.01)
    assert first[0] == pytest.approx(path(0.0), abs=1e-9) and first[1] == pytest.approx(np.zeros(3))
    ball, velocity = lying([one_sight(path(t), t) for t in (0.0, 0.0125, 0.025)], TILTED, 0.04)
    assert ball == pytest.approx(path(0.04), abs=1e-9)
    assert velocity == pytest.approx([0.4 * math.cos(0.5), -0.1, -0.4 * math.sin(0.5)], abs=1e-9)
    assert lying([], TILTED, 0.0) is None


@pytest.mark.parametrize("above", [0.0, 0.004, 0.02])
def test_two_cameras_put_a_ball_that_does_not_lie_at_two_places(above):
    """Along its ray c + s (b - c) each puts it where z is that of the plate and s times the radius."""
    level = replace(TILTED, normal_in_base=np.array([0.0, 0.0, 1.0]))
    ball = NEAR_PLATE + (0.0, 0.0, 0.03 + above)
    places = []
    for camera in PLAIN:
        eye = camera.position_in_base
        share = (eye[2] - NEAR_PLATE[2]) / (eye[2] - ball[2] + 0.03)
        places.append(eye + share * (ball - eye))
    sights = [one_sight(ball, 0.0, camera) for camera in (0, 1)]
    apart = float(np.linalg.norm(places[0] - places[1]))
    assert places_apart(sights, level) == pytest.approx(apart, abs=1e-9)
    assert apart == pytest.approx(0.0 if above == 0 else 4.0 * above, rel=0.05)  # 2.4 m apart, 0.6 m above it
    assert places_apart(sights[:1], level) == math.inf
    beside = one_sight(on_plate(0.3, 0.0), 0.0, 1)
    assert places_apart([sights[0], beside], level) == math.inf


@pytest.mark.parametrize(("above", "level"), [(0.0, "fine"), (0.01, "hold")])
def test_a_ball_on_the_plate_is_known_at_once_if_both_cameras_put_it_there(above, level):
    tracker, monitor = BallTracker(PLAIN), Monitor((0.03, 0.03))
    tracker.expect_plate(TILTED)
    ball = on_plate(0.02, 0.0) + above * TILTED.normal_in_base
    for camera in (0, 1):
        outline_px = PLAIN[camera].focal_px[0] * one_sight(ball, 0.0, camera).size
        tracker.observe(0.004 * camera, camera, Detection(pinhole(PLAIN[camera], ball), outline_px, 1.0))
    state = tracker.state(0.015)
    assert state.valid and monitor.judge(0.015, state).level == level


def test_a_track_that_one_camera_cannot_begin_knows_a_ball_on_the_plate():
    path = lambda t: on_plate(0.3 * t, 0.0)  # noqa: E731
    tracker = BallTracker(PLAIN)
    *_, at = feed(tracker, path, np.arange(4) * 0.0125, blind=lambda t, camera: camera == 1)
    assert tracker.state(at) is None  # no plate, no second camera: nothing is known
    tracker.expect_plate(TILTED)
    state = tracker.state(at)
    assert state.valid and state.phase == "plate"
    assert state.ball_in_base == pytest.approx(path(at), abs=2e-3)
    assert tracker.arrival(0.5) is None and tracker.state(at + 0.1) is None  # old sights tell nothing


def test_one_camera_alone_does_not_take_a_flying_ball_for_one_that_lies():
    """Over the plate, 15 cm above it: the ray of camera 0 meets the plate beside where the ball is."""
    end = on_plate(0.0, 0.0) + (0.0, 0.0, 0.15)
    path = lambda t: parabola(end, (0.0, 0.0, 0.0), t - 0.2)  # noqa: E731  # at the height of a bounce
    tracker = BallTracker(PLAIN)
    tracker.expect_plate(TILTED)
    for at in feed(tracker, path, np.arange(20) * 0.0125, blind=lambda t, camera: camera == 1 and t > 0.1):
        state = tracker.state(at)
        if at > 0.05 and state is not None and state.valid:
            assert state.phase == "flight" and state.ball_in_base == pytest.approx(path(at), abs=0.01)
    assert at > 0.2 and (state is None or not state.valid)
