"""The robot's control cabinet without its network: modes, motions, reflexes, recovery and settings.

Requests come in and answers go out; a `tick` takes the client's command for one millisecond, or none, and
lets it pass. Nothing here knows of sockets or faults.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dris.lab.fci import limits
from dris.lab.fci.limits import Reference
from dris.lab.fci.plant import FLANGE, Plant
from dris.lab.fci.protocol import (
    Command,
    Controller,
    Generator,
    Mode,
    MoveStatus,
    RecoveryStatus,
    Request,
    SetStatus,
    response,
)
from dris.lab.fci.settings import Refused, Settings
from dris.lab.fci.urdf import arm_urdf
from dris.lab.model import JOINTS
from dris.lab.twin import TICK_S

MOST_LOST = 20
"""So many states in a row without a command stop a motion."""
RATE_WINDOW = 100
"""Milliseconds that the success rate of commands is told over."""
STANDING = 0.01
"""No joint is faster [rad/s] [assumed]."""
START_MS = 1000
"""So long a started motion may wait for its first command [assumed]."""


@dataclass
class Motion:
    """One that runs."""

    request: Request
    controller: Controller
    generator: Generator
    torque: np.ndarray = field(default_factory=lambda: np.zeros(JOINTS))
    """[7] last command, without gravity, as states tell it [Nm]."""
    commanded: bool = False
    """Whether the client has begun to send commands."""
    waited: int = 0
    """Milliseconds before it did."""
    lost: int = 0
    """In a row, since the last command."""
    arrived: deque[bool] = field(default_factory=lambda: deque(maxlen=RATE_WINDOW))


class Cabinet:
    """An FR3's Control in front of a plant."""

    def __init__(self, plant: Plant, tell: Callable[[str], None] = lambda line: None):
        """Idle, brakes open.

        Args:
            plant: The robot.
            tell: Gets a line when something happens.
        """
        self.plant = plant
        self.settings = Settings()
        self.mode = Mode.IDLE
        self.motion: Motion | None = None
        self.errors: tuple[str, ...] = ()
        """That keep the robot from moving until it recovers."""
        self.last_errors: tuple[str, ...] = ()
        """Of the last motion."""
        self.reflexes: list[tuple[str, ...]] = []
        """All so far."""
        self.recoveries = 0
        self._recovery: Request | None = None
        self._tell = tell
        self._apply_settings()
        self._urdf = arm_urdf(plant.model, plant.limits, FLANGE).encode()

    @property
    def success_rate(self) -> float:
        """Share of the last states of a motion that were answered in time."""
        arrived = self.motion.arrived if self.motion else ()
        return arrived.count(True) / len(arrived) if arrived else 0.0

    # Requests

    def answer(self, request: Request) -> bytes:
        """Do what a client asks for, but Connect, which is the server's."""
        if request.command == Command.GET_ROBOT_MODEL:
            return response(request, SetStatus.SUCCESS, self._urdf)
        if request.command == Command.MOVE:
            return response(request, self._start(request))
        if request.command == Command.AUTOMATIC_ERROR_RECOVERY:
            return self._recover(request)
        if request.command == Command.STOP_MOVE:
            ended = self.end(MoveStatus.PREEMPTED) if self.motion else b""
            return response(request, 0) + ended
        return response(request, self._set(request))

    def _start(self, request: Request) -> MoveStatus:
        controller, generator = int(request.body["controller"]), int(request.body["generator"]) + 1
        if self.mode != Mode.IDLE:
            self._tell(f"move refused: the robot is in mode {self.mode.name.lower()}")
            return MoveStatus.NOT_POSSIBLE
        known = {
            (Controller.EXTERNAL, Generator.NONE),
            (Controller.JOINT_IMPEDANCE, Generator.JOINT_POSITION),
            (Controller.JOINT_IMPEDANCE, Generator.JOINT_VELOCITY),
        }
        if (controller, generator) not in known or request.body["asynchronous"]:
            self._tell(
                f"move refused: controller {controller} with generator {generator} is not there; known: "
                "torques, and joint positions or velocities under joint impedance"
            )
            return MoveStatus.NOT_POSSIBLE
        self.motion = Motion(request, Controller(controller), Generator(generator))
        self.mode, self.last_errors = Mode.MOVE, ()
        self._tell(f"motion: {self.motion.controller.name.lower()}, {self.motion.generator.name.lower()}")
        return MoveStatus.STARTED

    def _recover(self, request: Request) -> bytes:
        """Begin to recover; the answer comes when the arm stands still."""
        joints, q = self.plant.limits.joints, self.plant.q
        if self.mode == Mode.USER_STOPPED:
            return response(request, RecoveryStatus.EMERGENCY_ABORTED)
        if self.motion is not None or self._recovery is not None:
            return response(request, RecoveryStatus.NOT_POSSIBLE)
        if (q < joints.low).any() or (q > joints.high).any():
            self._tell("recovery refused: a joint is outside its range and must be led back by hand")
            return response(request, RecoveryStatus.MANUAL_RECOVERY_REQUIRED)
        self._recovery, self.mode = request, Mode.RECOVERY
        self._settle()
        return b""

    def _settle(self) -> None:
        """End a recovery if the arm stands still."""
        if self.mode != Mode.RECOVERY or np.abs(self.plant.dq).max() > STANDING:
            return
        if self.errors:
            self.recoveries += 1
            self._tell(f"recovered from {', '.join(self.errors)}")
        self.mode, self.errors = Mode.IDLE, ()

    def _recovery_answer(self) -> bytes:
        """The answer to a recovery that has ended, once a state has told of its end."""
        return b"" if self.mode == Mode.RECOVERY else self._end_recovery(RecoveryStatus.SUCCESS)

    def _end_recovery(self, status: RecoveryStatus) -> bytes:
        """The answer that a recovery still waits for, if there is one."""
        request, self._recovery = self._recovery, None
        return response(request, status) if request is not None else b""

    def _set(self, request: Request) -> SetStatus:
        if self.motion is not None:
            return SetStatus.NOT_POSSIBLE
        try:
            self.settings = self.settings.changed(request)
        except Refused as error:
            self._tell(f"{request.command.name.lower()} refused: {error}")
            return SetStatus.INVALID_ARGUMENT
        self._apply_settings()
        return SetStatus.SUCCESS

    def _apply_settings(self) -> None:
        plant, settings = self.plant, self.settings
        plant.stiffness, plant.force_point = settings.joint_stiffness, settings.flange_to_stiffness()[:3, 3]
        plant.load_mass, plant.load_centre = settings.load_mass, settings.load_centre

    # Ends of a motion

    def end(self, status: MoveStatus) -> bytes:
        """End the motion: the arm brakes and holds. Returns the answer that its Move still waits for."""
        if self.motion is None:
            return b""
        request, self.motion = self.motion.request, None
        self.plant.hold()
        if self.mode == Mode.MOVE:
            self.mode = Mode.IDLE
        self._tell(f"motion ended: {status.name.lower()}")
        return response(request, status)

    def abort(self) -> bytes:
        """End whatever runs, because the client or the server goes. Returns the answers still waited for."""
        if self.mode == Mode.RECOVERY:
            self.mode = Mode.REFLEX if self.errors else Mode.IDLE
        return self._end_recovery(RecoveryStatus.ABORTED) + self.end(MoveStatus.ABORTED)

    def reflex(self, errors: tuple[str, ...]) -> bytes:
        """Stop for errors."""
        self.errors = self.last_errors = errors
        self.reflexes.append(errors)
        self.mode = Mode.REFLEX
        self._tell(f"reflex: {', '.join(errors)}")
        return self.end(MoveStatus.REFLEX_ABORTED)

    def user_stop(self, pressed: bool) -> bytes:
        """Somebody presses the user stop, or lets it go."""
        if pressed == (self.mode == Mode.USER_STOPPED):
            return b""
        self._tell("user stop pressed" if pressed else "user stop released")
        if pressed:
            self.mode = Mode.USER_STOPPED
            return self._end_recovery(RecoveryStatus.EMERGENCY_ABORTED) + self.end(
                MoveStatus.EMERGENCY_ABORTED
            )
        self.mode = Mode.REFLEX if self.errors else Mode.IDLE
        return b""

    # Milliseconds

    def tick(self, command: np.ndarray | None) -> bytes:
        """Let a millisecond pass under a command, or none.

        Returns:
            Answers to a Move and a recovery that have ended.
        """
        answers = self._recovery_answer()
        answers += self._obey(command) if self.motion else b""
        if self.motion is None:
            self.plant.advance_held()
            self._settle()
            return answers
        errors = limits.motion_errors(self.plant.moment, self.plant.limits, self.settings.thresholds)
        return answers + (self.reflex(errors) if errors else b"")

    def _obey(self, command: np.ndarray | None) -> bytes:
        """Drive the plant a millisecond on; if the motion ends before, leave that to `tick`."""
        motion = self.motion
        assert motion is not None
        if command is None:
            refused = self._miss(motion)
            if refused:
                return self.reflex(refused)
        else:
            motion.lost, motion.commanded = 0, True
            motion.arrived.append(True)
        torques = motion.controller == Controller.EXTERNAL
        if command is not None and (command["torque_finished"] if torques else command["motion_finished"]):
            return self.end(MoveStatus.SUCCESS)
        return self._drive(motion, command) if torques else self._follow(motion, command)

    def _miss(self, motion: Motion) -> tuple[str, ...]:
        """Count a state without a command; errors if there were too many."""
        if motion.commanded:
            motion.arrived.append(False)
            motion.lost += 1
        else:
            motion.waited += 1
        missing = motion.lost >= MOST_LOST or motion.waited >= START_MS
        return ("communication_constraints_violation",) if missing else ()

    def _drive(self, motion: Motion, command: np.ndarray | None) -> bytes:
        if not motion.commanded:
            self.plant.advance_held()
            return b""
        if command is not None:
            torque = command["tau_J_d"]
            if not limits.sensible(torque):
                return self.end(MoveStatus.INPUT_ERROR_ABORTED)
            errors = limits.torque_errors(torque, motion.torque, self.plant.gravity, self.plant.limits)
            if errors:
                return self.reflex(errors)
            # States tell it in single precision, and that is what a client limits its change by.
            motion.torque = torque.astype(np.float32).astype(float)
        self.plant.advance_with(motion.torque)
        return b""

    def _follow(self, motion: Motion, command: np.ndarray | None) -> bytes:
        plant, last = self.plant, self.plant.reference
        if not motion.commanded:
            plant.advance_held()
            return b""
        if command is None:
            plant.advance_to(last.going_on())
            return b""
        name = "q_c" if motion.generator == Generator.JOINT_POSITION else "dq_c"
        wished = command[name]
        if not limits.sensible(wished):
            return self.end(MoveStatus.INPUT_ERROR_ABORTED)
        first = len(motion.arrived) == 1
        if name == "q_c" and first:
            errors = limits.start_errors(wished, last.q, plant.limits)
            new = Reference(wished.copy(), np.zeros(JOINTS), np.zeros(JOINTS))
        else:
            new = last.then(wished.copy() if name == "q_c" else last.q + TICK_S * wished)
            errors = limits.reference_errors(new, last, plant.limits)
        if errors:
            return self.reflex(errors)
        plant.advance_to(new)
        return b""
