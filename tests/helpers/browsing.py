"""A real browser, and a page served from this process."""

import os
import shutil
import socket
import subprocess
import threading

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=en-US",
)  # fmt: skip
"""viser's page needs a language that browsers know: with C or POSIX it ends in a RangeError."""
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium():
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def chromium():
    """Path of the distribution's Chromium, which is installed if that is possible."""
    path = find_chromium()
    if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in ("update -q", "install -y -q --no-install-recommends chromium"):
            subprocess.run(["apt-get", *command.split()], capture_output=True)
        path = find_chromium()
    if path is None:
        pytest.skip("needs Chromium, which is not here and cannot be installed: apt-get install chromium")
    return path


@pytest.fixture
def browser(chromium, tmp_path):
    """A browser with an empty profile; `asked` lists every address that any page of it asked for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile", executable_path=chromium, args=FLAGS, viewport={"width": 1200, "height": 800},
            env=os.environ | {"LANG": "en_US.UTF-8"}, timeout=120_000,
        )  # fmt: skip
        context.set_default_timeout(120_000)  # software rendering beside other work
        context.asked, context.errors = [], []
        context.on("request", lambda request: context.asked.append(request.url))

        def watch(page):
            page.on("websocket", lambda socket: context.asked.append(socket.url))
            page.on("pageerror", lambda error: context.errors.append(str(error)))

        context.on("page", watch)
        yield context
        context.close()


@pytest.fixture
def free_port():
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return tried.getsockname()[1]


@pytest.fixture
def serve_here(free_port):
    """Serve a session from a thread of this process; returns its address and the page."""
    from dris.view.page import Page
    from dris.view.serve import close_server, drive, open_server

    running = []

    def start(session):
        server = open_server("127.0.0.1", free_port, "test")
        page, going = Page(server, session), threading.Event()
        going.set()
        thread = threading.Thread(target=drive, args=(page, going.is_set))
        thread.start()
        running.append((server, thread, going))
        return f"http://127.0.0.1:{free_port}", page, server

    yield start
    for server, thread, going in running:
        going.clear()
        thread.join(30)
        close_server(server)
        assert not thread.is_alive()
