"""Identified gains drive the policy on the arm that they were found for, and no other."""

import json

import pytest

from dris.catching.settings import FR3, PRESETS, TEXT, CatchingConfig
from dris.experiments.real_arm import drive_of

TASK = CatchingConfig()
FOUND = {
    "kind": "identified-gains",
    "schema": 1,
    "simulated": False,
    "told_stiffness": [120.0, 70.0, 70.0, 120.0, 30.0, 20.0, 40.0],
    "told_damping": [15.0, 11.0, 10.0, 14.0, 4.0, 3.0, 5.0],
    "matching_stiffness": [110.0, 75.0, 70.0, 120.0, 33.0, 19.0, 60.0],
    "matching_damping": [15.5, 11.0, 9.0, 14.0, 4.0, 3.3, 5.0],
}
"""Of presets released and dris-200."""


@pytest.fixture
def file(tmp_path):
    def write(**changes):
        path = tmp_path / "gains.json"
        path.write_text(json.dumps({k: v for k, v in (FOUND | changes).items() if v is not None}))
        return path

    return write


def test_gains_that_were_found_for_the_policy_drive_it(file):
    drive = drive_of(TASK, file())
    assert list(drive.stiffness) == FOUND["matching_stiffness"]
    assert list(drive.damping) == FOUND["matching_damping"]


def test_gains_of_another_policy_are_refused(file):
    with pytest.raises(ValueError, match=r"is of a policy with K = \(120.0, .* driven with \(300.0, "):
        drive_of(FR3, file())
    with pytest.raises(ValueError, match=r"is of a policy with D = .*: run `dris identify-gains` with this"):
        drive_of(TASK, file(told_damping=[15.0, 11.0, 10.0, 14.0, 4.0, 3.0, 5.5]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"matching_stiffness": [4900.0] * 7, "matching_damping": [0.01] * 7},
            "K of joint 1 is 4900 in place",
        ),
        ({"matching_damping": [0.01] * 7}, "D of joint 1 is 0.01 in place of 15, allowed are 0.5 to 2 times"),
        # By hand: half of 40 is 20, twice 5 is 10.
        ({"matching_stiffness": [120.0, 70.0, 70.0, 120.0, 30.0, 20.0, 19.9]}, "K of joint 7 is 19.9"),
        ({"matching_damping": [15.0, 11.0, 10.0, 14.0, 4.0, 3.0, 10.1]}, "D of joint 7 is 10.1"),
        ({"matching_stiffness": "3333333"}, "matching_stiffness: Expected `array`, got `str`"),
        ({"matching_damping": [15.0] * 6}, "matching_damping: Expected `array` of length"),
        ({"matching_damping": [15.0] * 8}, "matching_damping: Expected `array` of length"),
        ({"matching_stiffness": [-120.0] * 7}, "matching_stiffness"),
        ({"matching_stiffness": [float("nan")] * 7}, "matching_stiffness"),
        ({"matching_stiffness": ["120"] * 7}, "matching_stiffness"),
        ({"told_stiffness": None}, "told_stiffness"),
        ({"simulated": None}, "simulated"),
        ({"simulated": 0}, "simulated"),
        ({"kind": "trials"}, "is of kind 'trials'"),
        ({"kind": None}, "`kind`"),
    ],
)
def test_what_are_no_identified_gains_is_refused(file, changes, words):
    with pytest.raises(ValueError, match=r"gains\.json") as told:
        drive_of(TASK, file(**changes))
    assert words in str(told.value)


def test_gains_of_a_simulated_arm_are_refused_for_a_real_one(file):
    with pytest.raises(ValueError, match="is of the twin: identify the gains of this arm"):
        drive_of(TASK, file(simulated=True))
    assert list(drive_of(TASK, file(simulated=True), simulated=True).damping) == FOUND["matching_damping"]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_without_a_file_a_real_arm_has_the_policy_s_own_gains_or_is_refused(name):
    task = PRESETS[name]
    if name in ("paper", "exact"):  # K of 1000 Nm/rad: the twin has gains that were fitted to itself
        with pytest.raises(
            ValueError, match=r"K = \(1000.0, .* run `dris identify-gains`, then tell --gains"
        ):
            drive_of(task, None)
        assert drive_of(task, None, simulated=True).stiffness[0] == 294.2
    else:
        assert drive_of(task, None).stiffness == task.stiffness


def test_a_policy_with_stiff_gains_takes_those_that_match_the_twin_s(file):
    fitted = drive_of(TEXT, None, simulated=True)
    told = {"told_stiffness": fitted.stiffness, "told_damping": fitted.damping}
    match = {"matching_stiffness": [1.1 * k for k in fitted.stiffness], "matching_damping": fitted.damping}
    assert drive_of(TEXT, file(**told, **match)).stiffness == tuple(match["matching_stiffness"])
