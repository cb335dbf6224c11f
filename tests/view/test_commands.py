"""`dris view` and `dris play --html`, as a user calls them."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dris.cli.main import main
from dris.core import validation
from dris.evaluation.registry import find_policy
from dris.view.page import Page
from dris.view.run import Start
from dris.view.serve import check_address, close_server, open_server, session_of
from dris.view.twin_run import KEPT_S, THINGS, TwinRun

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(monkeypatch, capsys):
    """The command in this process."""

    def call(*arguments):
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", ["dris", *map(str, arguments)])
        monkeypatch.setattr(sys, "stderr", sys.stderr)
        with pytest.raises(SystemExit) as end:
            main()
        out = capsys.readouterr()
        return SimpleNamespace(returncode=end.value.code, stdout=out.out, stderr=out.err)

    return call


def refused(out, *words):
    assert out.returncode == 2 and len(out.stderr.splitlines()) == 1 and "Traceback" not in out.stderr
    assert all(word in out.stderr for word in words), out.stderr


def test_bad_input_is_one_line_with_a_way_out(here, tmp_path, free_port):
    refused(here("view", "nobody"), "'nobody' is neither a known name", "dris-200")
    for name, words in (
        ("fog", "unknown condition 'fog'; known: clean, noise-<x>"),
        ("worst-case", "name one"),
    ):
        refused(here("play", "still", "--condition", name, "--out", tmp_path), words)
    refused(here("view", "still", "--port", 80), "--port must lie in [1024, 65535], got 80")
    refused(here("view", "still", "--host", "everywhere"), "--host must be an IPv4 address", "127.0.0.1")
    file = tmp_path / "plain.py"
    file.write_text(
        (ROOT / "tests" / "helpers" / "fakes.py").read_text()
        + "\n\nclass Plain(LineTask):\n    @classmethod\n    def baselines(cls):\n"
        + "        return {'idle': lambda task, sets: lambda seen: torch.zeros(sets, 1)}\n"
    )
    for command in (("view", "idle", "--port", free_port), ("play", "idle", "--html", "--out", tmp_path)):
        out = here(*command, "--task", f"{file}:Plain")
        refused(out, "Plain has no stage", "docs/guides/view.md")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port))
        taken.listen()
        refused(
            here("view", "still", "--port", free_port), f"127.0.0.1:{free_port}", "another port by --port"
        )


def test_a_missing_extra_is_named(here, monkeypatch, tmp_path):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        validation.importlib.util, "find_spec", lambda name: None if name == "viser" else found(name)
    )
    refused(here("view", "still"), "pip install 'dris[view]'")
    refused(here("play", "still", "--html", "--out", tmp_path), "pip install 'dris[view]'")
    out = here("trials", "--policies", "still", "--films", "--out", tmp_path / "trials")
    refused(out, "pip install 'dris[view]'")
    assert not (tmp_path / "trials").exists()  # before any trial


def test_other_machines_are_let_in_only_with_a_warning(free_port):
    assert check_address("127.0.0.1", free_port) == ""
    assert "asks for no password" in check_address("0.0.0.0", free_port)


def test_a_server_shares_nothing_and_stops_wholly(free_port, capfd):
    server = open_server("127.0.0.1", free_port, "test")
    assert server.request_share_url() is None
    with pytest.raises(ValueError, match=f"port {free_port} is in use"):
        open_server("127.0.0.1", free_port, "test")
    close_server(server)
    with socket.socket() as again:  # the port is free again
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", free_port))
    assert capfd.readouterr().out == ""


def test_a_throw_lets_the_one_before_go(free_port):
    """Each holds a world of its own: kept until Python looks for cycles, they would add up."""
    server, session = open_server("127.0.0.1", free_port, "test"), session_of("still")
    try:
        page = Page(server, session)
        before = weakref.ref(session._run)
        page._throw()
        assert before() is None and session.begun == 2
    finally:
        close_server(server)


def test_the_page_is_served_on_loopback_alone_until_interrupted(free_port):
    process = subprocess.Popen(
        [sys.executable, "-m", "dris", "view", "still", "--port", str(free_port)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout.readline() == f"page     http://127.0.0.1:{free_port}\n"
        page = urllib.request.urlopen(f"http://127.0.0.1:{free_port}/", timeout=30)
        assert page.status == 200
        with pytest.raises(ConnectionRefusedError):  # another address of this machine
            socket.create_connection(("127.0.0.2", free_port), timeout=10)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(
                f"http://127.0.0.1:{free_port}/%2e%2e/%2e%2e/%2e%2e/__init__.py", timeout=30
            )
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130 and len(errors.splitlines()) == 1, errors


def test_a_replay_is_one_small_file_that_asks_for_nothing(here, tmp_path, browser):
    out = here(
        "play",
        "veltrack",
        "--html",
        "--instances",
        60,
        "--seed",
        4,
        "--condition",
        "noise-2",
        "--out",
        tmp_path / "replays",
    )
    assert out.returncode == 0 and "replay   " in out.stdout, out.stderr
    (file,) = (tmp_path / "replays").iterdir()
    assert file.name == "veltrack-noise-2-n60-4.html" and file.stat().st_size <= 1.5e6
    page = browser.new_page()
    page.goto(file.as_uri())
    page.get_by_text("veltrack, noise-2, N = 60, seed 4").wait_for()
    page.get_by_text("restitution 0.3").wait_for()  # the legend: 0.30 to 0.45 of ball and plate
    page.locator("canvas").first.wait_for()
    page.wait_for_timeout(1000)
    assert {url for url in browser.asked if not url.startswith(("blob:", "data:"))} == {file.as_uri()}
    assert browser.errors == []


def test_the_twin_flies_the_whole_throw():
    chosen = {"distance": 1.5, "direction": 20.0, "speed": 6.0, "spin": 30.0}
    start = Start(1, 7, chosen=chosen, physics=THINGS["foam"], thing="foam")
    run, frames = TwinRun(find_policy("dris-200"), start, 0.05), []
    while run.outcome is None:
        frames += run.advance()
    first, last = frames[0].scene, frames[-1].scene
    away = first.points[0] - (run._twin.kinematics.home_position)
    assert np.linalg.norm(away[:2]) == pytest.approx(1.5) and away[1] / away[0] == pytest.approx(
        np.tan(np.radians(20))
    )
    assert first.radii[0] == 0.035 and first.figures["time to arrival [s]"] > 1.0
    assert run.outcome.success and not last.lost[0]  # dris-200 catches foam balls: docs/reports/trials.md
    assert frames[-1].time_s >= KEPT_S + 1.0
    assert frames[0].ghost is None and frames[-1].ghost is not None
