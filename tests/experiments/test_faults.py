"""Faults on recorded trials: what they do to frames, and how outcomes are told; frames and truths by hand."""

import numpy as np
import pytest
from sights import RIG

from dris.catching.kinematics import Kinematics
from dris.catching.settings import FR3
from dris.experiments.tracking.fault_table import _row, table
from dris.experiments.tracking.faults import FAULTS, exchange_stamps, freeze, one_far_ahead
from dris.experiments.tracking.recording import Arrived, Recording, Seen, Truth
from dris.lab.objects import BALLS
from dris.lab.twin import State
from dris.perception.sources import Frame


def truth(velocities, touched):
    """One state per millisecond, of a ball that moves along z."""
    zero = np.zeros(7)
    return Truth(
        [
            State(
                k * 1e-3,
                zero,
                zero,
                zero,
                np.zeros(3),
                np.array([0, 0, v]),
                np.zeros(3),
                np.zeros(3),
                np.eye(3),
            )
            for k, v in enumerate(velocities)
        ],
        touched,
    )


BOUNCE = truth([-2.0] * 300 + [0.0] * 5 + [1.0] * 295, [False] * 300 + [True] * 5 + [False] * 295)


def recording():
    generator = np.random.default_rng(0)
    frames = []
    for k in range(40):
        for camera in (0, 1):
            image = (
                generator.integers(0, 255, (480, 640, 3), np.uint8)
                if k < 2
                else np.full((480, 640, 3), k, np.uint8)
            )
            frames.append(
                Arrived(0.0125 * k + 0.005 * camera + 0.01, Frame(0.0125 * k + 0.005 * camera, camera, image))
            )
    return Recording(BALLS["rubber"], RIG, Kinematics(FR3.home, FR3.mount), frames, [], BOUNCE)


def test_an_impact_is_a_touch_that_changes_the_velocity():
    assert BOUNCE.impacts_s() == [(pytest.approx(0.3), pytest.approx(0.305))]
    assert BOUNCE.landing_s() == pytest.approx(0.3)
    chatter = truth([1.0, 1.1] * 100, [False, True] * 100)
    assert chatter.impacts_s() == []
    # Falls for 0.1 s, then rolls on at 1 m/s: softly, but 0.45 m/s from free fall 46 ms later.
    falling = [-1.0 + 0.981 - 9.81e-3 * k for k in range(100)]
    rolls = truth([*falling, *[falling[-1]] * 100], [False] * 100 + [True] * 100)
    assert rolls.impacts_s() == [(pytest.approx(0.1), pytest.approx(0.108))]
    # A ball that has hopped just before may not count its next touch as one.
    hops = truth([*falling, *[falling[-1]] * 100], [False] * 80 + [True] * 2 + [False] * 18 + [True] * 100)
    assert hops.impacts_s() == []


def test_states_that_are_told_and_wrong_are_counted_but_not_about_impacts():
    seen = Seen(
        times_s=[0.1, 0.2, 0.295, 0.349, 0.351, 0.4, 0.5],
        errors=[(0.01, 0.1), (0.06, 0.0), (0.5, 5.0), (0.5, 5.0), (0.01, 0.51), None, (0.04, 0.49)],
    )
    assert seen.wrong(BOUNCE.impacts_s()) == 2  # at 0.2 s, and 46 ms after the impact's end
    assert len(seen.fair(BOUNCE.impacts_s())) == 4
    assert seen.wrong(BOUNCE.impacts_s(), since_s=0.3) == 1


def outcome(errors, causes, stopped=False, clean=None):
    times = [0.1, 0.2, 0.4, 0.5]
    seen = Seen(times, errors, causes, stopped)
    clean = Seen(times, [(0.0, 0.0)] * 4, ["none"] * 4)
    return _row("x", "rubber", 0.2, 0, seen, clean, BOUNCE, 0.15)


def test_outcomes_have_their_names():
    good, bad = (0.01, 0.1), (0.2, 0.1)
    survived = outcome([good] * 4, ["none"] * 4)
    assert (survived.outcome, survived.noticed_s, survived.wrong_ms) == ("survived", None, 0)
    refused = outcome([good, None, None, good], ["none", "second ball", "second ball", "none"])
    assert (refused.outcome, refused.cause, refused.told) == ("refused", "second ball", pytest.approx(1 / 3))
    assert refused.noticed_s == pytest.approx(0.05)
    assert outcome([good, None, None, None], ["none"] + ["frozen camera"] * 3, True).outcome == "stopped"
    wrong = outcome([good, bad, None, None], ["none", "none", "frozen camera", "frozen camera"], True)
    assert (wrong.outcome, wrong.wrong_ms, wrong.worst_m) == ("silently wrong", 5.0, 0.2)
    assert "| x | 2 | refused 1, silently wrong 1 | 150 ms (250) |" in table([refused, wrong])


@pytest.mark.parametrize("fault", FAULTS[1:], ids=lambda fault: fault.name)
def test_every_fault_changes_something_from_its_beginning_on(fault):
    trial = recording()
    if fault.believed is not None:
        believed = fault.believed(trial.rig)
        assert any(
            not np.array_equal(a.camera_to_base, b.camera_to_base) or a.focal_px != b.focal_px
            for a, b in zip(believed.cameras, trial.rig.cameras, strict=True)
        )
        return
    spoiled = fault.spoil(trial)
    same = [
        a.now_s == b.now_s
        and a.frame.time_s == b.frame.time_s
        and np.array_equal(a.frame.image, b.frame.image)
        for a, b in zip(spoiled, trial.frames, strict=False)
    ]
    assert len(spoiled) < len(trial.frames) or not all(same)
    first = same.index(False) if False in same else len(same)
    assert trial.frames[min(first, 79)].now_s >= fault.begins_s(trial) - 1e-9
    assert (
        len(trial.frames) == 80 and trial.frames[5].frame.image[0, 0, 0] == 2
    )  # the recording stays what it was


def test_faults_do_what_they_say():
    trial = recording()  # the ball lands at 0.3 s, so faults begin at 0.15 s
    frozen = freeze((0,), 2)(trial)
    shown = [int(i.frame.image[0, 0, 0]) for i in frozen if i.frame.camera == 0]
    assert shown[10:17] == [10, 11, 10, 11, 10, 11, 10]
    assert [i.frame.time_s for i in frozen] == [i.frame.time_s for i in trial.frames]
    ahead = one_far_ahead(trial)
    assert [i.frame.time_s > 1e5 for i in ahead].index(True) == 23 and sum(
        i.frame.time_s > 1e5 for i in ahead
    ) == 1
    pairs = exchange_stamps(within_camera=True)(trial)
    stamps = [i.frame.time_s for i in pairs if i.frame.camera == 1]
    assert stamps[:4] == pytest.approx([0.0175, 0.005, 0.0425, 0.03])
    late = next(f for f in FAULTS if f.name == "every fifth frame 30 ms late").spoil(trial)
    assert [i.now_s for i in late] == sorted(i.now_s for i in late) and len(late) == 80
