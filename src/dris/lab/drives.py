"""Named drives: the twin with more and more of what stands between a simulation and the robot."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import get_args

from dris.catching.joint_limits import SAFE_SHARE
from dris.catching.law import LawConfig
from dris.catching.settings import TEXT, CatchingConfig
from dris.lab import Drive
from dris.lab.model import LabConfig
from dris.lab.twin import FCI_TORQUE_RATE, TwinConfig

IDENTIFIED_STIFFNESS = (294.2, 344.2, 304.7, 145.9, 69.25, 71.09, 43.96)
"""K [Nm/rad] by `dris lab gains --policy` of a policy of preset `paper`: see gains.py."""
IDENTIFIED_DAMPING = (29.12, 34.88, 28.33, 16.93, 7.003, 6.923, 4.652)
"""D [Nm s/rad], the same."""

REFERENCE_LEAD = 1.5
"""Of a policy that was trained without speed limits. With D / K of 0.12 to 0.16 s, 1.3 to 1.4 would drive a
joint at its limit until the end of a control step of 50 ms. Chosen on balls on a tilted plate and from ramps,
perfect sight, seeds 71001 to 73001: with 1.0 `dris-200` keeps 28 of 40 and 24 of 24, with 1.5 104 of 104 and
96 of 96, with 2.0 40 of 40 and 22 of 24 [design]."""
GOVERNOR = 0.9
"""Of FCI's torque rate and of the torque limits, for all but C + g, which need the rest."""


def drive(name: str, task: CatchingConfig | None = None) -> TwinConfig:
    """A drive by its name, for a policy that was trained on `task`.

    ideal: nothing but contact, coupling and the control path differs from the training world.
    no-rate-limit: joint friction, latency and air; torques may still jump, as in the paper's simulation.
    rate-limit: FCI's limit of 1000 Nm/s as well, with the gains of the training.
    fitted-gains: that limit, with gains fitted to the training world's answer, as the paper did. The fit is
    of the stiff gains of preset `paper` and serves policies that were trained with these; any other policy
    keeps its own: it was trained inside the limit (preset `robot`), or with gains soft enough for it (presets
    `released` and `fr3`), and then runs inside `SAFE_SHARE` of the joints' speeds or its own share, and
    `GOVERNOR`, braking in time. Its controller shortens the way of all joints together, so that none is asked
    to go much faster: cutting each for itself would turn the plate (docs/reports/trials.md).

    Raises:
        ValueError: There is none; the message lists those there are.
    """
    task = task or CatchingConfig()
    own = TwinConfig(
        stiffness=task.stiffness,
        damping=task.damping,
        joint_speed=task.joint_speed,
        governor=(task.torque_rate or FCI_TORQUE_RATE) / FCI_TORQUE_RATE if task.brakes_in_time else None,
        brakes_in_time=task.brakes_in_time,
        reference_lead=task.reference_lead,
        home=task.home,
        mount=task.mount,
    )
    if name == "ideal":
        still = LabConfig(joint_friction=(0.0,) * 7, air_density=0.0)
        return replace(own, lab=still, torque_rate=task.torque_rate, latency_s=0.0)
    if name == "no-rate-limit":
        return replace(own, torque_rate=None, governor=None, brakes_in_time=False)
    fitted = (task.stiffness, task.damping, task.torque_rate) == (TEXT.stiffness, TEXT.damping, None)
    if name == "fitted-gains" and fitted:
        return replace(own, stiffness=IDENTIFIED_STIFFNESS, damping=IDENTIFIED_DAMPING)
    if name == "fitted-gains" and (task.torque_rate is None or task.start == "arrival"):
        limited = replace(own, governor=GOVERNOR, brakes_in_time=True)
        if task.joint_speed is None:
            return replace(limited, joint_speed=SAFE_SHARE, reference_lead=REFERENCE_LEAD)
        return limited
    if name in ("rate-limit", "fitted-gains"):
        return own
    raise ValueError(f"there is no drive '{name}'; known: {', '.join(get_args(Drive))}")


def law_of(drive: TwinConfig) -> LawConfig:
    """The law that a drive runs."""
    return LawConfig(**{f.name: getattr(drive, f.name) for f in fields(LawConfig)})


def as_driven(task: CatchingConfig, drive: TwinConfig) -> CatchingConfig:
    """A task whose policy, if it begins at the arrival, goes as fast as a drive says."""
    if task.start != "arrival":
        return task
    return replace(task, joint_speed=drive.joint_speed, reference_lead=drive.reference_lead)
