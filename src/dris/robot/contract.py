"""What a policy relies on, in one file beside it: `contract.json`.

Whoever runs an exported policy finds here what its numbers mean: frames, units, order, rates, scales, what an
action asks for, gains, limits, the whole configuration of its task, and the hashes of the files beside it.
Needs neither torch nor a simulator.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from dris.belief.config import BeliefConfig
from dris.catching.settings import CatchingConfig
from dris.core.errors import DrisError
from dris.core.schema import read_as
from dris.core.typed import from_plain

KIND = "policy-contract"
CONTRACT, ONNX, GOLDEN, WEIGHTS, RUN = (
    *("contract.json", "policy.onnx", "golden.npz", "model.safetensors", "run.py"),
)
"""Files of an exported policy; its model card is README.md."""
HASHED = (ONNX, GOLDEN, WEIGHTS, RUN)
CATCHING = "dris.catching.task:CatchingTask"


class ContractError(DrisError, ValueError):
    """An exported policy that cannot be used; the message names the file, the reason and the way out."""


class States(msgspec.Struct, frozen=True):
    """The set that the policy sees, [batch, instances, S]."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    noise_scale: tuple[float, ...]
    """One standard deviation of observation noise, in those units."""


class Condition(msgspec.Struct, frozen=True):
    """What it sees besides, [batch, C]."""

    size: int
    meaning: str


class Action(msgspec.Struct, frozen=True):
    """What it answers, [batch, A], inside [-1, 1]."""

    size: int
    meaning: tuple[str, ...]


class Contract(msgspec.Struct, frozen=True):
    """The file, typed; keys that are for people alone are not read."""

    dris: str
    policy: str
    task: str
    task_config: dict[str, Any]
    belief: dict[str, Any]
    step_s: float
    states: States
    condition: Condition
    action: Action
    tolerance: float
    """Largest difference from the golden cases."""
    files: dict[str, str]
    """SHA-256 of the files beside it."""

    def catching(self) -> CatchingConfig:
        """What its actions mean on an arm that catches.

        Raises:
            ContractError: It does something else.
        """
        if self.task != CATCHING:
            raise ContractError(f"'{self.policy}' was trained on {self.task}; this robot does {CATCHING}")
        try:
            return from_plain(CatchingConfig, self.task_config, f"{CONTRACT}: task_config")
        except ValueError as error:
            raise ContractError(f"{error}; export the policy again with this version of dris") from error

    def named(self) -> dict[str, str]:
        """Which policy it is, for a log."""
        return {"policy": self.policy, "weights": self.files[WEIGHTS]}

    def filter(self) -> BeliefConfig:
        """What stands between what is seen and it."""
        return from_plain(BeliefConfig, self.belief, f"{CONTRACT}: belief")


def sha256(file: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def read_contract(folder: Path) -> Contract:
    """The contract in a folder that `dris export` made, after comparing the files beside it.

    Raises:
        ContractError: A file is missing or is not the one that was exported.
    """
    file = folder / CONTRACT
    if not file.is_file():
        raise ContractError(f"{folder} is no exported policy: it has no {CONTRACT}; see `dris export`")
    try:
        contract = read_as(file, Contract, KIND)
    except ValueError as error:
        raise ContractError(str(error)) from error
    for name in HASHED:
        if name not in contract.files:
            raise ContractError(f"{file} has no hash of {name}: export the policy again")
        if not (folder / name).is_file():
            raise ContractError(f"{folder} has no {name}: copy the whole folder, or export again")
        if sha256(folder / name) != contract.files[name]:
            raise ContractError(f"{folder / name} is not the file that was exported: copy it again")
    return contract
