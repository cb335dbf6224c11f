"""A policy on a real FR3: what is looked at before anything moves, and the session that moves it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from dris.catching.belief_observer import BeliefObserver, beside_one_robot
from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.lab.drives import as_driven, law_of
from dris.lab.drives import drive as twin_drive
from dris.lab.twin import TwinConfig
from dris.perception.calibration import load_rig
from dris.perception.detect import BallColour, DetectorConfig
from dris.perception.eyes import Eyes
from dris.perception.monitor import MonitorConfig
from dris.perception.plate import Plate
from dris.perception.track_config import TrackerConfig
from dris.robot.arm import Arm
from dris.robot.cameras import check_cameras, check_devices, check_rig_file, open_cameras
from dris.robot.driver import OWN_STOP, DriverProcess
from dris.robot.fr3 import Fr3
from dris.robot.fr3_config import Fr3Config
from dris.robot.gains_file import matching_gains
from dris.robot.live import ENDED, run_live
from dris.robot.log import Log, new_folder
from dris.robot.payload import payload_of
from dris.robot.preflight import Check, passed, preflight
from dris.robot.rig_config import RigConfig
from dris.robot.rig_observer import RigObserver
from dris.robot.runtime import Runtime
from dris.robot.session import Session
from dris.robot.site_config import SiteConfig
from dris.robot.terminal import LiveView


def drive_of(config: CatchingConfig, gains: Path | None, simulated: bool = False) -> TwinConfig:
    """How the arm is driven: as in the twin, with gains that `dris identify-gains` found to match, if told.

    Raises:
        ValueError: The file is none of this policy on this arm; or there is none, and the twin drives the
            policy with gains that were fitted to the twin: nobody knows those of a real arm.
    """
    drive = twin_drive("fitted-gains", config)
    if gains is not None:
        stiffness, damping = matching_gains(gains, drive.stiffness, drive.damping, simulated)
        return replace(drive, stiffness=stiffness, damping=damping)
    if not simulated and (drive.stiffness, drive.damping) != (config.stiffness, config.damping):
        raise ValueError(
            f"K = {config.stiffness}, which the policy was trained with, is too stiff for FCI, and the gains "
            "in its place were fitted to the twin: run `dris identify-gains`, then tell --gains FILE"
        )
    return drive


def is_simulated(address: str) -> bool:
    """Whether a robot's address is a `dris fci-twin`'s, which needs no real-time kernel.

    By the address alone: the robot is asked only once it is connected. `taken_for` says what was made of it.
    """
    return address.startswith("127.") or address == "localhost"


def taken_for(address: str) -> Check:
    """What an arm at an address is taken for, so that nobody reaches a real one as a simulated one."""
    if is_simulated(address):
        found = "is on this computer, so it is taken for SIMULATED: no real-time kernel, gains of the twin do"
        return Check("robot", True, f"{address} {found}; reach a real arm by its own address, no tunnel")
    return Check("robot", True, f"{address} is taken for a real arm: with a real-time kernel, and its gains")


def driven_with(drive: TwinConfig, gains: Path | None, speed_share: float) -> Check:
    """Gains and speeds that an arm will be driven with."""
    of = "the policy's own" if gains is None else f"of {gains}"
    found = f"K = {np.round(drive.stiffness, 1).tolist()}, D = {np.round(drive.damping, 1).tolist()}, {of}"
    return Check("gains", True, f"{found}; at {speed_share:g} of all speeds")


def connection(
    address: str, config: CatchingConfig, drive: TwinConfig, site: SiteConfig, speed_share: float
) -> Fr3Config:
    """How an arm at an address is driven at a share of its speeds, with the plate declared."""
    torques, force = site.thresholds(speed_share)
    return Fr3Config(
        address,
        drive.stiffness,
        drive.damping,
        realtime=not is_simulated(address),
        torque_thresholds=torques,
        force_threshold=force,
        payload=payload_of(config.mount, "plate"),
    )


def on_robot(
    runtime: Runtime,
    address: str,
    move: bool,
    speed_share: float,
    rig: RigConfig,
    site: SiteConfig,
    gains: Path | None,
    logs: Path | None,
) -> int:
    """Look at everything that can be known without moving; then, if it may, catch until interrupted."""
    config = runtime.contract.catching()
    beside_one_robot(runtime.contract.filter())  # refuses beliefs that no robot has
    drive = drive_of(config, gains, is_simulated(address))
    fr3 = connection(address, config, drive, site, speed_share)
    with contextlib.closing(DriverProcess(Fr3, fr3)) as arm, _seeing(rig, site) as eyes:
        asked = preflight(runtime, arm, speed_share, site, is_real=not is_simulated(address))
        good = passed(chain([taken_for(address), driven_with(drive, gains, speed_share)], asked))
        if eyes is None:
            print(f"{'--':>6}  eyes     not looked at: tell --rig.file FILE, the calibration of the cameras")
        if eyes is not None and rig.file is not None:
            good = passed(_look(eyes, arm, config, rig.file, rig.unconfirmed)) and good
        if eyes is None or not good or not move:
            print(fr3.dry_run() if good else "not ready: see above")
            return 0 if good else 1
        return 0 if _catch(runtime, arm, eyes, drive, site, speed_share, logs) else 1


@contextlib.contextmanager
def _seeing(config: RigConfig, site: SiteConfig) -> Iterator[RigObserver | None]:
    """Eyes behind the cameras, if there is a calibration."""
    if config.file is None:
        yield None
        return
    rig, radius_m = load_rig(config.file), config.ball_radius_m
    colour = BallColour(config.ball_hue_degrees, config.ball_saturation, config.ball_value)
    tracker, monitor = TrackerConfig(sigma_s=site.sigma_s), MonitorConfig(even_s=site.even_s)
    eyes = Eyes(rig, (radius_m, radius_m), DetectorConfig(colour), tracker, monitor)
    source = open_cameras(config.cameras, rig, time.monotonic, config.delay_s)
    observer = RigObserver(source, eyes, radius_m, time.monotonic)
    try:
        yield observer
    finally:
        observer.close()


def _look(
    eyes: RigObserver, arm: Arm, config: CatchingConfig, file: Path, unconfirmed: bool
) -> Iterator[Check]:
    """Through the cameras, at an arm that rests."""
    rig = eyes.eyes.rig
    yield check_rig_file(file, rig, time.time())
    yield check_devices(rig, eyes.serials)
    position, rotation = Kinematics(config.home, config.mount).plate(arm.state().q)
    still = np.zeros(3)
    plate = Plate(time.monotonic(), position, rotation[:, 2], still, edge_in_base=rotation[:, 0])
    yield from check_cameras(eyes, plate, time.monotonic, unconfirmed)


def _catch(
    runtime: Runtime,
    arm: Arm,
    eyes: RigObserver,
    drive: TwinConfig,
    site: SiteConfig,
    speed_share: float,
    logs: Path | None,
) -> bool:
    """Home, arm, catch, return, again, until something stops it or somebody ends it: whether that was it."""
    config, view = runtime.contract.catching(), LiveView()
    file = (logs or new_folder()) / f"session-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    log = Log.open(file, **runtime.contract.named(), ball_radius_m=eyes.radius_m)
    believed = beside_one_robot(runtime.contract.filter())
    kinematics = Kinematics(config.home, config.mount)
    observer = eyes if believed is None else BeliefObserver(eyes, kinematics, believed)
    safety = site.safety(drive.stiffness, drive.damping).behind(believed)
    session = Session(
        arm, observer, runtime.act_one, as_driven(config, drive), law_of(drive), time.monotonic, log, safety,
        speed_share=speed_share, rehearse=runtime.rehearse,
    )  # fmt: skip

    def tell(line: str) -> None:
        view.clear()
        print(line, flush=True)

    tell(f"every tick is kept in {file}")
    tell(f"moving at {speed_share:g} of all speeds; Ctrl-C stops the arm softly")
    run_live(session, eyes, tell, show=lambda ticks: view.show(session, ticks))
    if OWN_STOP in session.reason:
        print(f"\nTHE ARM MAY STILL MOVE: {OWN_STOP}", flush=True)
    return session.state == "stopped" and session.reason.startswith(ENDED)
