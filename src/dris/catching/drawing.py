"""Pictures of the robot with a whole set of balls, drawn by MuJoCo from the same fr3.xml.

Needs a way to render without a screen: MUJOCO_GL=egl or osmesa.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

import mujoco
import numpy as np

from dris.catching.robot_model import robot_spec
from dris.catching.settings import PRESETS
from dris.core.stage import GHOST, HIGH, LOST, LOW, Scene

SIZE, CLOSE_SIZE = (800, 720), (480, 720)
"""Width and height of the whole robot's picture, and of the close-up to the right of it [px]."""
EDGE_PX = 2
"""Width of the line between them."""
MOUNT_SIZE = (600, 500)
BALL = (1.0, 0.45, 0.05)
"""Colour of a ball that stands for any."""
WIRE, WIRE_PX = 1.06, 1.5
"""The wire ball's radius over the ball's, and the width of its lines [px]."""
INK = (30, 30, 30)
"""Of text."""


class Drawing:
    """A scene to draw sets into."""

    def __init__(self, mount: str):
        self._model = _scene(mount)
        self._data = mujoco.MjData(self._model)
        self._whole, self._near = (
            mujoco.Renderer(self._model, height=height, width=width) for width, height in (SIZE, CLOSE_SIZE)
        )
        self._camera, self._close = mujoco.MjvCamera(), mujoco.MjvCamera()
        self._camera.lookat[:] = (0.42, 0.0, 0.70)
        self._camera.distance, self._camera.azimuth, self._camera.elevation = 1.08, 122.0, -12.0
        self._close.distance, self._close.azimuth, self._close.elevation = 0.66, 122.0, -14.0

    def picture(self, q: np.ndarray, scene: Scene, ghost: np.ndarray | None = None) -> np.ndarray:
        """[height, width, 3] of joints [M] and the balls of a set, with a close-up of the plate.

        Lost balls are grey, the first is solid, a wire ball shows where the policy sees it [3].
        """
        self._data.qpos[:] = q
        mujoco.mj_forward(self._model, self._data)
        self._close.lookat[:] = self._data.site("plate").xpos + (0.0, 0.0, 0.13)
        pictures = []
        for renderer, camera in ((self._whole, self._camera), (self._near, self._close)):
            renderer.update_scene(self._data, camera)
            _add_set(renderer.scene, scene)
            if ghost is not None:
                _add_wire_ball(renderer.scene, ghost, scene.radii[0])
            pictures.append(renderer.render())
        picture = np.concatenate(pictures, axis=1)
        picture[:, SIZE[0] : SIZE[0] + EDGE_PX] = 160
        return legend(picture, scene.parameters["restitution"], ghost is not None)


@cache
def drawing_of(mount: str) -> Drawing:
    """The drawing of a mount, kept to the end.

    A renderer must be let go by the thread that used it, and garbage is collected by any.
    """
    return Drawing(mount)


def draw_mounts(file: Path) -> None:
    """Write docs/mounts.png: the robot at home with a ball on its plate, held in each of the two ways."""
    from PIL import Image

    tiles = []
    for preset, text in (("released", "the default, released"), ("paper", "paper, exact and robot")):
        config = PRESETS[preset]
        model = _scene(config.mount)
        data = mujoco.MjData(model)
        data.qpos[:] = config.home
        mujoco.mj_forward(model, data)
        site = data.site("plate")
        camera = mujoco.MjvCamera()
        camera.lookat[:] = (0.36, 0.0, 0.46)
        camera.distance, camera.azimuth, camera.elevation = 1.2, 132.0, -16.0
        with mujoco.Renderer(model, height=MOUNT_SIZE[1], width=MOUNT_SIZE[0]) as renderer:
            renderer.update_scene(data, camera)
            radius = 0.03
            centre = site.xpos + radius * site.xmat.reshape(3, 3)[:, 2]
            _add_ball(renderer.scene, centre, radius, np.array((*BALL, 1.0)))
            tiles.append(caption(renderer.render(), f'mount "{config.mount}": {text}'))
    Image.fromarray(np.concatenate(tiles, axis=1)).save(file, optimize=True)


def _add_set(drawn: mujoco.MjvScene, scene: Scene) -> None:
    """Add a set's balls, coloured by restitution; all but the first can be seen through."""
    restitution = scene.parameters["restitution"]
    low, high = restitution.min(), restitution.max()
    for k, centre in enumerate(scene.points):
        share = (restitution[k] - low) / max(high - low, 1e-9)
        colour = LOST if scene.lost[k] else (1 - share) * np.array(LOW) + share * np.array(HIGH)
        _add_ball(drawn, centre, scene.radii[k], np.append(colour, 0.4 if k else 1.0))


def _scene(mount: str) -> mujoco.MjModel:
    spec = robot_spec(mount)
    spec.visual.global_.offwidth, spec.visual.global_.offheight = SIZE
    spec.visual.quality.shadowsize = 2048
    spec.visual.headlight.ambient = [0.55, 0.55, 0.55]
    spec.visual.headlight.diffuse = [0.40, 0.40, 0.40]
    spec.worldbody.add_light(pos=[0.5, -1.5, 2.5], dir=[0, 0.6, -1], diffuse=[0.5, 0.5, 0.5])
    floor = spec.add_texture(
        name="floor", type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.95, 0.96, 0.97], rgb2=[0.90, 0.91, 0.93], width=256, height=256,
    )  # fmt: skip
    material = spec.add_material(name="floor", texrepeat=[6, 6], emission=0.35)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = floor.name
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        rgb1=[0.98, 0.985, 0.99], width=64, height=64,
    )  # fmt: skip
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, size=[3, 3, 0.1], material="floor", contype=0, conaffinity=0
    )
    return spec.compile()


def _add_ball(scene: mujoco.MjvScene, centre: np.ndarray, radius: float, colour: np.ndarray) -> None:
    if scene.ngeom >= scene.maxgeom or centre[2] < -0.2:
        return
    mujoco.mjv_initGeom(
        scene.geoms[scene.ngeom], mujoco.mjtGeom.mjGEOM_SPHERE, np.array([radius, 0, 0]), centre,
        np.eye(3).ravel(), colour.astype(np.float32),
    )  # fmt: skip
    scene.ngeom += 1


def _add_wire_ball(scene: mujoco.MjvScene, centre: np.ndarray, radius: float) -> None:
    """Circles of latitude and longitude, a little outside a ball."""
    angle = np.linspace(0.0, 2 * np.pi, 25)
    across, along = np.cos(angle), np.sin(angle)
    circles = [
        np.stack((np.cos(turn) * across, np.sin(turn) * across, along), axis=1)
        for turn in np.linspace(0.0, np.pi, 6, endpoint=False)
    ]
    for height in (-0.75, -0.4, 0.0, 0.4, 0.75):
        width = np.sqrt(1 - height**2)
        circles.append(np.stack((width * across, width * along, np.full_like(angle, height)), axis=1))
    colour = np.array((*(0.5 * c for c in GHOST), 1.0), dtype=np.float32)  # lines take twice the light
    for circle in centre + WIRE * radius * np.array(circles):
        for start, end in pairwise(circle):
            if scene.ngeom >= scene.maxgeom:
                return
            geom = scene.geoms[scene.ngeom]
            kind = mujoco.mjtGeom.mjGEOM_LINE
            mujoco.mjv_initGeom(geom, kind, np.zeros(3), np.zeros(3), np.eye(3).ravel(), colour)
            mujoco.mjv_connector(geom, kind, WIRE_PX, start, end)
            scene.ngeom += 1


def caption(picture: np.ndarray, text: str) -> np.ndarray:
    """A picture with a line of text on white at its top."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, image.width, 40), fill=(255, 255, 255))
    pen.text((14, 8), text, fill=INK, font=ImageFont.load_default(size=20))
    return np.asarray(image)


def legend(picture: np.ndarray, restitution: np.ndarray, seen: bool) -> np.ndarray:
    """A picture with what its colours mean in its lower left corner; a single ball's means nothing."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(size=20)
    top = image.height - 40
    if len(restitution) > 1:
        left, width, height = 190, 160, 22
        for k in range(width):
            share = k / (width - 1)
            colour = _bytes((1 - share) * np.array(LOW) + share * np.array(HIGH))
            pen.line((left + k, top, left + k, top + height), fill=colour)
        low, high = float(restitution.min()), float(restitution.max())
        pen.text((14, top - 1), f"restitution {low:.2f}", fill=INK, font=font)
        pen.text((left + width + 10, top - 1), f"{high:.2f}", fill=INK, font=font)
        at = left + width + 80
        pen.ellipse((at, top + 2, at + 18, top + 20), fill=_bytes(LOST))
        pen.text((at + 26, top - 1), "lost", fill=INK, font=font)
        top -= 34
    if seen:
        pen.ellipse((14, top + 2, 32, top + 20), outline=_bytes(GHOST), width=3)
        pen.text((40, top - 1), "what the policy saw last of the solid ball", fill=INK, font=font)
    return np.asarray(image)


def _bytes(colour: Iterable[float]) -> tuple[int, ...]:
    return tuple(round(255 * float(c)) for c in colour)
