"""A stage and its frames as a viser scene: for the page and for replays alike."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from dris.core.stage import GHOST, HIGH, LOST, LOW, Frame, Scene, Stage
from dris.view.meshes import ball, by_body_and_colour

_LOW, _HIGH, _LOST, _GHOST = (tuple(round(255 * c) for c in one) for one in (LOW, HIGH, LOST, GHOST))
FIELD = math.radians(45.0)
"""Of view, from top to bottom."""
OPACITY = 0.55
"""Of all instances but the first: one sees through the set."""
WORDS_AT = (0.0, 0.0, 0.95)
"""A frame's words stand over the robot [m]."""
LEAST_MOVE = 1e-5
"""Bodies that moved or turned by less are not told again."""


class Drawn:
    """What a viser scene shows of a stage. `begin` an attempt, then `show` its frames."""

    def __init__(self, scene: Any):
        """Take over a viser scene (`server.scene`)."""
        self._scene = scene
        self._stage: Stage | None = None
        self._bodies: dict[int, Any] = {}
        self._placed: dict[int, np.ndarray] = {}
        self._set: Any = None
        self._first: Any = None
        self._count = 0
        self._lost: np.ndarray | None = None
        self._words: Any = None
        self._ghost = scene.add_icosphere(
            "/seen", radius=1.0, color=_GHOST, wireframe=True, subdivisions=2, visible=False,
            cast_shadow=False, receive_shadow=False,
        )  # fmt: skip
        scene.add_grid(
            "/floor", 6.0, 6.0, cell_size=0.25, cell_color=(225, 228, 232), section_color=(205, 209, 215)
        )
        scene.configure_default_lights(cast_shadow=False)  # half the work of a machine without a GPU

    def begin(self, stage: Stage, first: Scene, colour_by: str) -> None:
        """Draw a stage with the first scene of an attempt, whose range of a parameter the colours span."""
        if stage is not self._stage:
            self._build(stage)
        self.colour(first, colour_by)
        self._count = -1  # the set is made anew with the next frame

    def colour(self, scene: Scene, by: str) -> None:
        """Colour instances by a parameter; the colours span what it is now."""
        values = scene.parameters[by]
        self._colour_by, self._span = by, (float(values.min()), float(values.max()))
        self._lost = None

    def legend(self) -> str:
        """What the colours mean, as HTML; that of a single ball means nothing."""
        low, high = self._span
        ghost = _marked(_GHOST, "&#9678;", "what the policy saw last")
        if self._count == 1:
            return ghost
        ramp = f"linear-gradient(90deg, rgb{_LOW}, rgb{_HIGH})"
        bar = f'<span style="display:inline-block;width:7em;height:.8em;background:{ramp}"></span>'
        name = html.escape(self._colour_by.replace("_", " "))
        return f"{name} {low:.3g} {bar} {high:.3g} &ensp;{_marked(_LOST, '&#9679;', 'lost')} &ensp;{ghost}"

    def show(self, frame: Frame) -> None:
        """Draw a frame."""
        scene = frame.scene
        for body, handle in self._bodies.items():
            pose = np.concatenate((scene.positions[body], scene.quaternions[body]))
            if np.abs(pose - self._placed[body]).max() > LEAST_MOVE:
                handle.position, handle.wxyz, self._placed[body] = pose[:3], pose[3:], pose
        points, colours = scene.points.astype(np.float32), None
        if self._lost is None or len(points) != len(self._lost) or (scene.lost != self._lost).any():
            colours, self._lost = self._colours(scene), scene.lost.copy()
        if len(points) != self._count:
            if self._count > 0:  # a belief has begun: its range is another
                self.colour(scene, self._colour_by)
            self._build_set(scene, self._colours(scene))
        else:
            self._first.position = points[0]
            if self._set is not None:
                self._set.batched_positions = points[1:]
            if colours is not None:
                self._first.color = colours[0]
                if self._set is not None:
                    self._set.batched_colors = colours[1:]
        seen = frame.ghost is not None
        if seen:
            self._ghost.position = frame.ghost
        if seen != self._ghost.visible:
            self._ghost.visible = seen
        if self._words is not None or frame.words:
            self._say(frame.words)

    def _say(self, words: str) -> None:
        if self._words is None:
            self._words = self._scene.add_label("/words", words, position=WORDS_AT)
        elif words != self._words.text:
            self._words.text = words

    def _build(self, stage: Stage) -> None:
        for handle in self._bodies.values():
            handle.remove()
        self._stage, self._bodies, self._placed = stage, {}, {}
        for number, ((body, colour), (vertices, faces)) in enumerate(
            by_body_and_colour(stage.shapes).items()
        ):
            if body not in self._bodies:
                self._bodies[body] = self._scene.add_frame(f"/body{body}", show_axes=False)
                self._placed[body] = np.full(7, np.inf)
            self._scene.add_mesh_simple(
                f"/body{body}/shape{number}", vertices.astype(np.float32), faces.astype(np.uint32),
                color=tuple(round(255 * c) for c in colour),
            )  # fmt: skip

    def _build_set(self, scene: Scene, colours: np.ndarray) -> None:
        for handle in (self._first, self._set):
            if handle is not None:
                handle.remove()
        self._count, self._set = len(scene.points), None
        vertices, faces = ball(3)
        self._first = self._scene.add_mesh_simple(
            "/first", vertices.astype(np.float32), faces.astype(np.uint32), color=colours[0],
            scale=float(scene.radii[0]), position=scene.points[0],
        )  # fmt: skip
        self._ghost.scale = 1.06 * float(scene.radii[0])
        if self._count > 1:
            vertices, faces = ball(2)
            still = np.tile(np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float32), (self._count - 1, 1))
            self._set = self._scene.add_batched_meshes_simple(
                "/set", vertices.astype(np.float32), faces.astype(np.uint32), still,
                scene.points[1:].astype(np.float32), batched_scales=scene.radii[1:].astype(np.float32),
                batched_colors=colours[1:], opacity=OPACITY, lod="off", cast_shadow=False,
                receive_shadow=False,
            )  # fmt: skip

    def _colours(self, scene: Scene) -> np.ndarray:
        """[N, 3] of the instances, 0 to 255."""
        low, high = self._span
        share = ((scene.parameters[self._colour_by] - low) / max(high - low, 1e-9)).clip(0.0, 1.0)[:, None]
        colours = (1 - share) * _LOW + share * np.array(_HIGH)
        colours[scene.lost] = _LOST
        return colours.round().astype(np.uint8)


def _marked(colour: tuple[int, ...], mark: str, words: str) -> str:
    """A coloured mark and what it means, on one line."""
    return f'<span style="white-space:nowrap"><span style="color:rgb{colour}">{mark}</span> {words}</span>'
