"""The page about a run, from the files in its folder alone: table, learning curve, videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from dris.core.schema import Count, Figure, check_row, read_as
from dris.evaluation import scores
from dris.learning.run_folder import read_metrics
from dris.report.figures import learning_curve
from dris.report.html import write_page

SCORE = ("policy", "condition", "success", "low", "high", "episodes", "seed")


class _PolicyConfig(Struct, frozen=True):
    encoder: str


class _Config(Struct, frozen=True):
    task: str
    sets: Count
    instances: Count
    seed: Count
    noise: Figure
    policy: _PolicyConfig
    preset: str = ""
    evaluate_every: Count = 0
    evaluate_episodes: Count = 0


def report_run(folder: Path, out: Path, glossary: Callable[[str], dict[str, str]] = scores.glossary) -> Path:
    """Write `out/index.html` and its figures about the run in `folder`; returns the page.

    Uses config.json, versions.json and metrics.jsonl of the run, and, if there, scores.json (of `dris
    evaluate --json`) and videos (*.mp4 beside the page).

    Args:
        folder: Of the run.
        out: Folder to write to.
        glossary: What "success", "other_successes" and names of policies mean, by the task's name.

    Raises:
        ValueError: The folder holds no run, or a file in it is damaged.
    """
    missing = [n for n in ("config.json", "metrics.jsonl", "versions.json") if not (folder / n).exists()]
    if missing:
        others = ", ".join(file.name for file in sorted(folder.glob("*.json"))[:3])
        raise ValueError(
            f"{folder} holds neither a run (it has no {', '.join(missing)}) nor a study's results or trials"
            + (f", but {others}" if others else "")
        )
    config = read_as(folder / "config.json", _Config)
    metrics = read_metrics(folder / "metrics.jsonl")
    if not metrics:
        raise ValueError(f"the run in {folder} has not finished an iteration yet: metrics.jsonl is empty")
    for number, row in enumerate(metrics, start=1):
        check_row(row, f"{folder / 'metrics.jsonl'}: line {number}", ("iteration", "reward"))
    rows = read_as(folder / "scores.json", list[dict[str, Any]]) if (folder / "scores.json").exists() else []
    for number, row in enumerate(rows):
        check_row(row, f"{folder / 'scores.json'}: row {number}", SCORE)
    meant = glossary(config.task)
    named = dict.fromkeys(["success", *(name for row in rows for name in row if name.startswith("success_"))])
    said = {
        name.replace("_", " "): meant.get("success" if name == "success" else "other_successes")
        for name in named
    }
    said |= {row["policy"]: meant.get(row["policy"]) for row in rows}
    videos, name = sorted(out.glob("*.mp4")), folder.resolve().name
    lead, lead_words = _lead(videos, name)
    return write_page(
        out, "run.html", learning_curve(metrics), lead=lead, lead_words=lead_words, in_short=_in_short(rows),
        replays=[file for file in sorted(out.glob("*.html")) if file.name != "index.html"],
        name=name, config=config, metrics=metrics,
        configuration=(folder / "config.json").read_text(),
        versions=read_as(folder / "versions.json", dict[str, str]),
        scores=rows, meant={name: words for name, words in said.items() if words},
        videos=videos,
    )  # fmt: skip


def _lead(videos: list[Path], name: str) -> tuple[str, str]:
    """The picture that the page begins with, and its caption: of the run's own film, or how it learned."""
    pictures = [video.with_suffix(".png") for video in videos if video.with_suffix(".png").exists()]
    own = [picture for picture in pictures if picture.name.startswith(f"{name}-")]
    if not pictures:
        return "success.png", "Success on single objects while it learned."
    first = (own or pictures)[0]
    return quote(first.name), f"{first.stem}: six moments of one attempt of a whole set."


def _in_short(scores: list[dict[str, Any]]) -> str:
    """How often the run's policy, the first that was scored, succeeds."""
    if not scores:
        return "It has not been scored yet: dris evaluate, with --json scores.json in its folder, does that."
    row = scores[0]
    return (
        f"{row['policy']} succeeds on {row['success']:.0%} of {row['episodes']} single objects under "
        f"condition {row['condition']}."
    )
