"""Random numbers: the generator's published test vectors, and what keys must guarantee."""

import numpy as np
import pytest
import torch
import warp as wp
from scipy import stats

from dris.core.process import start_warp
from dris.core.rng import KeyedRng, philox


def rng(seed=0, sets=(0, 1, 2), episode=1, moment=0):
    index = torch.tensor(sets)
    return KeyedRng(seed, index, torch.full_like(index, episode), torch.full_like(index, moment))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # Random123's known answers for philox4x32-10
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_known_answers(counter, key, expected):
    start_warp()

    @wp.kernel(module="unique", enable_backward=False)
    def once(words: wp.array(dtype=wp.uint32), out: wp.array(dtype=wp.uint32)):
        a, b, c, d = philox(words[0], words[1], words[2], words[3], words[4], words[5])
        out[0] = a
        out[1] = b
        out[2] = c
        out[3] = d

    words = wp.array(np.array(counter + key, np.uint32), dtype=wp.uint32, device="cpu")
    out = wp.zeros(4, dtype=wp.uint32, device="cpu")
    wp.launch(once, dim=1, inputs=[words, out], device="cpu")
    assert out.numpy().tolist() == expected


def test_uniform_and_normal_have_their_distributions():
    d = rng(sets=tuple(range(50)))
    uniform = d.uniform(2000, low=-1.0, high=3.0).flatten().numpy()
    assert uniform.min() >= -1 and uniform.max() < 3
    assert stats.kstest(uniform, "uniform", (-1, 4)).pvalue > 1e-3
    assert stats.kstest(d.normal(2001).flatten().numpy(), "norm").pvalue > 1e-3


def test_a_row_depends_on_its_key_only():
    alone, among = rng(sets=(7,)), rng(sets=(3, 7, 9))
    assert torch.equal(alone.uniform(5)[0], among.uniform(5)[1])
    assert torch.equal(alone.normal(3)[0], among.normal(3)[1])
    assert torch.equal(rng().uniform(8)[:, :4], rng().uniform(4))


@pytest.mark.parametrize("other", [{"seed": 1}, {"seed": 1 << 40}, {"episode": 2}, {"moment": 1}])
def test_other_keys_give_other_numbers(other):
    assert not torch.equal(rng().uniform(4), rng(**other).uniform(4))


def test_calls_give_fresh_numbers():
    d = rng()
    assert not torch.equal(d.uniform(4), d.uniform(4))
