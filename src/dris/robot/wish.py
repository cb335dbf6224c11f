"""What a catch loop asks of an arm, kept until it is shaped and filtered."""

from __future__ import annotations

import numpy as np


class Wish:
    """The robot as the catch loop knows it: what it asks for is kept, not sent; a tick has one time."""

    def __init__(self, time_s: float, q: np.ndarray):
        self.time_s, self.q, self.wished = time_s, q, q

    def joints(self) -> np.ndarray:
        """[M] as they were measured in this tick."""
        return self.q

    def set_reference(self, q: np.ndarray) -> None:
        """Keep joints [M] that are asked for."""
        self.wished = np.asarray(q, dtype=float)
