"""The first stage of a run: an encoder in its folder, pre-trained there or taken from another run's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from dris.core.task import Task
from dris.core.typed import difference, from_plain, to_plain
from dris.learning.checkpoint import (
    Checkpoint,
    adam_tensors,
    load_adam,
    load_checkpoint,
    load_into,
    named,
    save_checkpoint,
)
from dris.learning.config import EncoderConfig, TrainConfig
from dris.learning.encoder import SetEncoder
from dris.learning.pretraining import (
    Pretraining,
    SetAutoencoder,
    held_out_episode,
    pretrain,
    reconstruction_error,
    report_sizes,
)

FILE = "encoder.safetensors"
SAVE_EVERY = 5
"""Episodes between checkpoints."""


def encoder_stage(
    make_task: Callable[[], Task], config: TrainConfig, folder: Path
) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Pre-train an encoder unless the folder has one; yields episodes done, episodes in all, and figures."""
    if (folder / FILE).exists():
        return
    encoding, unfinished = config.encoder, folder / "pretraining.safetensors"

    def save(file: Path, kind: str, tensors: dict[str, torch.Tensor], progress: dict) -> None:
        save_checkpoint(file, Checkpoint(kind, tensors, to_plain(config), progress))

    task = make_task()
    sets = held_out_episode(make_task, encoding, config.seed)[::8]
    if encoding.pooling == "moments":  # nothing to learn
        encoder, figures = SetEncoder(len(task.state_names), task.noise_scale, encoding), {}
    else:
        state = _resume(unfinished, task, encoding)
        for reached in pretrain(make_task, encoding, config.seed, state):
            yield reached.episode, encoding.episodes, {"chamfer": reached.loss}
            if reached.episode % SAVE_EVERY == 0:
                tensors = named("model", reached.model.state_dict())
                tensors |= named("adam", adam_tensors(reached.optimizer))
                save(unfinished, "pretraining", tensors, {"episode": reached.episode})
        error = reconstruction_error(reached.model, sets)
        encoder, figures = reached.model.encoder, {str(n): value for n, value in error.items()}
    encoder.standardise(sets, report_sizes(sets))
    save(folder / FILE, "encoder", named("encoder", encoder.state_dict()), {"held_out_chamfer": figures})
    unfinished.unlink(missing_ok=True)


def _resume(file: Path, task: Task, config: EncoderConfig) -> Pretraining | None:
    if not file.exists():
        return None
    saved = load_checkpoint(file, "pretraining")
    model = SetAutoencoder(len(task.state_names), task.noise_scale, config)
    load_into(model, saved.group("model"), str(file))
    optimizer = torch.optim.Adam(model.parameters())
    load_adam(optimizer, saved.group("adam"))
    return Pretraining(model, optimizer, saved.progress["episode"], 0.0)


def load_encoder(encoder: SetEncoder, config: EncoderConfig, folder: Path) -> None:
    """Fill an encoder with the weights of a run's.

    Raises:
        ValueError: That one was made with other values, or for a task with another noise scale.
    """
    file = folder / FILE
    checkpoint = load_checkpoint(file, "encoder")
    made = from_plain(EncoderConfig, checkpoint.config.get("encoder"), str(file))
    if different := difference(to_plain(made), to_plain(config)):
        raise ValueError(
            f"the encoder of {folder} was made with another {different}: give the same values, or leave "
            "encoder_from out"
        )
    scale = encoder.scale.clone()
    load_into(encoder, checkpoint.group("encoder"), str(file))
    if not torch.equal(scale, encoder.scale):
        raise ValueError(f"the encoder of {folder} is of a task with another noise_scale: take another")
