"""A Kalman filter over states, without instances: what a belief is to be better than."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from dris.belief.ensemble import check_observation


@dataclass(frozen=True)
class Gaussian:
    """Mean [B, S] and covariance [B, S, S] of B states."""

    mean: torch.Tensor
    covariance: torch.Tensor

    def where(self, chosen: torch.Tensor, other: Gaussian) -> Gaussian:
        """This one where chosen [B], elsewhere the other."""
        mean = torch.where(chosen[:, None], self.mean, other.mean)
        return Gaussian(mean, torch.where(chosen[:, None, None], self.covariance, other.covariance))


def kalman_predict(
    prior: Gaussian, mean: torch.Tensor, jacobian: torch.Tensor, process: torch.Tensor
) -> Gaussian:
    """Carry a Gaussian on.

    Args:
        prior: Before.
        mean: [B, S] where its mean goes.
        jacobian: [B, S, S] or [S, S] derivative of that.
        process: [S] standard deviation of what else may happen.
    """
    covariance = jacobian @ prior.covariance @ jacobian.mT + torch.diag(process.double().square())
    return Gaussian(mean.double(), covariance)


def kalman_update(
    prior: Gaussian, observed: torch.Tensor, deviation: torch.Tensor
) -> tuple[Gaussian, torch.Tensor, torch.Tensor]:
    """The Gaussian after the whole state was seen [B, S] with deviations [B, S].

    Returns:
        It, the surprise [B] and the observation's log-likelihood [B].

    Raises:
        ValueError: That is no observation.
    """
    check_observation(observed, deviation, *observed.shape)
    noise = torch.diag_embed(deviation.double().square())
    off = observed.double() - prior.mean
    expected = prior.covariance + noise
    gain = torch.linalg.solve(expected, prior.covariance).mT  # P (P + R)^-1; both are symmetric
    mean = prior.mean + (gain @ off[..., None])[..., 0]
    covariance = prior.covariance - gain @ prior.covariance
    surprise = (off * torch.linalg.solve(expected, off)).sum(dim=-1)
    volume = torch.logdet(expected) + observed.shape[-1] * math.log(2 * math.pi)
    return Gaussian(mean, 0.5 * (covariance + covariance.mT)), surprise, -0.5 * (surprise + volume)
