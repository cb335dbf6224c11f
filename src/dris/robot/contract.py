"""What a policy relies on, in one file beside it: `contract.json`.

Whoever runs an exported policy finds here what its numbers mean: frames, units, order, rates, scales, what an
action asks for, gains, limits, the whole configuration of its task, and the hashes of the files beside it.
Needs neither torch nor a simulator.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from dris.belief.config import BeliefConfig
from dris.catching.settings import CatchingConfig
from dris.core.errors import DrisError
from dris.core.files import read_json
from dris.core.schema import read_as
from dris.core.typed import difference, from_plain

KIND = "policy-contract"
CONTRACT, ONNX, GOLDEN, WEIGHTS, RUN = (
    *("contract.json", "policy.onnx", "golden.npz", "model.safetensors", "run.py"),
)
"""Files of an exported policy; its model card is README.md."""
HASHED = (ONNX, GOLDEN, WEIGHTS, RUN)
METADATA = "dris"
"""Under which the network carries its contract, as JSON without `files`."""
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
            ContractError: It does something else, or its numbers contradict each other.
        """
        if self.task != CATCHING:
            raise ContractError(f"'{self.policy}' was trained on {self.task}; this robot does {CATCHING}")
        try:
            config = from_plain(CatchingConfig, self.task_config, f"{CONTRACT}: task_config")
        except ValueError as error:
            raise ContractError(f"{error}; export the policy again with this version of dris") from error
        if config.step_s != self.step_s:
            raise ContractError(
                f"{CONTRACT}: step_s is {self.step_s} s, but {config.step_s} s in task_config: they must be "
                "equal; copy the folder again, or export the policy again"
            )
        return config

    def named(self) -> dict[str, str]:
        """Which policy it is, for a log."""
        return {"policy": self.policy, "weights": self.files[WEIGHTS]}

    def filter(self) -> BeliefConfig:
        """What stands between what is seen and it."""
        return from_plain(BeliefConfig, self.belief, f"{CONTRACT}: belief")


def sha256(file: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_folder(out: Path) -> None:
    """Refuse to export into a folder that holds anything but an earlier export, or what one left unfinished.

    Raises:
        ValueError: A README.md or run.py in it may be somebody else's.
    """
    if not out.is_dir() or not any(out.iterdir()):
        return
    try:
        ours = read_json(out / CONTRACT).get("kind") == KIND
    except (OSError, ValueError):
        ours = False
    names = {found.name for found in out.iterdir()}
    unfinished = WEIGHTS in names and names <= set(HASHED)  # the contract and the card come last
    if not (ours or unfinished):
        raise ValueError(
            f"--out {out} holds files, and no export of a policy (no {CONTRACT}): README.md and {RUN} among "
            "them would be overwritten; name a new or an empty folder"
        )


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


def check_unchanged(folder: Path, carried: str | None) -> None:
    """Refuse a contract that is not the one which its network carries.

    Hashes hold the files beside a contract; this holds the contract itself.

    Args:
        folder: Of the exported policy.
        carried: The network's metadata under `METADATA`.

    Raises:
        ContractError: The message names what differs, with both values.
    """
    file = folder / CONTRACT
    try:
        exported = json.loads(carried or "")
    except ValueError as error:
        raise ContractError(f"{folder / ONNX} carries no contract: export the policy again") from error
    told = {key: value for key, value in read_json(file).items() if key != "files"}
    changed = difference(exported, told)
    if changed:
        raise ContractError(
            f"{file} is not the one that was exported ({changed}): copy the folder again; a policy for other "
            "values must be trained and exported with them"
        )
