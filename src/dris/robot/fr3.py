"""An FR3 through franky-control: its C++ thread runs the impedance law at 1 kHz, Python sets references.

Import franky where it is used: it comes with the extra `fr3`.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from importlib import metadata
from typing import Any

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.core.validation import check_extra
from dris.robot.arm import ArmError, ArmState, Carried, RestsAlready, limits_of_urdf, masses_of_urdf
from dris.robot.fr3_config import Fr3Config
from dris.robot.payload import near, payload
from dris.robot.soft_stop import DAMPED_S, RAMP_S, stop_damping, wait_for_rest

_WHEEL = "franky-control"
READS = 3
"""Tries to read the state of an arm at rest; libfranka gives up after a second each."""
NEAR_RAD, STILL = 0.02, 0.05
"""An arm begins where it is [rad], at rest [rad/s]."""
BEGIN_S = 5.0
"""Longest until it obeys [s]."""
RECOVERED_S = 1.0
"""A robot that says that it has recovered is in no recovery by then [s]."""
LOAD_S = 1.0
"""A load that was declared is in the robot's state by then [s]."""
LEAST_ARRIVED, SETTLED_S = 0.9, 0.2
"""Of its last 100 commands so many must reach a robot that moves [design], once it has moved for so long [s]:
20 lost in a row stop it hard."""
STOP_S = 5.0
"""A soft stop's damping is waited for so long [s, wall clock]; a simulated robot may be slow."""


class Fr3:
    """One robot, connected."""

    def __init__(self, config: Fr3Config):
        """Connect, clear nothing, move nothing; the robot gets `Fr3Config.resting_thresholds`.

        Raises:
            ArmError: It does not answer, speaks another version, or refuses what it is told.
        """
        check_extra("franky", "fr3")
        import franky

        self._franky, self.config = franky, config
        how = franky.RealtimeConfig.Enforce if config.realtime else franky.RealtimeConfig.Ignore
        try:
            torque, force = config.resting_thresholds
            self._robot = franky.Robot(
                config.address,
                default_torque_threshold=torque,
                default_force_threshold=force,
                realtime_config=how,
            )
        except franky.IncompatibleVersionException as error:
            raise ArmError(
                f"the robot at {config.address} speaks another version than this libfranka ({error}): "
                "install the franky-control wheel for its server version, see its README"
            ) from error
        except franky.RealtimeException as error:
            raise ArmError(
                f"{error}: boot a real-time kernel; only a simulated robot does without"
            ) from error
        except franky.Exception as error:
            raise ArmError(
                f"no FCI answers at {config.address} ({error}): is the robot on, its joints unlocked, FCI "
                "activated, this machine in its network, and no other program connected to it?"
            ) from error
        self._motion: Any = None
        self._may_move = self._is_set_up = False
        self._began_s = 0.0
        self._model = self._robot.model  # read now, not when a moving arm is to stop
        self._error = ""

    @contextlib.contextmanager
    def _named(self, what: str) -> Any:
        try:
            yield
        except self._franky.Exception as error:
            raise ArmError(f"{what}: {error}") from error

    def limits(self) -> JointLimits:
        """As the robot's own model tells them."""
        return limits_of_urdf(str(self._robot.model_urdf))

    def masses(self) -> tuple[float, ...]:
        """As the robot's own model tells them [kg]."""
        return masses_of_urdf(str(self._robot.model_urdf))

    def versions(self) -> str:
        """Of franky and libfranka; FCI tells no other version of the robot than its server's."""
        found = f"franky-control {metadata.version(_WHEEL)}"
        names = [
            re.search(r"libfranka\b.*\.so\.([\d.]+)$", str(file)) for file in metadata.files(_WHEEL) or ()
        ]
        told = next((name[1] for name in names if name), "")
        library = f"libfranka {told}" if told else "a libfranka that does not tell its version"
        return f"{found} with {library}, whose server version the robot speaks, or it had not connected"

    def carries(self) -> Carried:
        """As its state tells."""
        found = self._read()
        return Carried(
            payload(found.m_ee, found.F_x_Cee, found.I_ee),
            payload(found.m_load, found.F_x_Cload, found.I_load),
        )

    def state(self) -> ArmState:
        """What it measured last, and why it does not or would not obey, if so."""
        if self._motion is not None and not self._robot.is_in_control:
            self._error = self._why_ended()
            self._motion = None
        found = self._read()
        error = self._error or (self._lost(found) if self._motion is not None else self._why_not(found))
        q, dq = np.array(found.q, dtype=float), np.array(found.dq, dtype=float)
        return ArmState(found.time.to_sec(), q, dq, self._motion is not None, error)

    def _why_ended(self) -> str:
        """What ended a motion that nobody stopped."""
        try:
            self._robot.join_motion(timeout=0.1)
        except (self._franky.Exception, RuntimeError) as error:
            return str(error)
        return "the motion ended by itself"

    def _lost(self, found: Any) -> str:
        """Whether a moving arm hears too few commands, and what to do; 0 is what it tells between motions."""
        arrived = found.control_command_success_rate
        if found.time.to_sec() - self._began_s < SETTLED_S or not 0 < arrived < LEAST_ARRIVED:
            return ""
        return (
            f"only {arrived:.2f} of the last commands reached the robot in time, {LEAST_ARRIVED} must: "
            "look at its cable, at the real-time kernel, and at what else runs on this machine"
        )

    def _why_not(self, found: Any) -> str:
        """What keeps an arm at rest from moving."""
        mode = self._franky.RobotMode
        said = {
            # A motion that has just ended may still be told of.
            **dict.fromkeys((mode.Idle, mode.Move), ""),
            mode.UserStopped: "the user stop is pressed: release it",
            mode.Guiding: "somebody guides the robot: let go of it",
            mode.Reflex: f"stopped by a reflex: {found.current_errors or found.last_motion_errors}",
            mode.AutomaticErrorRecovery: "the robot recovers from an error: wait until it has",
        }
        other = "as with locked joints: unlock them in Desk and activate FCI"
        return said.get(found.robot_mode, f"the robot is in mode {found.robot_mode.name}, {other}")

    def _read(self) -> Any:
        """The last state of a motion, or a new one; at rest a late one is waited for, a second each time."""
        for left in reversed(range(READS)):
            try:
                return self._robot.state
            except self._franky.NetworkException as error:
                if not left:
                    why = f"the robot has told nothing for {READS} s ({error}): check cable and power"
                    raise ArmError(why) from error
            except (self._franky.Exception, RuntimeError) as error:  # a lost connection is a plain one
                raise ArmError(f"the robot tells no state: {error}") from error

    def begin(self, reference: np.ndarray) -> None:
        """Start impedance control where the arm stands still.

        Raises:
            ArmError: It moves, is elsewhere, is stopped by somebody, or does not begin; then it is stopped.
        """
        now = self.state()
        if now.error:
            raise ArmError(now.error)
        off, fastest = float(np.abs(now.q - reference).max()), float(np.abs(now.dq).max())
        if not (off <= NEAR_RAD and fastest <= STILL):
            raise ArmError(
                f"the arm is {off:.3f} rad from where it should begin and moves at {fastest:.2f} rad/s: let "
                "go of it and connect again"
            )
        self._set_up()
        motion = self._franky.JointImpedanceTrackingMotion(
            stiffness=self.config.stiffness, damping=self.config.damping
        )
        motion.set_reference(self._franky.JointReference(q=reference))
        # From here on it may move, and is stopped if anything is wrong.
        self._motion, self._error, self._may_move = motion, "", True
        try:
            with self._named("the robot does not begin to move"):
                # Without the default low-pass at 100 Hz, which the law was not identified with.
                self._robot.move(motion, asynchronous=True, limit_rate=True, cutoff_frequency=1000.0)
            self._wait_for_control()
            self._began_s = self._read().time.to_sec()
        except BaseException as error:
            try:
                self.stop()
            except ArmError as moves:
                if isinstance(error, Exception):
                    raise ArmError(f"{error}; {moves}") from error
                _warn(str(moves))  # a signal to terminate goes on
            raise

    def _set_up(self) -> None:
        config, self._is_set_up = self.config, True
        with self._named("the robot refuses its settings"):
            self._robot.set_collision_behavior(list(config.torque_thresholds), [config.force_threshold] * 6)
            if config.payload.mass_kg > 0:
                load = config.payload
                self._robot.set_load(load.mass_kg, list(load.centre_in_flange), list(load.inertia))
        end = time.monotonic() + LOAD_S
        while not near(told := self.carries().load, config.payload):
            if time.monotonic() > end:
                raise ArmError(
                    f"the robot was told of a load of {config.payload.mass_kg:.2f} kg and says that it "
                    f"carries {told.mass_kg:.2f} kg at {np.round(told.centre_in_flange, 3).tolist()} m: "
                    "look at its settings in Desk"
                )
            time.sleep(0.005)

    def _wait_for_control(self) -> None:
        """Until the robot obeys: before that it has no state of a motion to tell."""
        end = time.monotonic() + BEGIN_S
        while not (self._robot.is_in_control and self._robot.state.robot_mode == self._franky.RobotMode.Move):
            if not self._robot.is_in_control and time.monotonic() > end - BEGIN_S + 0.5:
                raise ArmError(f"the robot does not begin to move: {self._why_ended()}")
            if time.monotonic() > end:
                raise ArmError(f"the robot has not begun to move after {BEGIN_S:.0f} s")
            time.sleep(0.001)

    def exchange(self, reference: np.ndarray) -> ArmState:
        """Set the reference; what a stopped arm is told is not kept for later."""
        state = self.state()
        if self._motion is not None:
            self._motion.set_reference(self._franky.JointReference(q=reference))
        return state

    def stop(self) -> None:
        """Brake by the torque controller, and wait until the arm rests, by what it measures.

        Raises:
            ArmError: It may still move; asked again, it is looked at again.
            RestsAlready: It rests, and a reflex or a user stop came meanwhile that nobody was told of.
        """
        if not self._may_move:
            return
        self._brake()
        wait_for_rest(self._read)
        self._motion, self._may_move = None, False
        found, mode = self._read(), self._franky.RobotMode
        if not self._error and found.robot_mode in (mode.Reflex, mode.UserStopped):
            raise RestsAlready(f"it rests, but not by this stop alone: {self._why_not(found)}")

    def _brake(self) -> None:
        """Until no motion runs; after a reflex or without a connection the robot brakes by itself."""
        if not self._robot.is_in_control:
            self._why_ended()
            return
        try:
            self._robot.move(self._stop_motion(), asynchronous=True)
            ended = self._robot.join_motion(timeout=STOP_S)
        except (self._franky.Exception, RuntimeError) as error:
            if self._robot.is_in_control:
                raise ArmError(f"the arm may still move ({error}): use the robot's own stop") from error
            return
        if not ended:
            raise ArmError(f"the arm has not come to rest in {STOP_S:.0f} s: use the robot's own stop")

    def _stop_motion(self) -> Any:
        """A soft stop; with franky's own damping where the arm does not tell how fast it is."""
        try:
            found = self._robot.state
            damping = stop_damping(np.array(found.dq), np.array(self._model.gravity(found)))
        except (self._franky.Exception, RuntimeError):
            return self._franky.TorqueStopMotion(max_duration=DAMPED_S)
        return self._franky.TorqueStopMotion(damping=damping, ramp_duration=RAMP_S, max_duration=DAMPED_S)

    def recover(self) -> bool:
        """Clear a reflex; a pressed stop stays until a person releases it."""
        try:
            recovered = bool(self._robot.recover_from_errors())
        except (self._franky.Exception, RuntimeError):
            return False
        if recovered:
            self._error = ""
            self._wait_out_recovery()
        return recovered

    def _wait_out_recovery(self) -> None:
        """States may come a little later than the answer that it is over."""
        end = time.monotonic() + RECOVERED_S
        recovering = self._franky.RobotMode.AutomaticErrorRecovery
        while self._read().robot_mode == recovering and time.monotonic() < end:
            time.sleep(0.005)

    def close(self) -> None:
        """Stop if it still moves, and leave the robot as whoever connects next may expect it.

        What goes wrong here is only told, not raised: it must not hide why the arm is closed.
        """
        try:
            self.stop()
        except ArmError as error:
            _warn(str(error))
        if self._is_set_up:
            self._reset()

    def _reset(self) -> None:
        """Take back what was set for moving: the robot would keep it for the next program."""
        config = self.config
        torque, force = config.resting_thresholds
        try:
            _ = self._robot.state  # refused in a second; a setting would be waited for without end
            self._robot.set_collision_behavior([torque] * 7, [force] * 6)
            if config.payload.mass_kg > 0:
                self._robot.set_load(0.0, [0.0] * 3, [0.0] * 9)
            self._is_set_up = False
        except (self._franky.Exception, RuntimeError) as error:
            _warn(
                f"the robot at {config.address} may have kept collision thresholds of "
                f"{max(config.torque_thresholds):g} Nm and {config.force_threshold:g} N, and a load of "
                f"{config.payload.mass_kg:g} kg ({error}): set them before another program moves it"
            )


def _warn(words: str) -> None:
    print(f"dris: {words}", file=sys.stderr, flush=True)
