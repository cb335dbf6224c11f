"""Signals that ask for the end of a session: noted at once, heeded where they cut nothing in two.

An answer of the driver, a line of the log or a tick that is broken off in its middle leaves something behind
that nobody can go on with. So a signal is only noted, and `Ended` comes between two ticks, while an answer is
late, or at once inside `interruptibly`: a terminal may take no more text.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
"""Ctrl-C, Ctrl-\\ and Ctrl-Z among them."""
BACKGROUND = (signal.SIGTTIN, signal.SIGTTOU)
"""They suspend a process in the background that reads or writes its terminal: not one that moves an arm."""
SUSPENDED = "a robot cannot be put in the background, so it was stopped"


class Ended(Exception):
    """Somebody asked for the end; says by which signal."""


class _Noted:
    """What was asked for so far."""

    def __init__(self) -> None:
        self.by = ""
        self.waits = False
        """Whether the session waits so that a signal may break in."""

    def take(self, number: int, frame: object) -> None:
        """A signal has come."""
        name = signal.Signals(number).name
        self.by = self.by or (f"{name}: {SUSPENDED}" if number == signal.SIGTSTP else name)
        if self.waits:
            self.heed()

    def heed(self) -> None:
        """End, if it was asked for."""
        if self.by:
            self.waits = False  # a second signal must not break into the stop
            raise Ended(self.by)


_noted = _Noted()


def heed() -> None:
    """A place to end at.

    Raises:
        Ended: Somebody has asked for it.
    """
    _noted.heed()


@contextmanager
def interruptibly() -> Iterator[None]:
    """Wait for what may take long; nothing inside may be left half done by an exception.

    Raises:
        Ended: Somebody asks for the end meanwhile, or has asked before.
    """
    noted = _noted
    noted.waits = True
    try:
        noted.heed()  # after the line above, or a signal between the two would be slept through
        yield
    finally:
        noted.waits = False


@contextmanager
def ended_by_signals(unless_ignored: bool = False) -> Iterator[None]:
    """Note the signals of `ENDING` for `heed`; afterwards they mean what they meant before.

    Args:
        unless_ignored: Leave those alone that whoever started this process had ignored: `nohup` does, for
            hours without anybody. Not for an arm that moves, which every signal stops.
    """
    global _noted
    _noted = noted = _Noted()
    ending = [n for n in ENDING if not (unless_ignored and signal.getsignal(n) == signal.SIG_IGN)]
    before = {number: signal.signal(number, noted.take) for number in ending}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in BACKGROUND}
    try:
        yield
    finally:
        _noted = _Noted()
        for number, handler in before.items():
            signal.signal(number, handler)
