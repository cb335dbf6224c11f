"""Named drives: the twin with more and more of what stands between a simulation and the robot."""

from __future__ import annotations

from dris.twin.lab import LabConfig
from dris.twin.twin import TwinConfig

IDENTIFIED_STIFFNESS = (294.2, 344.2, 304.7, 145.9, 69.25, 71.09, 43.96)
"""K [Nm/rad] by `python -m dris.twin gains` for the default laboratory: see gains.py."""
IDENTIFIED_DAMPING = (29.12, 34.88, 28.33, 16.93, 7.003, 6.923, 4.652)
"""D [Nm s/rad], the same."""

DRIVES: dict[str, TwinConfig] = {
    # Nothing but contact, coupling and the control path differs from the training world.
    "ideal": TwinConfig(
        lab=LabConfig(joint_friction=(0.0,) * 7, air_density=0.0), torque_rate=None, latency_s=0.0
    ),
    # Joint friction, latency and air; torques may still jump, as in the training world.
    "jumping": TwinConfig(torque_rate=None),
    # FCI's limit of 1000 Nm/s, with the training's gains.
    "fci": TwinConfig(),
    # The same limit with gains that were fitted to the training world's answer.
    "identified": TwinConfig(stiffness=IDENTIFIED_STIFFNESS, damping=IDENTIFIED_DAMPING),
}


def drive(name: str) -> TwinConfig:
    """A drive by its name.

    Raises:
        ValueError: There is none; the message lists those there are.
    """
    if name not in DRIVES:
        raise ValueError(f"there is no drive '{name}'; known: {', '.join(DRIVES)}")
    return DRIVES[name]
