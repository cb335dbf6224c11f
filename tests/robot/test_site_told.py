"""What a command line tells of the robot's place reaches filter, preflight, driver and eyes."""

import math
import re
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest
import rooms
import tyro
from arms_without_robots import HOME, TASK, SoftArm, quick_runtime

from dris.belief.config import BeliefConfig
from dris.cli.robot import identify_gains
from dris.experiments import real_arm
from dris.perception.calibration import save_rig
from dris.perception.camera import laboratory_rig
from dris.perception.monitor import MonitorConfig
from dris.perception.track_config import TrackerConfig
from dris.robot.clearance import Clearance
from dris.robot.fr3_config import Fr3Config
from dris.robot.log import read_log
from dris.robot.preflight import preflight
from dris.robot.rig_config import RigConfig
from dris.robot.safety_config import SafetyConfig
from dris.robot.site_config import SiteConfig

HIGH = SiteConfig(table_height=0.2, workspace_low=(-0.2, -0.3, -0.1), workspace_high=(0.1, 0.3, 0.2))


def test_nothing_told_is_what_every_part_says_by_itself():
    site, gains = SiteConfig(), (TASK.stiffness, TASK.damping)
    assert site.safety(*gains) == SafetyConfig(*gains)
    assert (site.sigma_s, site.even_s) == (TrackerConfig().sigma_s, MonitorConfig().even_s) == (0.0005, 0.006)
    assert Fr3Config("", *gains).torque_thresholds == (80.0,) * 4 + (12.0,) * 3
    assert site.force_threshold == Fr3Config("", *gains).force_threshold == 80.0


def test_a_slow_arm_is_stopped_by_lighter_pushes_unless_the_site_asks_for_still_lighter_ones():
    slow = ((20.0,) * 4 + (10.0,) * 3, 20.0)
    assert SiteConfig().thresholds(0.2) == SiteConfig().thresholds(0.25) == slow
    assert SiteConfig().thresholds(0.3) == SiteConfig().thresholds(1.0) == ((80.0,) * 4 + (12.0,) * 3, 80.0)
    light = SiteConfig(torque_thresholds=(15.0,) * 2 + (30.0,) * 2 + (9.0,) * 3, force_threshold=8.0)
    assert light.thresholds(0.2) == ((15.0, 15.0, 20.0, 20.0, 9.0, 9.0, 9.0), 8.0)


def test_a_dry_run_says_what_it_sends(moved, capsys):
    for site, words in (
        (SiteConfig(), "collision thresholds to 10 Nm and 10 N,"),
        (SiteConfig(torque_thresholds=(30.0,) * 4 + (9.0,) * 3, force_threshold=5.5), "to 9 Nm and 5.5 N,"),
    ):
        moved(site, move=False)
        assert words in capsys.readouterr().out


def test_it_is_told_by_flags():
    told = tyro.cli(
        SiteConfig,
        args=["--table-height", "0.2", "--workspace-low", "-0.2", "-0.3", "-0.1", "--even-s", "0.01"],
    )
    assert told == SiteConfig(table_height=0.2, workspace_low=(-0.2, -0.3, -0.1), even_s=0.01)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"table_height": math.nan}, r"table_height must lie in \[-1, 1\] m over the base, got nan"),
        ({"table_height": 10.0}, "table_height must lie in"),
        ({"workspace_low": (-0.2, 0.0, -0.1)}, "workspace_low must lie in"),
        ({"workspace_low": (math.nan, -0.3, -0.1)}, "workspace_low must lie in"),
        ({"workspace_high": (0.2, 30.0, 0.1)}, "so that the plate's home is inside"),
        ({"torque_thresholds": (80.0,) * 7}, "torque_thresholds must be positive and at most"),
        ({"torque_thresholds": (20.0,) * 6}, "torque_thresholds must be positive and at most"),
        ({"torque_thresholds": (math.nan,) + (10.0,) * 6}, "torque_thresholds must be positive"),
        ({"force_threshold": math.nan}, "force_threshold must be positive and at most"),
        ({"force_threshold": 0.0}, "force_threshold must be positive and at most"),
        ({"slow_torque_thresholds": (20.0,) * 7}, "slow_torque_thresholds must be positive and at most"),
        ({"slow_force_threshold": 0.0}, "slow_force_threshold must be positive and at most"),
        ({"sigma_s": math.nan}, r"sigma_s must lie in \[0, 0.02\] s, got nan"),
        ({"sigma_s": 0.5}, "sigma_s must lie in"),
        ({"even_s": math.nan}, r"even_s must lie in \(0, 0.05\] s, got nan"),
        ({"even_s": 0.0}, "even_s must lie in"),
    ],
)
def test_a_place_that_is_none_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        SiteConfig(**wrong)


def test_the_preflight_tells_the_walls_and_keeps_to_them():
    checks = {check.name: check for check in preflight(quick_runtime(), SoftArm(), 1.0, HIGH)}
    assert "arm above +0.20 m over its base" in checks["site"].found
    assert "plate's centre x -0.20 to +0.10, y -0.30 to +0.30, z -0.10 to +0.20 m" in checks["site"].found
    assert checks["way"].ok
    # At home the lowest point of arm and plate is asked of the model itself.
    clearance = Clearance(HOME, TASK.mount)
    clearance.plate(HOME)
    low = clearance.lowest()
    above, below = (SiteConfig(table_height=low + by) for by in (0.01, -0.01))
    found = {site: list(preflight(quick_runtime(), SoftArm(), 1.0, site))[-2] for site in (above, below)}
    # No guiding by hand helps against a home that is too low.
    assert not found[above].ok and found[above].found == (
        "at its home the arm is 0.010 m too near to the table: no way leads there; correct the --site flags"
    )
    assert found[below].ok


@pytest.fixture
def moved(monkeypatch, tmp_path):
    """Sessions of the command with `--move`, on an arm that is no robot, and what its driver was told."""
    sessions, drivers, said = [], [], []

    def driven(make, config):
        drivers.append(config)
        return SoftArm()

    @contextmanager
    def eyes(*given):
        with seeing(*given) as seen:
            sessions.append(seen.eyes)
            yield seen

    seeing = real_arm._seeing
    monkeypatch.setattr(real_arm, "DriverProcess", driven)
    monkeypatch.setattr(real_arm, "_seeing", eyes)
    monkeypatch.setattr(real_arm, "passed", lambda checks: bool(said or said.extend(checks) or said))
    monkeypatch.setattr(real_arm, "run_live", lambda session, *others, **more: sessions.append(session))

    def run(site, move=True, logs=tmp_path):
        file = tmp_path / "rig.json"
        save_rig(file, laboratory_rig())
        rig = RigConfig(file=file, cameras=f"{rooms.__file__}:empty", unconfirmed=True)
        runtime = quick_runtime()
        runtime.contract.named, runtime.rehearse = dict, lambda: None
        runtime.contract.filter = lambda: BeliefConfig(update="none")
        real_arm.on_robot(runtime, "127.0.0.1", move, 1.0, rig, site, None, logs)
        return sessions, drivers, {check.name: check for check in said}

    return run


def test_an_arm_that_moves_keeps_a_log_whoever_asks(moved, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    moved(SiteConfig(), move=False, logs=None)
    assert not list(tmp_path.rglob("*.jsonl"))
    (_, _, session), _, _ = moved(SiteConfig(), logs=None)
    session.clock = lambda: session.arm.ticks * 1e-3
    session.connect()
    session.start()
    session.tick()
    session.stop("enough")
    (file,) = tmp_path.rglob("*.jsonl")
    assert re.fullmatch(r"logs/\d{8}-\d{6}/session-\d{8}-\d{6}\.jsonl", str(file.relative_to(tmp_path)))
    assert f"every tick is kept in {file.relative_to(tmp_path)}\n" in capsys.readouterr().out
    states = [tick.state for tick in read_log(file)[1]]
    assert states[:2] == ["connected", "homing"] and states[-1] == "stopped"


@pytest.mark.parametrize(
    ("told", "where"),
    [
        ({"move": True}, r"logs/\d{8}-\d{6}/excitation\.jsonl"),
        ({"move": True, "log": Path("mine.jsonl")}, r"mine\.jsonl"),
        ({}, r"/.*dris-identify-.*/excitation\.jsonl"),  # gone when the command is
    ],
)
def test_an_arm_whose_gains_are_identified_keeps_a_log_too(told, where, monkeypatch):
    monkeypatch.setattr("dris.cli.robot.exported", lambda policy: nullcontext(Path()))
    monkeypatch.setattr("dris.robot.runtime.Runtime", lambda folder: quick_runtime())
    given = []
    monkeypatch.setattr("dris.cli.identification.on_robot", lambda *those: given.extend(those) or 0)
    identify_gains(robot="172.16.0.2", **told)
    assert re.fullmatch(where, str(given[-2])), given


def test_session_driver_and_eyes_are_told(moved):
    site = SiteConfig(
        table_height=0.2, workspace_low=HIGH.workspace_low, workspace_high=HIGH.workspace_high,
        torque_thresholds=(30.0,) * 4 + (9.0,) * 3, force_threshold=25.0, sigma_s=0.002, even_s=0.012,
    )  # fmt: skip
    (eyes, session), (driver,), checks = moved(site)
    assert "+0.20 m over its base" in checks["site"].found
    assert (eyes.tracker.config.sigma_s, eyes.monitor.config.even_s) == (0.002, 0.012)
    assert (driver.torque_thresholds, driver.force_threshold) == ((30.0,) * 4 + (9.0,) * 3, 25.0)
    assert session.safety.table_height == 0.2
    session.clock = lambda: session.arm.ticks * 1e-3
    session.connect()
    session.start()
    while session.state == "homing":
        session.tick()
    clearance = Clearance(HOME, TASK.mount)
    session.follow(_Sideways())
    while session.state == "following":
        session.tick()
    session.stop("enough")
    # By hand: 0.4369 m from the first axis, 0.4369 sin 1 = 0.368 m to the left, of which 0.3 is allowed.
    assert session.clauses["workspace"] > 0
    assert clearance.plate(session._sent)[1] <= 0.3 + 1e-6 < clearance.plate(HOME + np.eye(7)[0])[1] - 0.06


class _Sideways:
    """The first joint by a radian, slowly."""

    duration_s = 4.0

    def at(self, time_s):
        return HOME + min(time_s / 3.0, 1.0) * np.eye(7)[0]
