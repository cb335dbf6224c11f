"""From when on eyes no longer believe themselves."""

from __future__ import annotations

from dataclasses import dataclass

from dris.core.validation import check_positive


@dataclass(frozen=True)
class MonitorConfig:
    """From when on something is wrong; measured distances to clean trials: docs/reports/perception.md."""

    ahead_s: float = 0.002
    """A stamp may be so far ahead of the clock: four standard deviations of its jitter."""
    late_s: float = 0.25
    """A frame older than this when it comes tells nothing of now."""
    even_s: float = 0.006
    """From its stamp to its coming a frame of a camera takes as long as the others, within so much: one that
    comes sooner has a wrong stamp, one that comes later is late. Both cameras take as long, too. Half a frame
    at 80 FPS."""
    bad_stamps: int = 2
    """Of the last `recent` frames of a camera, so many with a wrong stamp are a fault; one is refused."""
    late_frames: int = 4
    """So many late ones are a clock that jumped; fewer are taken for what they are."""
    recent: int = 8
    repeats: int = 2
    """So many pictures in a row that were there before are a fault; one is refused. So many overexposed ones,
    too."""
    white_share: float = 0.25
    """A picture of which more is white is overexposed [design]: half of one misled a belief by 11 cm."""
    memory: int = 2400
    """Pictures of a camera that a new one is compared with: half a minute at 80 FPS."""
    silent_s: float = 0.25
    """A camera that gave no frame for so long;"""
    start_s: float = 3.0
    """one that gave none yet may take so long after the other's first: cameras start as they like."""
    judge_s: float = 0.02
    """Whoever tells where the plate is has the eyes judged, if nothing was judged for so long."""
    shift_px: float = 3.0
    """The plate may be seen so far from where it should be: a third of a degree of a camera at f = 520 px."""
    shifts: int = 3
    """Looks at the plate, of one camera, whose median is judged."""
    rms_px: float = 0.4
    """Largest error of a fit."""
    pushed_px: float = 0.32
    """Less than that speaks for a ball that does not fall freely; clean flights have 0.28 in 99 of 100."""
    radius_ratio: float = 1.14
    """The radius that a camera sees, over the ball's or the ball's over it: at most,"""
    radius_disagreement: float = 1.12
    """and one camera's over the other's."""
    doubt: float = 0.15
    """Largest difference to the velocity of a ball whose acceleration is found and not assumed [m/s]."""
    young_s: float = 0.06
    """A motion must have been seen for so long, unless it began at a bounce off the plate or lies on it;"""
    young_age_s: float = 0.03
    """then it must have been seen so recently."""
    alone_s: float = 0.03
    """One camera alone must have seen for so long that it lies: as long as two need to see that it flies."""
    apart_m: float = 0.01
    """Two cameras that put it as near to one place on the plate need no time: a ball in the air is there for
    some 2 ms [design]."""
    surprise: int = 3
    """So many sights elsewhere than predicted contradict the motion; one if nothing fitted it lately."""
    foreseen_s: float = 0.045
    """A bounce that no camera has seen yet is foreseen for so long: a ball that leaves the plate 1 m/s faster
    than was assumed is 5 cm off then [design]."""
    spread_m: float = 0.015
    """Largest standard deviation of a place, along its worst direction: clean trials have 6 mm in 99 of 100,
    and 13 at most."""
    other_looks: int = 2
    """A second ball must be seen in so many looks,"""
    other_s: float = 0.25
    """and holds for so long after the last of them."""
    stop_s: float = 0.25
    """A hold because of the rig that lasts so long becomes a stop;"""
    forget_share: float = 0.25
    """holds that end count on, and are forgotten in four times as long [design]."""

    def __post_init__(self) -> None:
        """Refuse limits that nothing passes."""
        check_positive(
            self,
            "late_s",
            "even_s",
            "silent_s",
            "start_s",
            "judge_s",
            "shift_px",
            "rms_px",
            "pushed_px",
            "doubt",
        )
        check_positive(self, "young_s", "young_age_s", "alone_s", "apart_m", "foreseen_s", "spread_m")
        check_positive(self, "other_s", "stop_s", "forget_share", "white_share")
        counts = ("bad_stamps", "late_frames", "repeats", "shifts", "surprise", "other_looks")
        for name in (*counts, "recent", "memory"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.radius_ratio <= 1 or self.radius_disagreement <= 1:
            raise ValueError("radius_ratio and radius_disagreement must be larger than 1")
