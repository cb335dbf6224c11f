"""A ball caught through the whole chain: runtime, filter, franky in a process of its own, FCI, twin."""

import importlib.util
import json
import time

import pytest
from fci import Served

from dris.cli.robot import deploy, identify_gains
from dris.robot.arm import ArmError
from dris.robot.driver import DriverProcess
from dris.robot.excitation import ExcitationConfig
from dris.robot.fr3 import Fr3, Fr3Config

needs_franky = pytest.mark.skipif(
    importlib.util.find_spec("franky") is None, reason="franky is not installed: pip install 'dris[fr3]'"
)


@needs_franky
def test_the_unmodified_driver_catches_over_fci(tmp_path, capsys):
    file = tmp_path / "deployed.json"
    code = deploy(
        "dris-200", twin=True, trials=1, seed=900, sight="perfect", address="127.0.7.1", logs=tmp_path / "logs",
        json_file=file,
    )  # fmt: skip
    assert code == 0, capsys.readouterr().out
    told = json.loads(file.read_text())
    assert (told["caught"], told["trials"], told["reflexes"], told["faults"]) == (1, 1, 0, 0)
    row = told["rows"][0]
    assert row["state"] == "catching" and 0.1 < row["speed_share"] <= 1.0
    # The filter is hardly needed: the law before it keeps the limits.
    assert sum(row["clauses"].values()) < 0.05 * row["ticks"]
    assert (tmp_path / "logs" / "trial-0.jsonl").stat().st_size > 1e6


@needs_franky
def test_the_gains_of_the_arm_behind_fci_are_found(tmp_path, capsys):
    """Against the plant of the twin, which nothing between here and there is told."""
    file = tmp_path / "gains.json"
    turns = ExcitationConfig(joint_s=2.0)
    code = identify_gains(
        "dris-200", twin=True, address="127.0.7.4", excitation=turns, log=tmp_path / "log", json_file=file
    )
    assert code == 0, capsys.readouterr().out
    error = json.loads(file.read_text())["error"]
    for name in ("stiffness", "damping"):
        assert max(map(abs, error[name])) < 0.03, (name, error[name])
    assert max(map(abs, error["friction_nm"])) < 0.03, error["friction_nm"]


@needs_franky
def test_an_address_where_nobody_answers_is_one_line():
    with pytest.raises(ArmError, match=r"no FCI answers at 127\.0\.7\.2 .* is the robot on"):
        DriverProcess(Fr3, Fr3Config("127.0.7.2", (100,) * 7, (10,) * 7, realtime=False))


@needs_franky
def test_a_stop_that_is_pressed_is_seen_before_the_arm_begins():
    """By the driver itself, against the twin behind FCI."""
    with Served("127.0.7.3", patience_s=0.9) as served:
        arm = DriverProcess(Fr3, Fr3Config("127.0.7.3", (100,) * 7, (10,) * 7, realtime=False))
        try:
            state = arm.state()
            assert state.error == "" and not state.moving
            with pytest.raises(ArmError, match="0.300 rad from where it should begin"):
                arm.begin(state.q + 0.3)
            arm.begin(state.q)
            assert arm.exchange(state.q).moving
            arm.stop()
            assert not arm.state().moving
            served.server.cabinet.user_stop(True)
            time.sleep(0.5)
            assert "user stop is pressed" in arm.state().error
            with pytest.raises(ArmError, match="user stop is pressed"):
                arm.begin(state.q)
            assert not arm.state().moving
        finally:
            arm.close()


def test_which_arm_must_be_said_and_a_real_one_does_not_move():
    with pytest.raises(ValueError, match="say which arm"):
        deploy("dris-200")
    with pytest.raises(ValueError, match="say which arm"):
        deploy("dris-200", twin=True, robot="172.16.0.2")
    with pytest.raises(ValueError, match="does not move a real arm"):
        deploy("dris-200", robot="172.16.0.2", move=True)
