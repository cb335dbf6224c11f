"""Start Warp once, without its banner and its warning that a machine has no CUDA driver."""

import os
import sys
import tempfile
from functools import lru_cache

import warp as wp


@lru_cache
def start_warp() -> None:
    """Initialise Warp. Safe to call as often as one likes."""
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
