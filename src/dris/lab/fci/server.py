"""Franka's control interface in front of the twin, on a loopback address, in lockstep.

One thread does it all, the caller's own: it sends a state, waits for the client's command to it, lets a
millisecond of robot time pass and calls back. The wait is bounded, so that a client that is late misses its
turn as it would on the robot; a callback may take as long as it likes, up to a second, after which clients
give up.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dris.lab.fci.cabinet import STANDING, Cabinet
from dris.lab.fci.faults import Faults, Line, within
from dris.lab.fci.plant import Plant
from dris.lab.fci.protocol import (
    PORT,
    VERSION,
    Command,
    ConnectStatus,
    ProtocolError,
    Request,
    connect_response,
    decode_command,
    take_request,
)
from dris.lab.fci.server_config import Counts, ServerConfig
from dris.lab.fci.state_message import StateMessage
from dris.lab.twin import TICK_S

LARGEST_DATAGRAM = 2048
LONGEST_REST_S = 0.1
START_PATIENCE_S = 0.01
"""How long a motion's first command is waited for [s] before the next state goes out: clients leave the first
states unanswered, from which they learn that it has started."""
GARBAGE = b"\xff" * 99
"""What the fault of that name sends."""


class Server:
    """Serve a plant. Call `run`, or `step` for every millisecond; use as a context manager, or `close`."""

    def __init__(
        self,
        plant: Plant,
        config: ServerConfig | None = None,
        on_tick: Callable[[], None] = lambda: None,
        tell: Callable[[str], None] = lambda line: None,
    ):
        """Listen.

        Args:
            plant: The robot, in front of a twin after its `reset`.
            config: How to serve.
            on_tick: Called after every millisecond of robot time, in the thread that serves: it may draw.
            tell: Gets a line when a client comes or goes, a motion ends or the robot stops.

        Raises:
            OSError: Another server listens there.
        """
        self.config = config or ServerConfig()
        self.cabinet = Cabinet(plant, tell)
        self.counts = Counts()
        self.clock_ms = 1
        """The robot's clock, a state's message_id; it never goes back."""
        self._tell, self._on_tick = tell, on_tick
        self._message = StateMessage(self.cabinet)
        self._states, self._commands = (Line(self.config.faults, way) for way in ("states", "commands"))
        self._first_ms: int | None = None
        self._fault_done: set[str] = set()
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._client: socket.socket | None = None
        self._host, self._received = "", bytearray()
        self._state_address: tuple[str, int] | None = None
        self._due_s = time.perf_counter()
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind((self.config.address, PORT))
            self._udp.bind((self.config.address, 0))
        except OSError as error:
            self.close()
            where = f"{self.config.address}:{PORT}"
            raise OSError(
                f"cannot listen on {where}: {error.strerror}; choose another --address, such as 127.0.0.2"
            ) from error
        self._listener.listen(64)
        self._listener.setblocking(False)
        self._udp.setblocking(False)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Abort a motion and close all sockets."""
        self._send(self.cabinet.abort())
        if self._client is not None:
            self._drop("the server ends")
        self._listener.close()
        self._udp.close()

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Serve until told to stop. While nobody is connected and the arm stands, robot time stands, too."""
        while not until():
            self.step_if_awake()

    def step_if_awake(self) -> None:
        """One millisecond of robot time; or, while nobody is connected and the arm stands, wait a little."""
        if self._client is None and np.abs(self.cabinet.plant.dq).max() < STANDING:
            select.select([self._listener], [], [], LONGEST_REST_S)
            self._accept()
        else:
            self.step()

    def step(self) -> None:
        """One millisecond of robot time."""
        self._accept()
        self._answer_requests()
        self._inject()
        sent = self._send_state()
        command = self._await_command(sent) if self.cabinet.motion else None
        self._send(self.cabinet.tick(command))
        self.counts.ticks += 1
        self.clock_ms += 1
        self._on_tick()
        self._wait_for_pace()

    def set_faults(self, faults: Faults) -> None:
        """From now on these; their times count from the next command. Call it between two milliseconds."""
        self.config = replace(self.config, faults=faults)
        self._states, self._commands = (Line(faults, way) for way in ("states", "commands"))
        self._first_ms, self._fault_done = None, set()

    @property
    def connected(self) -> bool:
        """Whether a client is there."""
        return self._client is not None

    # Clients

    def _accept(self) -> None:
        """Take a client that has come; refuse others."""
        while True:
            try:
                client, address = self._listener.accept()
            except OSError:  # nobody, or gone again
                return
            self._answer_requests()  # notices if the one before has gone
            if self._client is None:
                client.setblocking(False)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._client, self._host, self._received = client, address[0], bytearray()
                self._tell(f"client {address[0]}:{address[1]} came")
                continue
            self.counts.refused += 1
            self._tell(f"client {address[0]}:{address[1]} refused: another is connected")
            # Reset instead of an orderly end, for which a client would wait for ever.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()

    def _drop(self, why: str) -> None:
        """End the connection, and with it the motion."""
        self.cabinet.abort()
        client, self._client, self._state_address = self._client, None, None
        if client is not None:
            client.close()
            self._tell(f"client left: {why}")

    def _answer_requests(self) -> None:
        """Answer what has come; a client that has gone is dropped."""
        while self._client is not None:
            try:
                received = self._client.recv(65536)
            except BlockingIOError:
                return
            except OSError as error:
                return self._drop(error.strerror or "connection lost")
            if not received:
                return self._drop("connection closed")
            self._received += received
            try:
                while self._client is not None and (request := take_request(self._received)) is not None:
                    self._answer(request)
            except ProtocolError as error:
                self.counts.malformed += 1
                self._drop(f"no request: {error}")

    def _answer(self, request: Request) -> None:
        if request.command == Command.CONNECT:
            self._send(self._connect(request))
        elif self._state_address is None:
            raise ProtocolError(f"{request.command.name} came before CONNECT")
        else:
            self._send(self.cabinet.answer(request))

    def _connect(self, request: Request) -> bytes:
        version = self.config.faults.version or VERSION
        if request.body["version"] != version:
            self._tell(f"client of version {request.body['version']} refused: the server's is {version}")
            return connect_response(request, ConnectStatus.INCOMPATIBLE_VERSION, version)
        if request.body["udp_port"] == 0:
            raise ProtocolError("CONNECT names the client's UDP port, 1 to 65535, got 0")
        self._state_address = (self._host, int(request.body["udp_port"]))
        return connect_response(request, ConnectStatus.SUCCESS, version)

    def _send(self, answers: bytes) -> None:
        if self._client is None or not answers:
            return
        try:
            self._client.settimeout(1.0)
            self._client.sendall(answers)
            self._client.setblocking(False)
        except OSError as error:
            self._drop(error.strerror or "connection lost")

    # Datagrams

    @property
    def motion_ms(self) -> int | None:
        """Robot milliseconds since the first command of the first motion; None before it."""
        return None if self._first_ms is None else self.clock_ms - self._first_ms

    def _send_state(self) -> bool:
        """Whether the client gets the state of this millisecond now."""
        if self._state_address is None:
            return False
        faults, now = self.config.faults, self.motion_ms
        state = self._message.encode(self.clock_ms)
        if within(now, faults.silent_at_ms, faults.silent_ms):
            return False
        arriving = [state] if now is None else self._states.carry(state)
        for datagram in arriving:
            self._send_datagram(datagram)
        return state in arriving

    def _send_datagram(self, datagram: bytes) -> None:
        if self._state_address is not None:
            with contextlib.suppress(OSError):  # whatever becomes of a datagram, it is a lost one
                self._udp.sendto(datagram, self._state_address)

    def _await_command(self, sent: bool) -> np.ndarray | None:
        """The command to the state that was just sent, if it comes in time."""
        datagram = self._receive() if sent else None
        if self.cabinet.motion is None:  # a request in between has ended it
            return None
        if datagram is not None and self._first_ms is None:
            self._first_ms = self.clock_ms
        faults, now = self.config.faults, self.motion_ms
        arriving = ([] if datagram is None else [datagram]) if now is None else self._commands.carry(datagram)
        if within(now, faults.deaf_at_ms, faults.deaf_ms):
            arriving = []
        found = None
        for command in map(decode_command, arriving):
            if command["message_id"] == self.clock_ms and found is None:
                found = command
            else:
                self.counts.stale += 1
        self.counts.commands += found is not None
        self.counts.missed += found is None
        return found

    def _receive(self) -> bytes | None:
        """The client's datagram to the last state, waited for; requests are answered meanwhile."""
        motion = self.cabinet.motion
        begun = motion is not None and motion.commanded
        end = time.perf_counter() + (self.config.patience_s if begun else START_PATIENCE_S)
        while self.cabinet.motion is not None and self._client is not None:
            left = end - time.perf_counter()
            if left <= 0:
                return None
            ready, _, _ = select.select([self._udp, self._client], [], [], left)
            if self._client in ready:
                self._answer_requests()
            if self._udp in ready and (datagram := self._datagram()) is not None:
                return datagram
        return None

    def _datagram(self) -> bytes | None:
        """The next datagram, if it is the client's answer to the last state."""
        try:
            datagram, sender = self._udp.recvfrom(LARGEST_DATAGRAM)
            command = decode_command(datagram)
        except OSError:
            return None
        except ProtocolError:
            self.counts.malformed += 1
            return None
        if sender != self._state_address or command["message_id"] != self.clock_ms:
            self.counts.stale += 1
            return None
        return datagram

    # Faults and pace

    def _inject(self) -> None:
        """Faults that happen at a time."""
        faults, now = self.config.faults, self.motion_ms
        if now is None:
            return
        if faults.user_stop_at_ms is not None:
            pressed = within(now, faults.user_stop_at_ms, faults.user_stop_ms)
            self._send(self.cabinet.user_stop(pressed))
        if self._once("garbage", faults.garbage_at_ms):
            self._send_datagram(GARBAGE)
        if self._once("close", faults.close_at_ms):
            self._drop("fault: the server closes the connection")

    def _once(self, name: str, at_ms: int | None) -> bool:
        if name in self._fault_done or not within(self.motion_ms, at_ms, None):
            return False
        self._fault_done.add(name)
        return True

    def _wait_for_pace(self) -> None:
        """Let robot time pass no faster than it may; what is late is not caught up with."""
        self._due_s += TICK_S / (self.config.pace if self.cabinet.motion else 1.0)
        left = self._due_s - time.perf_counter()
        if left > 0:
            time.sleep(left)
        else:
            self._due_s -= left
