"""Every number of the tracker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dris.core.validation import check_choices, check_positive

Estimator = Literal["line", "gravity"]
Phase = Literal["searching", "flight", "plate"]
BOUNCING_S = 1.0
"""A ball that was seen in flight may bounce for so long: from 1 m and with 0.6 of its speed each time,
bounces take 0.54, 0.33 and 0.2 s [design]."""


@dataclass(frozen=True)
class TrackerConfig:
    """How a track is begun, kept, broken and lost."""

    estimator: Estimator = "gravity"
    """`line`: velocity is the slope of a straight line over the window, as in the paper; in flight it is the
    velocity of the window's middle. `gravity`: the line is fitted after taking out g t^2 / 2, unless the ball
    is on the plate. docs/reports/perception.md compares them."""
    window_s: float = 0.1
    """Sliding window of the velocity [paper, Appendix A]."""
    flight_window_s: float = 0.4
    """Longest window of the parabola from which the arrival is computed."""
    flight_proof_s: float = 0.06
    """Shortest one: free fall bends so long a path by 4 mm, about a pixel, so that a ball that still rolls
    down a ramp or has just bounced is told from one that flies."""
    flight_misfit: float = 1.5
    """A window is of one flight if its RMS error is no larger, in standard deviations of a detection."""
    sigma_px: float = 0.3
    """Standard deviation of a detection along x and y: measured 0.1 on clean images, 0.3 to 1 expected on
    real ones."""
    gate_px: float = 2.0
    """A detection this far from the prediction does not belong to the motion so far: wrong, or a bounce."""
    gate_sigmas: float = 5.0
    """The same in standard deviations, where the prediction is less certain than the gate."""
    sigma_s: float = 0.0005
    """Standard deviation of a time stamp: a fast ball is less certain along its way."""
    fit_px: float = 1.5
    """Largest RMS error of the fit that begins a track."""
    begin_sights: int = 3
    """Sights of each camera that a new track needs,"""
    bounce_sights: int = 2
    """and that the motion after a bounce needs."""
    change_chi_square: float = 15.0
    """How much better the other phase must explain the window before the phase changes."""
    anchor_m: float = 0.004
    """Standard deviation of the place where a bounce began, when the plate is known: 1 ms at 4 m/s."""
    restitution: float = 0.3
    """Assumed for a state beyond an impact that no camera has seen yet, when the plate is known: the contact
    preset `paper` makes 0.30 to 0.45 of the trained range, and a plate that yields makes it less."""
    lying_m: float = 0.01
    """Standard deviation of the place of a ball that one camera alone sees on the plate,"""
    lying_speed: float = 0.3
    """and of its velocity [m/s]."""
    valid_s: float = 0.06
    """A state is valid while the youngest sight it rests on is no older; five frames at 80 FPS."""
    lost_s: float = 0.25
    """The track ends when nothing was seen for this long."""

    def __post_init__(self) -> None:
        """Refuse values that cannot track."""
        check_choices(self)
        check_positive(self, "window_s", "sigma_px", "gate_px", "gate_sigmas", "fit_px", "valid_s")
        check_positive(self, "change_chi_square", "anchor_m")
        if not 0 <= self.sigma_s < 0.1 or not 0 <= self.restitution <= 1:
            raise ValueError(
                f"need 0 <= sigma_s < 0.1 and 0 <= restitution <= 1, got {self.sigma_s}, {self.restitution}"
            )
        if not self.window_s <= self.flight_window_s < 5:
            raise ValueError(f"flight_window_s must lie in [window_s, 5) s, got {self.flight_window_s}")
        if not self.valid_s <= self.lost_s < 5:
            raise ValueError(f"lost_s must lie in [valid_s, 5) s, got {self.lost_s}")
        if not 2 <= self.bounce_sights <= self.begin_sights:
            raise ValueError(
                f"need 2 <= bounce_sights <= begin_sights, got {self.bounce_sights}, {self.begin_sights}"
            )
