"""The example of a belief beside a system of one's own follows it."""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from own_system import follow  # noqa: E402


def test_it_is_nearer_to_the_real_crane_than_what_is_seen():
    for seed in range(4):
        raw, believed = follow(noise=4.0, seed=seed)
        assert abs(raw / (4.0 * math.sqrt(2 / math.pi)) - 1) < 0.15  # the mean of a half normal
        assert believed < 0.5 * raw
