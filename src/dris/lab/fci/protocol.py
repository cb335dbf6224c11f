"""Messages of Franka's control interface (FCI), server version 10: packed, little-endian, nothing else.

Commands go over TCP: a header (command, its number, size of the whole message) and a body. States of the
robot and commands for its next millisecond go over UDP. Layouts: libfranka-common (Apache-2.0), headers
service_types.h, rbk_types.h and error.h.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

import numpy as np

VERSION = 10
"""Of the server: system 5.9 and later, libfranka 0.18 and later."""
PORT = 1337
"""TCP; clients know no other."""


class Command(IntEnum):
    """What a client can ask for."""

    CONNECT = 0
    MOVE = 1
    STOP_MOVE = 2
    SET_COLLISION_BEHAVIOR = 3
    SET_JOINT_IMPEDANCE = 4
    SET_CARTESIAN_IMPEDANCE = 5
    SET_GUIDING_MODE = 6
    SET_EE_TO_K = 7
    SET_NE_TO_EE = 8
    SET_LOAD = 9
    AUTOMATIC_ERROR_RECOVERY = 10
    GET_ROBOT_MODEL = 11


class MoveStatus(IntEnum):
    """Answers to Move, of which a motion gets two: STARTED, and another at its end."""

    SUCCESS = 0
    STARTED = 1
    PREEMPTED = 2
    NOT_POSSIBLE = 5
    INVALID_ARGUMENT = 7
    REFLEX_ABORTED = 8
    EMERGENCY_ABORTED = 9
    INPUT_ERROR_ABORTED = 10
    ABORTED = 11


class SetStatus(IntEnum):
    """Answers to the commands that set something."""

    SUCCESS = 0
    NOT_POSSIBLE = 1
    INVALID_ARGUMENT = 2


class RecoveryStatus(IntEnum):
    """Answers to AutomaticErrorRecovery."""

    SUCCESS = 0
    NOT_POSSIBLE = 1
    MANUAL_RECOVERY_REQUIRED = 3
    EMERGENCY_ABORTED = 5
    ABORTED = 6


class ConnectStatus(IntEnum):
    """Answers to Connect."""

    SUCCESS = 0
    INCOMPATIBLE_VERSION = 1


class Controller(IntEnum):
    """Who computes torques. OTHER: no motion runs."""

    JOINT_IMPEDANCE = 0
    CARTESIAN_IMPEDANCE = 1
    EXTERNAL = 2
    OTHER = 3


class Generator(IntEnum):
    """What a motion is given as, as states have it; a Move counts from JOINT_POSITION = 0."""

    IDLE = 0
    JOINT_POSITION = 1
    JOINT_VELOCITY = 2
    CARTESIAN_POSITION = 3
    CARTESIAN_VELOCITY = 4
    NONE = 5


class Mode(IntEnum):
    """What the robot is doing."""

    OTHER = 0
    IDLE = 1
    MOVE = 2
    GUIDING = 3
    REFLEX = 4
    USER_STOPPED = 5
    RECOVERY = 6


ERRORS = (
    "joint_position_limits_violation",
    "cartesian_position_limits_violation",
    "self_collision_avoidance_violation",
    "joint_velocity_violation",
    "cartesian_velocity_violation",
    "force_control_safety_violation",
    "joint_reflex",
    "cartesian_reflex",
    "max_goal_pose_deviation_violation",
    "max_path_pose_deviation_violation",
    "cartesian_velocity_profile_safety_violation",
    "joint_position_motion_generator_start_pose_invalid",
    "joint_motion_generator_position_limits_violation",
    "joint_motion_generator_velocity_limits_violation",
    "joint_motion_generator_velocity_discontinuity",
    "joint_motion_generator_acceleration_discontinuity",
    "cartesian_position_motion_generator_start_pose_invalid",
    "cartesian_motion_generator_elbow_limit_violation",
    "cartesian_motion_generator_velocity_limits_violation",
    "cartesian_motion_generator_velocity_discontinuity",
    "cartesian_motion_generator_acceleration_discontinuity",
    "cartesian_motion_generator_elbow_sign_inconsistent",
    "cartesian_motion_generator_start_elbow_invalid",
    "force_controller_desired_force_tolerance_violation",
    "start_elbow_sign_inconsistent",
    "communication_constraints_violation",
    "power_limit_violation",
    "cartesian_motion_generator_joint_position_limits_violation",
    "cartesian_motion_generator_joint_velocity_limits_violation",
    "cartesian_motion_generator_joint_velocity_discontinuity",
    "cartesian_motion_generator_joint_acceleration_discontinuity",
    "cartesian_position_motion_generator_invalid_frame_flag",
    "controller_torque_discontinuity",
    "joint_p2p_insufficient_torque_for_planning",
    "tau_J_range_violation",
    "instability_detected",
    "joint_move_in_wrong_direction",
    "cartesian_spline_motion_generator_violation",
    "joint_via_motion_generator_planning_joint_limit_violation",
    "base_acceleration_initialization_timeout",
    "base_acceleration_invalid_reading",
)
"""Names of the error flags, by their place."""

_POSE, _F4, _F8 = (16,), "<f4", "<f8"
_JOINT_FIELDS = ("tau_J", "tau_J_d", "dtau_J", "q", "q_d", "dq", "dq_d", "ddq_d")
ROBOT_STATE = np.dtype(
    [
        ("message_id", "<u8"),
        *((name, _F4, _POSE) for name in ("O_T_EE", "O_T_EE_d", "F_T_EE", "EE_T_K", "F_T_NE", "NE_T_EE")),
        *(("m_ee", _F4), ("I_ee", _F4, (9,)), ("F_x_Cee", _F4, (3,))),
        *(("m_load", _F4), ("I_load", _F4, (9,)), ("F_x_Cload", _F4, (3,))),
        *(("elbow", _F4, (2,)), ("elbow_d", _F4, (2,))),
        *((name, _F4, (7,)) for name in _JOINT_FIELDS),
        *(("joint_contact", _F4, (7,)), ("cartesian_contact", _F4, (6,))),
        *(("joint_collision", _F4, (7,)), ("cartesian_collision", _F4, (6,))),
        *(("tau_ext_hat_filtered", _F4, (7,)), ("O_F_ext_hat_K", _F4, (6,)), ("K_F_ext_hat_K", _F4, (6,))),
        *(("O_dP_EE_d", _F4, (6,)), ("O_ddP_O", _F4, (3,))),
        *((name, _F4, (2,)) for name in ("elbow_c", "delbow_c", "ddelbow_c")),
        *(("O_T_EE_c", _F4, _POSE), ("O_dP_EE_c", _F4, (6,)), ("O_ddP_EE_c", _F4, (6,))),
        *(("theta", _F4, (7,)), ("dtheta", _F4, (7,))),
        *(("accelerometer_top", _F4, (6, 3)), ("accelerometer_bottom", _F4, (6, 3))),
        *(("motion_generator_mode", "u1"), ("controller_mode", "u1")),
        *(("errors", "?", (len(ERRORS),)), ("reflex_reason", "?", (len(ERRORS),))),
        *(("robot_mode", "u1"), ("control_command_success_rate", _F4)),
    ]
)
"""From the robot, every millisecond. Matrices stand column by column."""
ROBOT_COMMAND = np.dtype(
    [
        ("message_id", "<u8"),
        *(("q_c", _F8, (7,)), ("dq_c", _F8, (7,)), ("O_T_EE_c", _F8, _POSE), ("O_dP_EE_c", _F8, (6,))),
        *(("elbow_c", _F8, (2,)), ("valid_elbow", "?"), ("motion_finished", "?")),
        *(("tau_J_d", _F8, (7,)), ("torque_finished", "?")),
    ]
)
"""From the client, in answer to the state of the same message_id."""

HEADER = struct.Struct("<III")
REQUESTS: dict[Command, np.dtype] = {
    Command.CONNECT: np.dtype([("version", "<u2"), ("udp_port", "<u2")]),
    Command.MOVE: np.dtype(
        [
            *(("controller", "<u4"), ("generator", "<u4")),
            *(("path_deviation", _F8, (3,)), ("goal_deviation", _F8, (3,))),
            *(("asynchronous", "?"), ("largest_velocity", _F8, (7,))),
        ]
    ),
    Command.STOP_MOVE: np.dtype([]),
    Command.SET_COLLISION_BEHAVIOR: np.dtype(
        [
            # Each as (lower, upper); "acceleration" is for when the robot speeds up or slows down.
            *(("torque_acceleration", _F8, (2, 7)), ("torque_nominal", _F8, (2, 7))),
            *(("force_acceleration", _F8, (2, 6)), ("force_nominal", _F8, (2, 6))),
        ]
    ),
    Command.SET_JOINT_IMPEDANCE: np.dtype([("stiffness", _F8, (7,))]),
    Command.SET_CARTESIAN_IMPEDANCE: np.dtype([("stiffness", _F8, (6,))]),
    Command.SET_GUIDING_MODE: np.dtype([("axes", "?", (6,)), ("nullspace", "?")]),
    Command.SET_EE_TO_K: np.dtype([("pose", _F8, _POSE)]),
    Command.SET_NE_TO_EE: np.dtype([("pose", _F8, _POSE)]),
    Command.SET_LOAD: np.dtype([("mass", _F8), ("centre", _F8, (3,)), ("inertia", _F8, (9,))]),
    Command.AUTOMATIC_ERROR_RECOVERY: np.dtype([]),
    Command.GET_ROBOT_MODEL: np.dtype([]),
}
"""Bodies of requests."""


class ProtocolError(ValueError):
    """Bytes that are no message."""


class Request(NamedTuple):
    """A command of a client."""

    command: Command
    number: int
    body: np.ndarray
    """One record of the command's layout."""


def take_request(received: bytearray) -> Request | None:
    """Take the first whole request off the bytes that were received; None if it is not whole yet.

    Raises:
        ProtocolError: These bytes are not the beginning of a request.
    """
    if len(received) < HEADER.size:
        return None
    code, number, size = HEADER.unpack_from(received)
    if code not in Command.__members__.values():
        raise ProtocolError(f"there is no command {code}; known: 0 to {len(Command) - 1}")
    command = Command(code)
    expected = HEADER.size + REQUESTS[command].itemsize
    if size != expected:
        raise ProtocolError(f"{command.name} has {expected} bytes, got {size}")
    if len(received) < size:
        return None
    body = np.zeros((), REQUESTS[command])
    if body.nbytes:
        body = np.frombuffer(bytes(received[HEADER.size : size]), REQUESTS[command])[0]
    del received[:size]
    return Request(command, number, body)


def response(request: Request, status: int, rest: bytes = b"") -> bytes:
    """The answer to a request: its command and number, a status and what belongs to it."""
    size = HEADER.size + 1 + len(rest)
    return HEADER.pack(request.command, request.number, size) + bytes([status]) + rest


def connect_response(request: Request, status: ConnectStatus, version: int) -> bytes:
    """The answer to Connect, which names the server's version."""
    return response(request, status, struct.pack("<H", version))


def decode_command(datagram: bytes) -> np.ndarray:
    """A client's command for the robot's next millisecond, as a record of `ROBOT_COMMAND`.

    Raises:
        ProtocolError: It has another size.
    """
    if len(datagram) != ROBOT_COMMAND.itemsize:
        raise ProtocolError(f"a robot command has {ROBOT_COMMAND.itemsize} bytes, got {len(datagram)}")
    return np.frombuffer(datagram, ROBOT_COMMAND)[0]
