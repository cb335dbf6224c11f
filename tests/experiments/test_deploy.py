"""A ball caught through the whole chain: runtime, filter, franky in a process of its own, FCI, twin."""

import importlib.util
import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rooms
from arms_without_robots import SoftArm, quick_runtime
from fci import AWAY, Served, skip_if_starved

from dris.catching.settings import TEXT, CatchingConfig
from dris.cli import identification
from dris.cli.logs import replay
from dris.cli.robot import deploy, identify_gains
from dris.experiments.deploy import TwinRig, _one, run_trials
from dris.experiments.deployment import Outcome
from dris.experiments.identification import Identified
from dris.experiments.trials.cells import cells_of
from dris.lab.drives import drive
from dris.lab.fci.plant import Plant
from dris.lab.objects import BALLS
from dris.lab.twin import Twin
from dris.perception.calibration import save_rig
from dris.perception.camera import laboratory_rig
from dris.robot.arm import ArmError
from dris.robot.driver import DriverProcess
from dris.robot.excitation import ExcitationConfig
from dris.robot.fr3 import Fr3
from dris.robot.fr3_config import Fr3Config
from dris.robot.identify import FoundGains
from dris.robot.log_frames import shown
from dris.robot.ready import FROZEN_S
from dris.robot.rig_config import RigConfig
from dris.robot.site_config import SiteConfig

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
    log = tmp_path / "logs" / "trial-0.jsonl"
    assert log.stat().st_size > 1e6
    capsys.readouterr()
    assert replay(log) == 0 and "ticks give the same references" in capsys.readouterr().out
    found = shown(log)  # the film's last picture: the ball lies on the plate
    assert found.title.startswith("dris-200, ") and not found.frames[-1].scene.lost[0]
    with pytest.raises(ValueError, match="made by 'dris-200' with weights"):
        replay(log, policy="dris-50")
    # What is done is not done again, and other trials do not go into the same file.
    again = {"twin": True, "trials": 1, "sight": "perfect", "address": "127.0.7.1", "json_file": file}
    assert deploy("dris-200", seed=900, resume=True, **again) == 0
    assert json.loads(file.read_text()) == told
    with pytest.raises(ValueError, match=r"holds trials of \{'seed': 900\}, not of \{'seed': 901\}"):
        deploy("dris-200", seed=901, resume=True, **again)


def test_going_on_needs_a_file():
    with pytest.raises(ValueError, match="name it with --json FILE"):
        deploy("dris-200", twin=True, resume=True)


@pytest.mark.parametrize("how", ["raised", "told"])
def test_a_driver_that_lost_the_robot_is_replaced_before_the_next_trial(how, monkeypatch):
    """Once every later trial failed with the first that lost its connection, in a second each.

    Before the arm moves that is raised; in the middle of a trial the session tells it.
    """
    connected = [0]

    def one(rig, session, what, launch, seed, name, *others):
        if connected[0] > 0:
            return Outcome(name, True, True, "catching", "", (), {}, {}, 0.5, 900)
        rig.said.append("timed out")
        if how == "raised":
            raise ArmError("Net Exception")
        return Outcome(name, False, True, "fault", "Net Exception", (), {}, {}, 0.5, 900)

    monkeypatch.setattr("dris.experiments.deploy._one", one)
    rig = SimpleNamespace(
        runtime=SimpleNamespace(contract=SimpleNamespace(named=lambda: {"policy": "p"})),
        config=CatchingConfig(),
        session=lambda log: SimpleNamespace(stop=lambda reason: None), said=["of an earlier trial"],
        server=SimpleNamespace(cabinet=SimpleNamespace(reflexes=[])),
        twin=SimpleNamespace(speed_share=0.0), gate=SimpleNamespace(release=lambda: None),
        tells=lambda: connected[0] > 0, answers=lambda: connected[0] > 0,
        reconnect=lambda: connected.__setitem__(0, connected[0] + 1),
    )  # fmt: skip
    outcomes = list(run_trials(rig, "ramps", 3, 1, True, None))
    assert [outcome.state for outcome in outcomes] == ["fault", "catching", "catching"]
    assert [outcome.lost for outcome in outcomes] == [True, False, False]
    # Which code it was, for several versions may add to one file.
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert {outcome.source.rstrip("+") for outcome in outcomes} == {commit.stdout.strip()[:12]}
    if how == "raised":
        assert outcomes[0].reason == "Net Exception; the robot's side: timed out"
    assert connected == [1]


class Stages:
    """A session that goes through states, one a tick."""

    def __init__(self, states, returns=("homed",)):
        self.states, self.returns = list(states), list(returns)
        self.state, self.reason, self.loop, self.clauses, self.beyond = "homed", "", None, {}, {}

    def connect(self, clear):
        pass

    def start(self):
        pass

    def arm_now(self):
        self.state = "armed"

    def tick(self):
        if self.states:
            self.state = self.states.pop(0)
        self.loop = SimpleNamespace(began_s=1.0) if self.state == "catching" else None

    def go_home(self):
        self.state, self.states = "returning", self.returns


def lived_through(session):
    """What `_one` makes of it, with a rig whose time passes by itself."""
    twin = SimpleNamespace(ticks=0, time_s=0.0, speed_share=0.5, thing=SimpleNamespace(reach=0.03))
    twin.state = lambda: SimpleNamespace(on_plate=lambda reach: True, thing_position=np.array([0, 0, 1.0]))
    cabinet = SimpleNamespace(reflexes=[])

    def tick(work, moves=None):
        twin.ticks, twin.time_s = twin.ticks + 1, twin.time_s + 0.01
        work()
        if session.state == "fault":
            cabinet.reflexes.append("cartesian_reflex")

    rig = SimpleNamespace(
        gate=SimpleNamespace(tick=tick, release=lambda: None), twin=twin, tick_s=0.001, speed_share=1.0,
        moves=lambda: True, prepare=lambda *given: None, plant=SimpleNamespace(start_trial=lambda *given: None),
        eyes=lambda *given: SimpleNamespace(tick=lambda: None), server=SimpleNamespace(cabinet=cabinet),
    )  # fmt: skip
    what, _, launch = cells_of("ramps")[0]
    return _one(rig, session, what, launch, 1, "a trial", False, 0, lambda session: None)


def test_what_stops_the_arm_on_its_way_home_counts(monkeypatch):
    """The reflex was told nowhere, and the next trial cleared it."""
    monkeypatch.setattr("dris.experiments.deploy.is_lost", lambda state: False)
    monkeypatch.setattr("dris.experiments.deploy.troubles_of", lambda eyes: None)
    monkeypatch.setattr("dris.experiments.deploy.TruthObserver", lambda twin: None)
    well = lived_through(Stages(["catching"]))
    assert well.caught and well.began and (well.state, well.reflexes) == ("catching", ())
    one = lived_through(Stages(["catching"], ["returning", "fault"]))
    assert one.caught and one.reflexes == ("cartesian_reflex",)
    assert one.state == "fault" and one.reason.startswith("on its way home")


def test_a_policy_that_took_over_has_begun_though_the_arm_went_home_again(monkeypatch):
    """It saw nothing for a second and returned: the trial waited for the end, and said that it never began."""
    monkeypatch.setattr("dris.experiments.deploy.is_lost", lambda state: False)
    monkeypatch.setattr("dris.experiments.deploy.troubles_of", lambda eyes: None)
    monkeypatch.setattr("dris.experiments.deploy.TruthObserver", lambda twin: None)
    one = lived_through(Stages(["catching", "returning", "homed"]))
    assert one.began and one.ticks < 10 and one.state == "homed" and not one.caught


def test_a_driver_that_may_clear_no_more_errors_does_not_go_on():
    rig = TwinRig(None)
    rig.arm = SimpleNamespace(state=lambda: None, recoveries=2, most_recoveries=3)
    assert rig.answers()
    rig.arm.recoveries = 3
    assert not rig.answers()


@needs_franky
def test_the_gains_of_the_arm_behind_fci_are_found(tmp_path, capsys):
    """Against the plant of the twin, which nothing between here and there is told."""
    file = tmp_path / "gains.json"
    turns = ExcitationConfig(joint_s=2.5)
    code = identify_gains(
        "dris-200", twin=True, address="127.0.7.4", excitation=turns, log=tmp_path / "log", json_file=file
    )
    assert code == 0, capsys.readouterr().out
    error = json.loads(file.read_text())["error"]
    for name in ("stiffness", "damping"):
        assert max(map(abs, error[name])) < 0.03, (name, error[name])
    # In turns as short as these it matters where a joint sticks when its own begins: the second's friction,
    # 0.3 Nm, was found 0.000 to 0.032 Nm off in four runs, the others' always alike.
    assert max(map(abs, error["friction_nm"])) < 0.06, error["friction_nm"]


@pytest.mark.parametrize(("address", "realtime"), [("127.0.0.1", False), ("172.16.0.2", True)])
def test_gains_are_identified_as_the_arm_will_be_driven(address, realtime, monkeypatch, capsys):
    """With the gains that those of `dris deploy --gains` are compared with, and no real-time kernel for a simulated robot: its rehearsal."""
    told = []

    class Told(SoftArm):
        def __init__(self, make, config):
            super().__init__(q=np.array(TEXT.home))
            told.append((make, config, self))

    monkeypatch.setattr("dris.robot.driver.DriverProcess", Told)
    site = SiteConfig(torque_thresholds=(30.0,) * 4 + (9.0,) * 3, force_threshold=25.0)
    code = identification.on_robot(
        quick_runtime(task=TEXT), address, False, site, ExcitationConfig(), Path("none"), None
    )
    (make, config, arm), driven = told[0], drive("fitted-gains", TEXT)
    assert code == 0 and arm.asked == ["stop"] and make is Fr3  # closed at the end, and nothing else
    assert (config.address, config.realtime) == (address, realtime)
    assert ("taken for SIMULATED" in capsys.readouterr().out) == (not realtime)
    assert (config.stiffness, config.damping) == (driven.stiffness, driven.damping)
    # The excitation is slow: 20 and 10 Nm and 20 N where the site is not told lower ones.
    assert (config.torque_thresholds, config.force_threshold) == ((20.0,) * 4 + (9.0,) * 3, 20.0)
    assert config.payload.mass_kg == 0.35 and driven.stiffness != TEXT.stiffness


def test_gains_that_explain_nothing_are_not_written(tmp_path, capsys):
    """A robot whose time was not the session's seemed to have D below zero."""
    good = FoundGains((100.0,) * 7, (10.0,) * 7, (0.3,) * 7, (0.0,) * 7, (0.04,) * 7, 0.0025)
    for found, code in ((good, 0), (replace(good, unexplained=(0.04,) * 6 + (3.3,)), 1)):
        file = tmp_path / f"{code}.json"
        result = Identified((100.0,) * 7, (10.0,) * 7, found, (100.0,) * 7, (10.0,) * 7, 0.003)
        assert identification._tell(result, None, file, simulated=False) == code
        assert file.exists() == (code == 0)
    assert "leave 3.30 of a joint's torque unexplained, at most 0.5" in capsys.readouterr().out


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


PATIENT = """
from dris.cli.main import main
from dris.robot import preflight, tick_times

preflight.MEDIAN_S = preflight.SLOWEST_S = tick_times.MOST_MEDIAN_S = 1.0
main()
"""
"""The command, but for how quick policy and ticks must be: a machine of tests may have much else to do."""


@needs_franky
def test_the_command_for_a_real_arm_goes_home_waits_and_ends_softly(tmp_path):
    """The whole command with --move, at real pace, against the robot behind FCI and an empty room."""
    save_rig(tmp_path / "rig.json", laboratory_rig())
    twin = Twin(drive("fitted-gains", CatchingConfig()))
    away = replace(AWAY, joints=tuple(q + 0.05 for q in CatchingConfig().home))
    twin.reset(BALLS["foam"], away, 0)
    arguments = ["deploy", "belief-robot", "--robot", "127.0.7.5", "--move"]
    arguments += ["--rig.file", str(tmp_path / "rig.json"), "--rig.cameras", f"{rooms.__file__}:empty"]
    arguments += ["--rig.unconfirmed", "--logs", str(tmp_path)]  # nobody sees a plate there
    with Served("127.0.7.5", Plant(twin, knows_plate=False), patience_s=0.9) as served:
        command = [sys.executable, "-c", PATIENT, *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            lines, ends = [], threading.Timer(120, process.kill)
            ends.start()
            for line in process.stdout:
                lines.append(line.rstrip())
                if line.split()[2:3] == ["armed"]:
                    process.send_signal(signal.SIGINT)
            wrong = process.stderr.read()
        ends.cancel()
        code = process.returncode
        if code:
            skip_if_starved(served, FROZEN_S)  # a session waits no longer
        assert code == 0, "\n".join([*lines, wrong])
        assert served.server.cabinet.motion is None and not served.server.cabinet.reflexes
        assert np.abs(served.robot.q - np.array(CatchingConfig().home)).max() < 0.03
    assert not [line for line in lines if "FAILED" in line]
    assert [line.split()[1] for line in lines if line.startswith("    ok")][-6:] == [
        "rig", "devices", "cameras", "delay", "light", "eyes",
    ]  # fmt: skip
    assert "moving at 0.2 of all speeds" in "".join(lines) and "ended by SIGINT" in lines[-1]
    assert len(list(tmp_path.glob("session-*.jsonl"))) == 1


def test_which_arm_must_be_said_and_a_real_one_moves_only_with_eyes():
    with pytest.raises(ValueError, match="say which arm"):
        deploy("dris-200")
    with pytest.raises(ValueError, match="say which arm"):
        deploy("dris-200", twin=True, robot="172.16.0.2")
    with pytest.raises(ValueError, match="needs eyes: --rig.file"):
        deploy("dris-200", robot="172.16.0.2", move=True)
    with pytest.raises(ValueError, match="--trials, --json: of the twin's trials"):
        deploy("dris-200", robot="127.0.0.1", trials=5, json_file=Path("out.json"))
    with pytest.raises(ValueError, match="--tick-s: of the twin's trials"):
        deploy("dris-200", robot="127.0.0.1", tick_s=0.002)
    with pytest.raises(ValueError, match="--move is for a real arm"):
        deploy("dris-200", twin=True, move=True)
    for verb in (deploy, identify_gains):
        with pytest.raises(ValueError, match="--site: of a real arm, and of no effect on the twin"):
            verb("dris-200", twin=True, site=SiteConfig(table_height=0.2))
    with pytest.raises(ValueError, match="--rig, --gains: of a real arm"):
        deploy("dris-200", twin=True, rig=RigConfig(file=Path("rig.json")), gains=Path("gains.json"))
    for others in ({"cameras": "3,4"}, {"unconfirmed": True}, {"cameras": "3,4", "unconfirmed": True}):
        with pytest.raises(ValueError, match="--rig flags are of cameras, of no effect without.*--rig.file"):
            deploy("dris-200", robot="172.16.0.2", rig=RigConfig(**others))
    with pytest.raises(ValueError, match="--logs: of an arm that moves; a dry run keeps none: add --move"):
        deploy("dris-200", robot="172.16.0.2", logs=Path("logs"))
    with pytest.raises(ValueError, match="--log, --json: of an arm that moves"):
        identify_gains("dris-200", robot="172.16.0.2", log=Path("log"), json_file=Path("gains.json"))
    with pytest.raises(ValueError, match="--address: of the twin's robot; a real one's stands after --robot"):
        identify_gains("dris-200", robot="172.16.0.2", address="127.0.0.9")
    with pytest.raises(ValueError, match="--address: of the twin's trials"):
        deploy("dris-200", robot="172.16.0.2", address="127.0.0.9")
    with pytest.raises(ValueError, match=r"speed_share must lie in \(0, 1\], got 1.5"):
        deploy("dris-200", twin=True, speed_share=1.5)
