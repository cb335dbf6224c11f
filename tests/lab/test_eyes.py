"""The monitor at the twin's cameras: a wrong rig is known before anything is told."""

import pytest

from dris.catching.settings import CatchingConfig
from dris.lab.camera_observer import CameraObserver
from dris.lab.drives import drive
from dris.lab.launch import Ramp
from dris.lab.objects import thing
from dris.lab.twin import Twin
from dris.perception.camera import Rig
from dris.perception.plate import Plate


@pytest.fixture(scope="module")
def twin():
    return Twin(drive("fitted-gains", CatchingConfig()))


def watch(twin, observer, ticks):
    """Stand still and look; tell the plate as a loop does."""
    for _ in range(ticks):
        twin.advance(1)
        state = twin.state()
        plate = Plate(
            state.time_s,
            state.plate_position,
            state.plate_rotation[:, 2],
            (0, 0, 0),
            0.12,
            state.plate_rotation[:, 0],
        )
        observer.observe_plate(plate)
        observer.tick()
        yield observer.estimate(twin.time_s)


def test_exchanged_cameras_stop_before_a_ball_is_told(twin):
    ball = thing("rubber")
    twin.reset(ball, Ramp(0.2), 3)
    true = CameraObserver(twin, ball).rig
    observer = CameraObserver(twin, ball, seed=3, believed=Rig((true[1], true[0])))
    assert all(told is None for told in watch(twin, observer, 60))
    verdict = observer.monitor.verdict
    assert (verdict.level, verdict.cause) == ("stop", "plate elsewhere")
    # The third frame of a camera is exposed at 25 or 30 ms and comes 10 ms later.
    assert verdict.since_s <= 0.042 and observer.arrival(twin.time_s, 0.5) is None


def test_with_a_good_rig_a_ball_on_the_ramp_is_told_right_or_not_at_all(twin):
    ball = thing("rubber")
    twin.reset(ball, Ramp(0.13), 3)
    observer = CameraObserver(twin, ball, seed=3)
    for told in watch(twin, observer, 120):
        if told is not None:
            assert abs(told.position - twin.state().thing_position).max() < 0.02
            assert abs(told.velocity - twin.state().thing_velocity).max() < 0.4
    assert observer.monitor.verdict.level != "stop" and observer.tracker.state(twin.time_s) is not None
    rig = {"plate elsewhere", "frozen camera", "stamp ahead", "second ball", "clocks apart"}
    assert not rig & set(+observer.monitor.noticed)
