"""The monitor: each sign on its own, with times and pixels worked out by hand; then the eyes as a whole.

Long, because a monitor has many signs, and all are seen in the same scene.
"""

import math
from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from sights import NEAR_PLATE, PLAIN, RIG, START, VELOCITY, parabola

from dris.catching.eyes_observer import EyesObserver
from dris.lab.drawn_scene import Scene, clutter, draw_plate
from dris.perception.camera import Rig
from dris.perception.eyes import Eyes
from dris.perception.health import Health
from dris.perception.monitor import Monitor, Verdict
from dris.perception.monitor_config import MonitorConfig
from dris.perception.plate import Plate
from dris.perception.plate_view import plate_shift
from dris.perception.sources import Frame
from dris.perception.track import BallState

BALL = (0.03, 0.03)
GOOD = Health(rms_px=0.15, radii_m=BALL, span_s=0.1, lying=False)


def picture(number):
    return np.random.default_rng(number).integers(0, 255, (28, 20, 3), np.uint8)


def feed(monitor, frames, travel_s=0.01, period_s=0.0125, start=0, cameras=(0, 1)):
    """Give frames of both cameras as they should come; returns when the last came."""
    for k in range(start, start + frames):
        for camera in cameras:
            stamp_s = k * period_s
            assert monitor.admit(stamp_s + travel_s, stamp_s, camera, picture(2 * k + camera))
    return stamp_s + travel_s


def state(health=GOOD, age_s=0.01, phase="flight", valid=True, spread_m=(0.002, 0.002, 0.002)):
    covariance = np.diag(np.square((*spread_m, 0.03, 0.03, 0.03)))
    return BallState(0.0, NEAR_PLATE, np.zeros(3), covariance, age_s, phase, 16, valid, health)


def verdict(monitor, now_s, of=None):
    found = monitor.judge(now_s, of)
    assert monitor.verdict is found
    return found.level, found.cause


# Stamps and pictures.


def test_nothing_speaks_against_good_frames_and_states():
    monitor = Monitor(BALL)
    now_s = feed(monitor, 20)
    assert verdict(monitor, now_s, state()) == ("fine", "none")
    assert verdict(monitor, now_s, None) == ("fine", "none")  # no ball is no fault
    assert not monitor.changes and not +monitor.noticed


def test_a_stamp_ahead_of_the_clock_is_refused_and_more_of_them_stop():
    monitor = Monitor(BALL)
    now_s = feed(monitor, 8)
    assert not monitor.admit(now_s + 0.001, 1e6, 0, picture(1000))
    assert not monitor.admit(now_s + 0.002, math.nan, 1, picture(1001))
    assert verdict(monitor, now_s) == ("fine", "none")  # one of each camera is no pattern
    now_s = feed(monitor, 1, start=9)  # and blinds nobody
    assert not monitor.admit(now_s, now_s + 0.003, 0, picture(1002))  # 2 of the last 8 of camera 0
    assert verdict(monitor, now_s, state()) == ("hold", "stamp ahead")
    assert monitor.noticed["stamp ahead"] == 3
    assert verdict(monitor, now_s + 0.24, state()) == ("hold", "stamp ahead")
    assert verdict(monitor, now_s + 0.26, state()) == ("stop", "stamp ahead")
    feed(monitor, 20, start=40)
    assert verdict(monitor, 1.0, state()) == ("stop", "stamp ahead")  # until somebody has looked
    monitor.reset()
    assert verdict(monitor, 1.0, state()) == ("fine", "none")


def test_exchanged_stamps_are_noticed_and_late_frames_are_not():
    """Stamps of neighbours exchanged: frames seem to travel 47.5 and 72.5 ms instead of 60."""
    monitor = Monitor(BALL)
    feed(monitor, 8, travel_s=0.06)
    for k in (8, 10):
        for own, other in ((k, k + 1), (k + 1, k)):
            monitor.admit(own * 0.0125 + 0.06, other * 0.0125, 0, picture(2000 + own))
    assert verdict(monitor, 0.2) == ("hold", "stamps out of order")
    # Every fifth frame 30 ms late: it is taken, and nothing is wrong.
    monitor = Monitor(BALL)
    feed(monitor, 8)
    arrivals = sorted((k * 0.0125 + 0.01 + 0.03 * (k % 5 == 0), k) for k in range(8, 40))
    assert all(monitor.admit(now_s, k * 0.0125, 0, picture(3000 + k)) for now_s, k in arrivals)
    assert verdict(monitor, 0.5) == ("hold", "silent camera")  # the other one, which gave none since 0.1 s
    assert monitor.noticed["late frame"] == 6


@pytest.mark.parametrize("jump_s", [-0.05, 0.008])
def test_a_clock_that_jumps_is_noticed_within_four_frames(jump_s):
    monitor = Monitor(BALL)
    feed(monitor, 8)
    for k in range(8, 12):
        monitor.admit(k * 0.0125 + 0.01, k * 0.0125 + jump_s, 1, picture(4000 + k))
    assert verdict(monitor, 0.15) == ("hold", "stamps out of order")


def test_clocks_that_differ_from_the_start_are_noticed():
    monitor = Monitor(BALL)
    for k in range(5):
        monitor.admit(k * 0.0125 + 0.01, k * 0.0125, 0, picture(k))
        monitor.admit(k * 0.0125 + 0.01, k * 0.0125 + 0.007, 1, picture(500 + k))
    assert verdict(monitor, 0.06) == ("hold", "clocks apart")


def test_a_stamp_that_repeats_is_noticed():
    monitor = Monitor(BALL)
    now_s = feed(monitor, 8)
    for k in (1, 2):
        assert not monitor.admit(now_s + 0.0125 * k, 7 * 0.0125, 0, picture(5000 + k))
    assert verdict(monitor, now_s + 0.025) == ("hold", "stamps out of order")


@pytest.mark.parametrize("ring", [1, 5, 17, 80, 2000])
def test_a_camera_that_repeats_pictures_is_frozen(ring):
    """One that gave its last 17 again was taken for one that sees: only 16 were remembered."""
    monitor, before = Monitor(BALL), max(ring, 8)
    end_s = feed(monitor, before)
    assert verdict(monitor, end_s)[0] == "fine"
    taken = [
        monitor.admit(
            k * 0.0125 + 0.01, k * 0.0125, 1, picture(2 * (before - ring + (k - before) % ring) + 1)
        )
        for k in range(before, before + 4)
    ]
    assert not any(taken) and monitor.noticed["frozen camera"] == 4
    assert verdict(monitor, (before + 4) * 0.0125 + 0.01) == ("hold", "frozen camera")


def test_a_repeated_picture_is_refused_once_and_darkness_is_no_repetition():
    monitor = Monitor(BALL)
    now_s = feed(monitor, 8)
    assert not monitor.admit(now_s + 0.01, 8 * 0.0125, 0, picture(14))  # the last one again
    assert verdict(monitor, now_s + 0.01) == ("fine", "none")
    dark = np.zeros((28, 20, 3), np.uint8)
    assert all(monitor.admit(k * 0.0125 + 0.01, k * 0.0125, 0, dark) for k in range(9, 13))


def test_a_camera_that_stutters_stops_and_a_hiccup_now_and_then_does_not():
    """18 of 19 pictures repeat: each fresh one ended the hold, so that it never became a stop."""

    def watched(good, bad):
        monitor = Monitor(BALL)
        now_s = feed(monitor, 8)
        for k in range(8, 808):  # 10 s
            now_s, fresh = k * 0.0125 + 0.01, k % (good + bad) < good
            for camera in (0, 1):
                monitor.admit(now_s, k * 0.0125, camera, picture(2 * k + camera if fresh else 9000 + camera))
            if monitor.judge(now_s, None).level == "stop":
                return monitor.verdict.cause, now_s
        return monitor.verdict.cause, now_s

    cause, at_s = watched(1, 18)
    # Held for 17 of 19 frames, but for the first of a stutter; of those in between a quarter is forgotten.
    assert cause == "frozen camera" and 0.1 + 0.25 <= at_s <= 0.1 + 0.25 * 19 / (16 - 3 / 4) + 0.05
    assert watched(80, 6)[1] > 10  # to the end: 60 ms a second are forgotten


@pytest.mark.parametrize("waits_s", [0.0, 0.01, 0.02])
def test_a_hold_lasts_as_long_where_frames_wait_to_be_looked_at(waits_s):
    """Frames are judged by when they came, the rest by now: each step back counted the same time again."""
    monitor = Monitor(BALL)
    feed(monitor, 8)
    held_s = None
    for tick in range(22, 150):
        now_s = 0.005 * tick
        for camera, number in ((0, 9000), (1, tick)):
            came_s = now_s - waits_s
            monitor.admit(came_s, came_s - 0.01, camera, picture(number))
            monitor.judge(came_s, None)
        level = monitor.judge(now_s, None).level
        held_s = now_s if held_s is None and level == "hold" else held_s
        if level == "stop":
            break
    assert now_s - held_s == pytest.approx(0.25, abs=0.012)


@pytest.mark.parametrize(("rows", "cause"), [(4, "none"), (12, "overexposed")])
def test_a_picture_that_is_white_in_more_than_a_quarter_is_noticed(rows, cause):
    """20 rows of 160 are an eighth, 60 three eighths."""
    monitor = Monitor(BALL)
    now_s = feed(monitor, 8)
    for k in range(8, 30):
        for camera in (0, 1):
            image = np.random.default_rng(k).integers(0, 240, (160, 160, 3), np.uint8)
            image[: rows * 5] = 255
            image[rows * 5 :, :, 2] = 255  # a saturated colour is not white
            image[80, 80] = k, camera, 0  # no picture repeats
            monitor.admit(k * 0.0125 + 0.01, k * 0.0125, camera, image)
        now_s = k * 0.0125 + 0.01
        found = verdict(monitor, now_s)
        if k == 8:
            assert found == ("fine", "none")  # one picture is no pattern
    assert found == (("stop", cause) if cause != "none" else ("fine", "none"))


def test_a_silent_camera_is_noticed():
    monitor = Monitor(BALL)
    now_s = feed(monitor, 8)
    feed(monitor, 40, start=8, cameras=(0,))
    assert verdict(monitor, now_s + 0.2) == ("fine", "none")
    assert verdict(monitor, now_s + 0.26) == ("hold", "silent camera")
    assert verdict(monitor, now_s + 0.52) == ("stop", "silent camera")


def test_a_camera_that_never_spoke_is_silent():
    """Once only one that had spoken could fall silent: the other's frames went on, and all seemed fine."""
    monitor = Monitor(BALL)
    feed(monitor, 240, cameras=(0,))  # until 3.0 s, the first of them after 0.01 s
    assert verdict(monitor, 3.0) == ("fine", "none")  # it may still start
    feed(monitor, 40, start=240, cameras=(0,))
    assert verdict(monitor, 3.02) == ("hold", "silent camera")
    assert "camera 1" in monitor.verdict.reason
    assert verdict(monitor, 3.28) == ("stop", "silent camera")


def test_a_camera_that_starts_late_is_none_that_is_silent():
    """One that came 0.7 s after the other once stopped the rig for good, and every look before a motion failed."""
    monitor = Monitor(BALL)
    feed(monitor, 56, cameras=(0,))
    feed(monitor, 40, start=56)
    assert verdict(monitor, 1.2) == ("fine", "none") and [v.cause for v in monitor.changes] == []


def test_frames_that_are_late_from_the_first_on_are_noticed():
    """Once 0.30 s of travel were learnt as usual: all frames were refused, and the verdict was fine."""
    monitor = Monitor(BALL)
    for k in range(4):
        assert verdict(monitor, 0.0125 * k + 0.3) == ("fine", "none")
        assert not monitor.admit(0.0125 * k + 0.3, 0.0125 * k, 0, picture(2 * k))
    assert monitor.noticed["late frame"] == 4
    assert verdict(monitor, 0.34) == ("hold", "stamps out of order")
    assert monitor.verdict.reason == "4 of the last 4 of camera 0, 4 of them late"
    slow = Monitor(BALL)
    assert feed(slow, 40, travel_s=0.2) and verdict(slow, 0.7) == ("fine", "none")  # slow ones are not


def test_cameras_that_fall_silent_are_noticed_while_nobody_asks_for_a_ball():
    """As on the way home, at home, or while an approach is halted: then only the plate is told."""
    eyes, image = Eyes(RIG, BALL), np.zeros((RIG[0].height, RIG[0].width, 3), np.uint8)
    for k in range(20):
        for camera in (0, 1):
            eyes.take(Frame(0.0125 * k, camera, image), 0.0125 * k + 0.01)
    seen = []
    for k in range(100):  # every 10 ms, and the last frames came at 0.2475 s
        eyes.expect_plate(Plate(0.25 + 0.01 * k, NEAR_PLATE, np.array((0.0, 0.0, 1.0)), np.zeros(3)))
        seen.append(eyes.monitor.verdict.level)
    held, stopped = (0.25 + 0.01 * seen.index(level) for level in ("hold", "stop"))
    assert 0.4975 < held <= 0.52 + 1e-9 and held + 0.25 <= stopped + 1e-9 <= held + 0.28
    assert eyes.monitor.verdict.cause == "silent camera"
    # Neither is ever judged twice within the same 20 ms: an update of the track asks anyway.
    judged = []
    eyes.monitor.judge = lambda now_s, state: judged.append(now_s)
    eyes.monitor._judged_s = 1.25
    for ms in range(1, 20, 5):
        eyes.expect_plate(Plate(1.25 + 1e-3 * ms, NEAR_PLATE, np.array((0.0, 0.0, 1.0)), np.zeros(3)))
    assert judged == []


def test_a_camera_that_repeats_a_picture_and_then_falls_silent_is_noticed():
    monitor = Monitor(BALL)
    now_s = feed(monitor, 8)
    last = picture(5000)
    assert monitor.admit(now_s + 0.0125, now_s + 0.0025, 1, last)
    assert not monitor.admit(now_s + 0.025, now_s + 0.015, 1, last)
    feed(monitor, 40, start=10, cameras=(0,))
    assert verdict(monitor, now_s + 0.3) == ("hold", "silent camera")


# States.


@pytest.mark.parametrize(
    ("of", "cause"),
    [
        (state(replace(GOOD, rms_px=0.75)), "cameras disagree"),  # one camera turned by 2 degrees
        (state(replace(GOOD, radii_m=(0.0305, 0.0250))), "size"),
        (state(replace(GOOD, radii_m=(0.02, 0.02))), "size"),
        (state(replace(GOOD, radii_m=(0.0315, 0.0278))), "size"),  # 1.13 times: a focal length
        (state(replace(GOOD, surprise=3)), "surprise"),
        (state(replace(GOOD, surprise=1), age_s=0.04), "surprise"),
        (state(replace(GOOD, doubt=0.3)), "pushed"),  # on a ramp
        (state(phase="plate"), "pushed"),  # it does not fall, and is not on the plate
        (state(replace(GOOD, span_s=0.03)), "too young"),
        (state(replace(GOOD, span_s=0.01, anchored=True), age_s=0.04), "too young"),
        (state(Health(lying=True, span_s=0.01), phase="plate"), "too young"),  # by one camera
        (state(Health(lying=True, span_s=0.01, apart_m=0.02), phase="plate"), "too young"),  # or in the air
        (state(replace(GOOD, foreseen_s=0.05)), "unseen bounce"),
        (state(spread_m=(0.001, 0.016, 0.002)), "uncertain"),  # along one camera's ray
        (state(replace(GOOD, rms_px=0.35)), "pushed"),  # hops down a ramp
        (state(age_s=-0.02), "stamp ahead"),
    ],
)
def test_a_state_that_should_not_be_acted_on_is_held_with_its_name(of, cause):
    assert verdict(Monitor(BALL), 1.0, of) == ("hold", cause)
    assert verdict(Monitor(BALL), 1.0, replace(of, valid=False)) == ("fine", "none")  # nobody acts on it


@pytest.mark.parametrize(
    "of",
    [
        state(replace(GOOD, rms_px=0.3, radii_m=(0.0285, 0.031))),
        state(replace(GOOD, surprise=2)),
        state(replace(GOOD, foreseen_s=0.04)),
        state(replace(GOOD, span_s=0.01, anchored=True)),  # after a bounce off the plate
        state(replace(GOOD, lying=True, doubt=0.4), phase="plate"),  # the plate pushes it
        state(replace(GOOD, lying=None), phase="plate"),  # nobody said where the plate is
        state(Health(lying=True, span_s=0.04), phase="plate"),  # seen by one camera, on the plate
        state(Health(lying=True, span_s=0.004, apart_m=0.005), phase="plate"),  # by both
    ],
)
def test_what_clean_trials_show_is_fine(of):
    assert verdict(Monitor(BALL), 1.0, of) == ("fine", "none")


def test_an_apple_may_look_larger_from_another_side():
    monitor = Monitor((0.02, 0.035))
    assert verdict(monitor, 1.0, state(replace(GOOD, radii_m=(0.02, 0.033)))) == ("fine", "none")
    assert verdict(monitor, 1.0, state(replace(GOOD, radii_m=(0.02, 0.045)))) == ("hold", "size")


def test_a_second_ball_holds_from_its_second_look_on_until_it_is_gone():
    monitor = Monitor(BALL)
    monitor.looked(1.0, others=1)
    assert verdict(monitor, 1.0, state()) == ("fine", "none")
    monitor.looked(1.0125, others=1)
    assert verdict(monitor, 1.0125, state()) == ("hold", "second ball")
    monitor.looked(1.1, others=0)
    assert verdict(monitor, 1.26, state()) == ("hold", "second ball")
    assert verdict(monitor, 1.27, state()) == ("fine", "none")
    assert [v.cause for v in monitor.changes] == ["second ball", "none"]
    assert monitor.doubts_rig is False


@pytest.mark.parametrize(
    ("level", "cause", "told"),
    [
        ("fine", "none", "fine"),
        ("hold", "frozen camera", "hold"),
        ("hold", "second ball", "hold"),
        ("hold", "size", "doubt"),
        ("hold", "too young", "doubt"),
        ("hold", "surprise", "doubt"),
        ("stop", "plate elsewhere", "stop"),
    ],
)
def test_an_arm_is_halted_by_doubts_of_the_rig_and_not_by_those_of_a_ball(level, cause, told):
    monitor = Monitor(BALL)
    monitor.verdict = Verdict(level, cause, "look at it")
    assert EyesObserver(SimpleNamespace(monitor=monitor), 0.03).trust == (told, f"{cause}: look at it")


def test_a_plate_that_is_seen_elsewhere_stops_at_once():
    monitor = Monitor(BALL)
    for shift in (0.0, 18.0):
        monitor.saw_plate(1, shift)
    assert verdict(monitor, 0.0) == ("fine", "none")
    monitor.saw_plate(1, 18.0)
    assert verdict(monitor, 0.0) == ("stop", "plate elsewhere")
    assert "18 px from where it should be, allowed are 3" in monitor.verdict.reason and monitor.doubts_rig


@pytest.mark.parametrize("wrong", [{"rms_px": 0.0}, {"repeats": 0}, {"radius_ratio": 1.0}, {"stop_s": -1.0}])
def test_limits_that_nothing_passes_are_refused(wrong):
    with pytest.raises(ValueError):
        MonitorConfig(**wrong)


# The plate in the picture.

LEVEL = Plate(0.0, (0.69, 0.0, 0.56), (0.0, 0.0, 1.0), np.zeros(3), edge_in_base=(1.0, 0.0, 0.0))
CORNERS = LEVEL.centre_in_base + 0.12 * np.array([[1, 1, 0], [1, -1, 0], [-1, -1, 0], [-1, 1, 0]])


def turned(camera, axis, degrees):
    change, turn = np.eye(4), np.zeros(3)
    turn[axis] = np.deg2rad(degrees)
    change[:3, :3] = cv2.Rodrigues(turn)[0]
    return replace(camera, camera_to_base=camera.camera_to_base @ change)


@pytest.mark.parametrize("index", [0, 1])
def test_a_camera_that_was_turned_sees_the_plate_elsewhere(index):
    """By f tan(angle) about the image's middle: 600 px x 0.0175 = 10.5 px for a degree."""
    camera = RIG[index]
    image = draw_plate(clutter(camera, np.random.default_rng(3), pieces=8), camera, CORNERS)
    assert plate_shift(image, camera, LEVEL, 0.0) <= 2.0  # its grid is 2 px
    for axis in (0, 1):
        assert plate_shift(image, turned(camera, axis, 1.0), LEVEL, 0.0) == pytest.approx(10.5, abs=2.5)
        assert plate_shift(image, turned(camera, axis, -2.0), LEVEL, 0.0) == pytest.approx(21.0, abs=3.0)


def test_a_plate_that_cannot_be_made_out_tells_nothing():
    camera = RIG[0]
    plain = np.full((480, 640, 3), 90, np.uint8)
    assert plate_shift(plain, camera, LEVEL, 0.0) is None
    assert plate_shift(plain, camera, replace(LEVEL, edge_in_base=None), 0.0) is None
    assert plate_shift(plain, camera, replace(LEVEL, centre_in_base=(0.69, 2.0, 0.56)), 0.0) is None  # aside


# The eyes.


def look_at_flight(eyes, also=lambda t: None, rig=PLAIN, until_s=0.15, plate=None):
    """Drawn frames of a throw, and perhaps of a second ball; returns (time, state) after each."""
    grey = [np.full((480, 640, 3), 90, np.uint8)] * 2
    if plate is not None:
        grey = [draw_plate(image, camera, CORNERS) for image, camera in zip(grey, rig.cameras, strict=True)]
    generator, found = np.random.default_rng(0), []
    for k in range(round(until_s / 0.0125)):
        for index, camera in enumerate(rig.cameras):
            at_s = k * 0.0125 + index * 0.005
            image = Scene(camera, grey[index]).draw(parabola(START, VELOCITY, at_s), 0.03)
            if also(at_s) is not None:
                image = Scene(camera, image).draw(also(at_s), 0.03)
            image = cv2.add(image, generator.integers(0, 4, image.shape, np.uint8))
            if plate is not None:
                eyes.expect_plate(replace(plate, time_s=at_s))
            eyes.take(Frame(at_s, index, image), at_s + 0.01)
            found.append((at_s + 0.01, eyes.state(at_s + 0.01)))
    return found


def test_eyes_tell_a_flight_once_it_is_known_to_be_one():
    eyes = Eyes(PLAIN, BALL)
    found = look_at_flight(eyes)
    told = [(at_s, seen) for at_s, seen in found if seen is not None]
    # Six sights begin a track at 0.03 s; a motion must be seen for 0.06 s, and frames travel for 0.01 s.
    assert 0.06 < told[0][0] < 0.09 and len(told) > 8
    for at_s, seen in told:
        assert seen.ball_in_base == pytest.approx(parabola(START, VELOCITY, at_s), abs=3e-3)
    health = told[-1][1].health
    assert health.rms_px < 0.3 and health.radii_m == pytest.approx(BALL, rel=0.05) and health.doubt == 0
    assert eyes.arrival(found[-1][0], 0.6) is not None
    assert eyes.monitor.verdict.level == "fine" and set(+eyes.monitor.noticed) <= {"too young"}


def test_a_second_ball_silences_the_eyes():
    eyes = Eyes(PLAIN, BALL)
    found = look_at_flight(eyes, also=lambda t: (0.69, 0.4, 0.9))
    assert all(seen is None for _, seen in found)
    assert eyes.monitor.verdict.cause == "second ball" and eyes.arrival(0.14, 0.6) is None


def test_exchanged_cameras_stop_the_eyes_before_a_ball_is_told():
    eyes = Eyes(Rig((turned(PLAIN[0], 1, 1.5), PLAIN[1])), BALL)
    found = look_at_flight(eyes, plate=LEVEL)
    assert all(seen is None for _, seen in found)
    # Three looks of camera 0: at 0, 0.0125 and 0.025 s, which travel for 0.01 s.
    stop = eyes.monitor.changes[-1]
    assert (stop.level, stop.cause) == ("stop", "plate elsewhere") and stop.since_s == pytest.approx(0.035)


def test_a_frame_far_ahead_does_not_blind_the_eyes():
    eyes = Eyes(PLAIN, BALL)
    look_at_flight(eyes, until_s=0.05)
    eyes.take(Frame(1e6, 0, picture(0).repeat(20, 0)[:480].repeat(32, 1)), 0.06)
    assert eyes.monitor.noticed["stamp ahead"] == 1
    assert eyes.tracker.state(0.06) is not None
