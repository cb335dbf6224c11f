"""The folder of a run: whose it is, what it was made with, and its metrics."""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from pathlib import Path
from typing import Any

import torch

from dris.core.files import read_json, write_atomically, write_json
from dris.core.schema import source_state
from dris.core.typed import difference, to_plain, with_defaults


def check_same(what: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on from a file with other values than it was made with.

    Raises:
        ValueError: They differ; the message names what does.
    """
    if different := difference(before, now):
        raise ValueError(f"{what} was made with another {different}: give the same, or choose another folder")


def claim_folder(folder: Path, config: Any, write: bool) -> None:
    """Refuse the folder of another run; with `write`, note whose it is: a dataclass.

    Raises:
        ValueError: It is a file, or holds a run with another configuration.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: a run needs a folder of its own, choose another name")
    file = folder / "config.json"
    if file.exists():
        check_same(file, with_defaults(read_json(file), config), to_plain(config))
    elif write:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "versions.json", versions() | _task_file(config.task))
        write_json(file, to_plain(config))  # last: from now on the folder is this run's


def warn_of_another_task_file(folder: Path, task: str) -> None:
    """Say that the user's file with the task has changed since the run began, if it has.

    Not refused, as other versions of libraries are not: the change may be a comment.
    """
    file, now = folder / "versions.json", _task_file(task)
    before = read_json(file) if file.exists() else {}
    if any(name in before and before[name] != value for name, value in now.items()):
        warnings.warn(
            f"{task.rpartition(':')[0]} has changed since the run in {folder} began: what it still "
            "learns is from the file as it is now; for a run of that alone choose another folder",
            stacklevel=3,
        )


def _task_file(task: str) -> dict[str, str]:
    """Checksum of the file that the task is in, if it is the user's own and not part of a package."""
    file = Path(task.rpartition(":")[0])
    if file.suffix != ".py" or not file.is_file():
        return {}
    return {"task file sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def versions() -> dict[str, str]:
    """What the result was made with: interpreter, libraries, and the state of the source."""
    import mujoco
    import numpy
    import warp

    import dris

    found = {"python": platform.python_version(), "machine": platform.machine()}
    found |= {module.__name__: module.__version__ for module in (dris, torch, numpy, mujoco, warp)}
    return found | source_state()


def read_metrics(file: Path) -> list[dict[str, Any]]:
    """Figures of all iterations, one line each; a last line without its end was torn by a crash.

    Raises:
        ValueError: A line is damaged.
    """
    rows = []
    for number, line in enumerate(file.read_bytes().splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            continue
        try:
            rows.append(json.loads(line))
            if not isinstance(rows[-1]["iteration"], int):
                raise TypeError("iteration is not a number")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{file} is damaged in line {number}: delete the line to go on") from error
    return rows


class Metrics:
    """metrics.jsonl and TensorBoard, cut back to where a resumed run goes on."""

    def __init__(self, folder: Path, first: int):
        from torch.utils.tensorboard import SummaryWriter

        self._file = folder / "metrics.jsonl"
        rows = read_metrics(self._file) if self._file.exists() else []
        kept = [json.dumps(row) + "\n" for row in rows if row["iteration"] < first]
        write_atomically(self._file, "".join(kept).encode())
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=first)

    def add(self, iteration: int, figures: dict[str, float]) -> None:
        """Write the figures of an iteration."""
        with open(self._file, "a") as file:
            file.write(json.dumps({"iteration": iteration, **figures}) + "\n")
        for name, value in figures.items():
            self._board.add_scalar(name, value, iteration)
        self._board.flush()
