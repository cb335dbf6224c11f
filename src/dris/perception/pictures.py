"""Whether a camera repeats a picture: what is remembered of the last ones."""

from __future__ import annotations

import zlib
from collections import deque

import numpy as np

from dris.perception.detect import Image


class Pictures:
    """Every seventh row of a camera's last pictures, and a digest of every fourth of these."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Image]] = deque()

    def repeats(self, image: Image, memory: int) -> bool:
        """Whether a picture was there before; a new one is kept, among so many.

        Noise makes any two differ; only darkness has none, and never repeats. The digest, slowest of all, is
        of few rows and tells what is new; rows that may have been there are compared themselves.
        """
        part = np.ascontiguousarray(image[3::7])
        if not part.max(initial=0):
            return False
        digest = zlib.crc32(np.ascontiguousarray(part[::4]).data)
        if any(digest == before and np.array_equal(part, rows) for before, rows in self._kept):
            return True
        self._kept.append((digest, part))
        while len(self._kept) > memory:
            self._kept.popleft()
        return False
