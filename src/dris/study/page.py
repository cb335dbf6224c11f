"""The page about a study, made from its result files alone."""

from __future__ import annotations

import html
import json
from pathlib import Path
from statistics import median
from typing import Any

from dris.report import STYLE
from dris.runs import write_atomically
from dris.study.claims_page import claims_part
from dris.study.figures import bars, curves, noise_sweep
from dris.study.results import FIVE, NOISE, Estimate, Results, estimate, load_results, makespan

CORES = (1, 2, 8, 32)
"""Sizes of a cluster to tell the time for."""
OURS = ("delay-20", "delay-40", "delay-60", "ramp-1.3", "ramp-2.0", "ramp-1.3-noise-2", "ramp-2.0-noise-2")


BASELINES = (
    "e2e-noise, dris-50-noise: trained with 2 sigma of observation noise. e2e-decay: E2E whose encoder's "
    "weights decay as the policy's do. mean-reward-50: rewarded for 50 balls, but policy and critic see one "
    "of them. dris-50-moments: mean and standard deviation of the set (12 numbers) in place of the "
    "autoencoder's code (64). dris-50-concat: the plate's tilt beside the code in place of FiLM; the "
    "recipe's weight decay reaches it there, and does not reach FiLM. e2e-x50: as many balls as dris-50 in "
    "environments of their own, so mini-batches fifty times as large at the same learning rate."
)


def report_study(folder: Path, out: Path, paper: dict[str, Any]) -> Path:
    """Write `out/index.html`, its figures and `table.md` about the study in `folder`; returns the page.

    Args:
        folder: Of the results; nothing else is read.
        out: Folder to write to.
        paper: The paper's own values, by "success" or "reward", method and condition.
    """
    results = load_results(folder)
    out.mkdir(parents=True, exist_ok=True)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>DRIS: {results.description['name']}</title>"
        f"<style>{STYLE} body {{ max-width: 76rem; }} .paper {{ color: #7a5b00; }} "
        ".claims td + td { white-space: nowrap; } .claims td:first-child { min-width: 16rem; } "
        ".claims td:last-child { white-space: normal; min-width: 8rem; }"
        "</style>",
        "<h1>The paper's simulation section, rerun</h1>",
        _introduction(results),
        *claims_part(results),
        "<h2>Beside the paper's figures</h2>",
        "<p>Where our interval and the paper's band have nothing in common (paper: the middle of its "
        "band):</p><ul>",
        *(f"<li>{sentence}" for sentence in _outside(results, paper)),
        "</ul>",
    ]
    for preset in results.presets():
        parts += _preset(results, preset, paper if preset == "paper" else {}, out)
    parts += _cost(results, paper)
    if results.missing:
        names = ", ".join(html.escape(name) for name in results.missing)
        parts += [f"<h2>Missing</h2><p>{len(results.missing)} runs have no result yet: {names}.</p>"]
    parts.append("</html>")
    write_atomically(out / "table.md", markdown_table(results, paper).encode())
    write_atomically(out / "index.html", ("\n".join(parts) + "\n").encode())
    return out / "index.html"


def _introduction(results: Results) -> str:
    plan = results.description
    sizes: dict[str, list[str]] = {}
    for (_, method), cells in results.cells.items():
        config = cells[0]["stamp"]["config"]
        size = f"{config['sets']} sets, {config['iterations']} iterations of one episode each"
        sizes.setdefault(size, []).append(method)
    most = max(sizes, key=lambda size: len(sizes[size]), default="")
    other = "".join(f"; {', '.join(methods)}: {size}" for size, methods in sizes.items() if size != most)
    size = f" Every run: {most}{other}." if sizes else ""
    return (
        f"<p>{sum(map(len, results.cells.values()))} of {len(plan['jobs'])} runs.{size} Each trained policy "
        f"is scored on single balls, {plan['episodes']} episodes per condition (a quarter on ramps, an "
        "eighth at each point of the worst case's grid), evaluation seed "
        f"{plan['seed']}, which nothing was tuned on. Figures are interquartile means over training seeds "
        "with 95 % bootstrap intervals over training seeds alone: all runs share the scoring's episodes "
        "(rough with five seeds; with fewer they are the seeds' range). The paper's are the bands in its "
        "figures, from its own simulator. Contact preset <code>paper</code> follows that simulator as far as "
        "it is known: a nominal restitution of 0.4 to 0.7 acts as 0.30 to 0.45 and the unseen 0.7 to 0.8 as "
        "0.45 to 0.50, impacts below 2 m/s do not bounce, and friction is halved. Under <code>exact</code> "
        "balls bounce and rub as their numbers say. The recipe was tuned on dris-10 with training seed 0, "
        "not on E2E. All figures are simulated. Command: <code>"
        "dris study paper</code>, then <code>dris report results/paper</code>.</p>"
    )


def _outside(results: Results, paper: dict[str, Any]) -> list[str]:
    """Where our interval and the paper's band have nothing in common, a sentence a condition."""
    found = []
    for condition in (*NOISE, "execution", "restitution"):
        far = []
        for method in FIVE:
            ours = estimate(results.scores("paper", method, condition))
            band = paper.get("success", {}).get(method, {}).get(condition)
            if ours and band and not (ours.high >= band[0] and ours.low <= band[1]):
                far.append(f"{method} {ours.value:.2f} (paper {sum(band) / 2:.2f})")
        if far:
            found.append(f"{condition}: {', '.join(far)}.")
    return found


def _preset(results: Results, preset: str, paper: dict[str, Any], out: Path) -> list[str]:
    methods = results.methods(preset)
    parts = [f"<h2>Contact preset <code>{preset}</code></h2>"]
    five = [method for method in FIVE if method in methods]
    others = [method for method in methods if method not in FIVE]
    conditions = [c for c in results.description["conditions"] if c in (*NOISE, "execution", "restitution")]
    parts += ["<h3>Success of the final policies</h3>", _table(results, preset, five, conditions, paper)]
    if others:
        table = _table(results, preset, others, conditions, {})
        parts += ["<h3>Baselines</h3>", f"<p>{BASELINES}</p>", table]
    extra = [c for c in results.description["conditions"] if c in OURS or c == "worst-case"]
    if extra:
        parts += [
            "<h3>Delay, other throws, worst case</h3>",
            "<p>delay-k: k ms from observation to action. ramp: a ball that leaves a ramp horizontally at "
            "this speed [m/s] and drops 0.3 m to within 5 cm of a point, slower and flatter than any in "
            "training; success is to be on the plate after ten seconds. worst-case: the lowest success on a "
            "grid of 81 points over the four physical parameters (54 of them different, as dynamic friction "
            "is at most static).</p>",
            _table(results, preset, methods, extra, {}),
        ]
    if not any(results.cells.get((preset, method)) for method in five):
        return parts
    files = {name: f"{preset}-{name}.png" for name in ("curves", "noise", "execution", "restitution")}
    curves(results, preset, out / files["curves"])
    noise_sweep(results, preset, paper, out / files["noise"])
    for condition in ("execution", "restitution"):
        bars(results, preset, condition, paper, out / files[condition])
    captions = {
        "curves": "Single-ball reward and success during training, by observation noise; bands: all seeds.",
        "noise": "Observation noise; ours averaged over the evaluations of the last 100 iterations, as in "
        "the paper.",
        "execution": "Execution error: each desired joint off by up to 0.05 rad, drawn anew every step.",
        "restitution": "Unseen restitution, nominally 0.7 to 0.8, trained on 0.4 to 0.7.",
    }
    parts.append(_trained_on(results, preset, five))
    for name, caption in captions.items():
        parts.append(
            f"<figure><img src='{files[name]}' alt='{name}'><figcaption>{caption}</figcaption></figure>"
        )
    return parts


def _trained_on(results: Results, preset: str, methods: list[str]) -> str:
    """Success at 2 sigma early and late in training: who loses robustness while training on."""
    lines = ["<table><tr><th>success at 2 sigma<th>up to iteration 400<th>at the end<th>change of a run"]
    for method in methods:
        early, late = (results.late(preset, method, "noise-2", until=until) for until in (0.4, 1.0))
        change = [b - a for a, b in zip(early, late, strict=True)] if len(early) == len(late) else []
        shown = "".join(f"<td>{_show(estimate(values))}" for values in (early, late, change))
        lines.append(f"<tr><td>{method}{shown}")
    return (
        "<h3>Trained on</h3><p>The paper: E2E and N = 1 lose robustness when they are trained for longer. "
        "Averages over the evaluations of 100 iterations each.</p>" + "\n".join((*lines, "</table>"))
    )


def _show(found: Estimate | None) -> str:
    if found is None:
        return "missing"
    return f"{found.value:.2f} <small>[{found.low:.2f}, {found.high:.2f}]</small>"


def _named(method: str, cells: list[Estimate | None], planned: int) -> str:
    """A method, with how many of its seeds are there if some are not."""
    seeds = min(cell.seeds if cell else 0 for cell in cells)
    return f"<td>{method}" + ("" if seeds >= planned else f"<br><small>{seeds} of {planned} seeds</small>")


def _table(
    results: Results, preset: str, methods: list[str], conditions: list[str], paper: dict[str, Any]
) -> str:
    """Success by method and condition; the paper's band on a line of its own."""
    lines = ["<table><tr><th>method" + "".join(f"<th>{condition}" for condition in conditions)]
    for method in methods:
        planned = results.planned(preset, method)
        cells = [estimate(results.scores(preset, method, condition)) for condition in conditions]
        lines.append(f"<tr>{_named(method, cells, planned)}" + "".join(f"<td>{_show(c)}" for c in cells))
        bands = paper.get("success", {}).get(method)
        if bands:
            shown = (
                f"{bands[c][0]:.2f} to {bands[c][1]:.2f}" if c in bands else "&ndash;" for c in conditions
            )
            lines.append("<tr class=paper><td>&nbsp; paper" + "".join(f"<td>{text}" for text in shown))
    return "\n".join((*lines, "</table>"))


def _cost(results: Results, paper: dict[str, Any]) -> list[str]:
    """Equal interaction, and what everything took."""
    known = paper.get("equal_interaction", {})
    rows = [
        "<table><tr><th>method<th>success at 2 sigma<th>paper<th>peak memory<th>paper<th>wall time, median"
    ]
    for method in ("e2e", "e2e-x50", "dris-50"):
        cells = results.cells.get(("paper", method), [])
        found = estimate(results.scores("paper", method, "noise-2"))
        seconds = [cell["seconds"] for cell in cells if cell["seconds"]]
        memory = max((cell["peak_memory_mb"] for cell in cells), default=None)
        rows.append(
            f"<tr>{_named(method, [found], results.planned('paper', method))}<td>{_show(found)}"
            f"<td>{known.get('success', {}).get(method, '&ndash;')}"
            f"<td>{f'{memory / 1024:.2f} GB' if memory else 'missing'}"
            f"<td>{known.get('memory_gb', {}).get(method, '&ndash;')} GB (GPU)"
            f"<td>{_minutes(seconds)}"
        )
    runs, timed = results.seconds()
    hours = ", ".join(f"{makespan(runs, cores) / 3600:.1f} h on {cores}" for cores in CORES)
    return [
        "<h2>Equal interaction</h2>",
        "<p>Contact preset <code>paper</code>. e2e-x50: 128 x 50 environments of one ball, as many balls as "
        "dris-50. The paper's success is as its text gives it, a point off its figures. Wall time of one run "
        "on one thread with its evaluations, other work beside it (its range is that of the load), without "
        "the pre-training of the encoder, which the DRIS methods of a seed share. Peak memory of the whole "
        "process, torch and the scoring's 2000 episodes at once included.</p>",
        "\n".join((*rows, "</table>")),
        "<h2>What it took</h2>",
        f"<p>Training with its evaluations, without encoders, one thread a run: {sum(runs) / 3600:.1f} hours "
        f"for {len(runs)} of the {len(results.description['jobs'])} runs. {timed} of these were timed, other "
        "runs beside them; those that are missing or have no time count as the median of their method, and "
        "methods "
        f"without a time are left out. Spread over the cores of a cluster, the longest first: {hours}; "
        "scoring, and what the cluster itself takes, come on top (docs/study.md).</p>",
    ]


def _minutes(seconds: list[float]) -> str:
    if not seconds:
        return "missing"
    low, high = min(seconds) / 60, max(seconds) / 60
    return f"{median(seconds) / 60:.1f} min <small>[{low:.1f}, {high:.1f}], {len(seconds)} timed</small>"


def markdown_table(results: Results, paper: dict[str, Any]) -> str:
    """Success of all methods under the paper's preset, ours beside the paper's, for a README."""
    conditions = ("clean", "noise-2", "noise-4", "execution", "restitution")
    lines = [
        "| method | runs | " + " | paper | ".join(conditions) + " | paper |",
        "|---" * (2 * len(conditions) + 2) + "|",
    ]
    for method in results.methods("paper"):
        cells = []
        for condition in conditions:
            found = estimate(results.scores("paper", method, condition))
            cells.append(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]" if found else "missing")
            band = paper.get("success", {}).get(method, {}).get(condition)
            cells.append(f"{sum(band) / 2:.2f}" if band else "")
        runs = f"{len(results.cells.get(('paper', method), []))} of {results.planned('paper', method)}"
        lines.append(f"| {method} | {runs} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def load_paper() -> dict[str, Any]:
    """The paper's own values for the catching task."""
    from importlib.resources import files

    return json.loads((files("dris.catching") / "paper.json").read_text())
