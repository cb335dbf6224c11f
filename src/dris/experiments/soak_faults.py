"""What goes wrong while a simulated robot is kept busy: network, people, eyes, cameras; how it is put in."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, replace
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from dris.catching.control import BallEstimate, LookingObserver, Trust, trust_of
from dris.lab.fci.faults import Faults
from dris.perception.arrival import Arrival
from dris.perception.detect import Image
from dris.perception.plate import Plate
from dris.perception.sources import Frame

Fault = Literal[
    "none", "lossy", "deaf", "silent", "garbage", "user-stop", "closed", "frozen-sight", "blind", "distrust",
    "not-finite", "killed-driver", "silent-session", "full-disk",
]  # fmt: skip
"""none, lossy (a hundredth of datagrams lost, late, doubled or out of order): it goes on. blind: it holds,
and returns after a second. All others must stop the arm. deaf, silent: 60 ms without commands or states.
garbage: a datagram that is no state. closed: the robot closes the connection. frozen-sight: the last sight,
ever older. distrust: the monitor says stop. not-finite: an action is none. killed-driver: SIGKILL.
silent-session: nobody asks the driver any more."""
CameraFault = Literal[
    "frozen-camera", "frozen-cameras", "repeating-cameras", "silent-cameras", "stamps-ahead"
]
"""One or both give their last picture again and again, with new stamps; those of the last half second; no
frames at all; stamps 1 s ahead. All must stop the arm, in the approach and in the catch."""
GOES_ON: tuple[Fault, ...] = ("none", "lossy", "blind")
IN_CATCH: tuple[Fault, ...] = ("frozen-sight", "blind", "not-finite")
"""Faults of what only a catch uses."""
HIDDEN: tuple[Fault, ...] = ("frozen-sight", "not-finite")
"""They cannot show beside `blind`: nothing is seen that could grow old, and the policy is not asked."""
_SHARE = 0.0025
"""More, and the driver says that too few commands reach the robot."""
LOSSY = Faults(
    lost_states=_SHARE, late_states=_SHARE, duplicated_states=_SHARE, reordered_states=_SHARE,
    lost_commands=_SHARE, late_commands=_SHARE, duplicated_commands=_SHARE, reordered_commands=_SHARE,
)  # fmt: skip
NETWORK: dict[Fault | CameraFault, Faults] = {
    "lossy": LOSSY,
    "deaf": Faults(deaf_at_ms=0, deaf_ms=60),
    "silent": Faults(silent_at_ms=0, silent_ms=60),
    "garbage": Faults(garbage_at_ms=0),
    "user-stop": Faults(user_stop_at_ms=0, user_stop_ms=300),
    "closed": Faults(close_at_ms=0),
}
Together = tuple[Fault | CameraFault, ...]
"""Faults that come at the same moment."""
ALONE: tuple[Together, ...] = tuple((fault,) for fault in get_args(Fault))
PAIRS: tuple[Together, ...] = tuple(combinations([f for f in get_args(Fault) if f != "none"], 2))
CAMERAS: tuple[Together, ...] = tuple((fault,) for fault in get_args(CameraFault))


def together(faults: list[Faults]) -> Faults:
    """All of some faults of the network at once."""
    plain = asdict(Faults())
    return Faults(**{k: v for one in faults for k, v in asdict(one).items() if v != plain[k]})


class Eyes:
    """Eyes, the truth's or a camera's, until something is wrong with what they tell."""

    def __init__(self, behind: LookingObserver):
        self._behind = behind
        self.faults: Together = ()
        self._last: tuple[float, BallEstimate] | None = None
        self.radius_m = behind.radius_m

    @property
    def found_share(self) -> float:
        """Of those behind."""
        return self._behind.found_share

    @property
    def trust(self) -> Trust:
        """Of those behind."""
        if "distrust" in self.faults:
            return "stop", "a fault of the soak"
        return trust_of(self._behind)

    def tick(self) -> None:
        """Look."""
        self._behind.tick()

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """Handed on."""
        self._behind.observe_joints(time_s, q)

    def observe_plate(self, plate: Plate) -> None:
        """Handed on."""
        self._behind.observe_plate(plate)

    def estimate(self, time_s: float) -> BallEstimate | None:
        """What is seen, old, or nothing."""
        if "blind" in self.faults:
            return None
        if "frozen-sight" in self.faults and self._last is not None:
            seen_s, ball = self._last
            return BallEstimate(ball.position, ball.velocity, time_s - seen_s)
        found = self._behind.estimate(time_s)
        self._last = None if found is None else (time_s, found)
        return found

    def arrival(self, time_s: float, height_m: float) -> Arrival | None:
        """Handed on."""
        return self._behind.arrival(time_s, height_m)


class Wires:
    """What becomes of the frames of both cameras on their way."""

    def __init__(self) -> None:
        self.faults: Together = ()
        self._past: tuple[deque[Image], deque[Image]] = (deque(maxlen=40), deque(maxlen=40))

    def __call__(self, frame: Frame) -> Frame | None:
        """The frame, another one in its place, or None: it is lost."""
        if "silent-cameras" in self.faults:
            return None
        if "stamps-ahead" in self.faults:
            return replace(frame, time_s=frame.time_s + 1.0)
        past = self._past[frame.camera]
        if "repeating-cameras" in self.faults:
            past.rotate(-1)
        elif "frozen-cameras" not in self.faults and not (
            "frozen-camera" in self.faults and frame.camera == 0
        ):
            past.append(frame.image)
        return replace(frame, image=past[-1])
