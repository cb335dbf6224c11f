"""A page about a run, made from the files in its folder alone: table, learning curve, videos."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dris.core.files import read_json, write_atomically
from dris.learning.run_folder import read_metrics

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c2330; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { padding: .35rem .7rem; border-bottom: 1px solid #d5dae2; }
td, th:not(:first-child) { text-align: right; } th:first-child, td:first-child { text-align: left; }
small { color: #5b6575; white-space: nowrap; } code, pre { background: #f2f4f7; padding: .1rem .3rem; }
pre { padding: .8rem; overflow-x: auto; } figure { margin: 0 0 1.5rem; } img, video { max-width: 100%; }
.best { font-weight: 600; }
"""

_SCORE = {"policy", "condition", "success", "low", "high", "episodes", "seed"}


def report_run(folder: Path, out: Path, glossary: Callable[[str], dict[str, str]] = lambda task: {}) -> Path:
    """Write `out/index.html` and its figure about the run in `folder`; returns the page.

    Uses config.json, versions.json and metrics.jsonl of the run, and, if there, scores.json (of `dris
    evaluate --json`) and videos (*.mp4 beside the page).

    Args:
        folder: Of the run.
        out: Folder to write to.
        glossary: What "success" and names of policies mean, by the task's name; for the table.

    Raises:
        ValueError: The folder holds no run.
    """
    missing = [n for n in ("config.json", "metrics.jsonl", "versions.json") if not (folder / n).exists()]
    if missing:
        raise ValueError(
            f"{folder} holds neither a run (it has no {', '.join(missing)}) nor a study's results or trials"
        )
    config = read_json(folder / "config.json")
    versions = read_json(folder / "versions.json")
    metrics = read_metrics(folder / "metrics.jsonl")
    if not metrics:
        raise ValueError(f"the run in {folder} has not finished an iteration yet: nothing to report")
    scores_file = folder / "scores.json"
    scores = read_json(scores_file, list) if scores_file.exists() else []
    if not all(isinstance(row, dict) and row.keys() >= _SCORE for row in scores):
        raise ValueError(f"{scores_file} is not what `dris evaluate --json` writes: make it anew")
    out.mkdir(parents=True, exist_ok=True)
    learning_curve(metrics, out / "learning.png")
    videos = sorted(path.name for path in out.glob("*.mp4"))
    page = _page(folder.resolve().name, config, versions, metrics, scores, videos, glossary(config["task"]))
    write_atomically(out / "index.html", page.encode())
    return out / "index.html"


def learning_curve(metrics: list[dict[str, Any]], file: Path) -> None:
    """Draw reward per iteration, and success wherever it was evaluated."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = [row["iteration"] + 1 for row in metrics]
    left.plot(steps, [row["reward"] for row in metrics], color="#2f6fb0", linewidth=1)
    left.set(xlabel="iteration", ylabel="mean reward per step", title="What it learns from")
    conditions = sorted({key for row in metrics for key in row if key.endswith("/success")})
    for key in conditions:
        seen = [(row["iteration"] + 1, row[key]) for row in metrics if key in row]
        right.plot(*zip(*seen, strict=True), marker="o", markersize=3, label=key.removesuffix("/success"))
    right.set(xlabel="iteration", ylabel="success", ylim=(0, 1.02), title="One object, never seen before")
    if conditions:
        right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def _page(
    name: str, config: dict, versions: dict, metrics: list[dict], scores: list[dict], videos: list[str],
    glossary: dict[str, str],
) -> str:  # fmt: skip
    text = html.escape
    method = f"DRIS with N = {config['instances']}"
    if config["policy"]["encoder"] == "learned":
        method = "E2E" if config["instances"] == 1 else f"{method} and a learned encoder"
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{text(name)}</title><style>{STYLE}</style>",
        f"<h1>{text(name)}: {text(method)}</h1>",
        f"<p>Task <code>{text(config['task'])}</code>"
        + (f", preset <code>{text(config['preset'])}</code>" if config["preset"] else "")
        + f"; {len(metrics)} iterations of {config['sets']} sets, seed {config['seed']}, observation noise"
        f" in training: {config['noise']:g} sigma. All figures are simulated.</p>",
        "<p>DRIS trains on sets: N instances with different physics evolve together under one action, and "
        "the policy learns from their mean reward. It is then tested on one instance at a time, as on a "
        "robot.</p>",
    ]
    if scores:
        parts += ["<h2>How often it succeeds</h2>", _table(scores, config["seed"], glossary)]
    parts += [
        "<h2>How it learned</h2>",
        "<figure><img src=learning.png alt='reward and success by iteration'><figcaption>Left: mean reward "
        "of the training sets. Right: success on single objects, every now and then.</figcaption></figure>",
    ]
    if videos:
        parts.append("<h2>What it looks like</h2>")
        for video in videos:
            parts.append(
                f"<figure><video controls loop src='{quote(video)}'></video>"
                f"<figcaption>{text(Path(video).stem)}, in slow motion</figcaption></figure>"
            )
    made = ", ".join(f"{key} {value}" for key, value in versions.items() if key != "changed files")
    made += ", with uncommitted changes" if versions.get("changed files") else ""
    parts += [
        "<h2>How it was made</h2>",
        f"<p>{text(made)}</p>",
        f"<details><summary>Whole configuration</summary><pre>{text(json.dumps(config, indent=2))}</pre>"
        "</details></html>",
    ]
    return "\n".join(parts) + "\n"


def _table(scores: list[dict[str, Any]], training_seed: int, glossary: dict[str, str]) -> str:
    """Policies by conditions; the best of each column is bold, a cell nobody measured is a dash."""
    policies = list(dict.fromkeys(row["policy"] for row in scores))
    conditions = list(dict.fromkeys(row["condition"] for row in scores))
    cells = {(row["policy"], row["condition"]): row for row in scores}
    best = {c: max(row["success"] for row in scores if row["condition"] == c) for c in conditions}
    lines = ["<table><tr><th>" + "".join(f"<th>{html.escape(c)}" for c in conditions)]
    for policy in policies:
        lines.append(f"<tr><td>{html.escape(policy)}")
        for condition in conditions:
            row = cells.get((policy, condition))
            if row is None:
                lines.append("<td>&ndash;")
                continue
            bold = " class=best" if row["success"] == best[condition] else ""
            lines.append(
                f"<td{bold}>{row['success']:.2f} <small>[{row['low']:.2f}, {row['high']:.2f}]</small>"
                + "".join(f"<br><small>{words}</small>" for words in _others(row))
            )
    lines.append("</table>")
    first = scores[0]
    lines.append(
        f"<p>Share of {int(first['episodes'])} single-object episodes that end in success, with 95 % Wilson "
        f"intervals; evaluation seed {int(first['seed'])}, training seed {training_seed}. noise-k: "
        "observation noise of k standard deviations of the task.</p>"
    )
    meant = [f"{n}: {glossary[n]}" for n in ("success", *policies) if n in glossary]
    lines += [f"<p>{html.escape('; '.join(meant))}.</p>"] if meant else []
    return "\n".join(lines)


def _others(row: dict[str, Any]) -> list[str]:
    """The other measures of success in a row, such as success_0.2, in words."""
    names = [name for name in row if name.startswith("success_")]
    return [f"{html.escape(name.replace('_', ' '))}: {row[name]:.2f}" for name in names]
