"""The page about trials, from their files alone; the paper's real robot in columns of its own."""

from __future__ import annotations

import html
import shutil
from pathlib import Path
from typing import Any

from dris.core.files import read_json, write_atomically
from dris.evaluation.statistics import wilson
from dris.experiments.trials.outcome import within_limits
from dris.report.run_page import STYLE

TITLES = {
    "ramps": "Balls from a ramp",
    "throws": "Balls thrown by hand",
    "balancing": "Balancing from 30 degrees",
    "irregular": "Irregular objects",
}


def report_trials(folder: Path, out: Path, paper: dict[str, Any]) -> Path:
    """Write `out/index.html` about the trials in `folder/*.json`; returns the page.

    Raises:
        ValueError: There are none.
    """
    tables = {file.stem: read_json(file) for file in sorted(folder.glob("*.json"))}
    tables = {name: table for name, table in tables.items() if "trials" in table and "config" in table}
    tables = dict(sorted(tables.items(), key=lambda item: list(TITLES).index(item[1]["config"]["kind"])))
    if not tables:
        raise ValueError(f"{folder} holds no trials: run `dris trials` first")
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>DRIS: trials</title><style>{STYLE} "
        "body { max-width: 76rem; } .paper { color: #7a5b00; }</style><h1>Trials in the twin laboratory</h1>",
        "<p>A second simulator in place of the robot: nothing here was measured on hardware, except the "
        "columns marked <span class=paper>real robot, the paper</span>. A catch: on the plate ten seconds "
        "after the robot begins. Intervals are Wilson's, 95 %; trial k has the same draw of the launch in "
        "every cell, and most cells are nearly all or nothing, so over other balls and ramps the last rows "
        "would vary more than their intervals say.</p>",
    ]
    for name, table in tables.items():
        parts += _table(name, table, paper.get("real", {}) if table["config"]["kind"] == "ramps" else {})
    out.mkdir(parents=True, exist_ok=True)
    parts += _films(folder, out)
    write_atomically(out / "index.html", ("\n".join((*parts, "</html>")) + "\n").encode())
    return out / "index.html"


def _films(folder: Path, out: Path) -> list[str]:
    """Films of the folder, copied to the page if it stands elsewhere."""
    videos = sorted(folder.glob("*.mp4"))
    if not videos:
        return []
    parts = [
        "<h2>Films</h2><p>The first 2.5 s four times slower, the rest faster than they were. Left: the "
        "laboratory. Right: what both cameras see; green circle: the ball as it was found; red cross and "
        "arrow: where the tracker has it, and how far it goes in 50 ms.</p>"
    ]
    for video in videos:
        if out.resolve() != folder.resolve():
            shutil.copyfile(video, out / video.name)
        words = html.escape(video.stem.replace("-", " "))
        shown = f"<video controls loop src='{video.name}'></video>"
        parts.append(f"<figure>{shown}<figcaption>{words}</figcaption></figure>")
    return parts


def _table(name: str, table: dict[str, Any], real: dict[str, Any]) -> list[str]:
    config, policies = table["config"], table["config"]["policies"]
    cells: dict[tuple[str, str], dict[str, list[bool]]] = {}
    slow_ones: dict[str, list[bool]] = {}
    allowed: dict[str, list[bool]] = {}
    for key, outcome in table["trials"].items():
        policy, what, label, _ = key.rsplit("/", 3)
        cells.setdefault((what, label), {}).setdefault(policy, []).append(outcome["caught"])
        slow_ones.setdefault(policy, []).append(outcome["caught"] and outcome["speed_share"] <= 1)
        allowed.setdefault(policy, []).append(outcome["caught"] and within_limits(outcome))
    lines = [
        f"<h2>{TITLES[config['kind']]}</h2><p><code>{html.escape(name)}</code>: {config['trials']} trials "
        f"a cell, seed {config['seed']}, drive <code>{config['drive']}</code>, sight: {config['sight']}"
        f"{_unusual(config)}.</p>",
        "<table><tr><th>object<th>launch" + "".join(f"<th>{html.escape(p)}" for p in policies)
        + "".join(f"<th class=paper>{p}, real robot, the paper" for p in real.get("policies", ())),
    ]  # fmt: skip
    for (what, label), row in cells.items():
        shown = "".join(f"<td>{_rate(row.get(policy, []))}" for policy in policies)
        counts = real.get("caught", {}).get(f"{what}/{label}", ())
        shown += "".join(f"<td class=paper>{count} / {real['trials']}" for count in counts)
        lines.append(f"<tr><td>{what}<td>{label}{shown}")
    pooled = [[c for row in cells.values() for c in row.get(policy, [])] for policy in policies]
    whole = "".join(f"<td>{_rate(found)}" for found in pooled)
    if any(len(found) != len(cells) * config["trials"] for found in pooled):
        lines[0] += "<p><b>Incomplete</b>: cells have unequal numbers of trials; the last row adds them."
    whole += "".join(f"<td class=paper>{text}" for text in real.get("totals", ()))
    lines.append(f"<tr class=best><td>all<td>{whole}")
    for words, kept in (
        ("caught, and no joint beyond the speed at which a real FR3 stops", slow_ones),
        ("caught, and besides no torque or torque rate beyond FCI's limits asked for", allowed),
    ):
        rates = "".join(f"<td>{_rate(kept.get(policy, []))}" for policy in policies)
        lines.append(f"<tr><td>all<td>{words}{rates}" + "<td class=paper>" * len(real.get("policies", ())))
    lines[-1] += "</table>"
    return ["\n".join(lines)]


def _unusual(config: dict[str, Any]) -> str:
    """What a diagnosis changed, if anything."""
    words = (("contact", "real"), ("coupling", "two-way"))
    return "".join(f", {key}: {config[key]}" for key, usual in words if config.get(key, usual) != usual)


def _rate(caught: list[bool]) -> str:
    if not caught:
        return "missing"
    low, high = wilson(sum(caught), len(caught))
    return f"{sum(caught)} / {len(caught)} <small>[{low:.2f}, {high:.2f}]</small>"
