"""A film of frames that were recorded anywhere, at the pace of their replay. Needs the extra `video`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dris.catching.drawing import caption, drawing_of
from dris.catching.stage import ArmFrame
from dris.core.validation import check_extra
from dris.view.replay import FRAME_S, SLOWER, thinned

QUALITY = 5
"""Of imageio's ten: text stays readable, and ten seconds take less than 1 MB."""


def save_film(mount: str, frames: Sequence[ArmFrame], title: str, file: Path) -> Path:
    """Write an mp4 of an arm's frames, slow at first; returns the file.

    Args:
        mount: How the hand holds the plate.
        frames: In order, every `FRAME_S`.
        title: At the top, with time and words of every frame.
        file: To write.

    Raises:
        ImportError: The extra `video` is not there.
    """
    check_extra("imageio", "video")
    import imageio.v2 as imageio

    drawing, fps = drawing_of(mount), 1 / FRAME_S / SLOWER
    pictures: list[Any] = [
        caption(
            drawing.picture(frame.q, frame.scene, frame.ghost),
            f"{title}   t = {frame.time_s:4.2f} s   {frame.words}",
        )
        for frame in thinned(frames)
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    pictures += pictures[-1:] * round(fps)
    imageio.mimwrite(file, pictures, fps=fps, macro_block_size=1, quality=QUALITY)
    return file
