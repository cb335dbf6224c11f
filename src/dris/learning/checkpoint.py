"""Run folders and checkpoints: files that explain themselves, survive a crash and cannot run code.

A checkpoint is one safetensors file: tensors, and a JSON header with schema, kind, configuration and
progress. It is written to a temporary file, flushed and renamed, so that a reader sees the old file or
the new one; its checksum, over tensors and header, is verified on reading. Reading one runs no code; a
policy names its task, though, and whoever evaluates it imports that (`dris.evaluation.registry`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from dris.core.errors import DrisError
from dris.core.files import write_atomically

SCHEMA = 3
RENAMED = {
    "discount": "gamma",
    "trace": "gae_lambda",
    "largest_gradient": "max_grad_norm",
    "average": "ema_window",
    "least_rate": "min_lr_fraction",
    "view": "visible",
}
"""Values of a recipe that schema 2 knew by other names."""
DIVERGED = "diverged"
"""Kind of the file that keeps what led to a number that is not finite."""
LARGEST_BYTES = 512 * 1024 * 1024
TYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)


class CheckpointError(DrisError, ValueError):
    """A checkpoint that cannot be used; the message names the file and the reason."""


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and what the header says: kind of checkpoint, configuration, progress."""

    kind: str
    tensors: dict[str, torch.Tensor]
    config: dict[str, Any]
    progress: dict[str, Any]

    def group(self, prefix: str) -> dict[str, torch.Tensor]:
        """Tensors whose name starts with `prefix` and a dot, without it."""
        start = prefix + "."
        return {n.removeprefix(start): t for n, t in self.tensors.items() if n.startswith(start)}


def fingerprint(tensors: dict[str, torch.Tensor], words: str = "") -> str:
    """SHA-256 of tensors (names, types, shapes and bytes) and of words beside them."""
    digest = hashlib.sha256(words.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous()
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically.

    Raises:
        CheckpointError: A tensor is not finite; nothing is written. Only what led to that may be kept.
    """
    # Scalars (Adam's step count) have no bytes to view: store them as one-element tensors.
    tensors = {
        n: t.detach().reshape(t.shape or (1,)).contiguous().clone() for n, t in checkpoint.tensors.items()
    }
    if checkpoint.kind != DIVERGED:
        _check_finite(path, tensors)
    said = {name: value for name, value in vars(checkpoint).items() if name != "tensors"}
    header = {"schema": SCHEMA, **said}
    # One entry: safetensors writes several in any order, and equal runs should give equal files.
    header["sha256"] = fingerprint(tensors, json.dumps(header))
    write_atomically(path, save(tensors, metadata={"dris": json.dumps(header)}))


def load_checkpoint(path: Path, kind: str) -> Checkpoint:
    """Read and verify a checkpoint.

    Raises:
        CheckpointError: The file is missing, damaged, of another kind or schema, or not safetensors.
    """
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}")
    if path.stat().st_size > LARGEST_BYTES:
        raise CheckpointError(f"{path} has more than {LARGEST_BYTES} bytes: not one of ours")
    with open(path, "rb") as file:
        start = file.read(10)
    if start[:2] in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        raise CheckpointError(
            f"{path} is a pickle or a torch archive, which can run code when it is read: refused. "
            "dris reads safetensors only."
        )
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged or not a safetensors file: {error}") from error
    try:
        header = json.loads(metadata["dris"])
        schema, found = int(header["schema"]), header["kind"]
        config, progress = dict(header["config"]), dict(header["progress"])
        checksum = header.pop("sha256", None) if schema > 2 else metadata.get("sha256")
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{path} has no header of dris: it is damaged, or not ours") from error
    if schema not in (2, SCHEMA):
        way_out = "update dris" if schema > SCHEMA else "train again, or use the dris that wrote it"
        raise CheckpointError(f"{path} has schema {schema}, this version reads 2 and {SCHEMA}: {way_out}")
    if fingerprint(tensors, json.dumps(header) if schema > 2 else metadata["dris"]) != checksum:
        raise CheckpointError(f"{path} is damaged: its checksum does not match its tensors and header")
    if found != kind:
        raise CheckpointError(f"{path} is a {found}, expected a {kind}")
    _check_finite(path, tensors)
    return Checkpoint(kind, tensors, config if schema > 2 else _upgraded(config), progress)


def _upgraded(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration of schema 2 in today's words."""

    def renamed(values: Any) -> Any:
        return {RENAMED.get(k, k): v for k, v in values.items()} if isinstance(values, dict) else values

    new = {key: renamed(value) for key, value in config.items() if key != "contract"}
    return new | ({"interface": config["contract"]} if "contract" in config else {})


def _check_finite(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype not in TYPES:
            raise CheckpointError(f"{path}: tensor '{name}' is of {tensor.dtype}, which no checkpoint has")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{path}: tensor '{name}' is not finite")


def load_into(module: torch.nn.Module, tensors: dict[str, torch.Tensor], what: str) -> None:
    """Load tensors into a module, after checking every name and shape.

    Raises:
        CheckpointError: A tensor is missing, unknown or of another shape.
    """
    expected = {name: (tuple(t.shape), t.dtype) for name, t in module.state_dict().items()}
    got = {name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}
    if expected != got:
        wrong = sorted(n for n in expected.keys() | got.keys() if expected.get(n) != got.get(n))
        name = wrong[0]
        raise CheckpointError(
            f"{what} does not fit: '{name}' is {got.get(name)}, expected {expected.get(name)} "
            f"({len(wrong)} tensors differ)"
        )
    module.load_state_dict(tensors)


def named(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors with `prefix` and a dot before their names: what `Checkpoint.group` takes off again."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def adam_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Adam's moments and step counts as tensors."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, entry in state.items() for name, value in entry.items()}


def load_adam(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    """The inverse of `adam_tensors`."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = tensor.reshape(()) if name == "step" else tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
