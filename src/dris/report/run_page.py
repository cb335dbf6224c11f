"""The page about a run, from the files in its folder alone: table, learning curve, videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    return write_page(
        out, "run.html", learning_curve(metrics),
        name=folder.resolve().name, config=config, metrics=metrics,
        configuration=(folder / "config.json").read_text(),
        versions=read_as(folder / "versions.json", dict[str, str]),
        scores=rows, meant={name: words for name, words in said.items() if words},
        videos=sorted(out.glob("*.mp4")),
    )  # fmt: skip
