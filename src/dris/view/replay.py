"""A replay: one attempt as one HTML file that opens from the disk, with an orbit camera and a timeline."""

from __future__ import annotations

import html
import socket
from pathlib import Path

from dris.core.files import write_atomically
from dris.evaluation.registry import PolicyHandle
from dris.view.drawn import FIELD, Drawn
from dris.view.run import Frame, Outcome, Start, TrainingRun
from dris.view.serve import LOOPBACK, close_server, open_server

FRAME_S = 0.02
"""Simulated time between frames [s]."""
SLOWER = 4
"""Times slower than life, as the films are."""
STILL_S = 1.5
"""The last frame stands so long [s]."""


def save_replay(
    policy: PolicyHandle, instances: int, seed: int, noise: float, title: str, file: Path
) -> tuple[Path, str]:
    """Write the replay that belongs to a film of `dris play`; the file, and what became of the attempt.

    Args:
        policy: Who acts, with its belief.
        instances: Of the set, or of the belief beside the real one.
        seed: Which start.
        noise: Observation noise in noise scales.
        title: Of the page.
        file: To write.
    """
    believes = policy.belief.update not in ("none", "kalman")
    start = Start(instances + believes, seed, noise, belief=policy.belief)
    content, outcome = record_replay(policy, start, title)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content.encode())
    return file, in_words(outcome)


def record_replay(policy: PolicyHandle, start: Start, title: str, colour_by: str = "") -> tuple[str, Outcome]:
    """Run one attempt in the training world; the content of a page that replays it, and its outcome.

    Args:
        policy: Who acts.
        start: How it begins.
        title: Of the page.
        colour_by: Parameter that instances are coloured by; by default the domain's last.

    Raises:
        ValueError: The policy's task has no stage.
        ImportError: The extra `view` is not there.
    """
    run = TrainingRun(policy, start, FRAME_S)
    frames: list[Frame] = []
    while run.outcome is None:
        frames.extend(run.advance())
    server = open_server(LOOPBACK, _free_port(), "dris")
    try:
        drawn = Drawn(server.scene)
        position, target = run.stage.camera
        server.initial_camera.position, server.initial_camera.look_at = position, target
        server.initial_camera.fov = FIELD
        first = frames[0].scene
        drawn.begin(run.stage, first, colour_by or list(first.parameters)[-1])
        drawn.show(frames[0])
        recorder = server.get_scene_serializer()
        for before, frame in zip(frames, frames[1:], strict=False):
            recorder.insert_sleep(SLOWER * (frame.time_s - before.time_s))
            drawn.show(frame)
        recorder.insert_sleep(STILL_S)
        page = recorder.as_html()
    finally:
        close_server(server)
    return _titled(page, title, in_words(run.outcome), drawn.legend()), run.outcome


def in_words(outcome: Outcome) -> str:
    """What became of an attempt."""
    if outcome.instances == 1:
        return "caught" if outcome.success else "lost"
    return f"{round(outcome.share * outcome.instances)} of {outcome.instances} caught"


def _titled(page: str, title: str, outcome: str, legend: str) -> str:
    """Viser's page with a title and a legend over it."""
    style = (
        "position:fixed;left:0;top:0;z-index:5;padding:.4em .8em;background:rgba(255,255,255,.8);"
        "color:#1c2330;font:14px/1.5 system-ui,sans-serif;pointer-events:none;max-width:100%"
    )
    words = f"{html.escape(title)}: {outcome}; {SLOWER} times slower than life"
    box = f'<div style="{style}"><b>{words}</b><br>{legend}</div>'
    begin, end = page.rindex("</body>"), page.index("</title>")
    name = page.index("<title>") + len("<title>")
    return page[:name] + html.escape(title) + page[end:begin] + box + page[begin:]


def _free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as tried:
        tried.bind((LOOPBACK, 0))
        return tried.getsockname()[1]
