"""A policy on a real FR3: looked at without moving, or, when told to, in real time with real cameras."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path

from dris.catching.law import LawConfig
from dris.lab.drives import drive
from dris.perception.calibration import load_rig
from dris.perception.camera import Rig
from dris.perception.eyes import Eyes
from dris.perception.sources import CameraSource
from dris.robot.arm import Arm
from dris.robot.driver import DriverProcess
from dris.robot.fr3 import Fr3, Fr3Config
from dris.robot.live import run_live
from dris.robot.log import Log
from dris.robot.rig_observer import RigObserver
from dris.robot.runtime import Runtime
from dris.robot.session import Session


@dataclass(frozen=True)
class RealEyes:
    """Cameras of a real rig, as far as they were told."""

    rig: Path | None
    """Calibration."""
    devices: tuple[int, int] | None
    """As OpenCV counts them."""
    delay_s: float
    """From the middle of an exposure to its frame."""
    radius_m: float
    """Of the ball."""

    def __post_init__(self) -> None:
        """Refuse a ball that is none, and delays that no camera has."""
        if not 0.005 <= self.radius_m <= 0.1:
            raise ValueError(f"ball_radius must lie in [0.005, 0.1] m, got {self.radius_m}")
        if not 0 <= self.delay_s <= 0.1:
            raise ValueError(f"camera_delay_s must lie in [0, 0.1] s, got {self.delay_s}")


def on_robot(
    runtime: Runtime,
    address: str,
    real: RealEyes,
    move: bool,
    logs: Path | None,
    passed: Callable[[Runtime, Arm], bool],
) -> int:
    """Look at everything; with `move`, catch until interrupted.

    Args:
        runtime: The policy.
        address: Of the robot.
        real: Its cameras.
        move: Whether the arm may move.
        logs: Folder for a log of every tick.
        passed: Prints the preflight's checks and says whether all were good.

    Returns:
        0 if all was good, 1 otherwise.
    """
    config = runtime.contract.catching()
    rig = None if real.rig is None else load_rig(real.rig)
    if move and runtime.contract.filter().update != "none":
        raise ValueError("a policy with a belief cannot move a real arm yet: deploy it with --twin")
    driven = drive("fitted-gains", config)
    arm = DriverProcess(Fr3, Fr3Config(address, driven.stiffness, driven.damping))
    try:
        if not passed(runtime, arm):
            print("not ready: see above")
            return 1
        if rig is not None:
            print(f"{'ok':>6}  {'rig':<8} {real.rig}: two cameras, plausible together")
        if not move:
            print("dry run: nothing was sent but questions; --move lets the arm move")
            return 0
        assert rig is not None and real.devices is not None  # the command asks for them
        seen = _cameras(rig, real)
        log = Log.open(None if logs is None else logs / "session.jsonl", policy=runtime.contract.policy)
        acted = replace(config, joint_speed=driven.joint_speed, reference_lead=driven.reference_lead)
        law = LawConfig(**{f.name: getattr(driven, f.name) for f in fields(LawConfig)})
        session = Session(arm, seen, runtime.act_one, acted, law, time.monotonic, log)
        run_live(session, seen, lambda line: print(line, flush=True))
        return 0 if session.state == "stopped" else 1
    finally:
        arm.close()


def _cameras(rig: Rig, real: RealEyes) -> RigObserver:
    assert real.devices is not None
    source = CameraSource(real.devices, time.monotonic, real.delay_s)
    eyes = Eyes(rig, (real.radius_m, real.radius_m))
    return RigObserver(source, eyes, real.radius_m, time.monotonic)
