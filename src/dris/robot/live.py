"""A session in real time: home, arm, catch, return, again, until somebody ends it or something stops it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from dris.catching.loop import CatchLoop
from dris.perception.plate import Plate
from dris.robot.arm import ArmError
from dris.robot.ending import Ended, ended_by_signals, heed, interruptibly
from dris.robot.paths import Path
from dris.robot.rig_observer import RigObserver
from dris.robot.session import Session
from dris.robot.states import CATCHING
from dris.robot.tick_times import TickTimes

TICK_S = 0.001
KEEP_S = 10.0
"""A ball is kept on the plate for so long before the arm returns [s]."""

ENDED = "ended by "
"""How the reason of a session begins that somebody ended."""


class NoEyes:
    """The observer of a session that only follows paths: sees nothing."""

    radius_m = 0.03

    def observe_joints(self, time_s: float, q: np.ndarray) -> None:
        """It needs no telling."""

    def observe_plate(self, plate: Plate) -> None:
        """It needs no telling."""

    def estimate(self, time_s: float) -> None:
        """There is no ball."""

    def arrival(self, time_s: float, height_m: float) -> None:
        """None comes."""


def run_live(
    session: Session,
    eyes: RigObserver,
    tell: Callable[[str], None],
    enough: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], None] = time.sleep,
    show: Callable[[TickTimes], None] = lambda ticks: None,
) -> int:
    """Catch until ended; the arm is stopped softly on every way out.

    Returns how many balls the policy acted on, kept or lost.

    Args:
        session: Not yet connected.
        eyes: Its observer.
        tell: Gets a line at every change of state.
        enough: Asked every tick; True ends it.
        sleep: Until the next tick.
        show: Called every tick with how long they take: `dris.robot.terminal.LiveView.show`, for instance.
    """
    acted, ticks = 0, TickTimes()
    counted: CatchLoop | None = None

    def after() -> None:
        nonlocal acted, counted
        loop = session.loop
        if loop is not None and loop.began_s is not None and loop is not counted:
            acted, counted = acted + 1, loop
        _next(session, ticks)
        with interruptibly():
            show(ticks)

    with _stopping(session, eyes.close):
        session.connect()
        level, why = eyes.trust
        if level == "stop":
            session.stop(f"the eyes: {why}")
        else:
            session.start()
            _tick(session, enough, tell, sleep, ticks, eyes.tick, after)
    tell(f"{session.state}: {session.reason}; {acted} balls; ticks took {ticks}")
    return acted


def run_path(
    session: Session, path: Path, tell: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Go home, along a path from there and back, and stop; on every way out the arm is stopped softly.

    Raises:
        ArmError: It was stopped before the end, or did not come to rest at it; the message says by what.
    """
    there, ticks = False, TickTimes()
    with _stopping(session):
        session.connect()
        session.start()
        _tick(session, lambda: session.state == "homed", tell, sleep, ticks)
        if session.state == "homed":
            session.follow(path)
            _tick(session, lambda: session.state == "homed", tell, sleep, ticks)
        there = session.state == "homed"
    tell(f"ticks took {ticks}")
    if not there or session.state == "fault":
        raise ArmError(f"{session.state}: {session.reason}")


@contextmanager
def _stopping(session: Session, close: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Stop the arm whatever happens inside; a second signal does not disturb the stop."""
    reason, broken = "the session is over", False
    with ended_by_signals():
        try:
            yield
        except Ended as signalled:
            reason = f"{ENDED}{signalled}"
        except Exception as error:
            reason = str(error) if isinstance(error, ArmError) else f"{type(error).__name__}: {error}"
            broken = True
            raise
        finally:
            if session.state not in ("stopped", "fault"):
                session.stop(reason)
                broken = True
            if broken and session.state == "fault":  # told here, too: what comes after may be an exception
                print(f"{session.state}: {session.reason}", file=sys.stderr, flush=True)
            close()


def _tick(
    session: Session,
    enough: Callable[[], bool],
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
    ticks: TickTimes,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Tick in real time until it is enough or the arm has stopped; how long ticks take is noted."""
    shown = 0
    while session.state not in ("stopped", "fault") and not enough():
        heed()
        began = time.perf_counter()
        try:
            before()
        except ValueError as error:  # a picture or a sight that cannot be used
            session.stop(f"the eyes: {error}", "fault")
        session.tick()
        after()
        for when_s, state, reason in session.changes[shown:]:
            with interruptibly():
                tell(f"{when_s:9.3f} s  {state}{f': {reason}' if reason else ''}")
        shown = len(session.changes)
        left = TICK_S - (time.perf_counter() - began)
        ticks.add(TICK_S - left)
        if left > 0:
            sleep(left)


def _next(session: Session, ticks: TickTimes) -> None:
    """Arm when at home, if ticks are quick; return after a catch."""
    if session.state == "homed" and ticks.known:
        slow = ticks.too_slow()
        session.arm_now(unless=slow and (session.reason or slow))  # figures change with every tick
    began_s = None if session.loop is None else session.loop.began_s
    if session.state in CATCHING and began_s is not None and session.clock() - began_s >= KEEP_S:
        session.go_home()
