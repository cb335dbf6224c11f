"""Watch a catch attempt with its whole set of balls: a slow-motion video and a picture of it.

Drawn by MuJoCo from the same fr3.xml; balls are shapes added to the scene. Needs the extra `video`,
and a way to render without a screen: MUJOCO_GL=egl or osmesa.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from dris.catching.robot_model import robot_spec
from dris.catching.settings import PRESETS
from dris.catching.task import CatchingTask
from dris.core.env import Env, EnvConfig
from dris.core.rollout import Agent
from dris.core.validation import check_extra

FRAME_S = 0.01
"""Simulated time between frames."""
FPS = 25
"""Frames a second of the video: four times slower than life."""
SIZE = (960, 720)
MOUNT_SIZE = (600, 500)
DULL, BOUNCY, LOST = (1.0, 0.80, 0.10), (0.80, 0.05, 0.20), (0.55, 0.55, 0.60)
"""Colours of balls: of the lowest and the highest restitution of a set, and of those below the plate."""
BALL = (1.0, 0.45, 0.05)
"""Colour of a ball that stands for any."""


@dataclass(frozen=True)
class Frame:
    """One moment of one set: joints [M], ball centres [N, 3], which are over the plate or below it."""

    time_s: float
    q: np.ndarray
    balls: np.ndarray
    over: np.ndarray
    below: np.ndarray


@dataclass(frozen=True)
class Attempt:
    """A recorded attempt: frames, radii and restitutions [N], mean reward per step, success share."""

    mount: str
    frames: list[Frame]
    radius: np.ndarray
    restitution: np.ndarray
    reward: float
    success: float


def record(
    task: CatchingTask,
    agent_of: Callable[[CatchingTask, int], Agent],
    config: EnvConfig,
    which: int = 0,
) -> Attempt:
    """Run one episode and keep what set `which` of it looked like, every FRAME_S.

    Args:
        task: The catching task.
        agent_of: Function of (task, number of sets) that makes the agent.
        config: The environment's configuration.
        which: The set to record.
    """
    env = Env(task, config)
    observation = env.reset()
    agent = agent_of(task, config.sets)
    frames: list[Frame] = []

    def keep() -> None:
        over = task.reward_terms()["lost"][which] == 0
        height = (task.states()[which, :, :3] * task.normal[which]).sum(dim=-1)
        frames.append(
            Frame(
                len(frames) * FRAME_S,
                task.world.q[which].numpy().astype(np.float64),
                task.world.pos[which].numpy().astype(np.float64),
                over.numpy(),
                (height < 0).numpy(),
            )
        )

    advance, elapsed_s = task.advance, 0.0

    def advance_and_keep(command: torch.Tensor, duration_s: float) -> None:
        nonlocal elapsed_s
        for _ in range(round(duration_s / task.substep_s)):
            advance(command, task.substep_s)
            elapsed_s += task.substep_s
            if elapsed_s > len(frames) * FRAME_S - 1e-9:
                keep()

    keep()
    task.advance = advance_and_keep  # type: ignore[method-assign]
    rewards = []
    for _ in range(task.horizon):
        step = env.step(agent(observation))
        observation = step.observation
        rewards.append(float(step.reward[which]))
    task.advance = advance  # type: ignore[method-assign]
    success = float(step.success[which].float().mean())
    radius, restitution = (v[which].numpy().copy() for v in (task.world.radius, task.world.restitution))
    return Attempt(task.config.mount, frames, radius, restitution, float(np.mean(rewards)), success)


def draw(attempt: Attempt, title: str) -> list[Any]:
    """Pictures [height, width, 3] of every frame."""
    model = _scene(attempt.mount)
    data = mujoco.MjData(model)
    camera = mujoco.MjvCamera()
    camera.lookat[:] = (0.40, 0.0, 0.68)
    camera.distance, camera.azimuth, camera.elevation = 1.2, 122.0, -10.0
    colours = _colours(attempt.restitution)
    pictures = []
    with mujoco.Renderer(model, height=SIZE[1], width=SIZE[0]) as renderer:
        for frame in attempt.frames:
            data.qpos[:] = frame.q
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            for k, (centre, radius) in enumerate(zip(frame.balls, attempt.radius, strict=True)):
                colour = np.append(LOST, colours[k, 3]) if frame.below[k] else colours[k]
                _add_ball(renderer.scene, centre, radius, colour)
            count = f"{frame.over.sum()} of {len(frame.over)} over the plate"
            if frame is attempt.frames[-1]:
                count = f"{round(attempt.success * len(frame.over))} of {len(frame.over)} caught"
            text = f"{title}   t = {frame.time_s:4.2f} s   {count}"
            pictures.append(_caption(renderer.render(), text))
    return pictures


def save(attempt: Attempt, title: str, folder: Path, name: str) -> tuple[Path, Path]:
    """Write `name`.mp4, its last frame held for a second, and six moments of it, `name`.png; returns both."""
    check_extra("imageio", "video")
    import imageio.v2 as imageio

    pictures = draw(attempt, title)
    folder.mkdir(parents=True, exist_ok=True)
    video, picture = folder / f"{name}.mp4", folder / f"{name}.png"
    imageio.mimwrite(video, pictures + pictures[-1:] * FPS, fps=FPS, macro_block_size=1, quality=7)
    moments = [0.0, 0.08, 0.14, 0.25, 0.5, 1.0]
    tiles = [pictures[min(round(t / FRAME_S), len(pictures) - 1)] for t in moments]
    rows = [np.concatenate(tiles[k : k + 3], axis=1) for k in (0, 3)]
    imageio.imwrite(picture, np.concatenate(rows, axis=0)[::2, ::2])
    return video, picture


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
            tiles.append(_caption(renderer.render(), f'mount "{config.mount}": {text}'))
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
    spec.visual.headlight.ambient = [0.45, 0.45, 0.45]
    spec.visual.headlight.diffuse = [0.35, 0.35, 0.35]
    spec.worldbody.add_light(pos=[0.5, -1.5, 2.5], dir=[0, 0.6, -1], diffuse=[0.5, 0.5, 0.5])
    floor = spec.add_texture(
        name="floor", type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.83, 0.85, 0.88], rgb2=[0.77, 0.79, 0.83], width=256, height=256,
    )  # fmt: skip
    material = spec.add_material(name="floor", texrepeat=[6, 6])
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = floor.name
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        rgb1=[0.93, 0.95, 0.97], width=64, height=64,
    )  # fmt: skip
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[3, 3, 0.1],
        material="floor",
        contype=0,
        conaffinity=0,
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


def _caption(picture: np.ndarray, text: str) -> np.ndarray:
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, SIZE[0], 40), fill=(255, 255, 255))
    pen.text((14, 8), text, fill=(30, 30, 30), font=ImageFont.load_default(size=20))
    return np.asarray(image)
