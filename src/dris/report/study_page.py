"""The page about a study, made from its result files alone."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from dris.core.files import write_atomically
from dris.experiments.study.distance import MEASURES, distances, outside_file
from dris.experiments.study.results import Results, estimate, load_results, title_of
from dris.report.claims_page import ask, claims_part
from dris.report.preset_page import cost_part, preset_part
from dris.report.run_page import STYLE
from dris.report.study_figures import claims_figure

RELEASED = "released"
"""The preset behind the paper's figures; the page leads with it."""


def report_study(folder: Path, out: Path, paper: dict[str, Any]) -> Path:
    """Write `out/index.html`, its figures and `table.md` about the study in `folder`; returns the page.

    Args:
        folder: Of the results; nothing else is read.
        out: Folder to write to.
        paper: The paper's own values, by "success" or "reward", method and condition.
    """
    results = load_results(folder)
    out.mkdir(parents=True, exist_ok=True)
    first = RELEASED if RELEASED in results.presets() else results.presets()[0]
    literal = tuple(preset for preset in results.presets() if preset != first)
    claims_figure(results, first, paper, out / "claims.png")
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>DRIS: {results.description['name']}</title>"
        f"<style>{STYLE} body {{ max-width: 84rem; }} .paper {{ color: #7a5b00; }} "
        ".claims td + td { white-space: nowrap; } .claims td:first-child { min-width: 14rem; } "
        ".wide { overflow-x: auto; } .claims td.verdict { white-space: normal; min-width: 7rem; }"
        "</style>",
        "<h1>The paper's simulation section, rerun</h1>",
        "<figure><img src='claims.png' alt='the claims, in a picture'><figcaption>The paper's claims in a "
        f"picture, preset <code>{first}</code>: ours filled, the paper's hollow.</figcaption></figure>",
        _introduction(results),
        "<h2>The paper's claims</h2>",
        *claims_part(ask(results, (first,)), paper),
        *_distance_part(results, paper, outside_file(folder)),
        "<h2>All figures</h2>",
        *preset_part(results, first, paper, out),
    ]
    if literal:
        parts += [
            f"<h2>The text taken literally</h2><p>{LITERAL}</p>",
            *claims_part(ask(results, literal), {}),
        ]
        for preset in literal:
            parts += preset_part(results, preset, paper if preset == "paper" else {}, out)
    parts += cost_part(results, paper, first)
    if results.missing:
        names = ", ".join(html.escape(name) for name in results.missing)
        parts += [f"<h2>Missing</h2><p>{len(results.missing)} runs have no result yet: {names}.</p>"]
    parts.append("</html>")
    write_atomically(out / "table.md", markdown_table(results, paper, first).encode())
    write_atomically(out / "index.html", ("\n".join(parts) + "\n").encode())
    return out / "index.html"


LITERAL = (
    "The robot starts at home with a level gripper and stiff gains and has 0.1 s to get to the ball. This is "
    "the older study, of the same recipe. Contact under <code>paper</code> follows the paper's simulator as "
    "far as it is known; under <code>exact</code> balls bounce and rub as their numbers say. The recipe was "
    "tuned on dris-10 with training seed 0, not on E2E; claims, test and the aim of the ramps were revised "
    "when the scores of 20 of its runs had been seen, the tables' arrangement at 40 (docs/reports/study.md)."
)


def _introduction(results: Results) -> str:
    plan = results.description
    sizes: dict[str, list[str]] = {}
    for (_, method), cells in results.cells.items():
        config = cells[0]["stamp"]["config"]
        size = f"{config['sets']} sets, {config['iterations']} iterations of one episode each"
        if method not in sizes.setdefault(size, []):
            sizes[size].append(method)
    most = max(sizes, key=lambda size: len(sizes[size]), default="")
    other = "".join(f"; {', '.join(methods)}: {size}" for size, methods in sizes.items() if size != most)
    size = f" Every run: {most}{other}." if sizes else ""
    return (
        f"<p>{sum(map(len, results.cells.values()))} of {len(plan['jobs'])} runs are in.{size} Preset "
        "<code>released</code> is the environment behind the paper's figures (docs/reports/released.md). Success is "
        "told at 0.1 m/s, the paper's text, and at 0.2 m/s, the released environment.</p>"
        f"<p>Each trained policy is scored on single balls, {plan['episodes']} episodes per condition (a "
        "quarter on ramps, an eighth at each point of the worst case's grid), evaluation seed "
        f"{plan['seed']}, which nothing was tuned on. Figures are interquartile means over training seeds "
        "with 95 % bootstrap intervals over training seeds alone: all runs share the scoring's episodes "
        "(rough with five seeds; with fewer they are the seeds' range). The paper's are the bands in its "
        "figures, from its own simulator. Contact of presets <code>released</code> and <code>paper</code>: a "
        "nominal restitution of 0.4 to 0.7 acts as 0.30 to 0.45 and the unseen 0.7 to 0.8 as 0.45 to 0.50, "
        "impacts below 2 m/s do not bounce, and friction is halved. All figures are simulated. Command: "
        "<code>dris study paper</code>, then <code>dris report results/paper</code>.</p>"
    )


def _distance_part(results: Results, paper: dict[str, Any], outside: Path) -> list[str]:
    """The distance to the paper, by preset."""
    if not paper:
        return []
    heads = "".join(f"<th>{'reward' if m == 'reward' else f'success {title_of(m)}'}" for m in MEASURES)
    lines = [f"<table><tr><th>preset<th>of<th>cells{heads}"]
    for preset, found in distances(results, paper, outside).items():
        for what, suffix in (("means", "rms"), ("DRIS minus E2E", "difference_rms")):
            values = [found[f"{measure}_{suffix}"] for measure in MEASURES]
            if not any(values):
                continue
            shown = "".join("<td>&ndash;" if value is None else f"<td>{value:.3f}" for value in values)
            lines.append(f"<tr><td>{preset}<td>{what}<td>{found['reward_cells']} of 35{shown}")
    return [
        "<h2>The distance to the paper</h2>",
        "<p>Root mean square of our mean minus the paper's, over its five methods and seven conditions "
        "(<code>dris study distance</code>). A policy that is better than the paper's is distant, too; so "
        "beside it stands the distance of the differences between methods, which the claims are about.</p>",
        "\n".join((*lines, "</table>")),
    ]


def markdown_table(results: Results, paper: dict[str, Any], preset: str) -> str:
    """Success of a preset's methods by its mildest measure, ours beside the paper's, for a README."""
    conditions = ("clean", "noise-2", "noise-4", "execution", "restitution")
    measure = results.measures(preset)[-1]
    lines = [
        "| method | runs | " + " | paper | ".join(conditions) + " | paper |",
        "|---" * (2 * len(conditions) + 2) + "|",
    ]
    for method in results.methods(preset):
        cells = []
        for condition in conditions:
            found = estimate(results.scores(preset, method, condition, measure))
            cells.append(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]" if found else "missing")
            band = paper.get("success", {}).get(method, {}).get(condition)
            cells.append(f"{sum(band) / 2:.2f}" if band else "")
        runs = f"{len(results.cells.get((preset, method), []))} of {results.planned(preset, method)}"
        lines.append(f"| {method} | {runs} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
