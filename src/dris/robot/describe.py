"""What a policy relies on, as plain values: the content of `contract.json` (see `dris.robot.contract`)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dris import __version__
from dris.catching.joint_limits import SAFE_SHARE
from dris.catching.kinematics import Kinematics
from dris.catching.robot_model import robot_model
from dris.catching.settings import CONTROL_IK, JOINTS, CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.schema import header
from dris.core.task import Task
from dris.core.typed import to_plain
from dris.evaluation.registry import PolicyHandle, full_name, policy_file
from dris.learning.checkpoint import load_checkpoint
from dris.robot.contract import CATCHING, KIND

TOLERANCE = 1e-5
"""Between torch and onnxruntime, over actions in [-1, 1]; 4e-7 was seen."""
MOVES = ("plate dx", "plate dy", "plate dz", "plate tilt x", "plate tilt y")


def contract_of(handle: PolicyHandle) -> dict[str, Any]:
    """What a policy relies on; the hashes of its files come last.

    Raises:
        ValueError: It is a baseline, which was not trained.
    """
    task, catches = handle.make_task(), isinstance(handle.task_config, CatchingConfig)
    size = len(task.state_names)
    own = f"{handle.task.__module__}:{handle.task.__name__}"
    contract = {
        **header(KIND),
        "dris": __version__,
        "policy": Path(handle.name).name.removesuffix(".safetensors"),
        "task": CATCHING if full_name(own) == CATCHING else own,
        "step_s": task.step_s,
        "states": {
            "names": list(task.state_names),
            "units": ["m"] * 3 + ["m/s"] * 3 if catches else [""] * size,
            "noise_scale": list(map(float, task.noise_scale)),
        },
        "condition": {
            "size": task.condition_size,
            "meaning": "plate's tilt, angle times axis (x, y) [rad], motion frame" if catches else "",
        },
        "action": {
            "size": task.action_size,
            "meaning": list(MOVES) if catches else [f"action {k}" for k in range(task.action_size)],
        },
        "tolerance": TOLERANCE,
        "trained_on": trained_on(handle, task),
        "task_config": to_plain(handle.task_config),
        "belief": to_plain(handle.belief),
    }
    if catches:
        contract["action"] |= action_part(handle.task_config)
        contract["robot"] = robot_part(handle.task_config)
    return contract


def trained_on(handle: PolicyHandle, task: Task) -> dict[str, Any]:
    """Physics, noise and delay of the run that made a policy; what it may have begun from is not told."""
    run = load_checkpoint(policy_file(handle.name), "policy").config
    domain = task.domain.shifted(**{name: (low, high) for name, low, high in run.get("randomize", ())})
    most, least = run.get("noise", 0.0), run.get("least_noise")
    told: dict[str, Any] = {
        "ranges": {name: asdict(r) | {"of_task": _ends(task, name)} for name, r in domain.items()},
        "of_task": "[low, high] of the task itself, which scores are told on; training may widen it",
        "noise": [most if least is None else least, most],
        "noise_unit": "noise_scale of states, one standard deviation",
        "delay_s": list(run.get("delay_s", (0.0, 0.0))),
    }
    if isinstance(task, CatchingTask):
        told["contact"] = asdict(task.contact) | {
            "pair": "frictions and restitution at a contact: the mean of ball's and plate's; the ball's own "
            "where the plate's is null; bounce_speed [m/s]: slower impacts do not bounce",
        }
    return told


def _ends(task: Task, name: str) -> list[float]:
    return [task.domain[name].low, task.domain[name].high]


def action_part(config: CatchingConfig) -> dict[str, Any]:
    """From five numbers to joints, in order; names are those of `task_config` and `robot`."""
    move, tilt = config.displacement, config.max_tilt
    curve = " |a[0:3]|" if config.displacement_curve == "square" else ""
    box = {
        "home": "plate_home, axes of the base",
        "start": "the plate's place when the catch began, axes of the motion frame",
    }[config.workspace_around]
    if config.joint_speed is None:
        reference = "q~ is sent as it is: no speed limit in training"
    else:
        reference = (
            "q~ - q, all joints in proportion, is shortened until for each |q~ - q| <= "
            f"{config.reference_lead:g} D / K min({config.joint_speed:g} speed, {SAFE_SHARE:g} v(q)); v(q) = "
            "sqrt(2 deceleration (way to the end of its range)) - speed_offset, within [0, speed]"
        )
    names = ("tilt_weight", "yaw_weight", "stay_weight", "home_weight")
    weights = {name: getattr(CONTROL_IK, name) for name in names}
    return {
        "scale": [move] * 3 + [tilt] * 2,
        "units": ["m"] * 3 + ["rad"] * 2,
        "formula": [
            "a = action, cut to [-1, 1]; q [rad], p [m]: joints and centre of the plate's top face now; "
            "phi [rad]: from the base's x axis to the motion frame's",
            f"displacement [m], motion frame: delta = {move:g} a[0:3]{curve}",
            f"tilt [rad], motion frame, angle times axis: t = {tilt:g} a[3:5], shortened to |t| <= {tilt:g}",
            "plate position [m], base: p~ = p + R_z(phi) delta, cut to workspace_low, workspace_high around "
            f"{box}",
            "plate rotation, base: R~ = plate_home_rotation turned by |t| about the horizontal axis "
            "R_z(phi) (t, 0)",
            "joints [rad]: q~ within position_low, position_high has the least |p(q~) - p~|^2 + "
            "tilt_weight |tilt error|^2 + yaw_weight (yaw error)^2 + stay_weight |q~ - q|^2 + "
            "home_weight |q~ - home|^2",
            reference,
        ],
        "inverse_kinematics": {**weights, "unit": "m2/rad2"},
    }


def robot_part(config: CatchingConfig) -> dict[str, Any]:
    """Frames, law, gains, limits and mount of the arm that a catching policy was trained on."""
    arm = Kinematics(config.home, config.mount)
    flange_to_plate = arm.plate_in_flange()
    return {
        "frames": {
            "base": "at the foot of the robot: x ahead, z up",
            "motion": "fixed when a catch begins: at the plate's place then, z up, x towards the ball",
            "states": "ball's centre from the centre of the plate's top face, and its velocity: motion frame",
        },
        "units": "m, rad, s, Nm: stiffness Nm/rad, damping Nm s/rad, home rad, plate_* and positions m",
        "law": "tau = K (q~ - q) - D dq + C, at 1 kHz; the robot adds gravity itself",
        "stiffness": list(config.stiffness),
        "damping": list(config.damping),
        "home": list(config.home),
        "plate_home": arm.home_position.tolist(),
        "plate_home_rotation": arm.home_rotation.tolist(),
        "plate_half_size": list(arm.plate_half_size),
        "plate_in_flange": {"position": flange_to_plate[0].tolist(), "rotation": flange_to_plate[1].tolist()},
        "lead_s": list(config.lead_s),
        "limits": limits_part(config, arm),
    }


def limits_part(config: CatchingConfig, arm: Kinematics) -> dict[str, Any]:
    """What the arm kept to in training, joint by joint; what it did not know of is null."""
    limits = arm.limits
    torque = robot_model(config.mount).jnt_actfrcrange[:JOINTS, 1]
    return {
        "position_low": limits.low.tolist(),
        "position_high": limits.high.tolist(),
        "speed": limits.speed.tolist(),
        "speed_offset": limits.offset.tolist(),
        "deceleration": limits.deceleration.tolist(),
        "joint_speed_share": config.joint_speed,
        "torque": torque.tolist(),
        "torque_rate": config.torque_rate,
        "plate_speed": None,
        "flange_speed": None,
        "units": {
            "position_low": "rad", "position_high": "rad", "speed": "rad/s", "speed_offset": "rad/s",
            "deceleration": "rad/s2", "joint_speed_share": "of speed", "torque": "Nm, gravity included",
            "torque_rate": "Nm/s", "plate_speed": "m/s", "flange_speed": "m/s",
        },
        "null": "there was no such limit in training; a real arm has its own all the same",
    }  # fmt: skip
