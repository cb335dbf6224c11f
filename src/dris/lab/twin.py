"""The twin of the robot: the laboratory's model under the paper's torque law, one millisecond at a time.

    tau = K (q~ - q) - D dq + C(q, dq) + g(q)        (paper, Eq. 13)

is computed at 1 kHz as the robot does, cut to 1000 Nm/s and to the joints' torque limits, and held for the
tick, in which MuJoCo takes several steps. A reference acts after the command latency. Everything random is
drawn at `reset` from its seed: the same seed gives the same bits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, fields

import mujoco
import numpy as np

from dris.catching.kinematics import Kinematics
from dris.catching.law import FCI_TORQUE_RATE, TICK_S, LawConfig, TorqueLaw
from dris.catching.settings import CatchingConfig
from dris.lab.forces import Forces
from dris.lab.launch import Launch, Scene, Start
from dris.lab.model import JOINTS, LabConfig, RampShape, build
from dris.lab.objects import CatchObject
from dris.lab.state import State
from dris.lab.window import WINDOW, hiding, outside

_TASK = CatchingConfig()
_FLAGS_OFF = (
    mujoco.mjtRndFlag.mjRND_SHADOW,
    mujoco.mjtRndFlag.mjRND_REFLECTION,
    mujoco.mjtRndFlag.mjRND_SKYBOX,
    mujoco.mjtRndFlag.mjRND_HAZE,
)


@dataclass(frozen=True)
class TwinConfig:
    """The robot's drives, and the laboratory it stands in."""

    lab: LabConfig = field(default_factory=LabConfig)
    stiffness: tuple[float, ...] = _TASK.stiffness
    """K [Nm/rad]; the training's until identified: see gains.py."""
    damping: tuple[float, ...] = _TASK.damping
    """D [Nm s/rad]"""
    torque_rate: float | None = FCI_TORQUE_RATE
    """Largest change of torque [Nm/s]: FCI's necessary condition. None leaves it unlimited."""
    joint_speed: float | None = None
    """Share of the joints' speed limits that the law drives at: position errors count no further than
    D / K times that speed, and less near the end of a range. None: without such a limit."""
    governor: float | None = None
    """Share of FCI's torque rate and of the torque limits that the law itself keeps to, by acting more slowly
    on a reference that jumps: K (q~ - q) - D dq changes and grows no further. None: it asks for what it
    wants, and is cut."""
    brakes_in_time: bool = False
    """Whether a governed law takes the speed that a joint will have once its torque has been taken back at
    the governor's rate. With stiff gains it overshoots otherwise."""
    reference_lead: float = 1.0
    """How far a controller's references may lead, over what drives joints at their speed limits: within a
    control step the arm catches up with them, and a law that brakes in time keeps the speed."""
    latency_s: float = 0.002
    """From setting a reference to its first torque [s] [assumed: one cycle to arrive, one to act]."""
    home: tuple[float, ...] = _TASK.home
    """[rad]"""
    mount: str = _TASK.mount
    """How the hand holds the plate: see dris.catching.robot_model."""

    def __post_init__(self) -> None:
        """Refuse drives that make no sense."""
        for name in ("stiffness", "damping", "home"):
            if len(getattr(self, name)) != JOINTS:
                raise ValueError(f"{name} needs {JOINTS} values, got {getattr(self, name)}")
        if min(self.stiffness) < 0 or min(self.damping) < 0:
            raise ValueError(f"gains must not be negative, got {self.stiffness}, {self.damping}")
        if self.torque_rate is not None and not self.torque_rate > 0:
            raise ValueError(f"torque_rate must be positive or None, got {self.torque_rate}")
        if self.joint_speed is not None and not 0 < self.joint_speed <= 1:
            raise ValueError(f"joint_speed must lie in (0, 1] or be None, got {self.joint_speed}")
        if self.brakes_in_time and self.governor is None:
            raise ValueError("brakes_in_time needs a governor, whose rate it brakes with")
        if not self.reference_lead >= 1:
            raise ValueError(f"reference_lead must be at least 1, got {self.reference_lead}")
        if not 0 <= self.latency_s <= 1:
            raise ValueError(f"latency_s must lie in [0, 1] s, got {self.latency_s}")
        steps = TICK_S / self.lab.timestep
        if abs(steps - round(steps)) > 1e-9:
            raise ValueError(f"timestep {self.lab.timestep} does not divide the tick of {TICK_S} s")


class Twin:
    """One robot, one thing, one laboratory. Call `reset`, then `set_reference` and `advance`."""

    def __init__(self, config: TwinConfig | None = None):
        """Nothing is simulated before the first `reset`."""
        self.config = config or TwinConfig()
        self.kinematics = Kinematics(self.config.home, self.config.mount)
        self._steps = round(TICK_S / self.config.lab.timestep)
        self._latency = round(self.config.latency_s / TICK_S)
        rate = self.config.torque_rate
        self._largest_change = np.inf if rate is None else rate * TICK_S
        self._built: tuple[CatchObject, RampShape | None] | None = None
        self._renderers: dict[tuple[int, int], mujoco.Renderer] = {}

    def reset(self, thing: CatchObject, launch: Launch, seed: int) -> State:
        """Start a trial: robot at rest at its start, the thing on its way."""
        scene = Scene(self.config.lab, thing, self.kinematics)
        start = launch.start(scene, np.random.default_rng(seed))
        self._build(thing, start.ramp)
        self.thing = thing
        mujoco.mj_resetData(self.model, self.data)
        joints = np.array(self.config.home if start.joints is None else start.joints)
        low, high = self.kinematics.low, self.kinematics.high
        if (joints < low).any() or (joints > high).any():
            raise ValueError(f"start {joints.round(3).tolist()} lies outside the joint limits")
        self._place(start, joints)
        self.ticks = 0
        self.speed_share = 0.0
        """Largest joint speed so far, as a share of what FCI allows at that joint's position."""
        self.limited_ticks = 0
        """Ticks in which a limit changed a torque."""
        self.governed_ticks = 0
        """Ticks in which the governor held the law back."""
        self.largest_torque = np.zeros(JOINTS)
        """[7] largest torque that the law asked for so far [Nm], and"""
        self.largest_rate = np.zeros(JOINTS)
        """[7] largest change of torque that it asked for within a tick, over the tick [Nm/s]."""
        self._reference = joints.copy()
        law = LawConfig(**{f.name: getattr(self.config, f.name) for f in fields(LawConfig)})
        self.law = TorqueLaw(law, self.kinematics.limits, self._torque_limit)
        self._pending: deque[tuple[int, np.ndarray]] = deque()
        mujoco.mj_forward(self.model, self.data)
        self.torque = self.data.qfrc_bias[:JOINTS].copy()
        """[7] of the last tick [Nm]: an arm at rest holds itself."""
        return self.state()

    def _build(self, thing: CatchObject, ramp: RampShape | None) -> None:
        if self._built == (thing, ramp):
            return
        self.close()
        self.model = build(self.config.lab, thing, ramp, self.config.mount)
        self.data = mujoco.MjData(self.model)
        self.forces = Forces(self.model, self.config.lab, thing)
        self._site = self.model.site("plate").id
        self._qpos = int(self.model.joint("thing").qposadr[0])
        self._dof = int(self.model.joint("thing").dofadr[0])
        self._torque_limit = self.model.jnt_actfrcrange[:JOINTS, 1].copy()
        self._built = (thing, ramp)

    def _place(self, start: Start, joints: np.ndarray) -> None:
        data, at, dof = self.data, self._qpos, self._dof
        data.qpos[:JOINTS], data.qvel[:] = joints, 0.0
        data.qpos[at : at + 3], data.qpos[at + 3 : at + 7] = start.position, (1, 0, 0, 0)
        data.qvel[dof : dof + 3], data.qvel[dof + 3 : dof + 6] = start.velocity, start.spin

    def _check_started(self) -> None:
        if self._built is None:
            raise RuntimeError("the twin stands still: call reset(thing, launch, seed) first")

    @property
    def time_s(self) -> float:
        """The robot's clock since `reset` [s]: what a controller should run on."""
        return self.ticks * TICK_S

    def joints(self) -> np.ndarray:
        """Measured joint positions [7] [rad]."""
        return self.data.qpos[:JOINTS].copy()

    @property
    def torque_limit(self) -> np.ndarray:
        """[7] largest torques [Nm]."""
        return self._torque_limit

    @property
    def touched(self) -> bool:
        """Whether anything touches the thing: ramp, plate, robot or floor."""
        return self.data.ncon > 0

    def set_reference(self, q: np.ndarray) -> None:
        """Ask for joints [7]; acts after the latency, kept inside the joint limits.

        Raises:
            ValueError: Not seven finite numbers.
        """
        self._check_started()
        q = np.asarray(q, dtype=float)
        if q.shape != (JOINTS,) or not np.isfinite(q).all():
            raise ValueError(f"a reference is {JOINTS} finite joint positions, got {q}")
        inside = np.clip(q, self.kinematics.low, self.kinematics.high)
        self._pending.append((self.ticks + self._latency, inside))

    def advance(self, ticks: int = 1) -> None:
        """Let `ticks` milliseconds pass."""
        self._check_started()
        for _ in range(ticks):
            self._begin_tick()
            self._end_tick(self._law(), self._largest_change)

    def advance_with_torque(self, torque: np.ndarray) -> None:
        """Let a millisecond pass under torques [7] from outside, gravity included, instead of the law's.

        They are cut to the joints' torque limits; how fast they may change is for others to judge.
        """
        self._check_started()
        self._begin_tick()
        self._end_tick(torque, np.inf)

    def _begin_tick(self) -> None:
        self.forces.apply(self.data)
        mujoco.mj_step1(self.model, self.data)  # C + g at the present state

    def _law(self) -> np.ndarray:
        """Torques [7] that the paper's law asks for in this tick."""
        data = self.data
        while self._pending and self._pending[0][0] <= self.ticks:
            self._reference = self._pending.popleft()[1]
        q, dq, bias = data.qpos[:JOINTS], data.qvel[:JOINTS], data.qfrc_bias[:JOINTS]
        wished = self.law.torque(q, dq, self._reference, bias, self.torque, self._gained_speed)
        self.governed_ticks += self.law.governed
        return wished

    def _end_tick(self, wished: np.ndarray, largest_change: float) -> None:
        """Cut torques to their limits and to a change within the tick, and let it pass."""
        model, data = self.model, self.data
        q, dq = data.qpos[:JOINTS], data.qvel[:JOINTS]
        np.maximum(self.largest_torque, np.abs(wished), out=self.largest_torque)
        np.maximum(self.largest_rate, np.abs(wished - self.torque) / TICK_S, out=self.largest_rate)
        # Minima and maxima: np.clip takes four times as long for so few numbers.
        change = np.minimum(np.maximum(wished - self.torque, -largest_change), largest_change)
        torque = np.minimum(np.maximum(self.torque + change, -self._torque_limit), self._torque_limit)
        self.limited_ticks += max(np.abs(torque - wished).tolist()) > 1e-9
        self.torque = torque
        data.qfrc_applied[:JOINTS] = torque
        mujoco.mj_step2(model, data)
        if self._steps > 1:
            mujoco.mj_step(model, data, nstep=self._steps - 1)
        down, up = self.kinematics.speed_limits_at(q)
        allowed = np.maximum(np.where(dq > 0, up, down), 1e-9)
        self.speed_share = max(self.speed_share, *(np.abs(dq) / allowed).tolist())
        self.ticks += 1

    def _gained_speed(self, impulse: np.ndarray) -> np.ndarray:
        """M^-1 times an impulse of the joints [7]."""
        gained, padded = np.zeros((2, 1, self.model.nv))
        padded[0, :JOINTS] = impulse
        mujoco.mj_solveM(self.model, self.data, gained, padded)
        return gained[0, :JOINTS]

    def state(self) -> State:
        """The truth, now."""
        self._check_started()
        data, at, dof = self.data, self._qpos, self._dof
        # Poses of the end of the last step; MuJoCo itself keeps those of its beginning.
        mujoco.mj_kinematics(self.model, data)
        body = data.body("thing")
        return State(
            time_s=self.time_s,
            q=data.qpos[:JOINTS].copy(),
            dq=data.qvel[:JOINTS].copy(),
            torque=self.torque.copy(),
            thing_position=data.qpos[at : at + 3].copy(),
            thing_velocity=data.qvel[dof : dof + 3].copy(),
            thing_spin=body.xmat.reshape(3, 3) @ data.qvel[dof + 3 : dof + 6],
            plate_position=data.site_xpos[self._site].copy(),
            plate_rotation=data.site_xmat[self._site].reshape(3, 3).copy(),
        )

    def render(self, camera: str, window: tuple[int, int] | None = None) -> np.ndarray:
        """The picture [height, width, 3] that a camera takes now, 8-bit RGB.

        Needs a way to draw without a screen: set MUJOCO_GL=egl before Python starts.

        Args:
            camera: Its name.
            window: Left and top of a square of `WINDOW` pixels, which may reach over the picture's edge: only
                that is drawn, in a third of the time. None: the whole picture.

        Raises:
            ValueError: There is no such camera.
        """
        self._check_started()
        known = {c.name: c for c in self.config.lab.cameras}
        if camera not in known:
            raise ValueError(f"there is no camera '{camera}'; known: {', '.join(known)}")
        whole = (known[camera].height, known[camera].width)
        size = whole if window is None else (WINDOW, WINDOW)
        if size not in self._renderers:
            # Buffers no larger than the picture: every drawing clears all of them.
            self.model.vis.global_.offheight, self.model.vis.global_.offwidth = size
            self._renderers[size] = mujoco.Renderer(self.model, *size)
            for flag in _FLAGS_OFF:
                self._renderers[size].scene.flags[flag] = False
        renderer = self._renderers[size]
        mujoco.mj_kinematics(self.model, self.data)
        if window is None:
            renderer.update_scene(self.data, camera)
        else:
            with hiding(self.model, outside(self.model, self.data, known[camera], window)):
                renderer.update_scene(self.data, camera)
            for eye in renderer.scene.camera:
                pixel = (eye.frustum_top - eye.frustum_bottom) / whole[0]  # on the near plane
                eye.frustum_top = pixel * (0.5 * whole[0] - window[1])
                eye.frustum_bottom = pixel * (0.5 * whole[0] - window[1] - WINDOW)
                eye.frustum_center = pixel * (window[0] + 0.5 * WINDOW - 0.5 * whole[1])
        return renderer.render()

    def close(self) -> None:
        """Give the renderers back."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers = {}
