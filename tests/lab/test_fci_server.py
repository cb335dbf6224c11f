"""The server against a client of raw bytes: lockstep, manners, garbage and faults."""

import math
import os
import socket
import struct
from dataclasses import replace

import numpy as np
import pytest
from fci import RawClient, Served, command, plant

from dris.lab.fci import server as server_module
from dris.lab.fci.faults import Faults, Line, within
from dris.lab.fci.protocol import HEADER, PORT, REQUESTS, Command, Generator, Mode
from dris.lab.fci.server import Server
from dris.lab.fci.server_config import ServerConfig

FAST = {"pace": math.inf, "patience_s": 0.9}


def test_a_session_from_connect_to_the_end_of_a_motion():
    with Served("127.0.1.1", **FAST) as served:
        client = RawClient("127.0.1.1")
        assert client.connected == (0, struct.pack("<H", 10))
        first, second = client.state(), client.state()
        assert second["message_id"] == first["message_id"] + 1 and first["robot_mode"] == Mode.IDLE
        code, urdf = client.ask(Command.GET_ROBOT_MODEL)
        assert code == 0 and urdf.startswith(b"<robot") and urdf.count(b"position_based_velocity") == 7
        state = client.start()
        assert state["motion_generator_mode"] == Generator.NONE and state["robot_mode"] == Mode.MOVE
        before = replace(served.server.counts)
        for k in range(50):
            client.command(state, tau_J_d=[min(0.5 * k, 4.0)] + [0] * 6)
            newer = client.state()
            assert newer["message_id"] == state["message_id"] + 1
            state = newer
        assert state["tau_J_d"][0] == 4.0 and state["q"][0] > 1e-3
        client.command(state, torque_finished=True)
        assert client.answer()[0] == 0
        counts = served.server.counts
        assert counts.commands - before.commands == 51 and counts.stale == before.stale
        assert counts.missed == before.missed
        client.close()
        served.wait_for(lambda: "client left: connection closed" in served.said)


def test_lockstep_waits_for_the_client():
    """Robot time stands while a command is waited for, as long as patience allows."""
    with Served("127.0.1.1", **FAST) as served:
        client = RawClient("127.0.1.1")
        state = client.start()
        ticks = served.server.counts.ticks
        client.udp.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.state()
        assert served.server.counts.ticks == ticks
        client.command(state)
        assert client.state()["message_id"] == state["message_id"] + 1
        client.close()


def test_a_silent_client_is_stopped_after_twenty_states():
    with Served("127.0.1.1", patience_s=0.01, pace=math.inf) as served:
        client = RawClient("127.0.1.1")
        client.start()
        assert client.answer()[0] == 8
        served.wait_for(lambda: served.server.counts.missed >= 20)
        assert served.server.cabinet.reflexes == [("communication_constraints_violation",)]
        assert client.latest()["robot_mode"] == Mode.REFLEX
        assert client.ask(Command.AUTOMATIC_ERROR_RECOVERY)[0] == 0
        assert client.latest()["robot_mode"] == Mode.IDLE
        client.close()


def test_commands_to_other_states_do_not_count():
    with Served("127.0.1.1", **FAST) as served:
        client = RawClient("127.0.1.1")
        state = client.start()
        before, old = served.server.counts.stale, state.copy()
        for shift in (-1, 1000):  # one that is late, one that cannot be
            old["message_id"] = int(state["message_id"]) + shift
            client.command(old, tau_J_d=[0.9] * 7)
        client.command(state, tau_J_d=[0.1] * 7)
        np.testing.assert_array_equal(client.state()["tau_J_d"], np.float32(0.1))
        assert served.server.counts.stale == before + 2
        client.close()


def test_one_client_at_a_time_and_the_next_when_it_has_gone():
    with Served("127.0.1.1") as served:
        first = RawClient("127.0.1.1")
        with pytest.raises(OSError):  # reset
            RawClient("127.0.1.1")
        assert served.server.counts.refused == 1
        assert first.latest()["robot_mode"] == Mode.IDLE
        for _ in range(5):  # at once after the one before
            first.close()
            first = RawClient("127.0.1.1")
            assert first.connected[0] == 0
        first.close()


def test_a_client_that_dies_in_a_motion_leaves_a_robot_that_stops():
    with Served("127.0.1.1", **FAST) as served:
        client = RawClient("127.0.1.1")
        state = client.start()
        for _ in range(60):
            client.command(state, tau_J_d=state["tau_J_d"] + np.array([0.5] + [0] * 6))
            state = client.state()
        assert state["dq"][0] > 0.3
        died = served.server.clock_ms
        client.close()
        served.wait_for(lambda: served.server.cabinet.motion is None)
        served.wait_for(lambda: np.abs(served.robot.dq).max() < 0.01)
        assert served.server.clock_ms - died < 400
        assert served.server.cabinet.mode is Mode.IDLE
        again = RawClient("127.0.1.1")
        assert again.start()["robot_mode"] == Mode.MOVE
        again.close()


@pytest.mark.parametrize("version", [5, 9, 11])
def test_another_version_is_refused_by_number(version):
    with Served("127.0.1.1") as served:
        client = RawClient("127.0.1.1", version=version)
        assert client.connected == (1, struct.pack("<H", 10))
        assert f"client of version {version} refused: the server's is 10" in served.said
        client.close()


GARBAGE = {
    "no command": struct.pack("<III", 99, 0, 12),
    "size of another": struct.pack("<III", 1, 0, 12),
    "huge": struct.pack("<III", 1, 0, 2**32 - 1),
    "text": b"GET / HTTP/1.1\r\nHost: robot\r\n\r\n",
    "before connect": struct.pack("<III", 11, 0, 12),
    "no port": struct.pack("<IIIHH", 0, 0, 16, 10, 0),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_bytes_that_are_no_request_close_the_connection(garbage):
    with Served("127.0.1.1") as served:
        raw = socket.create_connection(("127.0.1.1", PORT), timeout=5)
        raw.sendall(garbage)
        with pytest.raises(OSError, match="."):
            if raw.recv(64) == b"":
                raise ConnectionError("closed")
        raw.close()
        assert served.server.counts.malformed == 1
        client = RawClient("127.0.1.1")  # the next is served
        assert client.connected[0] == 0
        client.close()


def test_random_bytes_never_stop_the_server():
    generator = np.random.default_rng(1)
    with Served("127.0.1.1") as served:
        for _ in range(40):
            raw = socket.create_connection(("127.0.1.1", PORT), timeout=5)
            kind = generator.integers(0, 12)
            size = HEADER.size + int(generator.integers(0, 500))
            head = HEADER.pack(kind, 1, size) if generator.random() < 0.7 else b""
            raw.sendall(head + generator.bytes(size))
            raw.close()
        client = RawClient("127.0.1.1")
        assert client.connected[0] == 0 and client.start()["robot_mode"] == Mode.MOVE
        client.close()
        assert served.server.counts.malformed > 0


def test_well_formed_requests_of_random_numbers_never_stop_the_server():
    generator = np.random.default_rng(2)
    with Served("127.0.1.1"):
        client = RawClient("127.0.1.1")
        for number in range(200):
            what = list(Command)[int(generator.integers(1, 11))]
            data = generator.bytes(REQUESTS[what].itemsize)
            client.tcp.sendall(HEADER.pack(what, number, HEADER.size + len(data)) + data)
            assert client.answer()[0] in (0, 1, 2, 3, 5)
        client.close()


def test_datagrams_that_are_no_command_are_counted_and_left():
    with Served("127.0.1.1", **FAST) as served:
        client = RawClient("127.0.1.1")
        state = client.start()
        before = served.server.counts.stale
        for size in (0, 1, 370, 372, 2000, 60000):
            client.udp.sendto(os.urandom(size), client.robot)
        stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        stranger.bind(("127.0.0.1", 0))
        stranger.sendto(command(state["message_id"], tau_J_d=[0.9] * 7).tobytes(), client.robot)
        client.command(state, tau_J_d=[0.2] * 7)
        np.testing.assert_array_equal(client.state()["tau_J_d"], np.float32(0.2))
        assert served.server.counts.malformed == 6 and served.server.counts.stale == before + 1
        stranger.close()
        client.close()


def test_robot_time_keeps_its_pace_and_does_not_catch_up(monkeypatch):
    """A clock of the test's own: a slow callback of 50 ms, then nine milliseconds that take nine."""

    class Clock:
        now = 100.0

        def perf_counter(self):
            return self.now

        def sleep(self, seconds):
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(server_module, "time", clock)
    slow = iter([0.05])
    with Server(
        plant(), ServerConfig(address="127.0.1.1"), on_tick=lambda: clock.sleep(next(slow, 0))
    ) as one:
        for _ in range(10):
            one.step()
    assert clock.now == pytest.approx(100.0 + 0.050 + 9 * 0.001)


def test_the_end_of_the_server_ends_a_motion():
    served = Served("127.0.1.1", patience_s=0.5)
    with served:
        client = RawClient("127.0.1.1")
        client.start()
    assert client.answer()[0] == 11  # aborted
    with pytest.raises(ConnectionError):
        client.answer()
    client.close()
    with Served("127.0.1.1"):  # the port is free again
        pass


@pytest.mark.parametrize("address", ["0.0.0.0", "192.168.1.5", "::1", "robot", "8.8.8.8", ""])
def test_addresses_that_others_can_reach_are_refused(address):
    with pytest.raises(ValueError, match="must be a loopback address"):
        ServerConfig(address=address)


@pytest.mark.parametrize("values", [{"pace": 0}, {"pace": math.nan}, {"patience_s": 0}, {"patience_s": 1.0}])
def test_a_server_that_could_not_serve_is_refused(values):
    with pytest.raises(ValueError, match=next(iter(values))):
        ServerConfig(**values)


def test_two_servers_need_two_addresses():
    robot = plant()
    with Served("127.0.1.1"):
        with pytest.raises(OSError, match="127.0.1.1:1337: Address already in use; choose another"):
            Server(robot, ServerConfig(address="127.0.1.1"))
        with Served("127.0.1.2", robot):
            client = RawClient("127.0.1.2")
            assert client.connected[0] == 0
            client.close()


# Faults on the line


def carried(faults, way="states", count=2000):
    line = Line(faults, way)
    return line, [line.carry(b"%d" % k) for k in range(count)]


def test_a_line_without_faults_carries_everything():
    _, arrived = carried(Faults())
    assert arrived == [[b"%d" % k] for k in range(2000)]


def test_faults_are_what_they_are_called():
    for kind in ("lost", "late", "duplicated", "reordered"):
        line, arrived = carried(Faults(**{f"{kind}_states": 0.25}, late_ms=3))
        struck = [k for k in range(1990) if arrived[k].count(b"%d" % k) != 1]
        assert abs(len(struck) / 1990 - 0.25) < 4 * (0.25 * 0.75 / 1990) ** 0.5  # four sigma
        assert sum(line.counts.values()) == line.counts[kind] >= len(struck)
        for k in struck:
            own = b"%d" % k
            when = [later for later in range(k, k + 6) if own in arrived[later]]
            assert when == {"lost": [], "late": [k + 3], "duplicated": [k], "reordered": [k + 1]}[kind]
            if kind == "reordered":
                assert arrived[k + 1][-1] == own  # after the next one


def test_faults_repeat_by_their_seed_and_ways_differ():
    first, again = (carried(Faults(seed=4, lost_states=0.3))[1] for _ in range(2))
    assert first == again
    assert carried(Faults(seed=5, lost_states=0.3))[1] != first
    assert carried(Faults(seed=4, lost_states=0.3, lost_commands=0.3), "commands")[1] != first


def test_what_happens_to_a_datagram_depends_on_its_number_alone():
    """A client that missed its turn does not shift the faults of the others."""
    line = Line(Faults(lost_commands=0.3), "commands")
    _, arrived = carried(Faults(lost_commands=0.3), "commands", 100)
    for k in range(100):
        sent = None if k % 7 == 0 else b"%d" % k
        assert line.carry(sent) == ([] if sent is None else arrived[k])


def test_times_of_faults():
    assert not within(None, 5, None) and not within(4, 5, None) and not within(9, None, None)
    assert within(5, 5, None) and within(10**9, 5, None)
    assert within(14, 5, 10) and not within(15, 5, 10)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"lost_states": 1.5}, "lost_states is a share"),
        ({"lost_states": math.nan}, "lost_states is a share"),
        ({"lost_commands": 0.6, "late_commands": 0.5}, "commands add up to 1.1"),
        ({"silent_at_ms": -1}, "silent_at_ms must be 0 or more"),
    ],
)
def test_faults_that_cannot_be_are_refused(values, words):
    with pytest.raises(ValueError, match=words):
        Faults(**values)
