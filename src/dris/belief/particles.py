"""The particle filter's update: instances survive as often as what they predict was seen."""

from __future__ import annotations

import torch


def systematic_resample(log_weights: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Which instances survive, and how often: indices [B, N] for log weights [B, N].

    Each survives its share of N times, rounded up or down (Carpenter et al. 1999).

    Args:
        log_weights: Any constant may be added.
        offset: [B] uniform in [0, 1).
    """
    count = log_weights.shape[1]
    shares = torch.softmax(log_weights.double(), dim=1).cumsum(dim=1)
    marks = (torch.arange(count) + offset.double()[:, None]) / count
    return torch.searchsorted(shares.contiguous(), marks).clamp_max(count - 1)


def log_likelihood(predicted: torch.Tensor, observed: torch.Tensor, deviation: torch.Tensor) -> torch.Tensor:
    """[B, N] of an observation [B, S] under what instances predict [B, N, S], up to a constant."""
    return -0.5 * (((predicted - observed[:, None]) / deviation).square()).sum(dim=-1)
