"""Training, watched: a page beside a run, in a process of its own that takes little of a busy machine.

It reads what the run writes anyway, its metrics and its last checkpoint, and asks nothing of the trainer.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dris.core.files import read_json
from dris.core.process import end_with_parent
from dris.evaluation.registry import PolicyHandle, find_task
from dris.view.page import SERIES, Page
from dris.view.serve import LOOPBACK, close_server, drive, open_server
from dris.view.session import Session

LOOK_EVERY_S = 2.0
"""How often the run's files are looked at [s]."""
WAIT_S = 0.2
NICE = 15
"""At this niceness Linux gives a process 3 % of a core that others want, and all of one that nobody wants."""
NAME = "as trained so far"


def present_policy(folder: Path) -> tuple[PolicyHandle, int]:
    """The policy of a run as its last checkpoint has it, and how many iterations that has; 0: untrained."""
    import torch

    from dris.belief.config import BeliefConfig
    from dris.core.task import NoConfig
    from dris.core.typed import from_plain
    from dris.learning.checkpoint import load_checkpoint, load_into
    from dris.learning.config import EncoderConfig, PolicyConfig
    from dris.learning.encoder_stage import load_encoder
    from dris.learning.policy import Policy

    config = read_json(folder / "config.json")
    where = str(folder / "config.json")
    task = find_task(config["task"])
    values = NoConfig() if task.Config is NoConfig else from_plain(task.Config, config["task_config"], where)
    encoder = from_plain(EncoderConfig, config["encoder"], where)
    belief = from_plain(BeliefConfig, config.get("belief") or {"update": "none"}, where)
    with torch.random.fork_rng():
        torch.manual_seed(config["seed"])
        policy = Policy(task.build(values), encoder, from_plain(PolicyConfig, config["policy"], where))
    done, file = 0, folder / "last.safetensors"
    if file.exists():
        saved = load_checkpoint(file, "training")
        load_into(policy.actor, saved.group("average"), str(file))
        done = int(saved.progress["iteration"])
        if config["policy"]["encoder"] == "frozen":
            source = config.get("encoder_from") or config.get("policy_from") or folder
            load_encoder(policy.encoder, encoder, Path(source))
    return PolicyHandle(NAME, task, values, lambda task, sets: policy, belief), done


def learning_curve(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Reward and successes of a run so far: iterations and values, by name."""
    from dris.learning.run_folder import read_metrics

    file = folder / "metrics.jsonl"
    rows = read_metrics(file) if file.exists() else []
    names = dict.fromkeys(key for row in rows for key in row if key == "reward" or key.endswith("/success"))
    found = {name: [(row["iteration"] + 1, row[name]) for row in rows if name in row] for name in names}
    return {name: tuple(np.array(pairs, dtype=float).T) for name, pairs in found.items()}  # type: ignore[misc]


class LivePage(Page):
    """A page whose policy is the run's own, anew whenever the run has saved one, with its learning curve."""

    def __init__(self, server: Any, folder: Path):
        self._folder, self._looked_s, self._stamp = folder, 0.0, 0.0
        self._done = 0
        session = Session({NAME: self._load})
        session.change("again", True)
        super().__init__(server, session)
        self._progress = server.gui.add_html("", order=-1.0)
        self._curves: Any = None
        self._look_at_run()

    def _load(self) -> PolicyHandle:
        handle, self._done = present_policy(self._folder)
        return handle

    def update(self, elapsed_s: float) -> None:
        """As a page, and look at the run now and then."""
        if time.monotonic() - self._looked_s > LOOK_EVERY_S:
            self._look_at_run()
        super().update(elapsed_s)

    def _look_at_run(self) -> None:
        self._looked_s = time.monotonic()
        file = self._folder / "last.safetensors"
        if file.exists() and file.stat().st_mtime != self._stamp:
            self._stamp = file.stat().st_mtime
            self._session.reload()
        found = learning_curve(self._folder)
        last = int(found["reward"][0][-1]) if found else 0
        self._progress.content = (
            f"<div style='padding:.2em .8em'>{last} iterations; shown: the policy after {self._done}</div>"
        )
        if found:
            self._show_curve(found)

    def _show_curve(self, found: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        import viser.uplot

        iterations = found["reward"][0]
        columns = [np.interp(iterations, x, y, left=np.nan, right=np.nan) for x, y in found.values()]
        if self._curves is None or len(self._curves.data) != 1 + len(columns):
            if self._curves is not None:
                self._curves.remove()
            series = (viser.uplot.Series(label="iteration"),) + tuple(
                viser.uplot.Series(label=name, stroke=colour, width=2)
                for name, colour in zip(found, SERIES * len(found), strict=False)
            )
            scales = {"x": viser.uplot.Scale(time=False, auto=True), "y": viser.uplot.Scale(auto=True)}
            self._curves = self._server.gui.add_uplot(
                (iterations, *columns), series, aspect=1.6, scales=scales, order=-0.5
            )
        else:
            self._curves.data = (iterations, *columns)


def serve_training(folder: Path, port: int) -> None:
    """Serve a page about the run in a folder until this process is ended; for a process of its own."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trainer is interrupted, and ends this one
    from dris.core.process import set_threads

    set_threads(1)
    while not (folder / "config.json").exists():
        time.sleep(WAIT_S)
    server = open_server(LOOPBACK, port, "dris train")
    try:
        page = LivePage(server, folder)
        os.nice(NICE)  # from here on: loading at this priority would take minutes
        drive(page)
    finally:
        close_server(server)


@contextmanager
def watched(folder: Path, port: int) -> Iterator[None]:
    """While this lasts, a page shows the run in a folder."""
    serve = partial(serve_training, folder, port)
    process = multiprocessing.get_context("spawn").Process(target=serve, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()
