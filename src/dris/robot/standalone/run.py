"""Run this policy with NumPy and onnxruntime alone; `python run.py` tries it.

    policy = Policy(".")                                          # checks itself against golden.npz
    episode = Episode(policy.contract, plate_position, ball_position)  # when the catch begins
    states, condition = episode.observe(ball_position, ball_velocity, plate_position, plate_normal)
    action = policy.act(states[None, None], condition[None])[0]   # every `step_s`
    target_position, target_tilt = episode.target(action, plate_position)

Positions and velocities are in the robot's base frame (x ahead, z up), in metres and m/s. `target_position`
is where the centre of the plate's top face should go, `target_tilt` how far it should be turned from its home
orientation: angle times horizontal axis (x, y), in radians. Inverse kinematics, limits and the torque law are
yours; `contract.json` says which gains and limits the policy was trained with. An FR3 can hurt people: this
file checks nothing but its own arithmetic.

A policy that was trained on sets may be given one: states [1, N, 6]. One that carries a belief (see
`belief` in contract.json) expects the mean of that belief in place of what is seen.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import onnxruntime

FILES = ("policy.onnx", "golden.npz", "model.safetensors", "run.py")
"""Beside contract.json, which has their hashes."""


class Policy:
    """States and condition in, actions within [-1, 1] out."""

    def __init__(self, folder=Path(__file__).parent):
        """Load, compare hashes and contract, answer the golden cases; ValueError if anything differs."""
        folder = Path(folder)
        self.contract = json.loads((folder / "contract.json").read_text())
        hashes = self.contract.get("files") if isinstance(self.contract, dict) else None
        for name in FILES:
            if not isinstance(hashes, dict) or name not in hashes:
                raise ValueError(f"contract.json has no hash of {name}: copy the folder again")
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != hashes[name]:
                raise ValueError(f"{name} is not the file that was exported: copy the folder again")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(
                (folder / "policy.onnx").read_bytes(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own exceptions have no common base
            raise ValueError(f"policy.onnx cannot be run ({error}): copy the folder again") from error
        carried = self._session.get_modelmeta().custom_metadata_map.get("dris", "{}")
        changed = _difference(json.loads(carried), {**self.contract, "files": None})
        if changed:
            raise ValueError(f"contract.json was changed since the export: {changed}; copy the folder again")
        self._inputs = [one.name for one in self._session.get_inputs()]
        self.largest_error = self._check(folder / "golden.npz")

    def act(self, states, condition):
        """Actions [B, A] for states [B, N, S] and conditions [B, C]."""
        given = {"states": np.asarray(states, np.float32), "condition": np.asarray(condition, np.float32)}
        if not all(np.isfinite(values).all() for values in given.values()):
            raise ValueError("the observation is not finite: do not act on it")
        return self._session.run(["actions"], {name: given[name] for name in self._inputs})[0]

    def _check(self, file):
        """The largest difference from the golden cases."""
        with np.load(file, allow_pickle=False) as golden:
            cases = {name: golden[name] for name in golden.files}
        errors = []
        for name in cases:
            if name.startswith("actions_"):
                size = name.removeprefix("actions_")
                found = self.act(cases[f"states_{size}"], cases[f"condition_{size}"])
                errors.append(np.abs(found - cases[name]).max())
        for k in range(len(cases.get("begin_ball", ()))):
            episode = Episode(self.contract, cases["begin_plate"][k], cases["begin_ball"][k])
            seen = [cases[n][k] for n in ("ball_position", "ball_velocity", "plate_position", "plate_normal")]
            states, condition = episode.observe(*seen)
            place, tilt = episode.target(cases["action"][k], seen[2])
            found = np.concatenate((states, condition, place, tilt))
            errors.append(np.abs(found - cases["expected"][k]).max())
        if not errors:
            raise ValueError("golden.npz holds no golden case: copy the folder again")
        worst = float(np.max(errors))  # not a number, if any of them is none
        if not worst <= self.contract["tolerance"]:
            raise ValueError(f"answers {worst:.1e} away from its golden cases: do not use it on this machine")
        return worst


def _difference(exported, told, name="contract"):
    """The first value that differs between two trees, by its name; empty if none does."""
    if not (isinstance(exported, dict) and isinstance(told, dict)):
        return "" if exported == told else f"{name} was {exported}, now {told}"
    keys = sorted(exported.keys() | told.keys())
    parts = (_difference(exported.get(key), told.get(key), f"{name}.{key}") for key in keys)
    return next(filter(None, parts), "")


class Episode:
    """One catch: the motion frame stands where the plate was when it began, turned towards the ball."""

    def __init__(self, contract, plate_position, ball_position):
        """Begin, with both positions [3] as they are now."""
        self._config = contract["task_config"]
        offset = np.subtract(ball_position, plate_position)
        angle = math.atan2(offset[1], offset[0])
        c, s = math.cos(angle), math.sin(angle)
        self._to_base = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        self._middle = np.array(plate_position, dtype=float)
        if self._config["workspace_around"] == "home":
            self._middle = np.array(contract["robot"]["plate_home"])

    def observe(self, ball_position, ball_velocity, plate_position, plate_normal):
        """States [6] and condition [2] as the policy knows them."""
        turn = self._to_base.T
        states = np.concatenate((turn @ np.subtract(ball_position, plate_position), turn @ ball_velocity))
        normal = turn @ plate_normal
        sine = math.hypot(normal[0], normal[1])
        angle = math.atan2(sine, normal[2])
        return states, np.array([-normal[1], normal[0]]) * (angle / max(sine, 1e-9))

    def target(self, action, plate_position):
        """Where the plate should go [3], and its tilt [2], in the base frame."""
        config = self._config
        action = np.clip(np.asarray(action, dtype=float), -1.0, 1.0)
        move = config["displacement"] * action[:3]
        if config["displacement_curve"] == "square":
            move = move * np.abs(action[:3])
        tilt = config["max_tilt"] * action[3:]
        tilt = tilt * (config["max_tilt"] / max(float(np.linalg.norm(tilt)), config["max_tilt"]))
        wished = plate_position + self._to_base @ move
        low, high = np.array(config["workspace_low"]), np.array(config["workspace_high"])
        if config["workspace_around"] == "home":
            place = np.clip(wished, self._middle + low, self._middle + high)
        else:
            inside = np.clip(self._to_base.T @ (wished - self._middle), low, high)
            place = self._middle + self._to_base @ inside
        return place, self._to_base[:2, :2] @ tilt


def main():
    """Check the policy, and say what it is."""
    try:
        policy = Policy()
    except Exception as error:  # whatever is damaged, one line says so
        print(f"run.py: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return 2
    contract = policy.contract
    print(f"{contract['policy']}: within {policy.largest_error:.0e} of its golden cases")
    print(f"states    {', '.join(contract['states']['names'])}")
    print(f"condition {contract['condition']['meaning'] or 'none'}")
    print(f"action    {', '.join(contract['action']['meaning'])}, every {contract['step_s']} s")
    if contract.get("belief", {}).get("update", "none") != "none":
        print(
            "belief    expects the mean of a belief, which this file does not have: sights alone are noisier"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
