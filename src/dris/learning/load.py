"""Policies on disk: read one, checked, ready to act."""

from __future__ import annotations

import json
from pathlib import Path

from dris.core.task import Task
from dris.core.typed import difference, from_plain
from dris.learning.checkpoint import CheckpointError, load_checkpoint, load_into
from dris.learning.config import EncoderConfig, PolicyConfig
from dris.learning.policy import Policy


def load_policy_for(file: Path, task: Task) -> Policy:
    """A policy from its file, ready to act on a task.

    Raises:
        CheckpointError: The file cannot be used for this task; the message says why.
    """
    saved = load_checkpoint(file, "policy")
    trained = saved.config.get("interface")
    if not isinstance(trained, dict):
        raise CheckpointError(f"{file}: its 'interface' is {trained!r}, not values by name")
    try:
        encoder = from_plain(EncoderConfig, saved.config.get("encoder"), "encoder")
        config = from_plain(PolicyConfig, saved.config.get("policy"), "policy")
    except ValueError as error:
        raise CheckpointError(f"{file}: its configuration cannot be read: {error}") from error
    policy = Policy(task, encoder, config)
    load_into(policy.actor, saved.group("actor"), str(file))
    load_into(policy.encoder, saved.group("encoder"), str(file))
    present = json.loads(json.dumps(task.policy_interface()))
    if different := difference(trained, present):
        raise CheckpointError(
            f"{file} was trained with another {different}: build the task it was trained on, or train anew"
        )
    return policy
