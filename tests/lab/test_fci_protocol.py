"""Messages against sizes and places counted by hand from the published layouts."""

import struct

import numpy as np
import pytest

from dris.lab.fci import protocol
from dris.lab.fci.protocol import (
    ERRORS,
    HEADER,
    REQUESTS,
    ROBOT_COMMAND,
    ROBOT_STATE,
    Command,
    ConnectStatus,
    Generator,
    ProtocolError,
    Request,
    connect_response,
    decode_command,
    response,
    take_request,
)


def test_sizes():
    assert ROBOT_STATE.itemsize == 8 + 320 * 4 + 2 + 41 + 41 + 1 + 4 == 1377
    assert ROBOT_COMMAND.itemsize == 8 + (7 + 7 + 16 + 6 + 2) * 8 + 2 + 7 * 8 + 1 == 371
    bodies = {command.name: layout.itemsize for command, layout in REQUESTS.items()}
    assert bodies == {
        "CONNECT": 4,
        "MOVE": 2 * 4 + 6 * 8 + 1 + 7 * 8,  # 113
        "STOP_MOVE": 0,
        "SET_COLLISION_BEHAVIOR": 52 * 8,
        "SET_JOINT_IMPEDANCE": 7 * 8,
        "SET_CARTESIAN_IMPEDANCE": 6 * 8,
        "SET_GUIDING_MODE": 7,
        "SET_EE_TO_K": 16 * 8,
        "SET_NE_TO_EE": 16 * 8,
        "SET_LOAD": 13 * 8,
        "AUTOMATIC_ERROR_RECOVERY": 0,
        "GET_ROBOT_MODEL": 0,
    }
    assert bodies["MOVE"] == 113 and list(REQUESTS) == list(Command)


def test_places_in_a_state():
    """Floats before a field, counted from the published order."""
    floats = {
        "O_T_EE": 0,
        "EE_T_K": 3 * 16,
        "m_ee": 6 * 16,
        "I_load": 96 + 13 + 1,
        "elbow": 96 + 26,
        "tau_J": 126,
        "tau_J_d": 133,
        "q": 147,
        "dq": 161,
        "tau_ext_hat_filtered": 126 + 8 * 7 + 26,
        "O_ddP_O": 208 + 7 + 6 + 6 + 6,
        "O_T_EE_c": 233 + 3 + 6,
        "theta": 242 + 16 + 12,
        "accelerometer_bottom": 270 + 14 + 18,
    }
    for name, before in floats.items():
        assert ROBOT_STATE.fields[name][1] == 8 + 4 * before, name
    after = 8 + 320 * 4
    for name, offset in {
        "motion_generator_mode": 0,
        "controller_mode": 1,
        "errors": 2,
        "reflex_reason": 43,
        "robot_mode": 84,
        "control_command_success_rate": 85,
    }.items():
        assert ROBOT_STATE.fields[name][1] == after + offset, name


def test_a_command_as_a_client_packs_it():
    packed = struct.pack(
        "<Q7d7d16d6d2d??7d?", 12345, *range(38), True, False, *(0.5 * k for k in range(7)), True
    )
    command = decode_command(packed)
    assert command["message_id"] == 12345
    np.testing.assert_array_equal(command["dq_c"], range(7, 14))
    np.testing.assert_array_equal(command["elbow_c"], (36, 37))
    np.testing.assert_array_equal(command["tau_J_d"], 0.5 * np.arange(7))
    assert command["valid_elbow"] and not command["motion_finished"] and command["torque_finished"]
    with pytest.raises(ProtocolError, match="371 bytes, got 370"):
        decode_command(packed[:-1])


def test_errors_have_their_published_places():
    assert len(ERRORS) == len(set(ERRORS)) == 41
    for place, name in {
        0: "joint_position_limits_violation",
        3: "joint_velocity_violation",
        4: "cartesian_velocity_violation",
        6: "joint_reflex",
        7: "cartesian_reflex",
        25: "communication_constraints_violation",
        26: "power_limit_violation",
        32: "controller_torque_discontinuity",
        34: "tau_J_range_violation",
        35: "instability_detected",
    }.items():
        assert ERRORS[place] == name


def test_requests_come_in_pieces_and_several_at_once():
    connect = struct.pack("<IIIHH", 0, 5, 16, 10, 40001)
    stop = struct.pack("<III", 2, 6, 12)
    received = bytearray()
    found = []
    for byte in connect + stop:
        received.append(byte)
        if (request := take_request(received)) is not None:
            found.append(request)
    assert [(one.command, one.number) for one in found] == [(Command.CONNECT, 5), (Command.STOP_MOVE, 6)]
    assert (found[0].body["version"], found[0].body["udp_port"]) == (10, 40001)
    assert received == b""
    both = bytearray(connect + stop)
    assert take_request(both) is not None and both == stop


def test_a_move_as_a_client_packs_it():
    packed = struct.pack("<III II 3d 3d ? 7d".replace(" ", ""), 1, 9, 125, 2, 4, *range(6), True, *range(7))
    request = take_request(bytearray(packed))
    assert request.body["controller"] == 2 and Generator(request.body["generator"] + 1) is Generator.NONE
    np.testing.assert_array_equal(request.body["goal_deviation"], (3, 4, 5))
    assert request.body["asynchronous"]
    np.testing.assert_array_equal(request.body["largest_velocity"], range(7))


def test_collision_thresholds_come_lower_before_upper():
    packed = HEADER.pack(3, 1, 428) + struct.pack("<52d", *range(52))
    thresholds = take_request(bytearray(packed)).body
    np.testing.assert_array_equal(thresholds["torque_nominal"][1], range(21, 28))
    np.testing.assert_array_equal(thresholds["force_nominal"][1], range(46, 52))


@pytest.mark.parametrize(
    ("header", "words"),
    [((12, 0, 12), "no command 12"), ((1, 0, 12), "MOVE has 125 bytes, got 12"), ((2, 0, 0), "got 0")],
)
def test_other_bytes_are_refused_by_name(header, words):
    with pytest.raises(ProtocolError, match=words):
        take_request(bytearray(HEADER.pack(*header)))


def test_answers():
    request = Request(Command.MOVE, 77, np.zeros((), REQUESTS[Command.MOVE]))
    assert response(request, 8) == struct.pack("<IIIB", 1, 77, 13, 8)
    connect = Request(Command.CONNECT, 3, np.zeros((), REQUESTS[Command.CONNECT]))
    wrong = connect_response(connect, ConnectStatus.INCOMPATIBLE_VERSION, 9)
    assert wrong == struct.pack("<IIIBH", 0, 3, 15, 1, 9)
    assert (protocol.VERSION, protocol.PORT) == (10, 1337)
