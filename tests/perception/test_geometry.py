"""Cameras, their file, and detection, against closed forms and independent formulas."""

import json
from dataclasses import replace
from datetime import datetime

import cv2
import numpy as np
import pytest
from sights import NEAR_PLATE, PLAIN, RIG, pinhole

from dris.perception.calibration import CalibrationError, check_image, load_rig, save_rig
from dris.perception.camera import Rig, laboratory_rig, look_at
from dris.perception.detect import BallColour, DetectorConfig, ball_coloured, detect
from dris.perception.track import TrackerConfig

# Cameras and their file.


def test_projection_is_the_pinhole_formula_and_opencvs_lens():
    points = NEAR_PLATE + np.random.default_rng(0).uniform(-0.3, 0.3, (20, 3))
    for plain, bent in zip(PLAIN.cameras, RIG.cameras, strict=True):
        assert plain.project(points) == pytest.approx(np.array([pinhole(plain, p) for p in points]), abs=1e-9)
        turn = cv2.Rodrigues(bent.base_to_camera[:3, :3])[0]
        oracle = cv2.projectPoints(
            points, turn, bent.base_to_camera[:3, 3], bent.matrix, np.array(bent.distortion)
        )[0]
        assert bent.project(points) == pytest.approx(oracle[:, 0], abs=1e-9)
        assert np.abs(bent.project(points) - plain.project(points)).max() > 0.5  # the lens matters


def test_undistorting_inverts_distorting():
    pixels = np.random.default_rng(0).uniform((0, 0), (639, 479), (50, 2))
    assert RIG[0].to_pixels(RIG[0].to_normalised(pixels)) == pytest.approx(pixels, abs=1e-6)


def test_points_behind_a_camera_are_not_seen():
    behind = RIG[0].position_in_base - RIG[0].camera_to_base[:3, 2]
    assert np.isnan(RIG[0].project(behind)).all() and not RIG[0].sees(behind)
    assert RIG[0].sees(NEAR_PLATE)


def test_a_calibration_file_returns_the_same_rig(tmp_path):
    save_rig(tmp_path / "rig.json", RIG)
    again = load_rig(tmp_path / "rig.json")
    for before, after in zip(RIG.cameras, again.cameras, strict=True):
        assert np.array_equal(before.camera_to_base, after.camera_to_base)
        assert (before.focal_px, before.centre_px, before.distortion) == (
            after.focal_px,
            after.centre_px,
            after.distortion,
        )


def mirrored(pose):
    return pose @ np.diag([-1.0, 1.0, 1.0, 1.0])


def stretched(pose):
    return pose @ np.diag([1.01, 1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"focal_px": (60.0, 60.0)}, "focal length over image width is 0.09375, allowed are 0.3 to 6"),
        ({"focal_px": (600.0, 500.0)}, "allowed are 0.9 to 1.1"),
        ({"centre_px": (20.0, 240.0)}, "centre_px x"),
        ({"reprojection_px": 3.0}, "reprojection error in pixels is 3, allowed are 0 to 1"),
        ({"distortion": (-2.0, 0.0, 0.0, 0.0, 0.0)}, "folds the image"),
        ({"camera_to_base": stretched(RIG[0].camera_to_base)}, "orthonormal"),
        ({"camera_to_base": mirrored(RIG[0].camera_to_base)}, "mirror"),
        ({"camera_to_base": look_at((2200.0, 1200.0, 900.0), (0, 0, 0))}, "lengths are in metres"),
        ({"camera_to_base": RIG[1].camera_to_base}, "the cameras are 0.000 m apart, allowed are 0.2 to 10 m"),
        ({"name": "right"}, "both cameras are named"),
        ({"focal_px": (float("nan"), 600.0)}, "not finite"),
    ],
)
def test_wrong_calibrations_are_refused(tmp_path, changes, words):
    with pytest.raises(CalibrationError, match=words.replace("(", r"\(")):
        save_rig(tmp_path / "rig.json", Rig((replace(RIG[0], **changes), RIG[1])))
    assert not (tmp_path / "rig.json").exists()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda c: c["cameras"][0].update(gamma=2.2), "unknown keys ..gamma"),
        (lambda c: c["cameras"][0].pop("focal_px"), "missing keys ..focal_px"),
        (lambda c: c["cameras"][0].update(width=640.5), "whole number"),
        (lambda c: c["cameras"][0].update(focal_px=[600]), "shape"),
        (lambda c: c["cameras"][0].update(focal_px=["a", 1]), "expected numbers"),
        (lambda c: c["cameras"].pop(), "list of 2"),
        (lambda c: c["cameras"][0].update(serial=7), "serial is 7, expected a word"),
        (lambda c: c.update(calibrated="last week"), "calibrated is 'last week', expected a date"),
        (lambda c: c.update(calibrated="2026-01-31"), "a date with its time zone"),
        (lambda c: c.update(schema=9), "schema 9"),
        (lambda c: c.update(kind="robot"), "kind"),
    ],
)
def test_damaged_files_are_refused(tmp_path, edit, words):
    path = tmp_path / "rig.json"
    save_rig(path, RIG)
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(CalibrationError, match=words):
        load_rig(path)


def test_a_file_from_before_dates_and_serial_numbers_is_read(tmp_path):
    path = tmp_path / "rig.json"
    save_rig(path, RIG)
    content = json.loads(path.read_text())
    del content["calibrated"]
    for camera in content["cameras"]:
        del camera["serial"]
    path.write_text(json.dumps(content))
    rig = load_rig(path)
    assert rig.calibrated is None and [camera.serial for camera in rig.cameras] == ["", ""]


def test_a_date_without_a_time_zone_is_none():
    with pytest.raises(ValueError, match="give it a time zone"):
        Rig(RIG.cameras, datetime(2026, 1, 31))


def test_files_that_are_no_json_are_refused(tmp_path):
    (tmp_path / "rig.json").write_bytes(b"\x80\x04")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for name in ("rig.json", "none.json", "deep.json"):
        with pytest.raises(CalibrationError):
            load_rig(tmp_path / name)


def test_an_image_must_fit_its_calibration():
    check_image(np.zeros((480, 640, 3), np.uint8), RIG[0])
    with pytest.raises(CalibrationError, match="calibrated at 640 x 480"):
        check_image(np.zeros((240, 320, 3), np.uint8), RIG[0])
    for wrong in (np.zeros((480, 640), np.uint8), np.zeros((480, 640, 3)), None):
        with pytest.raises(CalibrationError, match="expected uint8 BGR"):
            check_image(wrong, RIG[0])


# Detection.


def disc(radius, centre=(200.3, 150.7), blur=0.0, size=(480, 640), colour=(20, 110, 245)):
    """An orange disc, smooth at its edge, on grey; blur is the length of a vertical smear."""
    y, x = np.mgrid[: size[0], : size[1]].astype(float)
    steps = np.linspace(-blur / 2, blur / 2, 9) if blur else [0.0]
    share = np.mean(
        [np.clip(radius + 0.5 - np.hypot(x - centre[0], y - centre[1] - s), 0, 1) for s in steps], axis=0
    )
    image = 90 + share[..., None] * (np.array(colour) - 90.0)
    return np.rint(image).astype(np.uint8)


@pytest.mark.parametrize("radius", [5.0, 9.0, 20.0])
@pytest.mark.parametrize("blur", [0.0, 6.0])
def test_a_disc_is_found_to_a_fifth_of_a_pixel(radius, blur):
    noise = np.random.default_rng(1).normal(0, 4, (480, 640, 3))
    image = np.clip(disc(radius, blur=blur) + noise, 0, 255).astype(np.uint8)
    found = detect(image)
    assert found.centre_px == pytest.approx((200.3, 150.7), abs=0.2)
    assert found.radius_px == pytest.approx(radius, abs=1.0)
    assert found.score > 0.9


def test_searching_near_a_prediction_finds_the_same():
    image = disc(9.0)
    whole, near = detect(image), detect(image, near_px=(210.0, 140.0))
    assert near.centre_px == pytest.approx(whole.centre_px, abs=1e-3)
    assert detect(image, near_px=(500.0, 300.0)) is None
    assert detect(image, near_px=(-500.0, 300.0)) is None


@pytest.mark.parametrize("radius", [5.0, 8.0, 12.0])
@pytest.mark.parametrize("blur", [0.0, 8.0])
def test_a_cut_ball_and_a_blurred_one_are_told_apart(radius, blur):
    """A fifth of the diameter is hidden, or the ball is smeared over most of its diameter."""
    image = disc(radius, blur=blur)
    if not blur:
        image[round(150.7 + 0.6 * radius) :] = 60
    assert detect(image).centre_px == pytest.approx((200.3, 150.7), abs=0.35)


@pytest.mark.parametrize("cut", ["below", "left", "image edge"])
def test_a_third_of_the_ball_may_be_hidden(cut):
    centre = (200.3, 150.7) if cut != "image edge" else (2.3, 150.7)
    noise = np.random.default_rng(1).normal(0, 4, (480, 640, 3))
    image = np.clip(disc(12.0, centre) + noise, 0, 255).astype(np.uint8)
    if cut == "below":
        image[155:] = 60
    elif cut == "left":
        image[:, :196] = 60
    found = detect(image)
    assert found.centre_px == pytest.approx(centre, abs=0.5)
    assert found.radius_px == pytest.approx(12.0, abs=0.7)
    assert found.score < 0.9


def test_the_outline_is_not_bent_by_a_highlight():
    image = disc(12.0)
    cv2.circle(image, (203, 147), 4, (255, 255, 255), -1)
    assert detect(image).centre_px == pytest.approx((200.3, 150.7), abs=0.2)


def test_what_is_no_ball_is_not_found():
    empty = np.full((480, 640, 3), 90, np.uint8)
    assert detect(empty) is None
    bar = empty.copy()
    bar[100:104, 50:250] = (20, 110, 245)
    assert detect(bar) is None
    assert detect(disc(2.0)) is None
    assert detect(disc(9.0, colour=(245, 110, 20))) is None  # blue
    assert detect(np.zeros((2, 2, 3), np.uint8)) is None


def test_still_things_of_the_balls_colour_can_be_ignored():
    empty = disc(25.0, centre=(400, 300))
    both = np.where(disc(9.0) == 90, empty, disc(9.0))
    assert detect(both).centre_px[0] == pytest.approx(400, abs=1)
    assert detect(both, ignore=ball_coloured([empty])).centre_px == pytest.approx((200.3, 150.7), abs=0.2)


def test_red_wraps_around():
    red = BallColour(hue_degrees=(350.0, 10.0))
    assert detect(disc(9.0, colour=(10, 0, 240)), DetectorConfig(colour=red)) is not None
    assert detect(disc(9.0, colour=(0, 10, 240)), DetectorConfig(colour=red)) is not None


@pytest.mark.parametrize("image", [np.zeros((480, 640), np.uint8), np.full((480, 640, 3), np.nan), None])
def test_what_is_no_image_is_refused(image):
    with pytest.raises(ValueError, match="8-bit BGR"):
        detect(image)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (BallColour, {"hue_degrees": (-5.0, 20.0)}),
        (BallColour, {"saturation": (0.9, 0.2)}),
        (DetectorConfig, {"radius_px": (9.0, 3.0)}),
        (DetectorConfig, {"score": 0.0}),
        (TrackerConfig, {"estimator": "kalman"}),
        (TrackerConfig, {"window_s": 0.0}),
        (TrackerConfig, {"lost_s": 0.01}),
    ],
)
def test_settings_that_mean_nothing_are_refused(kind, values):
    with pytest.raises(ValueError):
        kind(**values)


def test_one_pixel_is_straightened_as_many_are():
    for rig in (laboratory_rig(), laboratory_rig(distortion=(0.0,) * 5)):
        pixels = np.random.default_rng(5).uniform((-20, -20), (660, 500), (200, 2))
        found = np.array([rig[0].ray_through((float(x), float(y))) for x, y in pixels])
        np.testing.assert_allclose(found, rig[0].to_normalised(pixels), atol=1e-10)
