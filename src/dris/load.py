"""Policies on disk: read one, checked, ready to act."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dris.encoder import EncoderConfig
from dris.policy import Policy, PolicyConfig
from dris.runs import CheckpointError, load_checkpoint, load_into
from dris.task import Task


def load_policy(file: Path, make_task: Callable[[], Task]) -> Policy:
    """A policy from its file, ready to act.

    Raises:
        CheckpointError: The file cannot be used for this task; the message says why.
    """
    saved = load_checkpoint(file, "policy")
    try:
        encoder = EncoderConfig(**_tuples(saved.config["encoder"]))
        config = PolicyConfig(**_tuples(saved.config["policy"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{file}: its configuration cannot be read: {error}") from error
    policy = Policy(make_task(), encoder, config)
    load_into(policy.actor, saved.group("actor"), str(file))
    load_into(policy.encoder, saved.group("encoder"), str(file))
    return policy


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """JSON lists as the tuples they were."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
