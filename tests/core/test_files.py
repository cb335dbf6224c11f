"""Files are there whole or not at all, and nothing is left behind."""

import errno
import os
import subprocess
import sys

import pytest

from dris.core.files import write_atomically


def test_a_full_disk_is_told_by_the_file_s_name_and_leaves_nothing(tmp_path, monkeypatch):
    file = tmp_path / "result.json"
    file.write_bytes(b"old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="result.json cannot be written: No space left on device"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old" and [f.name for f in tmp_path.iterdir()] == ["result.json"]


def test_what_a_killed_process_left_is_removed_and_others_files_stay(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    gone = tmp_path / f".result.json.{done.stdout.strip()}.tmp"
    alive, other = (
        tmp_path / f".result.json.{os.getppid()}.tmp",
        tmp_path / f".other.json.{done.stdout.strip()}.tmp",
    )
    for file in (gone, alive, other):
        file.write_bytes(b"part")
    write_atomically(tmp_path / "result.json", b"new")
    assert not gone.exists() and alive.exists() and other.exists()
