"""The arm in a process of its own, so that cameras and networks never share one with the 1 kHz loop.

The session sends a reference a tick and gets the state back. If it falls silent, or dies, the driver stops
the arm by itself. If the driver dies, the robot misses its commands and stops by itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.robot.arm import Arm, ArmError, ArmState

ANSWER_S = 20.0
"""Longest that an arm may take to answer, connecting and recovering included [s]."""


class DriverProcess:
    """An arm that lives in another process; has the methods of `dris.robot.arm.Arm`."""

    def __init__(self, make_arm: Callable[[Any], Arm], config: Any, silence_s: float = 0.25):
        """Start the process and connect.

        Args:
            make_arm: Connects, given `config`: `dris.robot.fr3.Fr3`, for instance. Importable.
            config: What it is made from.
            silence_s: The arm is stopped when nothing was heard for so long while it moved [s, wall clock].

        Raises:
            ArmError: As the arm says it.
        """
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, make_arm, config, silence_s), daemon=True, name="dris-driver"
        )
        self.process.start()
        theirs.close()
        self._receive()

    def state(self) -> ArmState:
        """What the arm measured last."""
        return self._ask("state")

    def limits(self) -> JointLimits:
        """Of its joints."""
        return self._ask("limits")

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
        """Clear an error."""
        return self._ask("recover")

    def close(self) -> None:
        """Stop, disconnect, and end the process."""
        if self.process.is_alive():
            with contextlib.suppress(ArmError):
                self._ask("close")
            self.process.join(ANSWER_S)
        if self.process.is_alive():
            self.process.kill()
        self._pipe.close()

    def _ask(self, method: str, *arguments: Any) -> Any:
        try:
            self._pipe.send((method, arguments))
        except (BrokenPipeError, OSError) as error:
            raise ArmError("the driver's process is gone; the robot has stopped by itself") from error
        return self._receive()

    def _receive(self) -> Any:
        try:
            if not self._pipe.poll(ANSWER_S):
                raise ArmError(f"the driver has not answered for {ANSWER_S:.0f} s; use the robot's own stop")
            kind, value = self._pipe.recv()
        except (EOFError, ConnectionResetError) as error:
            raise ArmError("the driver's process is gone; the robot has stopped by itself") from error
        if kind == "error":
            raise ArmError(value)
        return value


def _serve(pipe: Connection, make_arm: Callable[[Any], Arm], config: Any, silence_s: float) -> None:
    """The driver's process: obey, and stop the arm when nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the session, which then asks us to stop
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(SystemExit(143)))
    try:
        arm = make_arm(config)
    except (ArmError, ImportError) as error:
        pipe.send(("error", str(error)))
        return
    try:
        pipe.send(("ok", None))
        moving = False
        while True:
            if not pipe.poll(silence_s if moving else None):
                arm.stop()
                moving = False
                continue
            method, arguments = pipe.recv()
            if method == "close":
                break
            try:
                value = getattr(arm, method)(*arguments)
                moving = method in ("begin", "exchange")
                pipe.send(("ok", value))
            except (ArmError, ValueError) as error:
                pipe.send(("error", str(error)))
    except (EOFError, ConnectionResetError, BrokenPipeError):
        pass  # the session is gone
    finally:
        arm.close()
    pipe.send(("ok", None))
