"""Pictures of the robot with a whole set of balls, drawn by MuJoCo from the same fr3.xml.

Needs a way to render without a screen: MUJOCO_GL=egl or osmesa.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from dris.catching.robot_model import robot_spec
from dris.catching.settings import PRESETS
from dris.core.stage import Scene

SIZE = (960, 720)
MOUNT_SIZE = (600, 500)
DULL, BOUNCY, LOST = (1.0, 0.80, 0.10), (0.80, 0.05, 0.20), (0.55, 0.55, 0.60)
"""Colours of balls: of the lowest and the highest restitution of a set, and of those below the plate."""
BALL = (1.0, 0.45, 0.05)
"""Colour of a ball that stands for any."""


class Drawing:
    """A scene to draw sets into."""

    def __init__(self, mount: str):
        self._model = _scene(mount)
        self._data = mujoco.MjData(self._model)
        self._renderer = mujoco.Renderer(self._model, height=SIZE[1], width=SIZE[0])
        self._camera = mujoco.MjvCamera()
        self._camera.lookat[:] = (0.42, 0.0, 0.70)
        self._camera.distance, self._camera.azimuth, self._camera.elevation = 1.08, 122.0, -12.0

    def picture(self, q: np.ndarray, scene: Scene) -> np.ndarray:
        """[height, width, 3] of joints [M] and the balls of a set; lost ones are grey."""
        self._data.qpos[:] = q
        mujoco.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, self._camera)
        colours = _colours(scene.parameters["restitution"])
        for k, centre in enumerate(scene.points):
            colour = np.append(LOST, colours[k, 3]) if scene.lost[k] else colours[k]
            _add_ball(self._renderer.scene, centre, scene.radii[k], colour)
        return legend(self._renderer.render(), scene.parameters["restitution"])


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


def _colours(restitution: np.ndarray) -> np.ndarray:
    """Red, green, blue and opacity [N, 4] by restitution; balls of a set can be seen through each other."""
    low, high = restitution.min(), restitution.max()
    share = ((restitution - low) / max(high - low, 1e-9))[:, None]
    opacity = np.full_like(share, 1.0 if len(share) == 1 else 0.4)
    return np.concatenate(((1 - share) * DULL + share * np.array(BOUNCY), opacity), axis=1)


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


def caption(picture: np.ndarray, text: str) -> np.ndarray:
    """A picture with a line of text on white at its top."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, image.width, 40), fill=(255, 255, 255))
    pen.text((14, 8), text, fill=(30, 30, 30), font=ImageFont.load_default(size=20))
    return np.asarray(image)


def legend(picture: np.ndarray, restitution: np.ndarray) -> np.ndarray:
    """A picture with what a set's colours mean in its lower left corner; a single ball's mean nothing."""
    from PIL import Image, ImageDraw, ImageFont

    if len(restitution) == 1:
        return picture
    image = Image.fromarray(picture)
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(size=20)
    left, top, width, height = 190, image.height - 40, 160, 22
    for k in range(width):
        share = k / (width - 1)
        colour = tuple(round(255 * ((1 - share) * a + share * b)) for a, b in zip(DULL, BOUNCY, strict=True))
        pen.line((left + k, top, left + k, top + height), fill=colour)
    low, high = float(restitution.min()), float(restitution.max())
    pen.text((14, top - 1), f"restitution {low:.2f}", fill=(30, 30, 30), font=font)
    pen.text((left + width + 10, top - 1), f"{high:.2f}", fill=(30, 30, 30), font=font)
    at = left + width + 80
    pen.ellipse((at, top + 2, at + 18, top + 20), fill=tuple(round(255 * c) for c in LOST))
    pen.text((at + 26, top - 1), "lost", fill=(30, 30, 30), font=font)
    return np.asarray(image)
