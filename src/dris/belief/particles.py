"""The particle filter's update: instances survive as often as what they predict was seen."""

from __future__ import annotations

import math

import torch

from dris.belief.ensemble import check_observation


def systematic_resample(log_weights: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Which instances survive, and how often: indices [B, N] for log weights [B, N].

    Each survives its share of N times, rounded up or down (Carpenter et al. 1999).

    Args:
        log_weights: Any constant may be added.
        offset: [B] uniform in [0, 1).

    Raises:
        ValueError: A weight is not a number.
    """
    if bool(log_weights.isnan().any()):
        raise ValueError("a weight is not a number: what was seen or predicted is not finite")
    count = log_weights.shape[1]
    shares = torch.softmax(log_weights.double(), dim=1).cumsum(dim=1)
    marks = (torch.arange(count) + offset.double()[:, None]) / count
    return torch.searchsorted(shares.contiguous(), marks).clamp_max(count - 1)


def log_likelihood(predicted: torch.Tensor, observed: torch.Tensor, deviation: torch.Tensor) -> torch.Tensor:
    """[B, N] of an observation [B, S] under what instances predict [B, N, S].

    Args:
        predicted: By every instance.
        observed: In every set.
        deviation: [B, S] or [S] standard deviation of the observation.

    Raises:
        ValueError: That is no observation.
    """
    check_observation(observed, deviation, *observed.shape)
    volume = (2 * torch.log(deviation) + math.log(2 * math.pi)).sum(dim=-1, keepdim=True)
    return -0.5 * (squared_distance(predicted, observed, deviation) + volume)


def squared_distance(
    predicted: torch.Tensor, observed: torch.Tensor, deviation: torch.Tensor
) -> torch.Tensor:
    """[B, N] of what instances predict [B, N, S] from an observation [B, S], in its deviations."""
    return ((predicted - observed[:, None]) / deviation[..., None, :]).square().sum(dim=-1)
