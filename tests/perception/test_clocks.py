"""A camera's clock on the host's, against clocks whose truth is known."""

import numpy as np
import pytest

from dris.perception.clocks import CameraClock


def test_waiting_frames_do_not_move_the_clock():
    """Offset 1234.5 s, 50 millionths of drift, 8 ms of transfer, and on top 4 ms of waiting on average."""
    rng, clock, errors = np.random.default_rng(0), CameraClock(0.008), []
    for k in range(2000):
        true_s = 10.0 + k / 80
        came_s = true_s + 0.008 + rng.exponential(0.004)
        errors.append(clock.on_host(1.00005 * true_s - 1234.5, came_s) - true_s)
    # Some frame of 400 hardly waited, and drift makes it five seconds older at most: 0.25 ms.
    assert np.abs(errors[100:]).max() < 4e-4


def test_without_waiting_and_drift_it_is_exact():
    clock = CameraClock(0.01)
    for true_s in (5.0, 5.0125, 5.025):
        assert clock.on_host(true_s + 77.0, true_s + 0.01) == pytest.approx(true_s, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CameraClock(-0.1), r"transfer_s must lie in \[0, 1\) s, got -0.1"),
        (lambda: CameraClock(0.01, window=0), "window must be at least 1 frame, got 0"),
        (lambda: CameraClock(0.01).on_host(float("nan"), 1.0), "times must be finite, got stamp nan"),
    ],
)
def test_what_is_no_clock_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
