"""What spoils the view: flights are tracked under one imperfection at a time."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from dris.experiments.tracking.measure import measure_tracking
from dris.lab.sensor import SensorConfig
from dris.perception.camera import Rig, laboratory_rig

TRIGGERED = SensorConfig(offset_s=(0.0, 0.0), jitter_s=0.0, drop_rate=0.0)
"""A common trigger, exact stamps, no lost frame: the base of every condition."""


def conditions() -> dict[str, tuple[SensorConfig, Rig | None]]:
    """Named imperfections: the sensor, and the rig that is believed if it is not the true one."""
    rig, behind = laboratory_rig(), replace(TRIGGERED, offset_s=(0.0, 0.005))
    return {
        "common trigger, exact stamps": (TRIGGERED, None),
        "camera 1 runs 5 ms behind, stamps say so": (behind, None),
        "camera 1 runs 5 ms behind, stamps do not": (replace(behind, clock_s=(0.0, -0.005)), None),
        "both stamps 5 ms late": (replace(TRIGGERED, clock_s=(0.005, 0.005)), None),
        "stamps jitter by 2 ms": (replace(TRIGGERED, jitter_s=0.002), None),
        "every fifth frame lost": (replace(TRIGGERED, drop_rate=0.2), None),
        "exposure 8 ms": (replace(TRIGGERED, exposure_s=0.008, subframes=9), None),
        "dim light: 10 of 255 noise": (replace(TRIGGERED, full_well=2000.0, read_noise=9.0), None),
        "camera 0 turned by 0.2 degrees": (TRIGGERED, moved(rig, turn_degrees=0.2)),
        "camera 0 moved by 5 mm": (TRIGGERED, moved(rig, shift_m=0.005)),
        "focal length of camera 0 off by 0.5 %": (TRIGGERED, moved(rig, zoom=1.005)),
    }


def moved(rig: Rig, turn_degrees: float = 0.0, shift_m: float = 0.0, zoom: float = 1.0) -> Rig:
    """A rig whose first camera is wrong: turned about its y axis, moved along its x axis, zoomed."""
    change = np.eye(4)
    change[:3, :3] = cv2.Rodrigues(np.array([0.0, np.deg2rad(turn_degrees), 0.0]))[0]
    change[0, 3] = shift_m
    focal_px = (rig[0].focal_px[0] * zoom, rig[0].focal_px[1] * zoom)
    return Rig((replace(rig[0], camera_to_base=rig[0].camera_to_base @ change, focal_px=focal_px), rig[1]))


def conditions_table() -> str:
    """Errors of the estimator `gravity` before the first impact of training throws, as a Markdown table."""
    lines = [
        "| condition | requests | no state | position bias (x, y, z) mm | spread mm "
        "| velocity bias (x, y, z) m/s | spread m/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (sensor, believed) in conditions().items():
        result = measure_tracking("training", throws=4, sensor=sensor, believed=believed, end_s=0.0)
        cells = [name, *result.errors["gravity", "flight"].cells()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
