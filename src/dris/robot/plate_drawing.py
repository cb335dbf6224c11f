"""A drawing of the plate with its grip: from above, from the side, and in space, in millimetres."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dris.robot.plate_print import Box, Parts, volume

PLATE, GRIP, EDGE = "#9db8d9", "#5b7ba6", "#23364f"
AROUND = 34.0
"""Room for figures around a view [mm]."""
AZIMUTH, ELEVATION = -140.0, 28.0
"""Where the view in space is seen from [degrees]."""


def draw(parts: Parts, title: str, path: Path) -> None:
    """Write a picture, PNG or whatever the file's ending says."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 7.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1), height_ratios=(3, 1.25))
    above, side = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    _view(above, parts, 0, 1, "from above")
    _view(side, parts, 0, 2, "from the side")
    _in_space(figure.add_subplot(grid[:, 1], projection="3d"), parts)
    litres = 1e6 * volume(parts.surface())
    figure.suptitle(f"{title}: {litres:.0f} cm$^3$, lengths in mm", fontsize=12)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _view(axes: Any, parts: Parts, across: int, up: int, name: str) -> None:
    from matplotlib.patches import Rectangle

    def fill(box: Box, colour: str, front: int) -> None:
        low, size = 1e3 * box.low, 1e3 * (box.high - box.low)
        axes.add_patch(
            Rectangle(
                (low[across], low[up]), size[across], size[up], fc=colour, ec=EDGE, lw=1.2, zorder=front
            )
        )

    fill(parts.plate, PLATE, 1)
    fill(parts.grip, GRIP, 3)
    if up == 1:
        for notch in parts.notches:
            inside = Box(np.maximum(notch.low, parts.plate.low), np.minimum(notch.high, parts.plate.high))
            fill(inside, "white", 2)
    whole = Box(np.minimum(parts.plate.low, parts.grip.low), np.maximum(parts.plate.high, parts.grip.high))
    low, high = 1e3 * whole.low, 1e3 * whole.high
    plate, grip = parts.plate, parts.grip
    _length(axes, 1e3 * plate.low[across], 1e3 * plate.high[across], high[up] + 10, level=True)
    _length(axes, 1e3 * grip.low[across], 1e3 * grip.high[across], high[up] + 10, level=True)
    _length(axes, 1e3 * plate.low[up], 1e3 * plate.high[up], high[across] + 12, level=False)
    _length(axes, 1e3 * grip.low[up], 1e3 * grip.high[up], low[across] - 12, level=False)
    axes.set(xlim=(low[0] - AROUND, high[0] + AROUND), ylim=(low[up] - 8, high[up] + 24), aspect="equal")
    axes.set_title(name, loc="left", fontsize=10)
    axes.axis("off")


def _length(axes: Any, begin: float, end: float, at: float, level: bool) -> None:
    """A line with its length."""
    ends = ((begin, at), (end, at)) if level else ((at, begin), (at, end))
    axes.annotate(
        "", *ends, arrowprops={"arrowstyle": "<->", "color": EDGE, "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
    )
    middle = 0.5 * (begin + end)
    where = (middle, at + 2) if level else (at - 2, middle)
    axes.text(
        *where, f"{end - begin:g}", ha="center" if level else "right", va="bottom" if level else "center",
        fontsize=9, color=EDGE, rotation=0 if level else 90,
    )  # fmt: skip


def _in_space(axes: Any, parts: Parts) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    triangles = 1e3 * parts.surface()
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    azimuth, elevation = np.radians(AZIMUTH), np.radians(ELEVATION)
    to_eye = np.array(
        [*(np.cos(elevation) * np.array([np.cos(azimuth), np.sin(azimuth)])), np.sin(elevation)]
    )
    facing = normal @ to_eye > 0  # matplotlib sorts by distance, and would draw some hidden ones last
    triangles, normal = triangles[facing], normal[facing]
    light = 0.62 + 0.38 * (normal @ np.array([-0.35, -0.45, 0.82]))
    middle, grip = 1e-3 * triangles.mean(axis=1), parts.grip
    gripped = ((middle >= grip.low - 1e-6) & (middle <= grip.high + 1e-6)).all(axis=1)
    base = np.where(gripped[:, None], (0.42, 0.56, 0.74), (0.66, 0.77, 0.90))
    colours = np.clip(light[:, None], 0.3, 1.0) * base
    axes.add_collection3d(Poly3DCollection(triangles, facecolors=colours, edgecolors=colours, lw=0.3))
    low, high = triangles.min(axis=(0, 1)), triangles.max(axis=(0, 1))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect(high - low, zoom=0.9)
    axes.view_init(elev=ELEVATION, azim=AZIMUTH)
    axes.set_axis_off()
