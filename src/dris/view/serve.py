"""Serve a page on this machine: the address, the loop that drives a session, and the end."""

from __future__ import annotations

import contextlib
import gc
import io
import ipaddress
import logging
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from dris.catching.settings import CatchingConfig
from dris.core.validation import check_extra
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.view.session import FRAME_S, MakeRun, Session

LOOPBACK = "127.0.0.1"
IDLE_S = 0.2
"""With nobody looking, the loop only asks this often whether somebody came [s]."""


def check_address(host: str, port: int) -> str:
    """Refuse an address that cannot be served on; a warning if others can reach it.

    Raises:
        ValueError: It is none, or its port is in use.
    """
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError as error:
        raise ValueError(f"--host must be an IPv4 address such as {LOOPBACK}, got '{host}'") from error
    if not 1024 <= port <= 65535:
        raise ValueError(f"--port must lie in [1024, 65535], got {port}")
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            raise ValueError(
                f"cannot serve on {host}:{port} ({error.strerror}): name another port by --port"
            ) from error
    if address.is_loopback:
        return ""
    return (
        f"{host} can be reached from other machines, and the page asks for no password: whoever opens it can "
        "use it"
    )


def session_of(policy: str, task: str | None = None, seed: int = 0) -> Session:
    """A session with a policy, and beside it those of the same task that ship and its baselines.

    Raises:
        ValueError: There is no such policy, or its task has no stage.
    """
    first = find_policy(policy, task)
    known: dict[str, Callable[[], PolicyHandle]] = {first.name: lambda: first}
    for name in first.task.policies():
        known.setdefault(name, partial(find_policy, name))
    for name, make in first.task.baselines().items():
        known.setdefault(name, partial(PolicyHandle, name, first.task, first.task_config, make))
    things: dict[str, dict[str, float]] = {}
    runs: dict[str, MakeRun] = {}
    if isinstance(first.task_config, CatchingConfig):
        from dris.view.twin_run import THINGS, TwinRun

        things, runs = THINGS, {"twin": TwinRun}
    return Session(known, things, runs, seed)


def open_server(host: str, port: int, label: str) -> Any:
    """A viser server that nobody can ask to be shared with the world.

    Raises:
        ImportError: The extra is not there.
        ValueError: The port is in use.
    """
    check_extra("viser", "view")
    import viser

    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)  # who only knocks is no traceback
    with contextlib.redirect_stdout(io.StringIO()):  # it tells the address in a box of its own
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    server.request_share_url = lambda verbose=True: None  # type: ignore[method-assign]  # nothing leaves
    if server.get_port() != port:
        close_server(server)
        raise ValueError(f"port {port} is in use: name another by --port")
    return server


def close_server(server: Any) -> None:
    """Stop a server, its threads and its connections, without a word."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def serve(session: Session, host: str, port: int, ready: Callable[[], None] = lambda: None) -> None:
    """Serve a session until interrupted.

    Args:
        session: What is shown.
        host: Address to bind to.
        port: Its port.
        ready: Called when the page can be opened.
    """
    server = open_server(host, port, "dris")
    try:
        from dris.view.page import Page

        page = Page(server, session)
        ready()
        drive(page)
    finally:
        close_server(server)


def drive(page: Any, goes_on: Callable[[], bool] = lambda: True) -> None:
    """Let a page's time pass while somebody looks."""
    gc.collect()
    gc.freeze()  # what stays is not searched again with every throw: milliseconds instead of half a second
    last = time.monotonic()
    try:
        while goes_on():
            if not page.watched:
                page.take()
                time.sleep(IDLE_S)
                last = time.monotonic()
                continue
            now = time.monotonic()
            page.update(now - last)
            last = now
            time.sleep(max(0.0, FRAME_S - (time.monotonic() - now)))
    finally:
        gc.unfreeze()
