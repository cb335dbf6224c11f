"""Eyes that know when they are wrong: frames, looks and states come in, a verdict comes out.

What acts on the ball's state reads `Monitor.verdict` and nothing else:

    fine   nothing speaks against the state (there may be none)
    hold   do not act on the state; keep the last reference until the verdict is fine again
    stop   the rig is wrong: stop, and let somebody look at it. It stays so until `reset`

Each verdict has a name (`Cause`) and a reason in words. Whatever was noticed is counted in `noticed`, single
frames that were refused included; `changes` keeps when the verdict changed.

There is no clock here: `now_s` is the caller's, of the clock that stamps the frames.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

import numpy as np

from dris.perception.detect import Image
from dris.perception.monitor_config import MonitorConfig
from dris.perception.pictures import Pictures, white_share
from dris.perception.track import BallState

Level = Literal["fine", "hold", "stop"]
Cause = Literal[
    "stamp ahead", "stamps out of order", "clocks apart", "frozen camera", "silent camera", "plate elsewhere",
    "cameras disagree", "size", "second ball", "pushed", "too young", "surprise",
    "unseen bounce", "uncertain", "late frame", "overexposed", "none",
]  # fmt: skip
"""stamp ahead: of a time that has not come. stamps out of order: repeat, jump or are exchanged. clocks
apart: one camera's frames seem to travel longer than the other's. frozen camera: repeats a picture. silent
camera: gives none. plate elsewhere: a camera does not see the robot's plate where its calibration says.
cameras disagree: rays of the two miss each other. size: the ball looks larger or smaller than it is. second
ball: something else in view looks like one. pushed: the ball does not fall freely, and does not lie on the
plate. too young: seen for too short a time. surprise: it is not where it should be. unseen bounce: it met the
plate too long ago for nobody to have seen how it left. uncertain: one camera has missed it for too long to
tell how far away it is. late frame: is counted, and refused if it is very late. overexposed: so much of the
picture is white that the ball's outline cannot be trusted."""
RIG: frozenset[Cause] = frozenset(
    {
        *("stamp ahead", "stamps out of order", "clocks apart", "frozen camera", "silent camera"),
        *("plate elsewhere", "cameras disagree", "overexposed"),
    }
)
"""Causes that are the rig's: a hold for one of them becomes a stop if it lasts."""


@dataclass(frozen=True)
class Verdict:
    """What may be done with the ball's state."""

    level: Level = "fine"
    cause: Cause = "none"
    reason: str = ""
    since_s: float = -math.inf
    """When this level and cause began."""


@dataclass
class _Camera:
    """What is remembered of one camera."""

    stamp_s: float = -math.inf
    """Of the last frame that was taken,"""
    came_s: float | None = None
    """and when it came."""
    stamps: deque[Cause] = field(default_factory=deque)
    """What was wrong with the stamps of the last frames, or "none"."""
    travel_s: deque[float] = field(default_factory=deque)
    """From stamp to coming, of frames that were neither early nor late."""
    pictures: Pictures = field(default_factory=Pictures)
    repeats: int = 0
    white: int = 0
    """Pictures in a row that were overexposed."""
    shifts: deque[float] = field(default_factory=deque)


class Monitor:
    """Judges one rig and one track."""

    def __init__(self, radii_m: tuple[float, float], config: MonitorConfig | None = None):
        """Begin.

        Args:
            radii_m: Smallest and largest that the thing's outline can have; of a ball, twice the same.
            config: From when on something is wrong.
        """
        self.config, self.radii_m = config or MonitorConfig(), radii_m
        self.reset()

    def reset(self) -> None:
        """Forget everything, also why it stopped: somebody has looked at the rig."""
        self.verdict = Verdict()
        self.noticed: Counter[Cause] = Counter()
        """How often each cause was noticed: frames refused, looks and states that spoke for it."""
        self.changes: list[Verdict] = []
        self._cameras = (_Camera(), _Camera())
        self._others: deque[float] = deque()
        self._rig_doubt_s = 0.0
        """How long the rig has been doubted, less what was forgotten since."""
        self._began_s: float | None = None
        """When the first frame came, of either camera: from then on both have to speak."""
        self._judged_s = -math.inf

    def admit(self, now_s: float, stamp_s: float, camera: int, image: Image) -> bool:
        """Take in a frame's stamp and bytes; whether it may be looked at."""
        one = self._cameras[camera]
        if self._began_s is None or now_s < self._began_s:  # or by a clock that begins again
            self._began_s = now_s
        cause = self._stamp(one, now_s, stamp_s)
        _remember(one.stamps, cause, self.config.recent)
        self.noticed[cause] += cause != "none"
        repeated = one.pictures.repeats(image, self.config.memory)
        one.repeats = one.repeats + 1 if repeated else 0
        self.noticed["frozen camera"] += repeated
        white = white_share(image) > self.config.white_share
        one.white = one.white + 1 if white else 0
        self.noticed["overexposed"] += white
        if cause not in ("none", "late frame") or now_s - stamp_s > self.config.late_s or repeated:
            return False
        one.stamp_s, one.came_s = max(stamp_s, one.stamp_s), now_s
        return True

    def _stamp(self, one: _Camera, now_s: float, stamp_s: float) -> Cause:
        """What is wrong with a stamp."""
        config, travel_s = self.config, now_s - stamp_s
        if not travel_s >= -config.ahead_s:  # NaN too
            return "stamp ahead"
        if stamp_s == one.stamp_s:
            return "stamps out of order"
        if travel_s > config.late_s:  # however usual: it tells nothing of now
            return "late frame"
        usual_s = _usual(one)
        if usual_s is not None and abs(travel_s - usual_s) > config.even_s:
            return "late frame" if travel_s > usual_s else "stamps out of order"
        if stamp_s < one.stamp_s:  # not late, so the one before was early
            return "stamps out of order"
        _remember(one.travel_s, travel_s, 2 * config.recent)
        return "none"

    def looked(self, now_s: float, others: int) -> None:
        """Take in how many things besides the ball a look found that may be balls."""
        if others:
            self.noticed["second ball"] += 1
            _remember(self._others, now_s, self.config.other_looks)

    def saw_plate(self, camera: int, shift_px: float) -> None:
        """Take in how far from where it should be a camera sees the plate."""
        _remember(self._cameras[camera].shifts, shift_px, self.config.shifts)

    @property
    def plate_shifts_px(self) -> tuple[float | None, float | None]:
        """How far each camera sees the plate from where it should, in the median; None: not made out."""
        first, second = (median(c.shifts) if c.shifts else None for c in self._cameras)
        return first, second

    @property
    def plate_looks(self) -> tuple[int, int]:
        """How many of each camera's last looks made the plate out, at most `MonitorConfig.shifts`."""
        first, second = (len(camera.shifts) for camera in self._cameras)
        return first, second

    @property
    def doubts_rig(self) -> bool:
        """Whether the verdict is about cameras, clocks or what else is in view, and not about one motion."""
        return self.verdict.level != "fine" and self.verdict.cause in RIG | {"second ball", "size"}

    @property
    def halts(self) -> bool:
        """Whether an arm should go no further: the rig is doubted, or there is a second ball.

        Not for the size alone, which a ball that is only just in view may have wrong for a moment.
        """
        return self.doubts_rig and self.verdict.cause != "size"

    def is_due(self, now_s: float) -> bool:
        """Whether nothing was judged lately: no frame comes, and nobody asks for the ball."""
        return not 0 <= now_s - self._judged_s < self.config.judge_s

    def judge(self, now_s: float, state: BallState | None) -> Verdict:
        """The verdict now, on the track's state now, if there is one."""
        elapsed_s = max(now_s - self._judged_s, 0.0)
        if not -self.config.late_s <= now_s - self._judged_s <= 0:  # frames are judged by when they came
            self._judged_s = now_s
        if self.verdict.level == "stop":
            return self.verdict
        cause, reason = self._rig(now_s)
        seen_twice = len(self._others) == self.config.other_looks
        if cause == "none" and seen_twice and now_s - self._others[-1] <= self.config.other_s:
            cause, reason = "second ball", "something else in view looks like the ball: take it away"
        if cause == "none" and state is not None and state.valid:
            cause, reason = self._track(state)
            self.noticed[cause] += cause != "none"
        if cause not in RIG:  # a camera that stutters gives a good frame now and then
            self._rig_doubt_s = max(self._rig_doubt_s - self.config.forget_share * elapsed_s, 0.0)
        elif self.verdict.cause in RIG:
            self._rig_doubt_s += elapsed_s
        lasts = cause in RIG and self._rig_doubt_s >= self.config.stop_s - 1e-9
        level: Level = (
            "fine" if cause == "none" else "stop" if lasts or cause == "plate elsewhere" else "hold"
        )
        if (level, cause) != (self.verdict.level, self.verdict.cause):
            self.verdict = Verdict(level, cause, reason, now_s)
            self.changes.append(self.verdict)
        return self.verdict

    def _rig(self, now_s: float) -> tuple[Cause, str]:
        """What is wrong with cameras and clocks."""
        config = self.config
        for index, one in enumerate(self._cameras):
            ahead = one.stamps.count("stamp ahead")
            if ahead >= config.bad_stamps:
                return "stamp ahead", f"{ahead} of the last {len(one.stamps)} of camera {index}"
            disorder = one.stamps.count("stamps out of order")
            wrong = disorder + one.stamps.count("late frame")
            if disorder >= config.bad_stamps or wrong >= config.late_frames:
                late = f", {wrong - disorder} of them late" if wrong > disorder else ""
                return "stamps out of order", f"{wrong} of the last {len(one.stamps)} of camera {index}{late}"
            if one.repeats >= config.repeats:
                return "frozen camera", f"camera {index} repeats its picture, {one.repeats} times so far"
            if one.white >= config.repeats:
                return "overexposed", f"more than {100 * config.white_share:.0f} % of camera {index} is white"
            if len(one.shifts) == config.shifts and (shift := median(one.shifts)) > config.shift_px:
                return "plate elsewhere", (
                    f"camera {index} sees the plate {shift:.0f} px from where it should be, allowed are "
                    f"{config.shift_px:g}: moved, exchanged, or another camera's calibration"
                )
            began = one.came_s is not None
            since_s, patience_s = (one.came_s, config.silent_s) if began else (self._began_s, config.start_s)
            if since_s is not None and now_s - since_s > patience_s:
                return "silent camera", f"no frame of camera {index} for {now_s - since_s:.2f} s"
        first, second = (_usual(one) for one in self._cameras)
        if first is not None and second is not None and abs(first - second) > config.even_s:
            return (
                "clocks apart",
                f"frames come {first:.3f} s after their stamps, the other camera's {second:.3f} s",
            )
        return "none", ""

    def _track(self, state: BallState) -> tuple[Cause, str]:
        """What speaks against a state."""
        config, health = self.config, state.health
        if state.age_s < -config.ahead_s:
            return "stamp ahead", f"the state rests on a sight of {-state.age_s:.3f} s from now"
        old = state.age_s > config.young_age_s
        if health.surprise >= config.surprise or (health.surprise and old):
            return "surprise", f"the last {health.surprise} sights are elsewhere"
        if health.foreseen_s > config.foreseen_s:
            return "unseen bounce", f"it met the plate {health.foreseen_s:.3f} s ago, and nobody saw it leave"
        if not state.covariance[:3, :3].trace() <= config.spread_m**2:  # else no direction has more
            spread_m = math.sqrt(max(float(np.linalg.eigvalsh(state.covariance[:3, :3])[-1]), 0.0))
            if not spread_m <= config.spread_m:
                return "uncertain", f"its place is known within {1e3 * spread_m:.0f} mm"
        if not health.lying:
            if state.phase == "plate" and health.lying is False:
                return "pushed", "the ball does not fall, and does not lie on the plate"
            if health.doubt > config.doubt:
                return (
                    "pushed",
                    f"the ball does not fall freely: its velocity may be {health.doubt:.2f} m/s off",
                )
        known = health.lying if not health.anchored else not old
        if math.isnan(health.rms_px):  # no fit: single sights say that it lies
            known = health.span_s >= config.alone_s or health.apart_m <= config.apart_m
        if health.span_s < config.young_s and not known:
            return "too young", f"seen for {health.span_s:.3f} s, {state.age_s:.3f} s ago"
        return self._geometry(state)

    def _geometry(self, state: BallState) -> tuple[Cause, str]:
        """Whether both cameras see one ball of the right size, once its motion is understood."""
        config, health = self.config, state.health
        if health.rms_px > config.rms_px and health.doubt == 0:
            return (
                "cameras disagree",
                f"the fit's error is {health.rms_px:.2f} px, allowed are {config.rms_px:g}",
            )
        (small, large), radii = self.radii_m, [radius for radius in health.radii_m if radius > 0]
        if radii and not small / config.radius_ratio < min(radii) <= max(radii) < large * config.radius_ratio:
            return "size", f"radius {_mm(health.radii_m)} mm, expected {_mm(self.radii_m)} mm"
        if len(radii) == 2 and max(radii) * small > config.radius_disagreement * min(radii) * large:
            return "size", f"radius {_mm(health.radii_m)} mm: one camera is wrong about the distance"
        if state.phase == "flight" and not health.lying and health.rms_px > config.pushed_px:
            return "pushed", f"the fit's error is {health.rms_px:.2f} px: the ball may not fall freely"
        return "none", ""


def _usual(one: _Camera) -> float | None:
    """How long frames of a camera take [s], if there were some."""
    return sum(one.travel_s) / len(one.travel_s) if len(one.travel_s) >= 4 else None


def _remember(items: deque, item: object, most: int) -> None:
    items.append(item)
    while len(items) > most:
        items.popleft()


def _mm(radii_m: tuple[float, float]) -> str:
    return " and ".join(f"{1e3 * radius:.0f}" for radius in radii_m)
