"""The arm in a process of its own, so that cameras and networks never share one with the 1 kHz loop.

The session sends a reference a tick and gets the state back. If it falls silent, or dies, the driver stops
the arm by itself. If the driver dies, the robot misses its commands and stops by itself.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.robot.arm import Arm, ArmError, ArmState, Carried, RestsAlready
from dris.robot.ending import BACKGROUND, heed

ANSWER_S, TICK_ANSWER_S = 20.0, 5.0
"""Longest that an arm may take to answer: to connect, begin, stop and recover, or within a tick [s]."""
CLOSE_S = 15.0
"""Longest that an arm may take to close: to stop, and to take back what it set [s]."""
HEED_S = 0.1
"""Whoever waits for an answer heeds a signal that ends the session so often [s]."""
MOST_RECOVERIES = 3
"""So many errors are cleared over one connection: a robot that stops itself again and again has a cause."""
GONE = "the driver's process is gone: an arm that moved misses its commands and stops by itself; look at it"
CUT = "an answer of the driver was cut off, so it was let go: it stops the arm softly by itself; connect anew"
OWN_STOP = "use the robot's own stop"
SILENT = (
    "nothing came from the session for {:g} s, so the driver stopped the arm: look at what else runs on this "
    "machine"
)
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, *BACKGROUND)
"""By the driver: whatever a terminal sends is for the session, which asks the driver to stop; or it dies, and
the driver sees that. A driver that was suspended would miss the robot's milliseconds."""


class _End:
    """One end of the pipe between session and driver.

    As `Connection.send`, `recv` and `poll`, but with Python's plain pickles and one poll object for good:
    those make a pickler and a selector for every message, which takes longer than the message.
    """

    def __init__(self, pipe: Connection):
        self._pipe, self._poll = pipe, select.poll()
        self._poll.register(pipe.fileno(), select.POLLIN)

    def send(self, message: Any) -> None:
        """Hand a message over."""
        self._pipe.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def comes(self, within_s: float | None) -> bool:
        """Wait for a message, or for the other end to be closed; None: as long as it takes."""
        return bool(self._poll.poll(None if within_s is None else math.ceil(1e3 * within_s)))

    def receive(self) -> Any:
        """The next message.

        Raises:
            EOFError: The other end is closed.
        """
        return pickle.loads(self._pipe.recv_bytes())

    def close(self) -> None:
        """Nothing more comes or goes."""
        self._pipe.close()


class DriverProcess:
    """An arm that lives in another process; has the methods of `dris.robot.arm.Arm`."""

    def __init__(
        self,
        make_arm: Callable[[Any], Arm],
        config: Any,
        silence_s: float = 0.25,
        most_recoveries: int = MOST_RECOVERIES,
        connect_s: float = ANSWER_S,
        close_s: float = CLOSE_S,
    ):
        """Start the process and connect.

        Args:
            make_arm: Connects, given `config`: `dris.robot.fr3.Fr3`, for instance. Importable.
            config: What it is made from.
            silence_s: The arm is stopped when nothing was heard for so long while it moved [s, wall clock].
            most_recoveries: Errors that may be cleared, whichever session asks.
            connect_s: Longest that it may take to connect [s, wall clock].
            close_s: Longest that it may take to close [s, wall clock]; then its process is ended.

        Raises:
            ArmError: As the arm says it, or it says nothing; then the process has ended.
        """
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve,
            args=(theirs, make_arm, config, silence_s, close_s),
            daemon=True,
            name="dris-driver",
        )
        self.process.start()
        theirs.close()
        self._pipe = _End(ours)
        self._number, self._cut = 0, False
        self.recoveries, self.most_recoveries = 0, most_recoveries
        try:
            self._connect(connect_s, getattr(config, "address", config))
        except BaseException:
            self._kill()
            raise

    def _connect(self, within_s: float, address: Any) -> None:
        if not self._comes(within_s):
            raise ArmError(
                f"{address} has not answered as a robot for {within_s:g} s: either something else accepts "
                "connections there, so check the address, or its control cabinet hangs: activate FCI in "
                "Desk, and reboot the cabinet if that does not help"
            )
        self._receive(within_s)

    def state(self) -> ArmState:
        """What the arm measured last."""
        return self._ask("state")

    def limits(self) -> JointLimits:
        """Of its joints."""
        return self._ask("limits")

    def masses(self) -> tuple[float, ...]:
        """Of its links [kg]."""
        return self._ask("masses")

    def versions(self) -> str:
        """Of driver, library and robot."""
        return self._ask("versions")

    def carries(self) -> Carried:
        """What the robot believes that it carries."""
        return self._ask("carries")

    def begin(self, reference: np.ndarray) -> None:
        """Obey references from now on."""
        self._ask("begin", reference)

    def exchange(self, reference: np.ndarray) -> ArmState:
        """Set a reference and read the state."""
        return self._ask("exchange", reference)

    def stop(self) -> None:
        """Come to rest softly."""
        self._ask("stop")

    def recover(self) -> bool:
        """Clear an error; what does not clear is not counted.

        Raises:
            ArmError: So many were cleared over this connection that somebody must look first.
        """
        if self.recoveries >= self.most_recoveries:
            raise ArmError(
                f"errors were cleared {self.recoveries} times over this connection, at most "
                f"{self.most_recoveries}: look at the robot and at why it stops, then connect anew"
            )
        recovered = bool(self._ask("recover"))
        self.recoveries += recovered
        return recovered

    def close(self) -> None:
        """Stop, disconnect, and end the process, whatever is raised meanwhile."""
        try:
            if self.process.is_alive():
                with contextlib.suppress(ArmError):
                    self._ask("close")
        finally:
            self._pipe.close()  # a driver that could not be asked sees it, and stops the arm all the same
            try:
                self.process.join(ANSWER_S)
            finally:
                self._kill()

    def _kill(self) -> None:
        """End the process at once: while libfranka waits in it, it heeds no other signal than SIGKILL."""
        self.process.kill()
        self.process.join(ANSWER_S)
        self._pipe.close()

    def _ask(self, method: str, *arguments: Any) -> Any:
        if self._cut:
            self.process.join(ANSWER_S)
            still = f"; it has not ended for {ANSWER_S:.0f} s: {OWN_STOP}" if self.process.is_alive() else ""
            raise ArmError(CUT + still)
        self._number += 1
        with self._whole():
            self._pipe.send((self._number, method, arguments))
        within_s = TICK_ANSWER_S if method in ("exchange", "state") else ANSWER_S
        return self._receive(within_s, may_end=method not in ("stop", "close"))

    def _receive(self, within_s: float, may_end: bool = True) -> Any:
        """The answer to the last question; what was asked before and interrupted is dropped."""
        number = -1
        while number != self._number:
            if not (self._comes(within_s) if may_end else self._pipe.comes(within_s)):
                raise ArmError(f"the driver has not answered for {within_s:.0f} s: {OWN_STOP}")
            with self._whole():
                number, kind, value = self._pipe.receive()
        if kind == "error":
            raise ArmError(value)
        return value

    def _comes(self, within_s: float) -> bool:
        """Wait for an answer; what is interrupted here can be asked again.

        A signal need not wake this thread, so the wait looks for one by itself.
        """
        end_s = time.monotonic() + within_s
        while (left_s := end_s - time.monotonic()) > 0:
            if self._pipe.comes(min(left_s, HEED_S)):
                return True
            heed()
        return False

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Of a message: where one is cut off, nobody knows any more where the next begins."""
        try:
            yield
        except (EOFError, OSError) as error:
            raise ArmError(GONE) from error
        except BaseException:
            self._cut = True
            self._pipe.close()
            raise


def _end_once(number: int, frame: object) -> None:
    """The first SIGTERM ends the driver, which stops the arm; a second must not break into that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(143)


def _stopped(arm: Arm) -> tuple[bool, str]:
    """Stop an arm; whether it may still move, so that it must be tried again, and what there is to say."""
    try:
        arm.stop()
    except RestsAlready as error:
        return False, str(error)
    except ArmError as error:
        return True, str(error)
    return False, ""


def _serve(
    connection: Connection, make_arm: Callable[[Any], Arm], config: Any, silence_s: float, close_s: float
) -> None:
    """The driver's process: obey, and stop the arm when nobody asks any more."""
    for ignored in IGNORED:
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_once)
    pipe = _End(connection)
    try:
        arm = make_arm(config)
    except Exception as error:  # whatever it is, the session must hear of it
        plain = isinstance(error, (ArmError, ImportError))
        pipe.send((0, "error", str(error) if plain else f"{type(error).__name__}: {error}"))
        return
    number = 0
    try:
        pipe.send((0, "ok", None))
        moving, silent = False, ""
        while True:
            if not pipe.comes(silence_s if moving else None):
                first, (moving, why) = not silent, _stopped(arm)
                silent = SILENT.format(silence_s) + (f"; {why}" if why else "")
                if first and why:  # once: a terminal that is held up must not keep it from trying again
                    with contextlib.suppress(OSError):
                        print(f"dris: {silent}", file=sys.stderr, flush=True)
                continue
            number, method, arguments = pipe.receive()
            if method == "close":
                break
            if method == "exchange" and silent:  # a session that wakes up must not drive on
                pipe.send((number, "error", silent))
                continue
            try:
                found = getattr(arm, method)(*arguments)
                moving = method == "begin" or (moving and method != "stop")
                silent = "" if method == "begin" else silent
                pipe.send((number, "ok", found))
            except (ArmError, ValueError, TypeError) as error:
                moving = moving or method == "begin"
                pipe.send((number, "error", str(error)))
    except (EOFError, OSError):
        pass  # the session is gone
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # or one that comes now would cut the soft stop
        # libfranka waits for a robot's answer without end, and heeds no signal but one that kills.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, close_s)
        arm.close()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    with contextlib.suppress(OSError):
        pipe.send((number, "ok", None))
