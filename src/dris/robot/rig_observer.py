"""Real cameras as the observer of the ball: a thread takes frames, the session looks at them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from dris.catching.eyes_observer import EyesObserver
from dris.perception.calibration import load_rig as load_rig
from dris.perception.eyes import Eyes
from dris.perception.sources import Frame, FrameSource, SourceError

WAITING = 8
"""Frames that may wait; older ones are dropped and counted: late frames tell nothing of now."""


class RigObserver(EyesObserver):
    """Two cameras, a track and its monitor, by the session's clock."""

    def __init__(self, source: FrameSource, eyes: Eyes, radius_m: float, clock: Callable[[], float]):
        """Begin to take frames.

        Args:
            source: Frames with stamps of that clock.
            eyes: Look at them.
            radius_m: Of the ball.
            clock: The session's [s].
        """
        super().__init__(eyes, radius_m)
        self._clock = clock
        self.serials: tuple[str, str] = getattr(source, "serials", ("", ""))
        """What the devices call themselves, empty where the source does not know."""
        self.dropped = 0
        self.on_frame: Callable[[float, Frame], None] | None = None
        """Told of every frame that is looked at, and when it came."""
        self._waiting: deque[tuple[float, Frame]] = deque()
        self._lock = threading.Lock()
        self._error = ""
        self._done = False
        self._thread = threading.Thread(target=self._take, args=(source,), daemon=True, name="dris-cameras")
        self._thread.start()

    def _take(self, source: FrameSource) -> None:
        try:
            for frame in source:
                if frame.camera not in (0, 1):
                    raise SourceError(f"a frame of camera {frame.camera!r} came: there are 0 and 1")
                with self._lock:
                    self._waiting.append((self._clock(), frame))
                    if len(self._waiting) > WAITING:
                        self._waiting.popleft()
                        self.dropped += 1
                if self._done:
                    return
            self._error = "the cameras have ended"
        except SourceError as error:
            self._error = str(error)
        except Exception as error:  # anything may stand in a user's cameras: the arm must know
            self._error = f"the cameras failed: {type(error).__name__}: {error}"

    def close(self) -> None:
        """Take no more."""
        self._done = True
        self._thread.join(2.0)

    def tick(self) -> None:
        """Look at the oldest frame that has come: one a tick, so that the arm is never kept waiting."""
        with self._lock:
            if not self._waiting:
                return
            came_s, frame = self._waiting.popleft()
        self.take(frame, came_s)
        if self.on_frame is not None:
            self.on_frame(came_s, frame)

    @property
    def trust(self) -> tuple[str, str]:
        """What the monitor says; cameras that give nothing more are a stop."""
        if self._error:
            return "stop", self._error
        return super().trust
