"""The clock in a camera, read on the host's."""

from __future__ import annotations

import math
from collections import deque


class CameraClock:
    """Stamps of a camera's own clock, turned into the host's time.

    A camera stamps its frames evenly, but counts from somewhere; the host knows when a frame came, but a
    frame waits on its way, now more and now less:

        came = stamp + offset + transfer + waiting,  waiting >= 0

    So the smallest difference of the last frames tells offset and transfer together. What transfer itself
    takes nobody can see from here: it must be measured, with a light that the host switches on for instance.
    """

    def __init__(self, transfer_s: float, window: int = 400):
        """Know nothing yet.

        Args:
            transfer_s: From the moment that a camera stamps to the coming of a frame that waits for nothing.
            window: Frames that are looked back at: five seconds at 80 FPS, in which clocks that are 50
                millionths apart drift by a quarter of a millisecond.
        """
        if not 0 <= transfer_s < 1:
            raise ValueError(f"transfer_s must lie in [0, 1) s, got {transfer_s}")
        if window < 1:
            raise ValueError(f"window must be at least 1 frame, got {window}")
        self._transfer_s = transfer_s
        self._differences: deque[float] = deque(maxlen=window)

    def on_host(self, stamp_s: float, came_s: float) -> float:
        """The host's time of a stamp whose frame has just come.

        Args:
            stamp_s: By the camera.
            came_s: By the host.

        Raises:
            ValueError: A time is not finite.
        """
        if not (math.isfinite(stamp_s) and math.isfinite(came_s)):
            raise ValueError(f"times must be finite, got stamp {stamp_s} s, came {came_s} s")
        self._differences.append(came_s - stamp_s)
        return stamp_s + min(self._differences) - self._transfer_s
