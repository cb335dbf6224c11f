"""Who lets a simulated robot's time pass: a thread of its own, or whoever works on every millisecond."""

from __future__ import annotations

import threading
from collections.abc import Callable

LONGEST_WAIT_S = 30.0
"""For the end of a millisecond that passes by itself [s]."""


class Gate:
    """Robot time: it passes by itself in a thread of its own, or a millisecond at a time in the caller's.

    Whoever works on every millisecond lets it pass himself: nothing is handed from thread to thread.
    """

    def __init__(self, step: Callable[[], None], rest: Callable[[], None]):
        """Begin with `start`.

        Args:
            step: Lets a millisecond pass.
            rest: The same by itself; may wait while nothing happens.
        """
        self._step, self._rest = step, rest
        self._turn = threading.Condition()
        self._held = self._parked = self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Let time run by itself."""
        self._thread.start()

    def _run(self) -> None:
        while True:
            with self._turn:
                while self._held and not self._ended:
                    self._parked = True
                    self._turn.notify_all()
                    self._turn.wait()
                self._parked = False
                if self._ended:
                    return
            self._rest()

    def tick(self, work: Callable[[], None], holds: Callable[[], bool] = lambda: True) -> None:
        """Let a millisecond pass and do its work while time stands, if it `holds`.

        Work on an arm that obeys no more needs time to pass: only then the robot tells why.
        """
        with self._turn:
            self._held = True
            if not self._turn.wait_for(lambda: self._parked, timeout=LONGEST_WAIT_S):
                raise RuntimeError("the simulated robot's time does not stop for us")
        self._step()
        if not holds():
            self.release()
        work()

    def release(self) -> None:
        """Let time run by itself."""
        with self._turn:
            self._held = self._parked = False
            self._turn.notify_all()

    def end(self) -> None:
        """Time stands for good."""
        with self._turn:
            self._ended = True
            self._turn.notify_all()
        self._thread.join(5.0)
