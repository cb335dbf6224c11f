"""Which camera is behind a number: the serial number by which a device calls itself, where Linux tells it."""

from __future__ import annotations

from pathlib import Path

VIDEO = Path("/sys/class/video4linux")


def device_serial(number: int, video: Path = VIDEO) -> str:
    """The serial number of the USB camera that OpenCV opens by a number; empty if it has none.

    Args:
        number: As in /dev/video0.
        video: Where the system lists its cameras.
    """
    # `device` is one interface of the camera, and the camera is its parent. Further up are hubs, whose own
    # numbers say nothing of it.
    file = (video / f"video{number}" / "device").resolve().parent / "serial"
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
