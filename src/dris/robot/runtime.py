"""An exported policy that acts: NumPy and onnxruntime, without torch and without Warp.

`Controller(runtime.act_one, runtime.contract.catching())` is its control path on one robot.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from dris.core.validation import check_extra
from dris.robot.contract import (
    CATCHING,
    GOLDEN,
    METADATA,
    ONNX,
    ContractError,
    check_unchanged,
    read_contract,
)

LARGEST = float(np.finfo(np.float32).max)
NOT_FINITE = "the observation is not finite: do not act on it"


class Runtime:
    """A policy from a folder that `dris export` made. It answers to its golden cases before it may act."""

    def __init__(self, folder: Path):
        """Load and check.

        Raises:
            ContractError: A file or a value of the contract is missing or changed, the network has other
                shapes than the contract says, or the golden cases come out otherwise.
        """
        check_extra("onnxruntime", "robot")
        import onnxruntime

        self.contract = read_contract(folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # a tick has no time to wake threads
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                (folder / ONNX).read_bytes(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own exceptions have no common base
            raise ContractError(f"{folder / ONNX} cannot be run: {error}") from error
        self._check_shapes(folder)
        check_unchanged(folder, self._session.get_modelmeta().custom_metadata_map.get(METADATA))
        self._bind_one()
        cases = _read_golden(folder / GOLDEN)
        self._check_golden(folder / GOLDEN, cases)
        if self.contract.task == CATCHING:
            self._check_frames(folder / GOLDEN, cases)

    def act(self, states: np.ndarray, condition: np.ndarray) -> np.ndarray:
        """Actions [B, A] within [-1, 1] for states [B, N, S] and conditions [B, C].

        Raises:
            ValueError: They have other shapes, or hold what is not finite.
        """
        contract = self.contract
        states, condition = (np.asarray(values, dtype=np.float32) for values in (states, condition))
        size = len(contract.states.names)
        if states.ndim != 3 or states.shape[1] < 1 or states.shape[2] != size:
            names = ", ".join(contract.states.names)
            raise ValueError(f"states must be [B, N, {size}] ({names}), got {list(states.shape)}")
        if condition.shape != (len(states), contract.condition.size):
            expected = [len(states), contract.condition.size]
            raise ValueError(f"the condition must be {expected}, got {list(condition.shape)}")
        if not (np.isfinite(states).all() and np.isfinite(condition).all()):
            raise ValueError(NOT_FINITE)
        given = {"states": states, "condition": condition} if contract.condition.size else {"states": states}
        return self._session.run(["actions"], given)[0]

    def act_one(self, states: np.ndarray, condition: np.ndarray) -> np.ndarray:
        """Action [A] for the state [S] of the one thing that is seen, and a condition [C].

        In memory that onnxruntime knows already: between other work, a fifth faster than `act`.
        """
        states, condition = np.asarray(states), np.asarray(condition)
        if states.shape != self._state.shape[2:] or condition.shape != self._condition.shape[1:]:
            return self.act(states[None, None], condition[None])[0]  # which says what is wrong
        # NaN compares with nothing, and what the network's numbers cannot hold is infinite there.
        if not all(-LARGEST <= value <= LARGEST for value in (*states.tolist(), *condition.tolist())):
            raise ValueError(NOT_FINITE)
        self._state[0, 0], self._condition[0] = states, condition
        self._session.run_with_iobinding(self._one)
        return self._action[0].copy()

    def rehearse(self) -> None:
        """Act once more on what was seen last, for nobody.

        A millisecond before a decision: network and weights are in the processor's caches when it counts.
        """
        self._session.run_with_iobinding(self._one)

    def _bind_one(self) -> None:
        """Memory for one observation and its action."""
        contract = self.contract
        self._state = np.zeros((1, 1, len(contract.states.names)), np.float32)
        self._condition = np.zeros((1, contract.condition.size), np.float32)
        self._action = np.zeros((1, contract.action.size), np.float32)
        self._one = self._session.io_binding()
        given = {"states": self._state, "condition": self._condition}
        for name in [one.name for one in self._session.get_inputs()]:
            values = given[name]
            self._one.bind_input(name, "cpu", 0, np.float32, values.shape, values.ctypes.data)
        action = self._action
        self._one.bind_output("actions", "cpu", 0, np.float32, action.shape, action.ctypes.data)

    def _check_shapes(self, folder: Path) -> None:
        """Refuse a network that is not the contract's."""
        contract = self.contract
        needed = {"states": len(contract.states.names)}
        needed |= {"condition": contract.condition.size} if contract.condition.size else {}
        found = {one.name: one.shape[-1] for one in self._session.get_inputs()}
        answered = {one.name: one.shape[-1] for one in self._session.get_outputs()}
        if found != needed or answered != {"actions": contract.action.size}:
            raise ContractError(
                f"{folder / ONNX} takes {found} and gives {answered}, the contract says {needed} and "
                f"{contract.action.size} actions: export the policy again"
            )

    def _check_golden(self, file: Path, cases: dict[str, np.ndarray]) -> None:
        """Refuse a network that answers otherwise than the one that was trained."""
        sizes = sorted(name.removeprefix("actions_") for name in cases if name.startswith("actions_"))
        if not sizes:
            raise ContractError(f"{file} holds no golden case: export the policy again")
        for size in sizes:
            found = self.act(cases[f"states_{size}"], cases[f"condition_{size}"])
            off = float(np.abs(found - cases[f"actions_{size}"]).max())
            if not off <= self.contract.tolerance:
                raise ContractError(
                    f"with sets of {size} the policy answers {off:.1e} away from its golden cases, "
                    f"{self.contract.tolerance:.0e} is allowed: onnxruntime computes otherwise here"
                )

    def _check_frames(self, file: Path, cases: dict[str, np.ndarray]) -> None:
        """Refuse to act where frames or actions mean something else than when the policy was exported."""
        from dris.robot.frame_cases import frame_answers  # brings MuJoCo; only an arm needs it

        config = self.contract.catching()
        if "expected" not in cases:
            raise ContractError(f"{file} holds no golden case of the frames: export the policy again")
        off = float(np.abs(frame_answers(config, cases) - cases["expected"]).max())
        if not off <= self.contract.tolerance:
            raise ContractError(
                f"{file}: frames and actions come out {off:.1e} away from the golden cases, "
                f"{self.contract.tolerance:.0e} is allowed: this dris reads them otherwise than "
                f"{self.contract.dris}, which exported the policy; export it again"
            )


def _read_golden(file: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(file, allow_pickle=False) as golden:
            return {name: golden[name] for name in golden.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ContractError(f"{file} cannot be read: {error}") from error
