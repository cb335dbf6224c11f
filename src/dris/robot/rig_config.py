"""The cameras before a real robot, as a command line tells them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RigConfig:
    """Where the cameras are, and what their ball looks like."""

    file: Path | None = None
    """Calibration of both cameras, as `dris.perception.calibration.save_rig` writes it."""
    cameras: str = "0,1"
    """Two devices of OpenCV; or path/file.py:function, which gets rig and clock and gives a FrameSource, for
    cameras that stamp their frames themselves."""
    delay_s: float = 0.0
    """From the middle of an exposure to its frame's coming, for cameras of OpenCV: measure it [s]."""
    unconfirmed: bool = False
    """Go on where a camera does not make the plate out, though nothing then tells exchanged cameras or a
    calibration of others."""
    ball_radius_m: float = 0.03
    ball_hue_degrees: tuple[float, float] = (5.0, 35.0)
    """From, to, counted upwards through 360; orange by default."""
    ball_saturation: tuple[float, float] = (0.5, 1.0)
    ball_value: tuple[float, float] = (0.2, 1.0)

    def __post_init__(self) -> None:
        """Refuse what is no rig; the detector refuses colours that are none."""
        if not 0.005 <= self.ball_radius_m <= 0.1:
            raise ValueError(f"ball_radius_m must lie in [0.005, 0.1] m, got {self.ball_radius_m}")
        if not 0 <= self.delay_s <= 0.25:
            raise ValueError(f"delay_s must lie in [0, 0.25] s, got {self.delay_s}")
