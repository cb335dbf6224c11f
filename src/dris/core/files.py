"""Files that are there whole or not at all: atomic writing, locks, JSON that is checked when it is read."""

from __future__ import annotations

import fcntl
import glob
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by new content, or leave it as it was: there is no state in between.

    What a process that was killed left behind of the same file is removed.

    Raises:
        OSError: It cannot be written, for instance because the disk is full; the message names it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    for old in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        owner = old.name.split(".")[-2]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            old.unlink(missing_ok=True)
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(f"{path} cannot be written: {error.strerror or error}") from error
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def locked(folder: Path, wait: bool) -> Iterator[None]:
    """Keep other processes of this machine out of a folder's files; made if it is not there.

    Args:
        folder: Whose files are about to be changed.
        wait: Until another process is done; otherwise refuse.

    Raises:
        ValueError: Another process is at it, and we do not wait.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise ValueError(f"another process is writing to {folder}: let it finish") from error
    try:
        yield
    finally:
        os.close(handle)


def read_json(file: Path, of: type | tuple[type, ...] = dict) -> Any:
    """What a JSON file holds.

    Args:
        file: Read as a whole.
        of: What it has to hold: a dict or a list.

    Raises:
        ValueError: It is not JSON, or holds something else; the message names it.
    """
    try:
        found = json.loads(file.read_text())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON ({error}): mend it, or move it away") from error
    if not isinstance(found, of):
        raise ValueError(f"{file} holds JSON of another kind than is expected here: move it away")
    return found


def write_json(file: Path | None, value: Any) -> None:
    """Write a value for a person to read, atomically; nothing if there is no file to write to."""
    if file is not None:
        write_atomically(file, to_json(value))


def to_json(value: Any) -> bytes:
    """JSON for a person to read."""
    return (json.dumps(value, indent=2) + "\n").encode()
