"""Cameras by name, and what is looked at through them before an arm moves."""

import os
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import cv2
import numpy as np
import pytest
import rooms

from dris.catching.eyes_observer import EyesObserver
from dris.perception.calibration import load_rig, save_rig
from dris.perception.camera import Rig, laboratory_rig, look_at
from dris.perception.devices import device_serial
from dris.perception.eyes import Eyes
from dris.perception.plate import Plate
from dris.perception.sources import CameraSource, Frame
from dris.robot.cameras import check_cameras, check_devices, check_rig_file, open_cameras
from dris.robot.rig_observer import RigObserver

RIG = laboratory_rig()
ROOMS = Path(rooms.__file__)
AHEAD, UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
PLATE = Plate(0.0, np.array([0.69, 0.1, 0.7]), UP, np.zeros(3), edge_in_base=AHEAD)
EXCHANGED = Rig((RIG[1], RIG[0]))
FOREIGN = Rig((replace(RIG[0], camera_to_base=look_at((2.0, 1.4, 1.1), (0.6, 0.1, 0.9))), RIG[1]))
"""Its left camera stands elsewhere."""
ORANGE = (30, 120, 230)


class Scripted(EyesObserver):
    """Cameras on a clock of their own, which only `sleep` moves: what comes when does not hang on a machine."""

    dropped, on_frame = 0, None

    def __init__(
        self, fps=80.0, delay_s=0.005, cameras=(0, 1), step=1, covered=None, believed=RIG, plate=True,
        balls=(), glare=0.0, dark_frames=0, **light,
    ):  # fmt: skip
        super().__init__(Eyes(believed, (0.03, 0.03)), 0.03)
        self.now_s, self._came = 100.0, 0
        self._fps, self._delay_s, self._cameras, self._step = fps, delay_s, cameras, step
        self._balls, self._glare = balls, glare
        self._dark_frames, self._dark = dark_frames, rooms.pictures(RIG, 0, 12)
        shown = rooms.with_plate(RIG, PLATE, **light) if plate else rooms.pictures(RIG, **light)
        self._pictures = list(shown)
        if covered is not None:
            self._pictures[covered] = rooms.pictures(RIG, 0, 4)[covered]

    def clock(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds

    def tick(self):
        if self.now_s - 100.0 < self._came / self._fps:
            return
        self._came += 1
        for camera in self._cameras:
            shown = self._dark if self._came <= self._dark_frames else self._pictures
            image = shown[camera][self._came % 24][:: self._step, :: self._step].copy()
            image[3, 0] = (*divmod(self._came, 250), 1)  # no camera repeats a picture
            for x, y, z in self._balls:
                place = tuple(np.rint(RIG[camera].project((x, y, z))).astype(int).tolist())
                cv2.circle(image, place, 9, ORANGE, -1, cv2.LINE_AA)
            if self._glare:  # from the right, with the noise of a camera below it
                image[:, round((1 - self._glare) * image.shape[1]) :] |= 252
            frame = Frame(self.now_s - self._delay_s, camera, image)
            self.take(frame, self.now_s)
            self.on_frame(self.now_s, frame)


def looked(unconfirmed=False, **room):
    """All checks by their names."""
    eyes = Scripted(**room)
    checks = check_cameras(eyes, PLATE, eyes.clock, unconfirmed, eyes.sleep)
    return {check.name: check for check in checks}


def test_a_quiet_room_passes():
    checks = looked()
    assert [name for name, check in checks.items() if check.ok] == ["cameras", "delay", "light", "eyes"]
    assert "come 5.0 and 5.0 ms" in checks["delay"].found
    assert "mean brightness 9" in checks["light"].found and "0 % white" in checks["light"].found
    assert (
        checks["eyes"].found == "nothing wrong; left sees the plate 0 px off, right sees the plate 0 px off"
    )


def test_frames_that_waited_before_anybody_looked_are_not_the_cameras_fault():
    eyes = Scripted()
    eyes.dropped = 299  # while policy and arm were looked at
    checks = {check.name: check for check in check_cameras(eyes, PLATE, eyes.clock, False, eyes.sleep)}
    assert checks["cameras"].found.endswith(", 0 dropped")


def test_a_calibration_that_nothing_confirms_needs_a_word():
    check = looked(plate=False)["eyes"]
    assert not check.ok and "left and right cannot make the plate out" in check.found
    assert "--rig.unconfirmed" in check.found
    check = looked(unconfirmed=True, plate=False)["eyes"]
    assert check.ok and "nothing confirms the calibration" in check.found


def test_the_word_excuses_nothing_else():
    """A plate that is seen elsewhere stays a refusal."""
    assert not looked(unconfirmed=True, believed=turned(RIG, 0.5))["eyes"].ok


def turned(rig, degrees):
    """A calibration whose left camera has been turned about the vertical since."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    turn = np.eye(4)
    turn[:2, :2] = [[c, -s], [s, c]]
    pose = rig[0].camera_to_base.copy()
    pose[:3, :3] = (turn @ pose)[:3, :3]
    return Rig((replace(rig[0], camera_to_base=pose), rig[1]))


@pytest.mark.parametrize(
    ("room", "words"),
    [
        ({"believed": EXCHANGED}, "plate elsewhere: camera 1"),
        ({"believed": FOREIGN}, "left cannot make the plate out"),
        ({"believed": turned(RIG, 0.5)}, "camera 0 sees the plate 6 px from where it should be"),
        ({"balls": ((0.69, 0.3, 0.9), (0.69, -0.3, 0.9))}, "second ball: something else in view"),
    ],
)
def test_eyes_that_would_be_wrong_are_refused(room, words):
    """Exchanged cameras, those of another calibration, one that was turned, a second ball."""
    checks = looked(**room)
    assert not checks["eyes"].ok and words in checks["eyes"].found, checks["eyes"]


@pytest.mark.parametrize("dark_frames", [3, 50])
@pytest.mark.parametrize(
    ("believed", "words"),
    [
        (EXCHANGED, "plate elsewhere: camera 1"),
        (turned(RIG, 0.5), "plate elsewhere: camera 0 sees the plate 6 px"),
        (turned(RIG, 1.5), "plate elsewhere: camera 0"),
    ],
)
def test_cameras_whose_first_frames_are_dark_are_judged_all_the_same(believed, words, dark_frames):
    """As while an exposure settles: those frames used up the quick looks, and two looks judged nothing."""
    check = looked(believed=believed, dark_frames=dark_frames)["eyes"]
    assert not check.ok and words in check.found, check
    check = looked(dark_frames=dark_frames)["eyes"]
    assert check.ok and check.found.startswith("nothing wrong"), check


@pytest.mark.parametrize(
    ("shifts_px", "unconfirmed", "words"),
    [
        ((6.0,), True, "left sees the plate 6 px off, at most 3: moved, exchanged"),
        ((6.0, 0.0), False, "left sees the plate 3 px off; left made it out in 2 looks, at least 3; right"),
        ((0.0, 0.0, 0.0), False, "left sees the plate 0 px off; right cannot make the plate out"),
    ],
)
def test_fewer_looks_than_the_monitor_needs_confirm_nothing(shifts_px, unconfirmed, words):
    """By hand: of 6 and 0 px the median is 3, which is allowed, but two looks are not three."""
    eyes = Scripted(plate=False)
    for shift_px in shifts_px:
        eyes.eyes.monitor.saw_plate(0, shift_px)
    checks = check_cameras(eyes, PLATE, eyes.clock, unconfirmed, eyes.sleep)
    check = {check.name: check for check in checks}["eyes"]
    assert not check.ok and words in check.found, check


def test_a_camera_that_cannot_make_the_plate_out_does_not_look_at_every_frame(monkeypatch):
    """By hand: in 1.5 s, one look per 0.1 s and camera."""
    looks = []
    monkeypatch.setattr("dris.perception.eyes.plate_shift", lambda *told: looks.append(told))
    looked(plate=False)
    assert 2 * 12 <= len(looks) <= 2 * 16


def test_half_of_each_frame_overexposed_is_refused_and_a_lamp_is_not():
    check = looked(glare=0.5)["light"]
    assert not check.ok and "50 % white, at most 25 %: overexposed" in check.found
    checks = looked(glare=0.1)
    assert checks["light"].ok and checks["eyes"].ok, checks


@pytest.mark.parametrize(
    ("room", "name", "words"),
    [
        ({"fps": 20.0}, "cameras", "20 and 20 frames a second"),
        ({"low": 0, "high": 4, "plate": False}, "light", "too dark"),
        ({"covered": 1}, "light", "right: mean brightness 2 of 255"),
        ({"low": 252, "high": 256, "plate": False}, "light", "100 % white, at most 25 %: overexposed"),
        ({"delay_s": -0.02}, "delay", "another clock"),
        ({"delay_s": -0.02}, "eyes", "stamp ahead"),
        ({"delay_s": 0.1}, "delay", "at most 60 ms"),
        ({"cameras": (0,)}, "cameras", "no frames of right"),
        ({"step": 2}, "cameras", "was calibrated at 640 x 480"),
    ],
)
def test_what_an_arm_must_not_move_by_is_refused(room, name, words):
    check = looked(**room)[name]
    assert not check.ok and words in check.found, check


def test_real_cameras_tell_of_every_frame():
    """The observer behind a thread, which the checks listen to."""
    source = open_cameras(f"{ROOMS}:empty", RIG, time.monotonic, 0.0)
    eyes, came = RigObserver(source, Eyes(RIG, (0.03, 0.03)), 0.03, time.monotonic), []
    eyes.on_frame = lambda came_s, frame: came.append((frame.camera, came_s - frame.time_s))
    until_s = time.monotonic() + 20
    while len(came) < 10 and time.monotonic() < until_s:
        eyes.tick()
    eyes.close()
    assert {camera for camera, _ in came} == {0, 1} and min(delay_s for _, delay_s in came) >= 0.005


def failing(rig, clock):
    raise RuntimeError("no licence")


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([Frame(0.0, 2, np.zeros((4, 4, 3), np.uint8))], "a frame of camera 2 came"),
        ((1 / 0 for _ in range(1)), "the cameras failed: ZeroDivisionError"),
    ],
)
def test_cameras_that_fail_in_any_way_are_a_stop(frames, words):
    eyes = RigObserver(iter(frames), Eyes(RIG, (0.03, 0.03)), 0.03, time.monotonic)
    eyes.close()
    assert eyes.trust[0] == "stop" and words in eyes.trust[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"{__file__}:failing", "failed: RuntimeError: no licence"),
        ("left and right", "no pair of cameras: write two numbers, 0,1"),
        ("nowhere.py:make", "there is no file nowhere.py"),
        (f"{ROOMS}:nobody", "has no function 'nobody'"),
    ],
)
def test_cameras_that_are_none_are_named(name, words):
    with pytest.raises(ValueError, match=words):
        open_cameras(name, RIG, time.monotonic, 0.0)


def test_two_numbers_are_devices_of_opencv():
    source = open_cameras("2,5", RIG, time.monotonic, 0.004)
    assert isinstance(source, CameraSource) and source.devices == (2, 5)
    assert source.delay_s == 0.004 and source.size == (RIG[0].width, RIG[0].height)


def test_an_old_calibration_is_refused_and_a_copy_is_as_old(tmp_path):
    file, now_s = tmp_path / "rig.json", time.time()
    save_rig(file, RIG)
    check = check_rig_file(file, load_rig(file), now_s)
    assert check.ok and "reprojection error 0.00 and 0.00 px, 0 days old" in check.found
    old = replace(RIG, calibrated=datetime.now(UTC) - timedelta(days=45))
    save_rig(file, old)
    copy = Path(shutil.copyfile(file, tmp_path / "copy.json"))
    check = check_rig_file(copy, load_rig(copy), now_s)
    assert not check.ok and "45 days old, at most 30: calibrate again" in check.found
    save_rig(copy, load_rig(copy))  # writing it again makes it no younger
    assert not check_rig_file(copy, load_rig(copy), now_s).ok
    ahead = replace(RIG, calibrated=datetime.now(UTC) + timedelta(days=3))
    check = check_rig_file(file, ahead, now_s)
    assert not check.ok and "set this computer's clock" in check.found


def test_a_file_without_a_date_is_judged_by_its_own(tmp_path):
    file, now_s = tmp_path / "rig.json", time.time()
    save_rig(file, RIG)
    content = file.read_text()
    file.write_text(content.replace(f'"calibrated": "{load_rig(file).calibrated.isoformat()}",', ""))
    rig = load_rig(file)
    check = check_rig_file(file, rig, now_s)
    assert rig.calibrated is None and check.ok and "by the file's own date" in check.found
    os.utime(file, (now_s - 45 * 86400,) * 2)
    check = check_rig_file(file, rig, now_s)
    assert not check.ok and "45 days old" in check.found and "calibrate again" in check.found


@pytest.mark.parametrize(
    ("opened", "good", "words"),
    [
        (("A1", "B2"), True, "'left' is A1; 'right' is B2"),
        (("B2", "A1"), False, "'left' was calibrated as A1, opened is B2: exchange the two in --rig.cameras"),
        (
            ("A1", "C3"),
            False,
            "'right' was calibrated as B2, opened is C3: open that one, or calibrate again",
        ),
        (("", ""), True, "nothing tells whether 'left' is the one that was calibrated"),
    ],
)
def test_other_cameras_than_those_of_the_calibration_are_refused(opened, good, words, tmp_path):
    save_rig(tmp_path / "rig.json", Rig((replace(RIG[0], serial="A1"), replace(RIG[1], serial="B2"))))
    check = check_devices(load_rig(tmp_path / "rig.json"), opened)
    assert check.ok is good and words in check.found, check
    assert check_devices(RIG, opened).ok  # a calibration that does not say whose it is


def test_a_camera_says_who_it_is_where_the_system_tells(tmp_path):
    """As Linux lists a camera at a hub: interface, camera, hub."""
    interface = tmp_path / "usb1" / "1-2" / "1-2:1.0"
    (interface / "video4linux" / "video0").mkdir(parents=True)
    (tmp_path / "usb1" / "serial").write_text("0000:00:14.0\n")
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "video0").symlink_to(interface / "video4linux" / "video0")
    (interface / "video4linux" / "video0" / "device").symlink_to(interface)
    assert device_serial(0, tmp_path / "class") == ""  # the hub's is not its own
    (interface.parent / "serial").write_text("7A2F01\n")
    assert device_serial(0, tmp_path / "class") == "7A2F01" and device_serial(1, tmp_path / "class") == ""
