"""What a picture tells before anything is looked for in it: whether it repeats, and how much is white."""

from __future__ import annotations

from collections import deque

import numpy as np

from dris.perception.detect import Image

WHITE = 250
"""From here on a colour is as bright as it gets, of 255 [design]."""


def white_share(image: Image) -> float:
    """Share of a picture that is white, by every 16th pixel of every 16th row."""
    return float((image[::16, ::16] >= WHITE).all(axis=2).mean())


class Pictures:
    """A number for each of a camera's last pictures: every seventh row, 64 bits at a time, by fixed weights.

    That is no digest against somebody who means harm, but noise spreads it over all 64 bits: of a million
    noisy pictures two have the same with a chance of 3e-8.
    """

    def __init__(self) -> None:
        self._order: deque[int] = deque()
        self._known: set[int] = set()
        self._weights = np.zeros(0, np.uint64)

    def repeats(self, image: Image, memory: int) -> bool:
        """Whether a picture was there before; a new one is kept, among so many.

        Noise makes any two differ; only darkness has none, and never repeats.
        """
        rows = np.ascontiguousarray(image[3::7]).reshape(-1)
        words = rows[: rows.size // 8 * 8].view(np.uint64)
        if len(words) != len(self._weights):
            # Odd ones, so that a change of any word changes the sum.
            self._weights = np.random.default_rng(0).integers(0, 2**63, len(words), np.uint64) * 2 + 1
        number = int(words @ self._weights)  # modulo 2^64
        if number == 0 or number in self._known:
            return number != 0
        self._known.add(number)
        self._order.append(number)
        while len(self._order) > memory:
            self._known.remove(self._order.popleft())
        return False
