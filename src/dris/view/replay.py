"""A replay: one attempt as one HTML file that opens from the disk, with an orbit camera and a timeline."""

from __future__ import annotations

import html
import socket
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from dris.core.conditions import Condition
from dris.core.files import write_atomically
from dris.core.stage import Frame, Stage
from dris.evaluation.registry import PolicyHandle
from dris.view.drawn import FIELD, Drawn
from dris.view.run import Outcome, Start, TrainingRun
from dris.view.serve import LOOPBACK, close_server, open_server

AnyFrame = TypeVar("AnyFrame", bound=Frame)
FRAME_S = 0.02
"""Simulated time between frames [s]."""
SLOWER = 4
"""Times slower than life, as the films are,"""
SLOW_S, LATE_FRAME_S, FASTER = 2.5, 0.1, 2.5
"""for so long [s]; what comes later is mostly rest, with fewer frames [s], and shown faster than life."""
STILL_S = 1.5
"""The last frame stands so long [s]."""


def save_replay(
    policy: PolicyHandle, instances: int, seed: int, condition: Condition, title: str, file: Path
) -> tuple[Path, str]:
    """Write the replay that belongs to a film of `dris play`; the file, and what became of the attempt.

    Args:
        policy: Who acts, with its belief.
        instances: Of the set, or of the belief beside the real one.
        seed: Which start.
        condition: What makes it harder.
        title: Of the page.
        file: To write.

    Raises:
        ValueError: The policy's task has no stage.
        ImportError: The extra `view` is not there.
    """
    believes = policy.belief.update not in ("none", "kalman")
    run = TrainingRun(policy, Start(instances + believes, seed, condition, policy.belief), FRAME_S)
    frames: list[Frame] = []
    while run.outcome is None:
        frames.extend(run.advance())
    words = in_words(run.outcome)
    return save_frames(run.stage, frames, f"{title}: {words}", file), words


def save_frames(stage: Stage, frames: Sequence[Frame], title: str, file: Path, colour_by: str = "") -> Path:
    """Write the replay of frames that were recorded anywhere; returns the file.

    Args:
        stage: That they are of.
        frames: In order; of what is later than `SLOW_S` not all are shown.
        title: Of the page.
        file: To write.
        colour_by: Parameter that instances are coloured by; by default the last.

    Raises:
        ImportError: The extra `view` is not there.
    """
    shown = thinned(frames)
    server = open_server(LOOPBACK, _free_port(), "dris")
    try:
        drawn = Drawn(server.scene)
        position, target = stage.camera
        server.initial_camera.position, server.initial_camera.look_at = position, target
        server.initial_camera.fov = FIELD
        first = shown[0].scene
        drawn.begin(stage, first, colour_by or list(first.parameters)[-1])
        drawn.show(shown[0])
        recorder = server.get_scene_serializer()
        for before, frame in pairwise(shown):
            recorder.insert_sleep(_shown_s(frame) - _shown_s(before))
            drawn.show(frame)
        recorder.insert_sleep(STILL_S)
        page = recorder.as_html()
    finally:
        close_server(server)
    file.parent.mkdir(parents=True, exist_ok=True)
    pace = f"{SLOWER} times slower than life"
    if shown[-1].time_s > SLOW_S:
        pace += f" up to {SLOW_S:g} s, then faster"
    write_atomically(file, _titled(page, title, pace, drawn.legend()).encode())
    return file


def in_words(outcome: Outcome) -> str:
    """What became of an attempt."""
    if outcome.instances == 1:
        return "caught" if outcome.success else "lost"
    return f"{round(outcome.share * outcome.instances)} of {outcome.instances} caught"


def thinned(frames: Sequence[AnyFrame]) -> list[AnyFrame]:
    """All frames while the replay is slow, then one every `LATE_FRAME_S`, and the last."""
    shown = [frames[0]]
    for frame in frames[1:]:
        if frame.time_s <= SLOW_S or frame.time_s - shown[-1].time_s >= LATE_FRAME_S - 1e-9:
            shown.append(frame)
    return shown if shown[-1] is frames[-1] else [*shown, frames[-1]]


def _shown_s(frame: Frame) -> float:
    """When the replay shows a frame [s], from that of time zero on."""
    return SLOWER * min(frame.time_s, SLOW_S) + max(frame.time_s - SLOW_S, 0.0) / FASTER


def _titled(page: str, title: str, pace: str, legend: str) -> str:
    """Viser's page with a title and a legend over it."""
    style = (
        "position:fixed;left:0;top:0;z-index:5;padding:.4em .8em;background:rgba(255,255,255,.8);"
        "color:#1c2330;font:14px/1.5 system-ui,sans-serif;pointer-events:none;max-width:100%"
    )
    box = f'<div style="{style}"><b>{html.escape(title)}</b>; {pace}<br>{legend}</div>'
    begin, end = page.rindex("</body>"), page.index("</title>")
    name = page.index("<title>") + len("<title>")
    return page[:name] + html.escape(title) + page[end:begin] + box + page[begin:]


def _free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as tried:
        tried.bind((LOOPBACK, 0))
        return tried.getsockname()[1]
