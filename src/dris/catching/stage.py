"""The catch in 3-D: the robot, its set of balls, and a throw that a person chooses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from dris.catching.frames import plate_normal
from dris.catching.robot_model import robot_model
from dris.catching.settings import CatchingConfig
from dris.catching.success import normal_tangential
from dris.core.constants import GRAVITY
from dris.core.stage import Control, Frame, Scene
from dris.sim.mjcf_stage import MjcfStage, shapes_of

if TYPE_CHECKING:
    from dris.catching.task import CatchingTask

FLIGHT_SHOWN_S = 0.6
"""How much of a throw's flight is shown at most before the episode begins [s]."""
CONTROLS = (
    Control("distance", 1.0, 2.0, 1.5, "m", "of the thrower from the plate's home"),
    Control(
        "direction", -90.0, 90.0, 0.0, "deg", "the ball comes from, about the vertical from straight ahead"
    ),
    Control("speed", 4.6, 7.6, 6.2, "m/s", "of the ball when it arrives"),
    Control("spin", -60.0, 60.0, 0.0, "rad/s", "about the horizontal axis across its way; positive: topspin"),
)
"""A throw as a person sees it: in training's ranges, but for spin, of which training's throws have none."""
CHARTED = ("ball speed [m/s]", "distance from the plate's centre [m]")


def flight_time(distance: float, speed: float) -> float:
    """Time of the higher of the two flights over a level distance [m] that arrive at a speed [m/s].

    v^2 = (d / T)^2 + (g T / 2)^2, a quadratic in T^2. Where the speed does not suffice, the slowest flight.
    """
    root = max(speed**4 - (GRAVITY * distance) ** 2, 0.0)
    square = speed**2 + math.sqrt(root) if root else GRAVITY * distance
    return math.sqrt(2 * square) / GRAVITY


def chosen_throw(config: CatchingConfig, values: Mapping[str, float]) -> CatchingConfig:
    """A configuration whose throws are all the one that a person chose; where it lands is drawn."""
    distance, direction = values["distance"], math.radians(values["direction"])
    flight = flight_time(distance, values["speed"])
    return replace(
        config, distance=(distance, distance), incoming=(direction, direction), flight_s=(flight, flight),
        spawn_height=(0.0, 0.0), laid_share=0.0,
    )  # fmt: skip


def spin_vector(velocity: np.ndarray, spin: float) -> np.ndarray:
    """Topspin [rad/s] of a ball with a velocity [3]: about z x v, as of a ball that rolls that way."""
    across = np.array([-velocity[1], velocity[0], 0.0])
    return spin * across / max(float(np.linalg.norm(across)), 1e-9)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmFrame(Frame):
    """A frame of one arm, with its joints."""

    q: np.ndarray
    """[7] [rad]"""


class RobotStage(MjcfStage):
    """The robot and balls around it, in any world: what it shows of joints and balls."""

    controls = CONTROLS
    charted = CHARTED
    camera = ((1.45, -1.15, 1.05), (0.35, 0.0, 0.55))
    close_up = ((0.95, -0.50, 0.85), (0.45, 0.0, 0.55))

    def __init__(self, mount: str, surroundings: mujoco.MjModel | None = None):
        """Of a robot.

        Args:
            mount: How its hand holds the plate.
            surroundings: Model whose fixed shapes stand around it, such as a ramp.
        """
        super().__init__(robot_model(mount), lambda which: None)
        if surroundings is not None:
            self.shapes += tuple(shape for shape in shapes_of(surroundings) if shape.body == 0)
        self.camera, self.close_up = RobotStage.camera, RobotStage.close_up

    def seen(
        self,
        q: np.ndarray,
        balls: np.ndarray,
        velocities: np.ndarray,
        plate: np.ndarray,
        normal: np.ndarray,
        parameters: dict[str, np.ndarray],
        touched: bool,
    ) -> Scene:
        """Joints [7], balls [N, 3] with velocities and parameters [N], plate's centre and normal [3]."""
        displacement = balls - plate
        height, across = normal_tangential(displacement, normal[None])
        radii, rise = parameters["radius"], float(velocities[0, 2])
        square = rise**2 + 2 * GRAVITY * float(displacement[0, 2] - radii[0])
        figures = {
            "plate tilt [deg]": math.degrees(math.acos(min(max(float(normal[2]), -1.0), 1.0))),
            # z + v t - g t^2 / 2 = r, the later of the two times
            "time to arrival [s]": math.nan
            if touched or square < 0 or rise + math.sqrt(square) < 0
            else (rise + math.sqrt(square)) / GRAVITY,
            CHARTED[0]: float(np.linalg.norm(velocities[0])),
            CHARTED[1]: float(np.linalg.norm(displacement[0])),
        }
        lost = (height < 0) | (balls[:, 2] < plate[2] - 0.15)
        return Scene(*self.poses(q), balls, radii, lost, figures, parameters)

    def before(self, scene: Scene, time_s: float) -> Scene | None:
        """Nothing before a trial in the laboratory, which flies the ball itself."""
        return None


class CatchingStage(RobotStage):
    """The training world's catch."""

    def __init__(self, task: CatchingTask):
        super().__init__(task.config.mount)
        self._task = task
        self.poses(task.config.home)
        self._home = self._data.site("plate").xpos.copy()

    def picture(self, which: int, ghost: np.ndarray | None = None) -> np.ndarray:
        """One set from a fixed place [height, width, 3], and where the policy sees its first ball [3]."""
        from dris.catching.drawing import drawing_of

        drawing = drawing_of(self._task.config.mount)
        return drawing.picture(self._task.world.q[which].numpy(), self.scene(which), ghost)

    def scene(self, which: int) -> Scene:
        """The robot and the balls of one set."""
        world = self._task.world
        values = ("radius", "static_friction", "dynamic_friction", "restitution")
        parameters = {name: getattr(world, name)[which].numpy().copy() for name in values}
        q, balls, velocities, plate, quat = (
            part[which].numpy().copy()
            for part in (world.q, world.pos, world.vel, world.plate_pos, world.plate_quat)
        )
        touched = bool(world.impacts[which, 0] > 0 or world.mode[which, 0] > 0)
        return self.seen(q, balls, velocities, plate, plate_normal(quat), parameters, touched)

    def points_of(self, which: int, states: Any) -> np.ndarray:
        """Balls with states (d, v) of the motion frame [M, 6], in the base frame [M, 3]."""
        sets = self._task.world.num_sets
        return self._task.in_base(states[None, :, :3].expand(sets, -1, -1))[which].numpy()

    def configured(self, values: Mapping[str, float]) -> CatchingConfig:
        """One throw."""
        return chosen_throw(self._task.config, values)

    def sketch(self, values: Mapping[str, float]) -> np.ndarray:
        """From the thrower's hand to the plate's home: p + v t - g t^2 / 2, 24 points."""
        angle, flight = math.radians(values["direction"]), flight_time(values["distance"], values["speed"])
        away = np.array([math.cos(angle), math.sin(angle), 0.0])
        time = np.linspace(0.0, flight, 24)[:, None]
        height = 0.5 * GRAVITY * time * (flight - time) * (0.0, 0.0, 1.0)
        return self._home + values["distance"] * (1 - time / flight) * away + height

    def dragged(self, point: np.ndarray) -> dict[str, float]:
        """Distance and direction of the thrower."""
        x, y = (point - self._home)[:2].tolist()
        wished = {"distance": math.hypot(x, y), "direction": math.degrees(math.atan2(y, x))}
        return {c.name: min(max(wished[c.name], c.low), c.high) for c in CONTROLS if c.name in wished}

    def begun(self, which: int, values: Mapping[str, float], instances: int) -> None:
        """Spin."""
        world = self._task.world
        spin = spin_vector(world.vel[which, 0].numpy(), values.get("spin", 0.0))
        world.spin[which, :instances] = world.spin.new_tensor(spin)

    def before(self, scene: Scene, time_s: float) -> Scene | None:
        """The flight: all balls on the parabola of the first; the robot waits. p - v t - g t^2 / 2."""
        velocity = self._task.world.vel[0, 0].numpy()
        if time_s > FLIGHT_SHOWN_S or not velocity.any():
            return None
        fallen = np.array([0.0, 0.0, -0.5 * GRAVITY * time_s**2])
        ball = scene.points[0] - time_s * velocity + fallen
        arrival = scene.figures["time to arrival [s]"] + time_s
        speed = float(np.linalg.norm(velocity + (0.0, 0.0, GRAVITY * time_s)))
        figures = dict(scene.figures) | {"time to arrival [s]": arrival, CHARTED[0]: speed}
        figures[CHARTED[1]] += float(np.linalg.norm(ball - scene.points[0]))
        points = np.broadcast_to(ball, scene.points.shape).copy()
        return replace(scene, points=points, lost=np.zeros(len(points), dtype=bool), figures=figures)
