"""The track, against closed forms and independent formulas."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sights import (
    NEAR_PLATE,
    PLAIN,
    START,
    TIMES,
    VELOCITY,
    G,
    exact_sight,
    feed,
    parabola,
    pinhole,
    throw_sights,
)

from dris.perception.detect import Detection
from dris.perception.health import Sizes, sizes_m
from dris.perception.motion import GRAVITY_IN_BASE, fit_motion
from dris.perception.plate import Plate, across_impact, impact_time
from dris.perception.track import BallTracker, TrackerConfig


def last(times):
    *_, time_s = times
    return time_s


def flight(t):
    return parabola(START, VELOCITY, t)


def bouncing(t, impact=0.15, restitution=0.4):
    if t <= impact:
        return flight(t)
    velocity = VELOCITY - np.array([0, 0, G * impact])
    return parabola(flight(impact), velocity * (1, 1, -restitution), t - impact)


def test_flight_is_predicted_over_the_latency():
    tracker = BallTracker(PLAIN)
    assert tracker.state(0.0) is None
    at = last(feed(tracker, flight, TIMES))
    state = tracker.state(at + 0.03)
    assert state.ball_in_base == pytest.approx(flight(at + 0.03), abs=1e-4)
    assert state.velocity_in_base == pytest.approx(VELOCITY - np.array([0, 0, G * (at + 0.03)]), abs=5e-3)
    assert state.age_s == pytest.approx(0.03) and state.valid and state.phase == "flight"
    assert tracker.predicted_px(at, 0) == pytest.approx(pinhole(PLAIN[0], flight(at)), abs=0.1)


def test_the_papers_line_lags_and_the_other_estimator_does_not():
    lag = {}
    for estimator in ("line", "gravity"):
        tracker = BallTracker(PLAIN, TrackerConfig(estimator=estimator))
        at = last(feed(tracker, flight, np.arange(16) * 0.0125, offset_s=0.0))
        lag[estimator] = tracker.state(at).velocity_in_base[2] - (VELOCITY[2] - G * at)
    assert lag["line"] == pytest.approx(G * 0.05, rel=0.03)
    assert abs(lag["gravity"]) < 5e-3


def test_a_bounce_starts_a_new_window():
    tracker = BallTracker(PLAIN)
    known = None
    for at in feed(tracker, bouncing, np.arange(22) * 0.0125, np.random.default_rng(0)):
        if tracker.bounces and known is None:
            known = at
    # Two frames of each camera after the impact, at most one more that the gate took for the old motion.
    assert len(tracker.bounces) == 1 and 0.15 < tracker.bounces[0] < known < 0.15 + 0.045
    truth = (bouncing(at + 1e-5) - bouncing(at - 1e-5)) / 2e-5
    assert tracker.state(at).velocity_in_base == pytest.approx(truth, abs=0.03)


LEVEL = Plate(0.0, np.array([*bouncing(0.15)[:2], bouncing(0.15)[2] - 0.03]), (0, 0, 1), (0, 0, 0))


def test_the_impact_on_a_plate_is_the_root_of_the_gap():
    motion = fit_motion(throw_sights(PLAIN, START, VELOCITY, TIMES), GRAVITY_IN_BASE, 0.3)
    assert impact_time(motion, LEVEL, 0.03, 0.0, 0.3) == pytest.approx(0.15, abs=1e-6)
    assert impact_time(motion, LEVEL, 0.03, 0.0, 0.14) is None
    # there at 0.15 s as well
    rising = Plate(0.0, LEVEL.centre_in_base - (0, 0, 0.15), (0, 0, 1), (0, 0, 1.0))
    assert impact_time(motion, rising, 0.03, 0.0, 0.3) == pytest.approx(0.15, abs=1e-6)
    beside = Plate(0.0, LEVEL.centre_in_base + (0.2, 0, 0), (0, 0, 1), (0, 0, 0))
    assert impact_time(motion, beside, 0.03, 0.0, 0.3) is None
    # Newton: v' - u = -e (v - u), along the normal
    ball, velocity = across_impact(motion, rising, 0.15, 0.15, 0.4)
    assert velocity == pytest.approx([-1.5, 0.4, 1.0 + 0.4 * (2.0 + G * 0.15 + 1.0)], abs=1e-5)
    ball, velocity = across_impact(motion, LEVEL, 0.15, 0.25, 0.0)  # does not bounce: stays on the plate
    assert velocity == pytest.approx([-1.5, 0.4, 0.0], abs=1e-5)
    assert ball[2] == pytest.approx(LEVEL.centre_in_base[2] + 0.03, abs=1e-5)


def test_a_known_plate_makes_a_bounce_known_sooner_and_foresees_it():
    known, truth = {}, VELOCITY - np.array([0, 0, G * 0.15])
    for plate in (None, LEVEL):
        tracker = BallTracker(PLAIN, TrackerConfig(restitution=0.5))
        for at in feed(tracker, bouncing, np.arange(22) * 0.0125, np.random.default_rng(0)):
            tracker.expect_plate(plate)
            if tracker.bounces and plate not in known:
                known[plate] = at
            if at < 0.15 and plate is not None and tracker.phase == "flight":
                after = tracker.state(0.151).velocity_in_base  # restitution 0.5 assumed, 0.4 true
                assert after == pytest.approx([*truth[:2], -0.5 * truth[2] - G * 0.001], abs=0.15)
                # It tells how long nobody has seen what it foresees: since 0.15 s.
                assert tracker.state(0.2).health.foreseen_s == pytest.approx(0.05, abs=0.003)
                assert tracker.state(0.14).health.foreseen_s == 0
            if tracker.bounces:  # two frames and the impact's place make the velocity good to a few percent
                now = bouncing(at + 1e-5) - bouncing(at - 1e-5)
                assert tracker.state(at).velocity_in_base == pytest.approx(now / 2e-5, abs=0.3)
        assert tracker.radius_m == pytest.approx(0.03, rel=0.01)
    assert known[LEVEL] <= known[None] - 0.0125


def touching(t, impact=0.15, restitution=0.4, contact_s=0.006):
    """A bounce that takes its time: 6 ms on the plate, as on the twin's pad, half of the speed along it kept."""
    if t <= impact:
        return flight(t)
    velocity = VELOCITY - np.array([0, 0, G * impact])
    left = flight(impact) + velocity * (0.5, 0.5, 0) * min(t - impact, contact_s)
    return parabola(left, velocity * (0.5, 0.5, -restitution), max(t - impact - contact_s, 0.0))


@pytest.mark.parametrize("restitution", [0.4, 0.6])
@pytest.mark.parametrize("wrong_by", [0.0, 0.01, 0.02])
def test_a_ball_in_the_air_after_a_bounce_does_not_roll(wrong_by, restitution):
    """A window with a sight from before the bounce's end looks straight: it was `plate` for up to 80 ms.

    The plate is told up to 2 cm too high, as one that moves is. The ball rises at 1.4 m/s or more, and is off by
    less than 0.3 m/s from 45 ms on after it has left.
    """
    path = lambda t: touching(t, restitution=restitution)  # noqa: E731
    for seed in (0, 1):
        tracker, plate = (
            BallTracker(PLAIN),
            replace(LEVEL, centre_in_base=LEVEL.centre_in_base + (0, 0, wrong_by)),
        )
        for at in feed(tracker, path, np.arange(30) * 0.0125, np.random.default_rng(seed)):
            tracker.expect_plate(plate)
            if at > 0.15:
                assert tracker.phase == "flight", at
            if at > 0.15 + 0.006 + 0.045:
                truth = (path(at + 1e-5) - path(at - 1e-5)) / 2e-5
                assert tracker.state(at).velocity_in_base == pytest.approx(truth, abs=0.3)


def test_a_stamp_far_ahead_does_not_blind_the_track_for_good():
    tracker = BallTracker(PLAIN)
    last(feed(tracker, flight, TIMES))
    tracker.observe(1e6, 0, Detection(pinhole(PLAIN[0], flight(0.11)), 9.0, 1.0))
    assert tracker.phase == "searching"
    later = TIMES[-1] + 0.0125 + TIMES  # three sights say that the one was wrong, six begin a track
    assert tracker.state(last(feed(tracker, flight, later))).ball_in_base == pytest.approx(
        flight(later[-1] + 0.005), abs=1e-3
    )


def test_a_state_of_a_time_that_has_not_come_is_not_valid():
    tracker = BallTracker(PLAIN)
    at = last(feed(tracker, flight, TIMES))
    assert tracker.state(at - 0.02).valid  # a frame that came late is asked for its own time
    early = tracker.state(at - 1.0)
    assert early.age_s == pytest.approx(-1.0) and not early.valid


def test_a_state_tells_its_health():
    tracker = BallTracker(PLAIN)
    at = last(feed(tracker, flight, TIMES, np.random.default_rng(0), radius=0.025))
    health = tracker.state(at).health
    assert health.rms_px == pytest.approx(0.1, rel=0.4) and health.radii_m == pytest.approx(
        (0.025,) * 2, rel=0.01
    )
    assert health.span_s == pytest.approx(0.1, abs=0.006) and health.doubt == 0 and health.surprise == 0
    assert health.lying is None and not health.anchored
    for camera in (0, 1):
        tracker.observe(at + 0.01, camera, Detection((100.0, 100.0 + 90 * camera), 9.0, 1.0))
    assert tracker.state(at + 0.01).health.surprise == 2


def test_radii_for_all_sights_at_once_are_those_of_a_plain_loop():
    """Outline times depth, sight by sight; in 0.45 s at 90 Hz the flight's window of 0.4 s fills: 36 and 37 sights."""
    tracker = BallTracker(PLAIN)
    for at in feed(tracker, flight, np.arange(40) / 90, np.random.default_rng(3)):
        motion, sights = tracker._motion, tracker._sights
        if motion is None:
            assert tracker.radius_m == 0.0
            continue
        plain, fitted = [], ([], [])
        for sight in sights:
            tau = sight.time_s - motion.reference_s
            fallen = motion.acceleration_in_base * tau**2 / 2
            ball = motion.ball_in_base + motion.velocity_in_base * tau + fallen
            plain.append(sight.size * (sight.axis @ ball - sight.offset))
            if tau >= -motion.span_s - 1e-9:
                fitted[sight.camera].append(plain[-1])
        medians = [np.median(sizes) for sizes in fitted]
        assert sizes_m(sights, motion) == pytest.approx(plain, rel=0, abs=1e-12)
        assert tracker.radius_m == pytest.approx(np.median(plain), rel=0, abs=1e-12)
        assert Sizes().seen(sights, motion) == pytest.approx(medians, rel=0, abs=1e-12)
        assert tracker.state(at).health.radii_m == pytest.approx(medians, rel=0, abs=1e-12)
    assert len(sights) == 73 and len(fitted[0]) < 36 and plain == pytest.approx([0.03] * 73, rel=0.01)


def test_a_camera_that_saw_nothing_has_no_radius():
    motion = fit_motion(throw_sights(PLAIN, START, VELOCITY, TIMES), GRAVITY_IN_BASE, 0.3)
    only = [exact_sight(PLAIN, motion.reference_s, 1, NEAR_PLATE)]
    first, second = Sizes().seen(only, motion)
    assert math.isnan(first) and second == 0.0
    assert len(sizes_m([], motion)) == 0 and all(map(math.isnan, Sizes().seen([], motion)))


def test_a_ball_on_a_ramp_doubts_its_velocity():
    """On a circle of 0.5 m at 1.5 m/s: 4.5 m/s2 inwards. A line is off by a T / 2 = 0.22 m/s at its end."""
    speed, radius = 1.5, 0.5

    def path(t):
        angle = speed * t / radius
        return NEAR_PLATE + radius * np.array([math.sin(angle), 0.0, 1 - math.cos(angle)])

    tracker = BallTracker(PLAIN)
    at = last(feed(tracker, path, TIMES - 0.1, np.random.default_rng(0)))
    state = tracker.state(at)
    off = np.linalg.norm(state.velocity_in_base - (path(at + 1e-5) - path(at - 1e-5)) / 2e-5)
    assert off == pytest.approx(0.22, abs=0.06) and state.health.doubt == pytest.approx(off, rel=0.4)


@pytest.mark.parametrize("values", [((0, 0), (0, 0, 1)), ((0, 0, 0), (0, 0, 2)), ((0, 0, np.nan), (0, 0, 1))])
def test_what_is_no_plate_is_refused(values):
    with pytest.raises(ValueError):
        Plate(0.0, *values, (0, 0, 0))


def test_an_outlier_does_not_break_the_track():
    tracker = BallTracker(PLAIN)
    frames = feed(tracker, flight, np.arange(14) * 0.0125, np.random.default_rng(0))
    for count, at in enumerate(frames):
        if count in (14, 20):
            tracker.observe(at, count % 2, Detection((100.0, 100.0), 9.0, 1.0))
    assert not tracker.bounces and tracker.rejected == 2
    assert tracker.state(at).ball_in_base == pytest.approx(flight(at), abs=2e-3)


def test_rolling_on_the_plate_is_told_from_flight():
    tracker = BallTracker(PLAIN)
    at = last(
        feed(tracker, lambda t: NEAR_PLATE + np.array([0.2, -0.1, 0]) * t, TIMES, np.random.default_rng(0))
    )
    state = tracker.state(at + 0.02)
    assert state.phase == "plate"
    assert state.velocity_in_base == pytest.approx([0.2, -0.1, 0], abs=0.02)
    assert tracker.arrival(0.5) is None


def test_a_ball_is_lost_and_found_again():
    tracker = BallTracker(PLAIN)
    at = last(feed(tracker, flight, TIMES))
    assert tracker.state(at + 0.05).valid
    assert not tracker.state(at + 0.1).valid  # still told, but marked
    assert tracker.state(at + 0.3) is None
    tracker.observe(at + 0.3, 0, None)
    assert tracker.phase == "searching" and tracker.state(at) is None
    later = at + 1.0
    at = last(feed(tracker, lambda t: flight(t - later), later + TIMES))
    assert tracker.state(at).ball_in_base == pytest.approx(flight(at - later), abs=1e-4)


def test_a_blind_camera_makes_the_state_old_but_not_wrong():
    tracker = BallTracker(PLAIN)
    at = last(feed(tracker, flight, np.arange(16) * 0.0125, blind=lambda t, camera: camera == 1 and t > 0.1))
    assert tracker.state(at).ball_in_base == pytest.approx(flight(at), abs=3e-3)


def test_a_motion_that_one_camera_alone_sees_grows_old_and_is_lost():
    """A ball that brakes on the plate, 0.6 m/s^2, while camera 1 is blind: an old fit must not look young."""
    braking = lambda t: NEAR_PLATE + np.array([0.4 * t - 0.3 * t * t, 0.0, 0.0])  # noqa: E731
    tracker, ages = BallTracker(PLAIN), {}
    blind = lambda t, camera: camera == 1 and t > 0.3  # noqa: E731
    for at in feed(tracker, braking, np.arange(60) * 0.0125, blind=blind):
        state = tracker.state(at)
        ages[round(at, 4)] = (state.age_s, state.valid) if state else None
    # A window of 0.1 s holds a pair until 0.3925; the fit then stays at 0.375.
    assert ages[0.3925] == (pytest.approx(0.0175), True)
    assert ages[0.4925] == (pytest.approx(0.1175), False)
    assert ages[0.7425] is None and tracker.phase == "searching"


def test_frames_that_come_late_are_put_in_their_place():
    ordered, late = BallTracker(PLAIN), BallTracker(PLAIN)
    seen = [
        (t + 0.005 * k, k, Detection(pinhole(PLAIN[k], flight(t + 0.005 * k)), 1e-6, 1.0))
        for t in TIMES
        for k in (0, 1)
    ]
    for item in seen:
        ordered.observe(*item)
    for k in range(0, len(seen), 2):  # camera 1 before camera 0
        late.observe(*seen[k + 1])
        late.observe(*seen[k])
    assert late.state(0.12).velocity_in_base == pytest.approx(ordered.state(0.12).velocity_in_base, abs=1e-9)


def test_nonsense_is_refused_or_ignored():
    tracker = BallTracker(PLAIN)
    for time_s, camera in ((float("nan"), 0), (0.0, 2)):
        with pytest.raises(ValueError):
            tracker.observe(time_s, camera, None)
    tracker.observe(0.0, 0, Detection((float("nan"), 3.0), 5.0, 1.0))
    assert tracker.state(float("nan")) is None and tracker.predicted_px(0.0, 0) is None


def test_mismatched_cameras_never_begin_a_track():
    """Two different things, one in each camera: the fit's error gives them away."""
    tracker = BallTracker(PLAIN)
    for t in TIMES:
        tracker.observe(t, 0, Detection(pinhole(PLAIN[0], NEAR_PLATE), 9.0, 1.0))
        tracker.observe(t, 1, Detection(tuple(np.add(pinhole(PLAIN[1], NEAR_PLATE), (0, 40))), 9.0, 1.0))
    assert tracker.state(0.1) is None


def test_perception_brings_neither_torch_nor_a_simulator():
    modules = (
        "arrival camera calibration charuco detect eyes health triangulate monitor motion track track_config "
        "sources plate plate_view watch"
    )
    script = "import sys\n" + "".join(f"import dris.perception.{m}\n" for m in modules.split())
    script += "assert not {'torch', 'warp', 'mujoco', 'scipy'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_arrival_is_told_of_a_flight_alone():
    """Down a quarter circle of 0.2 m and off its level end at 1.5 m/s: on it nothing arrives, after it soon."""
    radius, speed = 0.2, 1.5
    end = np.array([1.0, 0.0, 1.3])

    def path(t):
        if t > 0:
            return parabola(end, (-speed, 0.0, 0.0), t)
        angle = -speed * t / radius  # back along the circle
        return end + radius * np.array([math.sin(angle), 0.0, 1 - math.cos(angle)])

    tracker, told = BallTracker(PLAIN), {}
    for at in feed(tracker, path, np.arange(-8, 12) * 0.0125, np.random.default_rng(0)):
        told[at] = tracker.arrival(0.6)
    fall_s = math.sqrt(2 * 0.7 / G)
    assert all(told[at] is None for at in told if -0.02 < at < 0.01)  # 2 g and more from free fall
    first = min(at for at in told if at > 0.01 and told[at] is not None)
    assert first < 0.08
    for at in told:
        if at > 0.08:
            assert told[at].time_s == pytest.approx(fall_s, abs=0.02)
            assert told[at].ball_in_base[0] == pytest.approx(1.0 - speed * fall_s, abs=0.04)
            assert told[at].misfit < 1.5
