"""Trainings of a second, and what to ask of them."""

from dataclasses import replace
from pathlib import Path

import torch
from fakes import LineTask

from dris.learning.checkpoint import load_checkpoint
from dris.learning.config import EncoderConfig, PolicyConfig, TrainConfig
from dris.learning.trainer import Trainer

TINY_ENCODER = EncoderConfig(
    latent=8, widths=(16,), decoder_widths=(16,), points=4, episodes=3, sets=8, instances=6, set_sizes=(1, 4),
    passes=2, batch=16,
)  # fmt: skip


def tiny(**changes) -> TrainConfig:
    config = TrainConfig(
        task="fakes:LineTask", sets=16, instances=3, iterations=6, threads=1, evaluate_every=3,
        evaluate_episodes=20, save_every=2, encoder=TINY_ENCODER, policy=PolicyConfig(hidden=(16,), film_width=4),
    )  # fmt: skip
    return replace(config, **changes)


def train(folder: Path, config: TrainConfig, stop_after: int | None = None, make=LineTask):
    """Run a trainer, perhaps walking away after some reports; returns the reports."""
    reports = []
    for report in Trainer(make, config, folder).run():
        reports.append(report)
        if stop_after is not None and len(reports) == stop_after:
            break
    return reports


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_checkpoint(folder / "policy.safetensors", "policy").tensors


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[n], b[n]) for n in a)
