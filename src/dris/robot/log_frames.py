"""A log as frames to look at: the arm as it was measured, the ball, the session's state.

Where the log tells where the ball truly is, as the twin's do, that is the solid ball, and the wire ball is
what the policy acted on last. Otherwise the solid ball is where the eyes had it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.catching.stage import ArmFrame, RobotStage
from dris.core.constants import GRAVITY
from dris.core.typed import from_plain
from dris.robot.log import Tick, read_log
from dris.robot.states import WITH_LOOP

FRAME_S = 0.02
"""Between frames [s]."""
LEAD_S = 1.5
"""Shown before the policy takes over, at most [s]."""
BLIND_S = 0.2
"""Between two sights that lie further apart nobody knows where the ball was [s]."""
NOWHERE = np.array([0.0, 0.0, -9.0])
"""Where a ball is put that nobody knows of: below the floor."""
RADIUS_M = 0.03
"""Of a ball of which the log does not tell it."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A log's first catch, or what led to none."""

    title: str
    mount: str
    stage: RobotStage
    frames: list[ArmFrame]


def shown(path: Path) -> Shown:
    """What there is to see in a log: the first attempt in which the policy took over, or the first of all.

    Raises:
        ValueError: It is no log, or its session never waited for a ball.
    """
    made_of, lines = read_log(path)
    attempts = _attempts(lines)
    if not attempts:
        raise ValueError(f"{path} shows no attempt: its session never waited for a ball")
    ticks = next((one for one in attempts if _began_s(one) is not None), attempts[0])
    began_s = _began_s(ticks)
    first_s = ticks[0].time_s if began_s is None else max(ticks[0].time_s, began_s - LEAD_S)
    config = from_plain(CatchingConfig, made_of.get("task_config"), f"{path}: task_config")
    eye = _Eye(config, ticks, float(made_of.get("ball_radius_m", RADIUS_M)))
    frames, clauses = list[ArmFrame](), dict[str, None]()
    for tick in ticks:
        eye.look(tick)
        clauses |= dict.fromkeys(tick.clauses)
        if tick.wished is not None and tick.time_s - first_s >= len(frames) * FRAME_S - 1e-9:
            frames.append(eye.frame(tick, tick.time_s - first_s, list(clauses)))
            clauses = {}
    parts = [str(made_of[name]) for name in ("policy", "trial") if name in made_of]
    return Shown(", ".join(parts) or path.stem, config.mount, eye.stage, frames)


def _attempts(lines: Iterable[Tick]) -> list[list[Tick]]:
    """Lines from every arming to the end of its catch; those in which nothing is measured are left out."""
    found: list[list[Tick]] = []
    for line in lines:
        if line.asked.startswith("arm"):
            found.append([])
        elif found and line.state in WITH_LOOP and not line.note:
            found[-1].append(line)
    return [one for one in found if any(line.wished is not None for line in one)]


def _began_s(ticks: Sequence[Tick]) -> float | None:
    return next((tick.time_s for tick in ticks if tick.state == "catching"), None)


class _Eye:
    """Draws ticks one after the other."""

    def __init__(self, config: CatchingConfig, ticks: Sequence[Tick], radius_m: float):
        self.stage = RobotStage(config.mount)
        self._kinematics = Kinematics(config.home, config.mount)
        self._truth = [(tick.time_s, np.array(tick.ball)) for tick in ticks if tick.ball is not None]
        self._balls = self._truth or [sight for tick in ticks if (sight := _sight(tick)) is not None]
        self._times = np.array([time_s for time_s, _ in self._balls])
        self._seen: np.ndarray | None = None
        names = ("static_friction", "dynamic_friction", "restitution")  # which nobody knows
        self._parameters = {"radius": np.array([radius_m])} | {name: np.array([0.5]) for name in names}

    def look(self, tick: Tick) -> None:
        """Remember what the policy acted on."""
        if tick.action is not None and tick.estimates and tick.estimates[-1] is not None:
            self._seen = np.array(tick.estimates[-1][:3])

    def frame(self, tick: Tick, time_s: float, clauses: Sequence[str]) -> ArmFrame:
        """The arm and the ball at a tick, with its state and the clauses since the last frame."""
        q = np.array(tick.q)
        place, rotation = self._kinematics.plate(q)
        ball = self._ball(tick.time_s)[None]
        still = np.zeros((1, 3))
        scene = self.stage.seen(q, ball, still, place, rotation[:, 2], self._parameters, True)
        words = tick.state + (f"; filter: {', '.join(clauses)}" if clauses else "")
        return ArmFrame(time_s, scene, self._seen if self._truth else None, words, q=q)

    def _ball(self, time_s: float) -> np.ndarray:
        """Where it was [3], on a straight line between the nearest times at which that is known."""
        after = int(np.searchsorted(self._times, time_s))
        near = self._balls[max(after - 1, 0) : after + 1]
        if not near or max(abs(known_s - time_s) for known_s, _ in near) > BLIND_S:
            return NOWHERE
        (from_s, from_m), (to_s, to_m) = near[0], near[-1]
        share = (time_s - from_s) / (to_s - from_s) if to_s > from_s else 0.0
        return from_m + min(max(share, 0.0), 1.0) * (to_m - from_m)


def _sight(tick: Tick) -> tuple[float, np.ndarray] | None:
    """When and where the eyes had the ball, if they told anything: on the arrival's parabola before it."""
    if tick.estimates and tick.estimates[-1] is not None:
        return tick.time_s, np.array(tick.estimates[-1][:3])
    if tick.arrival is None:
        return None
    left_s = tick.arrival[0] - tick.time_s
    place, velocity = np.array(tick.arrival[1:4]), np.array(tick.arrival[4:7])
    return tick.time_s, place - velocity * left_s - (0.0, 0.0, 0.5 * GRAVITY * left_s**2)
