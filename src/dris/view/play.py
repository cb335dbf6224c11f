"""Watch an attempt with its whole set: a slow-motion video, and six moments of it as a picture.

A task draws itself (`Task.draw`); of one that does not, the states are plotted against time. Needs the extra
`video`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dris.belief.env import belief_env
from dris.core.conditions import Condition
from dris.core.env import Observation
from dris.core.rollout import rollout, sets_under
from dris.core.task import Task
from dris.core.validation import check_extra
from dris.evaluation.registry import PolicyHandle
from dris.view.run import ghost_of

FRAMES = 100
"""Pictures of an episode."""
SLOWER = 4
"""Times slower than life."""
TILE_PX = 480
"""Least width of a moment in the picture."""
MOMENTS = (0.0, 0.08, 0.14, 0.25, 0.5, 1.0)
"""Shares of the episode that the picture shows."""


@dataclass(frozen=True)
class Attempt:
    """A recorded attempt."""

    frames: list[np.ndarray]
    """Pictures [height, width, 3], evenly over the episode; none if the task does not draw itself."""
    frame_s: float
    """Simulated time between them."""
    states: np.ndarray
    """[T, N, S] after each control step."""
    state_names: tuple[str, ...]
    step_s: float
    reward: float
    """Mean per step."""
    success: float
    """Share of the set at the end; with a belief, that of the real one."""
    what: str = "of the set"
    """Whose success it is."""


def record(policy: PolicyHandle, instances: int, seed: int, condition: Condition) -> Attempt:
    """Run one episode and keep what its set looked like, and, unless that is the truth, what was seen of it.

    Args:
        policy: Who acts, with its belief.
        instances: Of the set, if there is no belief, which has its own.
        seed: Which start.
        condition: What makes it harder.
    """
    make_env = partial(belief_env, belief=policy.belief)
    env = sets_under(policy.make_task(), condition, 1, instances, seed, make_env)
    task = env.task
    sees_truth = policy.belief.update == "none" and not condition.noise and not condition.dropout
    stage = None if sees_truth else task.stage()
    frames: list[np.ndarray] = []
    frame_s = _frame_s(task)
    elapsed_s = 0.0
    ghost: np.ndarray | None = None

    def watch(duration_s: float) -> None:
        nonlocal elapsed_s
        elapsed_s += duration_s
        if elapsed_s > len(frames) * frame_s - 1e-9:
            picture = task.draw(0) if ghost is None else task.draw(0, ghost)
            frames.extend([] if picture is None else [picture])

    env.watch_every_s, env.on_advance = frame_s, watch
    agent = policy.make_agent(task, 1)
    rewards: list[float] = []
    states: list[np.ndarray] = []

    def act(observation: Observation) -> torch.Tensor:
        nonlocal ghost
        ghost = None if stage is None else ghost_of(env, stage, observation)
        if not states:
            states.append(task.states()[0].numpy())
            watch(0.0)
        return agent(observation)

    for transition in rollout(env, act):
        rewards.append(float(transition.step.reward[0]))
        states.append(task.states()[0].numpy())
        success = float(transition.step.success[0].float().mean())
        if bool(transition.step.done[0]):
            break
    return Attempt(
        frames, frame_s, np.array(states), task.state_names, task.step_s, float(np.mean(rewards)), success,
        "of the set" if policy.belief.update == "none" else "of the real one",
    )  # fmt: skip


def _frame_s(task: Task) -> float:
    """About a hundredth of the episode, in whole substeps."""
    substeps = max(1, round(task.horizon * task.step_s / FRAMES / task.substep_s))
    return substeps * task.substep_s


def save(attempt: Attempt, title: str, folder: Path, name: str) -> list[Path]:
    """Write `name`.mp4 and `name`.png, or, of a task that does not draw itself, a plot; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / f"{name}.png"
    if not attempt.frames:
        _plot(attempt, title, picture)
        return [picture]
    check_extra("imageio", "video")
    import imageio.v2 as imageio

    from dris.catching.drawing import caption

    frames: list[Any] = [
        caption(frame, f"{title}   t = {k * attempt.frame_s:4.2f} s")
        for k, frame in enumerate(attempt.frames)
    ]
    frames[-1] = caption(attempt.frames[-1], f"{title}   success {attempt.success:.0%} {attempt.what}")
    fps = max(1, round(1 / attempt.frame_s / SLOWER))
    video = folder / f"{name}.mp4"
    imageio.mimwrite(video, frames + frames[-1:] * fps, fps=fps, macro_block_size=1, quality=7)
    tiles = [frames[min(round(share * len(frames)), len(frames) - 1)] for share in MOMENTS]
    rows = [np.concatenate(tiles[k : k + 3], axis=1) for k in (0, 3)]
    finer = max(1, tiles[0].shape[1] // TILE_PX)
    imageio.imwrite(picture, np.concatenate(rows, axis=0)[::finer, ::finer])
    return [video, picture]


def _plot(attempt: Attempt, title: str, file: Path) -> None:
    """Every component of the state against time, a line an instance."""
    from matplotlib.figure import Figure

    names = attempt.state_names
    figure = Figure(figsize=(8, 2 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    times = attempt.step_s * np.arange(len(attempt.states))
    for k, panel in enumerate(panels):
        panel.plot(times, attempt.states[..., k], color="#3366cc", alpha=0.4, linewidth=1)
        panel.set_ylabel(names[k])
    panels[0].set_title(f"{title}: success {attempt.success:.0%} {attempt.what}")
    panels[-1].set_xlabel("time [s]")
    figure.savefig(file, dpi=100)
