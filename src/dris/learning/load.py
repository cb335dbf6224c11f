"""Policies on disk: read one, checked, ready to act."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dris.core.task import Task
from dris.learning.checkpoint import CheckpointError, load_checkpoint, load_into
from dris.learning.encoder import EncoderConfig
from dris.learning.policy import Policy, PolicyConfig


def load_policy(file: Path, make_task: Callable[[], Task]) -> Policy:
    """A policy from its file, ready to act.

    Raises:
        CheckpointError: The file cannot be used for this task; the message says why.
    """
    saved = load_checkpoint(file, "policy")
    try:
        encoder = EncoderConfig(**with_tuples(saved.config["encoder"]))
        stored = {"visible" if name == "view" else name: v for name, v in saved.config["policy"].items()}
        config = PolicyConfig(**with_tuples(stored))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{file}: its configuration cannot be read: {error}") from error
    task = make_task()
    policy = Policy(task, encoder, config)
    load_into(policy.actor, saved.group("actor"), str(file))
    load_into(policy.encoder, saved.group("encoder"), str(file))
    _compare(file, saved.config.get("contract", {}), json.loads(json.dumps(task.contract())))
    return policy


def _compare(file: Path, trained: dict[str, Any], present: dict[str, Any]) -> None:
    """Refuse a policy whose task meant something else by its actions."""
    for name in sorted(trained.keys() | present.keys()):
        if trained.get(name) != present.get(name):
            raise CheckpointError(
                f"{file} was trained with {name} = {trained.get(name)}, this task has {present.get(name)}: "
                "build the task it was trained on, or train again"
            )


def with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    """JSON lists as the tuples they were."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
