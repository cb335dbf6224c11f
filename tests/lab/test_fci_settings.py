"""What clients can set, and what they cannot."""

import re

import numpy as np
import pytest
from fci import POSITIONS, collision, plant, request

from dris.lab.fci.cabinet import Cabinet
from dris.lab.fci.protocol import ROBOT_STATE, Command
from dris.lab.fci.state_message import StateMessage


def status(answer):
    return answer[12]


POSE = np.eye(4).T.ravel()
SKEW = POSE + np.eye(16)[1]


@pytest.mark.parametrize(
    ("what", "good", "bad", "words"),
    [
        ("SET_COLLISION_BEHAVIOR", collision(), collision(30.0), "lower <= upper"),
        ("SET_COLLISION_BEHAVIOR", collision(), collision(0.0), "positive"),
        ("SET_JOINT_IMPEDANCE", {"stiffness": 14250}, {"stiffness": 14251}, r"\[0, 14250\]"),
        ("SET_JOINT_IMPEDANCE", {"stiffness": 0}, {"stiffness": np.nan}, "finite"),
        ("SET_CARTESIAN_IMPEDANCE", {"stiffness": 100}, {"stiffness": 1000}, r"\[1, 300\]"),
        ("SET_EE_TO_K", {"pose": POSE}, {"pose": SKEW}, "rotation"),
        ("SET_NE_TO_EE", {"pose": POSE}, {"pose": 0}, "rotation"),
        ("SET_LOAD", {"mass": 3.0}, {"mass": -0.1}, "0 to 5 kg"),
        ("SET_LOAD", {"mass": 1, "inertia": np.eye(3).ravel()}, {"inertia": -np.eye(3).ravel()}, "inertia"),
        ("SET_GUIDING_MODE", {"axes": True}, None, ""),
    ],
)
def test_settings_are_checked(what, good, bad, words):
    said = []
    cabinet = Cabinet(plant(), said.append)
    assert status(cabinet.answer(request(Command[what], **good))) == 0 and said == []
    kept = cabinet.settings
    if bad is not None:
        assert status(cabinet.answer(request(Command[what], **bad))) == 2
        assert cabinet.settings is kept
        assert re.search(words, said[-1])
    cabinet.answer(request(Command.MOVE, **POSITIONS))
    assert status(cabinet.answer(request(Command[what], **good))) == 1  # not while it moves


def test_settings_reach_the_robot():
    robot = plant()
    cabinet = Cabinet(robot)
    pose = np.eye(4)
    pose[:3, 3] = (0, 0, 0.05)
    cabinet.answer(request(Command.SET_NE_TO_EE, pose=pose.T.ravel()))
    cabinet.answer(request(Command.SET_LOAD, mass=0.5, centre=(0, 0, 0.02)))
    cabinet.answer(request(Command.SET_COLLISION_BEHAVIOR, **collision(1.0, 77.0)))
    state = np.frombuffer(StateMessage(cabinet).encode(1), ROBOT_STATE)[0]
    assert state["m_load"] == 0.5 and state["F_T_EE"][14] == pytest.approx(0.1534)
    assert robot.load_mass == 0.5 and (cabinet.settings.thresholds.torque == 77).all()
    np.testing.assert_allclose(robot.force_point, (0, 0, 0.1534))
