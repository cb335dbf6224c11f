"""Random numbers keyed by what they are for, so that a set's draws depend on nothing else.

Every number is a pure function of (seed, set, episode, moment, call, column): the counter-based
generator Philox4x32-10 (Salmon et al. 2011). Adding sets or instances leaves the others' draws
unchanged, and nothing has to be saved to resume but the counters themselves.
"""

import math

import numpy as np
import torch
import warp as wp

from dris.core.process import start_warp

_M0 = wp.constant(wp.uint64(0xD2511F53))
_M1 = wp.constant(wp.uint64(0xCD9E8D57))
_W0 = wp.constant(wp.uint32(0x9E3779B9))
_W1 = wp.constant(wp.uint32(0xBB67AE85))
_LOW = wp.constant(wp.uint64(0xFFFFFFFF))
_SHIFT = wp.constant(wp.uint64(32))


@wp.func
def philox(c0: wp.uint32, c1: wp.uint32, c2: wp.uint32, c3: wp.uint32, k0: wp.uint32, k1: wp.uint32):
    """Four 32-bit numbers for a counter (c0 .. c3) and a key (k0, k1)."""
    for _ in range(10):
        a = _M0 * wp.uint64(c0)
        b = _M1 * wp.uint64(c2)
        new0 = wp.uint32(b >> _SHIFT) ^ c1 ^ k0
        new2 = wp.uint32(a >> _SHIFT) ^ c3 ^ k1
        c1 = wp.uint32(b & _LOW)
        c3 = wp.uint32(a & _LOW)
        c0 = new0
        c2 = new2
        k0 = k0 + _W0
        k1 = k1 + _W1
    return c0, c1, c2, c3


@wp.kernel(enable_backward=False)
def _fill(
    key0: wp.uint32,
    key1: wp.uint32,
    call: wp.uint32,
    sets: wp.array(dtype=wp.int32),
    episodes: wp.array(dtype=wp.int32),
    moments: wp.array(dtype=wp.int32),
    out: wp.array3d(dtype=wp.uint32),
):
    row, block = wp.tid()
    when = wp.uint32(moments[row]) * wp.uint32(4096) + call
    a, b, c, d = philox(wp.uint32(block), wp.uint32(sets[row]), wp.uint32(episodes[row]), when, key0, key1)
    out[row, block, 0] = a
    out[row, block, 1] = b
    out[row, block, 2] = c
    out[row, block, 3] = d


class KeyedRng:
    """Random numbers for R sets at one moment of their episodes.

    Successive calls give fresh numbers; the same sequence of calls gives the same numbers again.
    """

    def __init__(self, seed: int, sets: torch.Tensor, episodes: torch.Tensor, moments: torch.Tensor):
        """Key the rng.

        Args:
            seed: Any 64-bit integer.
            sets: [R] index of each set.
            episodes: [R] how many episodes each set has begun.
            moments: [R] which moment of its episode each set is at, below 2^20.
        """
        start_warp()
        self._key = (wp.uint32(seed & 0xFFFFFFFF), wp.uint32((seed >> 32) & 0xFFFFFFFF))
        self._rows = [t.to("cpu", torch.int32).contiguous() for t in (sets, episodes, moments)]
        self._calls = 0

    def bits(self, count: int) -> np.ndarray:
        """[R, count] 32-bit integers."""
        if self._calls >= 4096:
            raise ValueError("KeyedRng gives numbers at most 4096 times a moment: ask for more at once")
        rows, blocks = len(self._rows[0]), -(-count // 4)
        out = np.empty((rows, blocks, 4), np.uint32)
        wp.launch(
            _fill,
            dim=(rows, blocks),
            inputs=[
                *self._key, wp.uint32(self._calls), *(wp.from_torch(row) for row in self._rows),
                wp.array(out, dtype=wp.uint32, copy=False, device="cpu"),
            ],
            device="cpu",
        )  # fmt: skip
        self._calls += 1
        return out.reshape(rows, -1)[:, :count]

    def uniform(self, *size: int, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """[R, *size] numbers uniform in [low, high)."""
        bits = self.bits(math.prod(size))
        unit = (bits >> 8).astype(np.float32) * np.float32(2.0**-24)
        return torch.from_numpy(low + (high - low) * unit).reshape(len(bits), *size)

    def normal(self, *size: int) -> torch.Tensor:
        """[R, *size] numbers with mean 0 and standard deviation 1, by Box and Muller."""
        count = math.prod(size)
        bits = torch.from_numpy((self.bits(2 * (-(-count // 2))) >> 8).astype(np.float32))
        unit = (bits + 0.5) * 2.0**-24  # in (0, 1), so that the logarithm is finite
        radius = torch.sqrt(-2.0 * torch.log(unit[:, 0::2]))
        angle = 2.0 * math.pi * unit[:, 1::2]
        pair = torch.stack((radius * torch.cos(angle), radius * torch.sin(angle)), dim=-1)
        return pair.reshape(len(bits), -1)[:, :count].reshape(len(bits), *size)
