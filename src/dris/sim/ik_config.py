"""Weights of inverse kinematics, for every solver: no kernel is needed to read them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class IkConfig:
    """Weights and effort of inverse kinematics."""

    tilt_weight: float = 0.1
    """[m2/rad2] A tilt of 0.2 degrees costs as much as 1.1 mm."""
    yaw_weight: float = 3e-4
    """[m2/rad2] Yaw is held where it is free and released where it is not."""
    home_weight: float = 1e-5
    """[m2/rad2] Pull of the posture towards home."""
    stay_weight: float = 0.0
    """[m2/rad2] Pull of the posture towards where it starts: keeps a controller's elbow from swinging."""
    iterations: int = 120
    """Most Gauss-Newton steps; the warm-started usual case needs three to five."""
    position_tolerance: float = 1e-3
    """[m] A target is reached if the plate's centre is this close, and"""
    tilt_tolerance: float = 3.49e-3
    """[rad] the normal this close (0.2 degrees)."""
