"""The policy that the paper's laboratory published, as an agent of the catching task.

Two files are needed, which do not come with this package: the weights of its set encoder and of its policy.
Facts of the laboratory's own code, not its code (docs/released.md):

    z = max over points of (6-64-128-64 with batch norm);  h = layer norm(gamma(u) z + beta(u));  a = MLP(h)

Points are (d, v) in m and m/s, d from the middle of the plate's box; u is the plate's tilt. The action moves
the plate by 0.025 a metres from where it is and tilts it by 0.3 a rad from level, with no limit on a.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

from dris.catching.actions import encode
from dris.catching.frames import normal_of_tilt
from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.env import Observation

PER_ACTION_M, PER_ACTION_RAD = 0.025, 0.3
"""Displacement [m] and tilt [rad] per unit of the action."""
TASK = CatchingConfig(displacement=0.25, max_tilt=0.75)
"""Of the task it acts on: wide enough but for 0.01 % of its actions (1 % at 4 sigma), which ask for more
tilt; a task's tilt must stay below pi/4. Its largest displacement is 0.23 m."""
WHERE = "examples/samplers/catching/ckpts of github.com/Rice-RobotPI-Lab/ManiDreams"

Shapes = dict[str, tuple[int, ...]]


def _linear(name: str, outputs: int, *inputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, *inputs), f"{name}.bias": (outputs,)}


def _batch_norm(name: str, size: int) -> Shapes:
    return {f"{name}.{part}": (size,) for part in ("weight", "bias", "running_mean", "running_var")}


ENCODER_SHAPES: Shapes = (
    _linear("conv1", 64, 6, 1) | _linear("conv2", 128, 64, 1) | _linear("conv3", 64, 128, 1)
    | _batch_norm("bn1", 64) | _batch_norm("bn2", 128) | _batch_norm("bn3", 64)
)  # fmt: skip
"""What is read of the encoder's file; it also holds a decoder."""
POLICY_SHAPES: Shapes = (
    _linear("film.net.0", 64, 2) | _linear("film.net.2", 128, 64) | _linear("post_ln", 64)
    | _linear("actor_mean.mlp.0", 256, 64) | _linear("actor_mean.mlp.2", 256, 256)
    | _linear("actor_mean.mlp.4", 256, 256) | _linear("actor_mean.mlp.6", 5, 256)
)  # fmt: skip
"""What is read of the policy's file; it also holds a critic."""


@dataclass(frozen=True)
class Released:
    """The two files' tensors by name."""

    encoder: dict[str, torch.Tensor]
    policy: dict[str, torch.Tensor]

    def code(self, points: torch.Tensor) -> torch.Tensor:
        """Codes [B, 64] of sets of points [B, N, 6]."""
        x = points
        for k in (1, 2, 3):
            x = functional.linear(x, self.encoder[f"conv{k}.weight"][..., 0], self.encoder[f"conv{k}.bias"])
            mean, variance = self.encoder[f"bn{k}.running_mean"], self.encoder[f"bn{k}.running_var"]
            x = (x - mean) / (variance + 1e-5).sqrt()  # torch's own epsilon
            x = x * self.encoder[f"bn{k}.weight"] + self.encoder[f"bn{k}.bias"]
            x = x.relu() if k < 3 else x
        return x.amax(dim=1)

    def action(self, points: torch.Tensor, tilt: torch.Tensor) -> torch.Tensor:
        """Mean actions [B, 5] for points [B, N, 6] and tilts [B, 2]."""
        gamma, beta = self._layer("film.net.2", self._layer("film.net.0", tilt).relu()).chunk(2, dim=-1)
        mixed = gamma * self.code(points) + beta
        h = functional.layer_norm(mixed, (64,), self.policy["post_ln.weight"], self.policy["post_ln.bias"])
        for k in (0, 2, 4):
            h = functional.elu(self._layer(f"actor_mean.mlp.{k}", h))
        return self._layer("actor_mean.mlp.6", h)

    def _layer(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.policy[f"{name}.weight"], self.policy[f"{name}.bias"])


class ReleasedAgent:
    """The published policy on a catching task of this package."""

    def __init__(self, weights: Released, task: CatchingTask):
        self._weights, self._task = weights, task
        self._half_thickness = float(task.arm.plate_half_size[2])
        self.actions, self.cut = 0, 0
        """Actions so far, and how many of them asked for more than the task allows."""

    def __call__(self, observation: Observation) -> torch.Tensor:
        """Actions [B, 5] in the task's units."""
        normal = normal_of_tilt(observation.condition)
        points = observation.states.clone()
        points[..., :3] += self._half_thickness * normal[:, None]  # from the box's middle, not its top
        with torch.inference_mode():
            action = self._weights.action(points, observation.condition)
        tilt = PER_ACTION_RAD * action[:, 3:]
        # It moves the box's middle; our displacement is that of the top's.
        turned = self._half_thickness * (normal_of_tilt(tilt) - normal)
        displacement = PER_ACTION_M * action[:, :3] + turned
        limits = self._task.config
        beyond = (displacement.abs() > limits.displacement).any(dim=1) | (tilt.norm(dim=1) > limits.max_tilt)
        self.actions, self.cut = self.actions + len(action), self.cut + int(beyond.sum())
        return encode(self._task.config, displacement, tilt)


def load_released(encoder_file: Path, policy_file: Path) -> Released:
    """The published weights; files that run code are not read.

    Raises:
        ValueError: A file is not one of them; the message says what was expected.
    """
    return Released(_read(encoder_file, ENCODER_SHAPES), _read(policy_file, POLICY_SHAPES))


def _read(file: Path, shapes: Shapes) -> dict[str, torch.Tensor]:
    way_out = f"take the laboratory's files, encoder first ({WHERE})"
    if not file.is_file():
        raise ValueError(f"there is no file {file}: {way_out}")
    try:
        found = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError) as error:
        raise ValueError(f"{file} is no file of weights that torch reads safely: {way_out}") from error
    for name, shape in shapes.items():
        tensor = found.get(name) if isinstance(found, dict) else None
        held = tuple(tensor.shape) if isinstance(tensor, torch.Tensor) else "nothing"
        if held != shape:
            raise ValueError(f"{file}: expected {name} of shape {shape}, found {held}; {way_out}")
    return {name: found[name].float() for name in shapes}
