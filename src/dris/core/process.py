"""The process itself: start Warp quietly, draw without a screen, end with the parent."""

import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import lru_cache
from typing import Any


@lru_cache
def start_warp() -> None:
    """Initialise Warp. Safe to call as often as one likes."""
    import warp as wp

    wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)
    # Warp's native library writes to the process's stderr itself, past sys.stderr.
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            wp.init()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            caught.seek(0)
            for line in caught.read().decode(errors="replace").splitlines():
                if "NVIDIA CUDA driver" not in line:
                    print(line, file=sys.stderr)


_threads = 2


def set_threads(count: int) -> None:
    """Let this process use so many threads: of torch, and of worlds that are built from now on."""
    global _threads
    import torch

    if count < 1:
        raise ValueError(f"threads must be at least 1, got {count}")
    _threads = count
    torch.set_num_threads(count)


def threads() -> int:
    """How many threads a world may use: 2 unless `set_threads` says otherwise."""
    return _threads


def end_with_parent() -> None:
    """End this process when the one that started it does, however that ended.

    A run that nobody collects would go on for minutes; files are written whole, so it may stop anywhere.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def in_processes(
    function: Callable[[Any], Any], values: Iterable[Any], workers: int, each_anew: bool = False
) -> Iterator[tuple[Any, Future]]:
    """Call a function of each value in other processes; yields values with their results as they end.

    Args:
        function: Of one value.
        values: All are asked for at once; what has not begun is dropped when nobody waits any more.
        workers: Processes at a time.
        each_anew: Whether every value has a process of its own.
    """
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=end_with_parent,
        max_tasks_per_child=1 if each_anew else None,
    )
    futures = {pool.submit(function, value): value for value in values}
    try:
        for future in as_completed(futures):
            yield futures[future], future
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def draw_without_screen() -> None:
    """MuJoCo chooses how to render when it is imported; without a screen only EGL or OSMesa work."""
    if "DISPLAY" not in os.environ:
        os.environ.setdefault("MUJOCO_GL", "egl")
    os.environ.setdefault("LP_NUM_THREADS", "0")  # Mesa on the CPU: small pictures are faster in one thread
