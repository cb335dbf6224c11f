"""What `dris identify-gains` does on the twin and on a robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dris.core.files import write_json
from dris.core.schema import header

if TYPE_CHECKING:
    from dris.catching.settings import CatchingConfig
    from dris.experiments.identification import Identified, Truth
    from dris.robot.arm import Arm
    from dris.robot.excitation import Excitation, ExcitationConfig
    from dris.robot.runtime import Runtime
    from dris.robot.site_config import SiteConfig

MOST_UNEXPLAINED = 0.5
"""Of a joint's torque that its gains may leave unexplained, RMS; the twin's left up to 0.25 over FCI, in
turns of 2 s [design]."""
SPEED_SHARE = 0.5
"""Of the arm's speeds that law and filter allow while it is excited, whatever the excitation asks for."""


def on_twin(
    runtime: Runtime, address: str, excitation: ExcitationConfig, log: Path, json_file: Path | None
) -> int:
    """Identify the twin's arm behind Franka's protocol, and compare with the truth."""
    from dris.experiments.deploy import TwinRig
    from dris.experiments.identification import Truth, excite_twin, identified
    from dris.robot.preflight import passed, preflight
    from dris.robot.site_config import SiteConfig

    path = _path(runtime.contract.catching(), excitation, SiteConfig())
    if path is None:
        return 1
    with TwinRig(runtime, address, speed_share=SPEED_SHARE) as rig:
        if not passed(preflight(runtime, rig.arm, SPEED_SHARE)):
            return 1
        excite_twin(rig, path, log, _say)
        drive = rig.drive
    result = identified(log, excitation, runtime.contract.catching(), drive.stiffness, drive.damping)
    return _tell(result, Truth.of(result.found, drive), json_file, simulated=True)


def on_robot(
    runtime: Runtime,
    address: str,
    move: bool,
    site: SiteConfig,
    excitation: ExcitationConfig,
    log: Path,
    json_file: Path | None,
) -> int:
    """Look at a real arm, and, if it may move, identify it."""
    import time
    from itertools import chain

    from dris.experiments.identification import identified
    from dris.experiments.real_arm import connection, is_simulated, taken_for
    from dris.lab.drives import as_driven, law_of
    from dris.lab.drives import drive as twin_drive
    from dris.robot.driver import DriverProcess
    from dris.robot.fr3 import Fr3
    from dris.robot.live import NoEyes, run_path
    from dris.robot.log import Log
    from dris.robot.preflight import passed, preflight
    from dris.robot.session import Session

    config = runtime.contract.catching()
    path = _path(config, excitation, site)
    if path is None:
        return 1
    drive = twin_drive("fitted-gains", config)  # as `dris deploy` drives it, before it is told what matches
    fr3 = connection(address, config, drive, site, excitation.speed_share)
    arm = DriverProcess(Fr3, fr3)
    try:
        good = passed(chain([taken_for(address)], preflight(runtime, arm, SPEED_SHARE, site)))
        if not move or not good:
            _say(f"{fr3.dry_run()}; --move moves" if good else "not ready: see above")
            return 0 if good else 1
        _say(f"every tick is kept in {log}")
        driven, clock = _clocked(arm) if is_simulated(address) else (arm, time.monotonic)
        session = Session(
            driven, NoEyes(), runtime.act_one, as_driven(config, drive), law_of(drive), clock,
            Log.open(log, **runtime.contract.named()), site.safety(drive.stiffness, drive.damping),
            speed_share=SPEED_SHARE,
        )  # fmt: skip
        run_path(session, path, _say)
    finally:
        arm.close()
    result = identified(log, excitation, config, drive.stiffness, drive.damping)
    return _tell(result, None, json_file, is_simulated(address))


def _clocked(arm: Arm) -> tuple[Arm, Callable[[], float]]:
    """A simulated arm and its own clock: by the wall's, one that is slow would seem soft."""
    from dris.robot.own_clock import OwnClock

    timed = OwnClock(arm)
    return cast("Arm", timed), timed.clock


def _path(config: CatchingConfig, excitation: ExcitationConfig, site: SiteConfig) -> Excitation | None:
    """The excitation, if it stays clear of everything; says how far it goes."""
    from dris.catching.kinematics import Kinematics
    from dris.robot.clearance import Clearance
    from dris.robot.excitation import Excitation
    from dris.robot.identify import extent

    kinematics = Kinematics(config.home, config.mount)
    path = Excitation(excitation, kinematics.home, kinematics.limits)
    clearance = Clearance(kinematics.home, config.mount)
    how = extent(path, kinematics.limits, clearance, site.safety(config.stiffness, config.damping))
    where = "inside workspace and keep-out" if how.clear else "LEAVES workspace or keep-out"
    _say(
        f"{path.duration_s:.0f} s: joints up to {how.joint_rad:.3f} rad from home at "
        f"{how.joint_speed_share:.2f} of their speeds, the plate up to {100 * how.plate_m:.0f} cm; {where}"
    )
    return path if how.clear else None


def _tell(result: Identified, truth: Truth | None, json_file: Path | None, simulated: bool) -> int:
    from dris.experiments.identification import table
    from dris.robot.gains_file import KIND

    print(table(result, truth))
    print(f"delay {1e3 * result.found.delay_s:.1f} ms from a tick's reference to its torque")
    print(f"{1e3 * result.training_rms_m:.1f} mm RMS of the plate from the training world's answer")
    if not (left := max(result.found.unexplained)) <= MOST_UNEXPLAINED:
        print(
            f"no gains, and nothing written: they leave {left:.2f} of a joint's torque unexplained, at most "
            f"{MOST_UNEXPLAINED}: let nothing else run on this computer, and look for what holds the arm"
        )
        return 1
    print(f"to match, tell it K = {result.matching_stiffness}, D = {result.matching_damping}")
    found: dict[str, Any] = {**header(KIND), "simulated": simulated, **asdict(result)}
    write_json(json_file, found | ({} if truth is None else {"error": asdict(truth)}))
    return 0


def _say(line: str) -> None:
    print(line, flush=True)
