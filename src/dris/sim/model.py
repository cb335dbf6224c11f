"""Read a serial arm that carries a plate from MJCF: MuJoCo compiles, we keep what the kernels need.

Everything is expressed in the frame of the body each joint moves, so that any unbranched chain of
hinge and slide joints works. What the kernels do not model is refused by name, never ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike

PLATE = "plate"
"""Name of the site at the centre of the plate's top face (z up) and of the plate's box geom."""

Pose = tuple[np.ndarray, np.ndarray]
"""Position [3] and quaternion (w, x, y, z) [4]."""
_HERE: Pose = (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


_NEEDED_FLAGS = ("constraint", "frictionloss", "limit", "passive", "damper", "clampctrl", "actuation")
"""What a model may not disable: the kernels apply it all."""


class ModelError(ValueError):
    """An MJCF that is not a serial arm with a plate; the message says what would be accepted."""


@dataclass(frozen=True)
class SerialArm:
    """A chain of M joints ending in a plate. Arrays are float64; shapes in brackets.

    Attributes:
        joint_names: One name per joint, base to tip.
        is_hinge: [M] True for a hinge, False for a slide.
        joint_range: [M, 2] lower and upper position limit [rad or m]; infinite if unlimited.
        torque_range: [M, 2] lowest and highest torque [Nm or N]; infinite if unlimited.
        velocity_limit: [M] largest joint speed [rad/s or m/s]; infinite if the model names none. Towards the
            end of a range it falls to sqrt(2 deceleration_limit distance) - velocity_offset.
        velocity_offset: [M] [rad/s or m/s]; zero if the model names none.
        deceleration_limit: [M] [rad/s2 or m/s2]; infinite if the model names none.
        armature: [M] reflected rotor inertia.
        damping: [M] passive viscous damping.
        friction: [M] Coulomb friction [Nm or N]. Up to it a joint is held by the torque
            -friction_inertia (ddq + friction_rate dq), as MuJoCo softens it.
        friction_inertia: [M] [kg m2 or kg]
        friction_rate: [M] [1/s]
        inverse_inertia: [M] diagonal of the inverse mass matrix at zero joint angles.
        body_pos: [M, 3] origin of the joint's body in the previous joint's body (or the world).
        body_quat: [M, 4] its orientation there, (w, x, y, z), at zero joint angle.
        joint_pos: [M, 3] joint anchor in its own body.
        joint_axis: [M, 3] unit joint axis in its own body.
        mass: [M] mass rigidly attached to the joint's body, everything after it excluded.
        com: [M, 3] its centre of mass in the joint's body.
        inertia: [M, 3, 3] its inertia about that centre, axes of the joint's body.
        plate_pos: [3] plate site in the last joint's body.
        plate_quat: [4] its orientation there, (w, x, y, z).
        plate_half_size: [3] half lengths of the plate's box [m]; its top face centre is the site.
        gravity: [3] acceleration of gravity in the base frame [m/s2].
    """

    joint_names: tuple[str, ...]
    is_hinge: np.ndarray
    joint_range: np.ndarray
    torque_range: np.ndarray
    velocity_limit: np.ndarray
    velocity_offset: np.ndarray
    deceleration_limit: np.ndarray
    armature: np.ndarray
    damping: np.ndarray
    friction: np.ndarray
    friction_inertia: np.ndarray
    friction_rate: np.ndarray
    inverse_inertia: np.ndarray
    body_pos: np.ndarray
    body_quat: np.ndarray
    joint_pos: np.ndarray
    joint_axis: np.ndarray
    mass: np.ndarray
    com: np.ndarray
    inertia: np.ndarray
    plate_pos: np.ndarray
    plate_quat: np.ndarray
    plate_half_size: np.ndarray
    gravity: np.ndarray

    @property
    def num_joints(self) -> int:
        """M, the number of joints."""
        return len(self.joint_names)


def load_arm(source: str | Path | mujoco.MjModel) -> SerialArm:
    """Compile an MJCF file and read the serial arm that ends in its plate.

    Args:
        source: Path of an MJCF file, or a model that MuJoCo has compiled already.

    Raises:
        ModelError: The file does not compile, is not one unbranched chain of hinge and slide joints
            with a site and a box geom named "plate", or uses something the kernels do not model.
    """
    if isinstance(source, mujoco.MjModel):
        model = source
    else:
        try:
            model = mujoco.MjModel.from_xml_path(str(source))
        except ValueError as error:
            raise ModelError(f"{source} is not an MJCF that MuJoCo compiles: {error}") from error
    site = _named(model, mujoco.mjtObj.mjOBJ_SITE, "site")
    geom = _named(model, mujoco.mjtObj.mjOBJ_GEOM, "box geom")
    _refuse_unmodelled(model, site, geom)

    path = _path_to_root(model, model.site_bodyid[site])
    joint_bodies = [body for body in path if model.body_jntnum[body] > 0]
    _refuse_branches(model, joint_bodies)

    frames = {0: _HERE}
    for body in range(1, model.nbody):
        # Pose of every body in the frame of the nearest joint body above it.
        above = model.body_parentid[body]
        start = _HERE if above in joint_bodies else frames[above]
        frames[body] = _compose(*start, model.body_pos[body], model.body_quat[body])

    attached = [_lump(model, body, joint_bodies, frames) for body in joint_bodies]
    joints = [model.body_jntadr[body] for body in joint_bodies]
    last = _HERE if model.site_bodyid[site] == joint_bodies[-1] else frames[model.site_bodyid[site]]
    plate_pos, plate_quat = _compose(*last, model.site_pos[site], model.site_quat[site])
    grip, grip_rate = _friction(model, joints)

    return SerialArm(
        joint_names=tuple(model.joint(j).name or f"joint {j}" for j in joints),
        is_hinge=model.jnt_type[joints] == int(mujoco.mjtJoint.mjJNT_HINGE),
        joint_range=np.where(
            model.jnt_limited[joints, None].astype(bool), model.jnt_range[joints], [-np.inf, np.inf]
        ),
        torque_range=np.array([_torque_range(model, joint) for joint in joints]),
        velocity_limit=_numeric(model, "joint_velocity_limit", len(joints)),
        velocity_offset=_numeric(model, "velocity_offset", len(joints), silent=0.0),
        deceleration_limit=_numeric(model, "deceleration_limit", len(joints)),
        armature=model.dof_armature[joints].copy(),
        damping=model.dof_damping[joints].copy(),
        friction=model.dof_frictionloss[joints].copy(),
        friction_inertia=grip,
        friction_rate=grip_rate,
        inverse_inertia=model.dof_invweight0[joints].copy(),
        body_pos=np.array([frames[body][0] for body in joint_bodies]),
        body_quat=np.array([frames[body][1] for body in joint_bodies]),
        joint_pos=model.jnt_pos[joints].copy(),
        joint_axis=model.jnt_axis[joints].copy(),
        mass=np.array([mass for mass, _, _ in attached]),
        com=np.array([com for _, com, _ in attached]),
        inertia=np.array([inertia for _, _, inertia in attached]),
        plate_pos=plate_pos,
        plate_quat=plate_quat,
        plate_half_size=model.geom_size[geom].copy(),
        gravity=np.zeros(3) if _disabled(model, "gravity") else model.opt.gravity.copy(),
    )


def _named(model: mujoco.MjModel, kind: mujoco.mjtObj, word: str) -> int:
    index = mujoco.mj_name2id(model, kind, PLATE)
    if index < 0:
        raise ModelError(
            f"the MJCF has no {word} named '{PLATE}'. It needs a site '{PLATE}' at the centre of the "
            f"plate's top face (z along the normal) and a box geom '{PLATE}' under it."
        )
    return index


def _refuse_unmodelled(model: mujoco.MjModel, site: int, geom: int) -> None:
    """Raise for anything in the model that the arm kernel would silently leave out."""
    if model.geom_type[geom] != int(mujoco.mjtGeom.mjGEOM_BOX):
        raise ModelError(f"geom '{PLATE}' must be a box: the instances touch a flat plate")
    if model.geom_bodyid[geom] != model.site_bodyid[site]:
        raise ModelError(f"site '{PLATE}' and geom '{PLATE}' must belong to the same body")
    top_centre, _ = _compose(
        model.geom_pos[geom], model.geom_quat[geom], [0, 0, model.geom_size[geom][2]], [1, 0, 0, 0]
    )
    same_axes = abs(float(np.dot(model.geom_quat[geom], model.site_quat[site]))) > 1 - 1e-9
    if not same_axes or np.abs(top_centre - model.site_pos[site]).max() > 1e-6:
        raise ModelError(
            f"site '{PLATE}' must be the centre of the top face of geom '{PLATE}', with its axes: "
            f"expected {top_centre} in their body, got {model.site_pos[site]}"
        )
    if model.njnt == 0:
        raise ModelError("the MJCF has no joints; a serial arm needs at least one")
    allowed = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    for joint in range(model.njnt):
        if model.jnt_type[joint] not in allowed:
            raise ModelError(f"joint '{model.joint(joint).name}' is neither hinge nor slide")
    unmodelled = {
        "equality constraints": model.neq > 0,
        "tendons": model.ntendon > 0,
        "joint springs (stiffness)": bool(np.any(model.jnt_stiffness)),
        "joint reference angles (ref)": bool(np.any(model.qpos0)),
        "gravity compensation (gravcomp)": bool(np.any(model.body_gravcomp)),
        "a surrounding fluid (density, viscosity)": model.opt.density != 0 or model.opt.viscosity != 0,
        "damping that is not linear": bool(np.any(getattr(model, "dof_dampingpoly", 0))),
        "actuators with armature or damping": any(
            np.any(getattr(model, f"actuator_{name}", 0)) for name in ("armature", "damping")
        ),
    } | {f'<flag {name}="disable"/>': _disabled(model, name) for name in _NEEDED_FLAGS}
    for what, present in unmodelled.items():
        if present:
            raise ModelError(f"the arm kernel does not model {what}: remove them from the MJCF")


def _disabled(model: mujoco.MjModel, name: str) -> bool:
    """Whether the model has <flag name="disable"/>; MuJoCo's versions differ in the flags they know."""
    return bool(model.opt.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name.upper()}", 0)))


def _torque_range(model: mujoco.MjModel, joint: int) -> np.ndarray:
    """Torques [2] that a joint's own limit and its actuators allow, lowest first.

    The torque law stands in for the actuators' own control laws; the forces they can give stay.
    """
    low, high = model.jnt_actfrcrange[joint] if model.jnt_actfrclimited[joint] else (-np.inf, np.inf)
    name, of_joint = model.joint(joint).name, np.flatnonzero(model.actuator_trnid[:, 0] == joint).tolist()
    if of_joint:
        least, most = np.sum([_actuator_range(model, actuator) for actuator in of_joint], axis=0)
        low, high = max(low, least), min(high, most)
    elif len(model.actuator_trnid):
        raise ModelError(
            f"joint '{name}' has no actuator while others have: give it one, or remove all of them; the "
            "joints' actuatorfrcrange alone are then the limits"
        )
    if low >= high:
        raise ModelError(f"joint '{name}' is left no torque: its limits are {low} and {high}")
    return np.array([low, high])


def _actuator_range(model: mujoco.MjModel, index: int) -> np.ndarray:
    """Joint torques [2] that an actuator can give; infinite without forcerange (or a motor's ctrlrange)."""
    name, gear = model.actuator(index).name or f"number {index}", model.actuator_gear[index, 0]
    joint = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    biases = (int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE))
    plain = (
        model.actuator_trntype[index] in joint
        and model.actuator_gaintype[index] == int(mujoco.mjtGain.mjGAIN_FIXED)
        and model.actuator_biastype[index] in biases
        and model.actuator_dyntype[index] == int(mujoco.mjtDyn.mjDYN_NONE)
        and gear != 0
    )
    if not plain:
        raise ModelError(
            f"actuator '{name}' is not a motor, position or velocity actuator on a joint, with a gear and "
            "without dynamics; the arm kernel's torque law can stand in for those only"
        )
    gain, bias = model.actuator_gainprm[index, 0], model.actuator_biasprm[index]
    low, high = model.actuator_forcerange[index] if model.actuator_forcelimited[index] else (-np.inf, np.inf)
    if model.actuator_ctrllimited[index] and not bias[1:3].any():  # a motor: control is force
        least, most = np.sort(gain * model.actuator_ctrlrange[index] + bias[0])
        low, high = max(low, least), min(high, most)
    return np.sort(gear * np.array([low, high]))


def _friction(model: mujoco.MjModel, joints: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """How MuJoCo softens joint friction: inertia [M] and rate [M] of SerialArm.

    Its constraint holds a joint by -(ddq + b dq) / R, with R = (1 - d) / d times the joint's inverse inertia
    and d and b from solimpfriction and solreffriction (MuJoCo's documentation, "Computation").
    """
    at_rest, most = np.clip(model.dof_solimp[joints, :2], 1e-4, 1 - 1e-4).T
    time_constant, direct = model.dof_solref[joints].T
    rate = np.where(time_constant > 0, 2 / np.where(time_constant > 0, time_constant, 1), -direct) / most
    return at_rest / (1 - at_rest) / model.dof_invweight0[joints], rate


def _refuse_branches(model: mujoco.MjModel, joint_bodies: list[int]) -> None:
    if not joint_bodies:
        raise ModelError(f"no joint moves the site '{PLATE}': it must sit at the end of the arm")
    for body in joint_bodies:
        if model.body_jntnum[body] > 1:
            raise ModelError(f"body '{model.body(body).name}' has several joints; one body each")
    for joint in range(model.njnt):
        body = model.jnt_bodyid[joint]
        if body not in joint_bodies:
            raise ModelError(
                f"joint '{model.joint(joint).name}' on body '{model.body(body).name}' is a branch: "
                f"every joint must lie on the one chain from the base to the site '{PLATE}'"
            )


def _path_to_root(model: mujoco.MjModel, body: int) -> list[int]:
    path = []
    while body != 0:
        path.append(int(body))
        body = model.body_parentid[body]
    return path[::-1]


def _compose(pos_a: ArrayLike, quat_a: ArrayLike, pos_b: ArrayLike, quat_b: ArrayLike) -> Pose:
    """Pose b, given in frame a, expressed in the frame that a is given in."""
    pos, quat = np.zeros(3), np.zeros(4)
    mujoco.mju_mulPose(
        pos, quat, np.array(pos_a, float), np.array(quat_a, float), np.array(pos_b, float),
        np.array(quat_b, float),
    )  # fmt: skip
    return pos, quat


def _matrix(quat: np.ndarray) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quat, float))
    return matrix.reshape(3, 3)


def _lump(
    model: mujoco.MjModel, joint_body: int, joint_bodies: list[int], frames: dict[int, Pose]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and central inertia of all bodies rigidly attached to a joint's body."""
    parts = []
    for body in range(1, model.nbody):
        carrier = body
        while carrier != 0 and carrier not in joint_bodies:
            carrier = model.body_parentid[carrier]
        if carrier != joint_body:
            continue
        start = _HERE if body == joint_body else frames[body]
        pos, quat = _compose(*start, model.body_ipos[body], model.body_iquat[body])
        axes = _matrix(quat)
        parts.append((model.body_mass[body], pos, axes @ np.diag(model.body_inertia[body]) @ axes.T))
    mass = sum(m for m, _, _ in parts)
    com = sum(m * pos for m, pos, _ in parts) / mass
    inertia = sum(
        i + m * (np.dot(pos - com, pos - com) * np.eye(3) - np.outer(pos - com, pos - com))
        for m, pos, i in parts
    )
    return float(mass), com, inertia


def _numeric(model: mujoco.MjModel, name: str, size: int, silent: float = np.inf) -> np.ndarray:
    """An optional <numeric> of one value per joint, or what stands for it where the model is silent."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, name)
    if index < 0:
        return np.full(size, silent)
    start, count = model.numeric_adr[index], model.numeric_size[index]
    if count != size:
        raise ModelError(f"numeric '{name}' has {count} values for {size} joints")
    return model.numeric_data[start : start + count].copy()
