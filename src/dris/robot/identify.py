"""What an arm's joints really do: stiffness, damping and friction from a slow motion, one joint at a time.

    M(q) ddq = K (q~ - q) - D dq - F sign(dq) + o

is linear in K, D, F and o for every joint, so least squares finds them from the references q~ that were sent
and the joints q that were measured. M is the model's: it is the yardstick, and where it is wrong by a share,
so are K and D. Everything is smoothed alike and without delay before it is compared, and the time from a
reference to its torque is found beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.signal import butter, sosfiltfilt

from dris.catching.joint_limits import JointLimits
from dris.catching.kinematics import Kinematics
from dris.robot.clearance import Clearance
from dris.robot.excitation import EDGE_S, FASTEST_HZ, Excitation
from dris.robot.log import Tick
from dris.robot.safety import outside
from dris.robot.safety_config import SafetyConfig

SAMPLE_S = 0.002
"""Of what is compared [s]; ticks are brought onto this grid."""
SMOOTH_HZ = 3 * FASTEST_HZ
"""Low-pass of all that is compared [Hz] [design]."""
CREEPING = 0.02
"""A joint that is slower sticks or is about to, and its friction is not F [rad/s] [design]."""
MOST_DELAY_S = 0.02


@dataclass(frozen=True)
class Extent:
    """How far an excitation goes, before it does."""

    joint_rad: float
    joint_speed_share: float
    plate_m: float
    """Of the plate's centre from home."""
    clear: bool
    """Whether plate and wrist stay inside workspace and keep-out."""


def extent(path: Excitation, limits: JointLimits, clearance: Clearance, safety: SafetyConfig) -> Extent:
    """What a path asks for, sampled every 10 ms."""
    step_s = 0.01
    q = np.array([path.at(t) for t in np.arange(0.0, path.duration_s + step_s, step_s)])
    home = q[0]
    plate = np.array([clearance.plate(joints) for joints in q[::5]])
    clear = not any(found.any() for joints in q[::5] for found in outside(safety, clearance, joints).values())
    return Extent(
        joint_rad=float(np.abs(q - home).max()),
        joint_speed_share=float((np.abs(np.diff(q, axis=0)) / step_s / limits.speed).max()),
        plate_m=float(np.linalg.norm(plate - clearance.plate(home), axis=1).max()),
        clear=clear,
    )


@dataclass(frozen=True)
class Joints:
    """What was sent and measured, on a grid of `SAMPLE_S`."""

    time_s: np.ndarray
    """[T] from the beginning of the excitation."""
    q: np.ndarray
    """[T, M]"""
    sent: np.ndarray
    """[T, M]"""

    @classmethod
    def of(cls, ticks: Iterable[Tick], state: str = "following") -> Joints:
        """Of a session's log: the ticks of a state.

        Raises:
            ValueError: There are too few.
        """
        found = [tick for tick in ticks if tick.state == state and tick.sent is not None]
        if len(found) < 1000:
            raise ValueError(f"an excitation is thousands of ticks of state '{state}', got {len(found)}")
        then = np.array([tick.time_s for tick in found]) - found[0].time_s
        q, sent = np.array([tick.q for tick in found]), np.array([tick.sent for tick in found])
        grid = np.arange(0.0, then[-1], SAMPLE_S)
        on_grid = lambda values: np.stack([np.interp(grid, then, column) for column in values.T], 1)  # noqa: E731
        return cls(grid, on_grid(q), on_grid(sent))


@dataclass(frozen=True)
class FoundGains:
    """Of every joint, as it moves."""

    stiffness: tuple[float, ...]
    """K [Nm/rad]"""
    damping: tuple[float, ...]
    """D [Nm s/rad]"""
    friction: tuple[float, ...]
    """F [Nm] of a joint that slides: what the robot's own compensation leaves."""
    offset: tuple[float, ...]
    """o [Nm] that pushes whatever it does: a payload that is not declared, for instance."""
    unexplained: tuple[float, ...]
    """RMS of what is left of the torque K (q~ - q) - D dq, as a share of it."""
    delay_s: float
    """From a tick's reference to its torque."""


def fit_gains(joints: Joints, turns: list[tuple[float, float]], kinematics: Kinematics) -> FoundGains:
    """Least squares for each joint over its turn; the delay is the one that leaves least."""
    smooth = butter(2, SMOOTH_HZ, fs=1.0 / SAMPLE_S, output="sos")
    low = lambda values: sosfiltfilt(smooth, values, axis=0)  # noqa: E731
    q = low(joints.q)
    dq = np.gradient(q, SAMPLE_S, axis=0)
    inertial = _inertial(kinematics, q, np.gradient(dq, SAMPLE_S, axis=0))
    raw = np.gradient(joints.q, SAMPLE_S, axis=0)
    sign = low(np.sign(raw))

    def fitted(delay_s: float) -> list[tuple[np.ndarray, float]]:
        late = [np.interp(joints.time_s - delay_s, joints.time_s, column) for column in joints.sent.T]
        error = low(np.stack(late, 1)) - q
        rows = []
        for joint, (begin, end) in enumerate(turns):
            inside = (joints.time_s > begin + EDGE_S) & (joints.time_s < end - EDGE_S)
            inside &= np.abs(dq[:, joint]) > CREEPING
            columns = (error[:, joint], -dq[:, joint], -sign[:, joint], np.ones(len(q)))
            rows.append(_least_squares(np.stack(columns, 1)[inside], inertial[inside, joint]))
        return rows

    delays = np.arange(0.0, MOST_DELAY_S + 1e-9, 0.5e-3)
    best = min(delays, key=lambda delay_s: sum(left**2 for _, left in fitted(delay_s)))
    rows = fitted(best)
    columns = np.array([values for values, _ in rows]).T
    K, D, F, o = (tuple(float(f"{value:.4g}") for value in column) for column in columns)
    return FoundGains(K, D, F, o, tuple(round(left, 4) for _, left in rows), float(best))


def _inertial(kinematics: Kinematics, q: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """M(q) ddq [T, M]; M changes little along so small a motion and is asked for every 10 ms."""
    every = round(0.01 / SAMPLE_S)
    return np.concatenate(
        [ddq[k : k + every] @ kinematics.mass_matrix(q[k]) for k in range(0, len(q), every)]
    )


def _least_squares(columns: np.ndarray, wished: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients [4] and what is left over the torque of spring and damper, both RMS.

    Raises:
        ValueError: The joint hardly moved.
    """
    if len(columns) < 200:
        raise ValueError(f"a joint moved for {len(columns) * SAMPLE_S:.2f} s only: is it held, or too stiff?")
    scale = np.sqrt((columns**2).mean(axis=0))
    found = np.linalg.lstsq(columns / scale, wished, rcond=None)[0] / scale
    left = wished - columns @ found
    torque = columns[:, :2] @ found[:2]
    return found, float(np.sqrt((left**2).mean() / (torque**2).mean()))


def matching(told: tuple[float, ...], found: tuple[float, ...]) -> tuple[float, ...]:
    """Gains to tell the controller so that the joints have those that it was told so far: told^2 / found."""
    return tuple(float(f"{t * t / f:.4g}") for t, f in zip(told, found, strict=True))
