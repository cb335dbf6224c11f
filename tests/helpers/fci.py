"""A robot behind FCI for tests, and two kinds of clients: one of raw bytes, and scripts that run elsewhere."""

import json
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from dris.lab.fci.cabinet import Cabinet
from dris.lab.fci.plant import Plant
from dris.lab.fci.protocol import (
    HEADER,
    PORT,
    REQUESTS,
    ROBOT_COMMAND,
    ROBOT_STATE,
    Command,
    Request,
)
from dris.lab.fci.server import Server
from dris.lab.fci.server_config import ServerConfig
from dris.lab.launch import Placed
from dris.lab.model import LabConfig
from dris.lab.objects import BALLS
from dris.lab.twin import Twin, TwinConfig

AWAY = Placed((1.5, 1.0, 0.1), (0.0, 0.0, 0.0))
"""A ball that nothing meets."""
FRICTIONLESS = TwinConfig(lab=LabConfig(joint_friction=(0.0,) * 7))


def plant(config=None, joints=None):
    """A robot at home or at other joints, its ball out of the way."""
    twin = Twin(config)
    twin.reset(BALLS["foam"], AWAY if joints is None else replace(AWAY, joints=tuple(joints)), 0)
    return Plant(twin)


def body(command, **values):
    """A request's body."""
    record = np.zeros((), REQUESTS[command])
    for name, value in values.items():
        record[name] = value
    return record


def request(command, number=1, **values):
    return Request(command, number, body(command, **values))


def collision(lower=10.0, upper=20.0):
    """A body of SetCollisionBehavior with all thresholds alike."""
    names = ("torque_acceleration", "torque_nominal", "force_acceleration", "force_nominal")
    return {name: [[lower], [upper]] for name in names}


TORQUES = {"controller": 2, "generator": 4}
POSITIONS = {"controller": 0, "generator": 0}
VELOCITIES = {"controller": 0, "generator": 1}


def moving(robot, **modes):
    """A cabinet with a motion that has just started, and what it tells."""
    said = []
    cabinet = Cabinet(robot, said.append)
    answer = cabinet.answer(request(Command.MOVE, 7, **(modes or TORQUES)))
    assert answer[12:] == b"\x01"  # started
    return cabinet, said


def command(number=0, **values):
    """A robot command."""
    record = np.zeros((), ROBOT_COMMAND)
    record["message_id"] = number
    for name, value in values.items():
        record[name] = value
    return record


class RawClient:
    """Speaks the protocol byte by byte, in the test's own thread."""

    def __init__(self, address, version=10, udp_port=None):
        self.tcp = socket.create_connection((address, PORT), timeout=5)  # first: it may be refused here
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp.settimeout(5)
        port = self.udp.getsockname()[1] if udp_port is None else udp_port
        self.number = 0
        try:
            self.connected = self.ask(Command.CONNECT, version=version, udp_port=port)
        except OSError:
            self.close()
            raise

    def send(self, what, **values):
        self.number += 1
        bytes_ = body(what, **values).tobytes()
        self.tcp.sendall(HEADER.pack(what, self.number, HEADER.size + len(bytes_)) + bytes_)

    def ask(self, what, **values):
        """Status and rest of the answer."""
        self.send(what, **values)
        return self.answer()

    def answer(self):
        header = self._exactly(HEADER.size)
        rest = self._exactly(HEADER.unpack(header)[2] - HEADER.size)
        return rest[0], rest[1:]

    def _exactly(self, size):
        found = b""
        while len(found) < size:
            more = self.tcp.recv(size - len(found))
            if not more:
                raise ConnectionError("closed")
            found += more
        return found

    def state(self):
        datagram, self.robot = self.udp.recvfrom(4096)
        assert len(datagram) == ROBOT_STATE.itemsize
        return np.frombuffer(datagram, ROBOT_STATE)[0]

    def latest(self):
        """The newest state; older ones wait in the socket while nobody reads."""
        self.udp.setblocking(False)
        try:
            while True:
                self.udp.recv(4096)
        except BlockingIOError:
            self.udp.settimeout(5)
        return self.state()

    def command(self, state, **values):
        self.udp.sendto(command(state["message_id"], **values).tobytes(), self.robot)

    def start(self, **modes):
        """Start a motion and send torques of zero until one is obeyed; the state after it."""
        assert self.ask(Command.MOVE, **(modes or TORQUES))[0] == 1
        while (state := self.state())["control_command_success_rate"] == 0:
            self.command(state)
        return state

    def close(self):
        self.tcp.close()
        self.udp.close()


class Served:
    """A server in a thread, until the block ends."""

    def __init__(self, address, robot=None, said=None, **config):
        self.said = [] if said is None else said
        self.path = []
        """Joints after every millisecond since the first command."""
        self.longest_s = 0.0
        """Between two milliseconds."""
        self._last_s = None
        self.robot = robot or plant()
        self.server = Server(
            self.robot, ServerConfig(address=address, **config), on_tick=self._note, tell=self.said.append
        )
        self._ends = threading.Event()
        self._failed = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _note(self):
        now = time.monotonic()
        self.longest_s = max(self.longest_s, now - (self._last_s or now))
        self._last_s = now
        if self.server.motion_ms is not None:
            self.path.append(self.robot.q)

    def _serve(self):
        try:
            self.server.run(self._ends.is_set)
        except BaseException as error:
            self._failed = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join(10)
        self.server.close()
        assert not self._thread.is_alive()
        if self._failed is not None:
            raise self._failed

    def wait_for(self, condition, timeout_s=10):
        end = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < end, self.said
            time.sleep(0.002)


def skip_if_starved(served, longest_s=0.9):
    """Clients give up after a second without a state; a machine with too much to do can make them."""
    if served.longest_s > longest_s:
        pytest.skip(f"this machine let the server wait for {served.longest_s:.1f} s")


def run_elsewhere(served, script, *arguments):
    """What a script prints as JSON; it gets the server's address. Clients keep Python's lock while they wait."""
    address = served.server.config.address
    done = subprocess.run(
        [sys.executable, "-c", script, address, *arguments], capture_output=True, text=True, timeout=60
    )
    if done.returncode:
        skip_if_starved(served)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
