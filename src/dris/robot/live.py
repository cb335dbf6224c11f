"""A session in real time: home, arm, catch, return, again, until somebody ends it or something stops it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dris.robot.rig_observer import RigObserver
from dris.robot.session import Session

TICK_S = 0.001
KEEP_S = 10.0
"""A ball is kept on the plate for so long before the arm returns [s]."""
OVERRUN_S = 0.02
"""A tick that takes longer is counted: the driver then holds its last reference [s]."""


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(Exception):
    """Somebody asked for the end: Ctrl-C, or a signal to terminate."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into `Ended`, so that the arm is stopped on the way out."""

    def end(number: int, frame: object) -> None:
        raise Ended(signal.Signals(number).name)

    before = {number: signal.signal(number, end) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_live(
    session: Session,
    eyes: RigObserver,
    tell: Callable[[str], None],
    enough: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Catch until ended; the arm is stopped softly on every way out. Returns how many balls were acted on.

    Args:
        session: Not yet connected.
        eyes: Its observer.
        tell: Gets a line at every change of state.
        enough: Asked every tick; True ends it.
        sleep: Until the next tick.
    """
    acted, shown = 0, len(session.changes)
    overruns = 0
    try:
        with ended_by_signals():
            session.connect()
            session.start()
            while session.state not in ("stopped", "fault") and not enough():
                began = time.perf_counter()
                eyes.tick()
                session.tick()
                acted += _next(session)
                for when_s, state, reason in session.changes[shown:]:
                    tell(f"{when_s:9.3f} s  {state}{f': {reason}' if reason else ''}")
                shown = len(session.changes)
                left = TICK_S - (time.perf_counter() - began)
                overruns += left < TICK_S - OVERRUN_S
                if left > 0:
                    sleep(left)
    except Ended as signalled:
        session.stop(f"ended by {signalled}")
    finally:
        if session.state not in ("stopped", "fault"):
            session.stop("the session is over")
        eyes.close()
    tell(f"{session.state}: {session.reason}; {acted} balls, {overruns} ticks over {1e3 * OVERRUN_S:.0f} ms")
    return acted


def _next(session: Session) -> int:
    """Arm when at home, return after a catch; one if a ball was acted on."""
    if session.state == "homed":
        session.arm_now()
    began_s = None if session.loop is None else session.loop.began_s
    if session.state == "catching" and began_s is not None and session.clock() - began_s >= KEEP_S:
        session.go_home()
        return 1
    return 0
