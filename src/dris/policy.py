"""The FiLM-conditioned actor and critic, as models of rsl_rl's PPO (paper, Sec. IV-C)."""

from __future__ import annotations

import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict
from torch import nn


class FilmModel(MLPModel):
    """z~ = lambda(u) * z + mu(u), then an MLP.

    Input groups: `code` [B, d_z], or `states` [B, N, S] if an encoder of its own is given (E2E), and
    `condition` [B, C].
    """

    def __init__(
        self,
        obs: TensorDict,
        output_dim: int,
        latent: int,
        hidden_dims: tuple[int, ...],
        encoder: nn.Module | None = None,
        film_width: int = 64,
        distribution_cfg: dict | None = None,
    ):
        self._latent = latent
        super().__init__(
            obs, {"all": ["condition"]}, "all", output_dim, hidden_dims, "elu", False, distribution_cfg
        )
        self.encoder = encoder
        condition = obs["condition"].shape[-1]
        last = nn.Linear(film_width, 2 * latent)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.film = nn.Sequential(nn.Linear(condition, film_width), nn.ELU(), last)
        self.norm = nn.LayerNorm(latent)

    def get_latent(self, obs: TensorDict, masks=None, hidden_state=None) -> torch.Tensor:
        """FiLM(z, u)."""
        code = obs["code"] if self.encoder is None else self.encoder(obs["states"])
        code = self.norm(code)
        scale, shift = self.film(obs["condition"]).chunk(2, dim=-1)
        return (1 + scale) * code + shift

    def _get_latent_dim(self) -> int:
        return self._latent
