"""A policy as a folder that needs no dris: network, contract, golden cases, weights, model card, run.py.

    policy.onnx         encoder, FiLM, MLP and clamp in one graph; any batch, sets of any size
    contract.json       what its numbers mean: see `dris.robot.contract`
    golden.npz          inputs and answers of the policy that was trained
    model.safetensors   the policy file itself
    run.py              runs it with NumPy and onnxruntime alone
    README.md           model card: scores with intervals, and what it is not fit for

Uses torch; what runs on a robot (`dris.robot.runtime`) does not.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dris.catching.settings import CatchingConfig
from dris.core.constants import EVALUATION_SEED
from dris.core.env import Env, EnvConfig, Observation
from dris.core.files import write_atomically, write_json
from dris.core.validation import check_extra
from dris.evaluation.registry import PolicyHandle, find_policy, policy_file, trained_policy
from dris.evaluation.scores import score
from dris.learning.policy import Policy
from dris.robot.card import model_card
from dris.robot.contract import (
    CONTRACT,
    GOLDEN,
    HASHED,
    METADATA,
    ONNX,
    RUN,
    WEIGHTS,
    check_folder,
    sha256,
)  # fmt: skip
from dris.robot.describe import contract_of
from dris.robot.frame_cases import frame_cases

GOLDEN_CASES = {1: 80, 10: 10, 200: 10}
"""Cases of each set size."""
OPSET = 18
CONDITIONS = ("clean", "noise-2", "noise-4")
"""That the model card's scores are told under, besides the task's own of `CARD_OWN`."""
CARD_OWN = ("execution", "restitution")


class PolicyGraph(torch.nn.Module):
    """A policy whose inputs are tensors: states [B, N, S] and condition [B, C] to actions in [-1, 1]."""

    def __init__(self, policy: Policy):
        super().__init__()
        self._first_alone = policy.config.visible == "first"
        self.encoder = policy.encoder if policy.config.encoder == "frozen" else None
        self.actor = policy.actor.as_onnx()

    def forward(self, states: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        """Actions [B, A]."""
        seen = states[:, :1] if self._first_alone else states
        return self.actor(seen if self.encoder is None else self.encoder(seen), condition).clamp(-1.0, 1.0)


def export(name: str, out: Path, episodes: int = 1000, task: str | None = None) -> dict[str, Any]:
    """Write a policy as a folder.

    Args:
        name: Of the policy: one that ships, a run folder, a file.
        out: Folder, made if it is not there, and empty; or of an earlier export, whose files are replaced.
        episodes: Of each of the model card's scores; 0: none.
        task: Where its task is now, if not where its file says.

    Returns:
        The contract.

    Raises:
        ValueError: There is no such policy, it is a baseline, or the folder holds something else.
    """
    check_folder(out)
    check_extra("onnx", "export")
    handle = find_policy(name, task)
    policy = trained_policy(handle)
    out.mkdir(parents=True, exist_ok=True)
    contract = contract_of(handle)
    shutil.copyfile(policy_file(name), out / WEIGHTS)
    shutil.copyfile(Path(__file__).parent / "standalone" / RUN, out / RUN)
    write_atomically(out / ONNX, _onnx(policy, contract))
    cases = golden_cases(handle, policy)
    with io.BytesIO() as buffer:
        np.savez_compressed(buffer, **cases)  # type: ignore[arg-type]
        write_atomically(out / GOLDEN, buffer.getvalue())
    contract["files"] = {file: sha256(out / file) for file in HASHED}
    write_json(out / CONTRACT, contract)
    scores = _scores(handle, episodes) if episodes else []
    write_atomically(out / "README.md", model_card(contract, scores).encode())
    return contract


def golden_cases(handle: PolicyHandle, policy: Policy) -> dict[str, np.ndarray]:
    """Observations as they come in episodes of the policy, and its answers; of catching, frames too."""
    cases: dict[str, np.ndarray] = {}
    for size, count in GOLDEN_CASES.items():
        seen = _observations(handle, policy, size, count)
        answered = policy.act(seen)
        cases |= {f"states_{size}": seen.states.numpy(), f"condition_{size}": seen.condition.numpy()}
        cases[f"actions_{size}"] = answered.numpy()
    if isinstance(handle.task_config, CatchingConfig):
        cases |= frame_cases(handle.task_config)
    return cases


def _observations(handle: PolicyHandle, policy: Policy, size: int, count: int) -> Observation:
    """Of `count` sets, each at another step of its episode."""
    env = Env(handle.make_task(), EnvConfig(count, size, seed=EVALUATION_SEED, noise=1.0))
    seen = env.reset()
    states, condition = seen.states.clone(), seen.condition.clone()
    for step in range(1, env.task.horizon):
        seen = env.step(policy.act(seen)).observation
        now = torch.arange(count) % env.task.horizon == step
        states[now], condition[now] = seen.states[now], seen.condition[now]
    return Observation(states, condition)


def _onnx(policy: Policy, contract: dict[str, Any]) -> bytes:
    """The graph, with the contract in its metadata."""
    import onnx

    graph = PolicyGraph(policy).eval()
    task = policy.task
    batch, size = torch.export.Dim("batch"), torch.export.Dim("instances")
    inputs: tuple[torch.Tensor, ...] = (
        torch.zeros(2, 3, len(task.state_names)),
        torch.zeros(2, task.condition_size),
    )
    inputs = inputs if task.condition_size else inputs[:1]
    names = ["states", "condition"][: len(inputs)]
    shapes = ({0: batch, 1: size}, {0: batch})[: len(inputs)]
    # The exporter misses packages that nobody needs here, and says so.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        made = torch.onnx.export(
            graph, inputs, input_names=names, output_names=["actions"], dynamic_shapes=shapes, dynamo=True,
            opset_version=OPSET, verbose=False,
        )  # fmt: skip
    assert made is not None
    model = made.model_proto
    onnx.helper.set_model_props(model, {METADATA: json.dumps(contract)})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _scores(handle: PolicyHandle, episodes: int) -> list[dict[str, Any]]:
    known = handle.task.conditions()
    names = (*CONDITIONS, *(name for name in CARD_OWN if name in known))
    return [score(handle, name, episodes, EVALUATION_SEED) for name in names]
