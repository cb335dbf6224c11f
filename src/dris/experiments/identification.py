"""Gains identified through the driver: a slow motion of every joint, and what its log says of the joints.

In the twin, behind Franka's protocol, the truth is known: what franky was told of K and D, and the friction
that the twin's joints have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dris.catching.settings import CatchingConfig
from dris.experiments.deploy import LONGEST_HOMING_S, TwinRig
from dris.experiments.gains import SAMPLE_S, plate_weights, rms, training_answer
from dris.lab.twin import TwinConfig
from dris.robot.arm import ArmError
from dris.robot.excitation import Excitation, ExcitationConfig
from dris.robot.identify import FoundGains, Joints, fit_gains, matching
from dris.robot.log import Log, read_log
from dris.robot.session import Session


@dataclass(frozen=True)
class Identified:
    """What was found, beside what the controller was told."""

    told_stiffness: tuple[float, ...]
    told_damping: tuple[float, ...]
    found: FoundGains
    matching_stiffness: tuple[float, ...]
    """To tell the controller, so that the joints answer as they should."""
    matching_damping: tuple[float, ...]
    training_rms_m: float
    """Between this arm and the training world's under the same references, in metres of the plate."""


@dataclass(frozen=True)
class Truth:
    """Errors of what was found in the twin."""

    stiffness: tuple[float, ...]
    """Of K, as shares of what it is."""
    damping: tuple[float, ...]
    friction_nm: tuple[float, ...]

    @classmethod
    def of(cls, found: FoundGains, plant: TwinConfig) -> Truth:
        """Against what the twin's plant is."""
        share = lambda one, true: tuple(round(a / b - 1, 4) for a, b in zip(one, true, strict=True))  # noqa: E731
        friction = np.subtract(found.friction, plant.lab.joint_friction)
        return cls(
            share(found.stiffness, plant.stiffness),
            share(found.damping, plant.damping),
            tuple(round(float(error), 4) for error in friction),
        )


def excite_twin(rig: TwinRig, path: Excitation, log: Path, tell: Callable[[str], None]) -> None:
    """Drive the twin's arm home and along a path, through session, filter, driver and FCI; log every tick.

    Raises:
        ArmError: Something stopped it.
    """
    session = rig.session(Log.open(log, **rig.runtime.contract.named()))
    try:
        session.connect()
        session.start()
        _tick_until_home(rig, session, LONGEST_HOMING_S)
        session.follow(path)
        tell(f"homed; {path.duration_s:.0f} s of excitation, joint by joint")
        _tick_until_home(rig, session, path.duration_s + 1)
    finally:
        rig.gate.release()
        session.stop("the excitation is over")


def _tick_until_home(rig: TwinRig, session: Session, longest_s: float) -> None:
    until = rig.twin.time_s + longest_s
    while session.state != "homed":
        if session.state in ("stopped", "fault") or rig.twin.time_s > until:
            raise ArmError(f"the arm is {session.state} after {rig.twin.time_s:.1f} s: {session.reason}")
        rig.gate.tick(session.tick, rig.moves)


def identified(
    log: Path,
    excitation: ExcitationConfig,
    task: CatchingConfig,
    stiffness: tuple[float, ...],
    damping: tuple[float, ...],
) -> Identified:
    """What a session's log says of the joints.

    Args:
        log: With ticks of state `following`.
        excitation: That it followed.
        task: That the policy was trained on.
        stiffness: K that the controller was told.
        damping: D, the same.
    """
    from dris.catching.kinematics import Kinematics

    kinematics = Kinematics(task.home, task.mount)
    joints = Joints.of(read_log(log)[1])
    turns = Excitation(excitation, kinematics.home, kinematics.limits).turns()
    found = fit_gains(joints, turns, kinematics)
    return Identified(
        stiffness,
        damping,
        found,
        matching(stiffness, found.stiffness),
        matching(damping, found.damping),
        round(_training_rms(joints, task), 5),
    )


def _training_rms(joints: Joints, task: CatchingConfig) -> float:
    every = round(SAMPLE_S / (joints.time_s[1] - joints.time_s[0]))
    sent, q = joints.sent[::every], joints.q[::every]
    trained = training_answer(task, q[:1], sent[None, :-1], SAMPLE_S)[0]
    return rms((q[1:] - trained) * plate_weights(TwinConfig(home=task.home, mount=task.mount)))


def table(result: Identified, truth: Truth | None) -> str:
    """A row a joint."""
    head = "| joint | K told | found | D told | found | friction [Nm] | offset [Nm] | unexplained |"
    columns: list[Any] = [
        result.told_stiffness, result.found.stiffness, result.told_damping, result.found.damping,
        result.found.friction, result.found.offset, result.found.unexplained,
    ]  # fmt: skip
    if truth is not None:
        head += " error of K | of D | of friction [Nm] |"
        columns += [[f"{e:+.1%}" for e in truth.stiffness], [f"{e:+.1%}" for e in truth.damping]]
        columns += [truth.friction_nm]
    lines = [head, "|" + "---|" * head.count(" | ") + "---|"]
    lines += [
        f"| {joint} | {' | '.join(str(cell) for cell in cells)} |"
        for joint, cells in enumerate(zip(*columns, strict=True), start=1)
    ]
    return "\n".join(lines)
