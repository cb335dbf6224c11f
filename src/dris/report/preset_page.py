"""The parts of a study's page that show figures: tables and pictures of a preset, and what it all took."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from dris.experiments.study.results import FIVE, NOISE, Estimate, Results, estimate, makespan, title_of
from dris.report.study_figures import bars, curves, noise_sweep

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


PUBLISHED_CONDITIONS = (*NOISE, "execution", "restitution")
SEEN = tuple(f"correlated-{k}" for k in (1, 2, 3, 4)) + ("dropout-20", "dropout-40")


def preset_part(results: Results, preset: str, paper: dict[str, Any], out: Path) -> list[str]:
    """Tables and figures of a preset's runs; figures are written to `out`."""
    methods, planned = results.methods(preset), results.conditions(preset)
    parts = [f"<h3>Preset <code>{preset}</code></h3>"]
    five = [method for method in FIVE if method in methods]
    others = [method for method in methods if method not in FIVE]
    groups = {
        "": [c for c in planned if c in PUBLISHED_CONDITIONS],
        f"<p>{SIGHT}</p>": [c for c in planned if c in SEEN],
        f"<p>{THROWS}</p>": [c for c in planned if c in OURS or c == "worst-case"],
    }
    for measure in results.measures(preset):
        parts.append(f"<h4>Success of the final policies, {title_of(measure)}</h4>")
        parts.append(_table(results, preset, five, groups[""], paper, measure))
        if others:
            parts += [f"<p>{BASELINES}</p>", _table(results, preset, others, groups[""], {}, measure)]
        for words, conditions in list(groups.items())[1:]:
            told = [c for c in conditions if measure == "success" or not c.startswith("ramp")]
            if told:
                parts += [words, _table(results, preset, methods, told, {}, measure)]
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
            f"<figure><img src='{files[name]}' alt='{name}'><figcaption>{caption} Success at 0.1 m/s."
            "</figcaption></figure>"
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
        "<h4>Trained on</h4><p>The paper: E2E and N = 1 lose robustness when they are trained for longer. "
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
    results: Results,
    preset: str,
    methods: list[str],
    conditions: list[str],
    paper: dict[str, Any],
    measure: str,
) -> str:
    """Success by method and condition; the paper's band on a line of its own."""
    lines = ["<table><tr><th>method" + "".join(f"<th>{condition}" for condition in conditions)]
    for method in methods:
        planned = results.planned(preset, method)
        cells = [estimate(results.scores(preset, method, condition, measure)) for condition in conditions]
        lines.append(f"<tr>{_named(method, cells, planned)}" + "".join(f"<td>{_show(c)}" for c in cells))
        bands = paper.get("success", {}).get(method)
        if bands:
            shown = (
                f"{bands[c][0]:.2f} to {bands[c][1]:.2f}" if c in bands else "&ndash;" for c in conditions
            )
            lines.append("<tr class=paper><td>&nbsp; paper" + "".join(f"<td>{text}" for text in shown))
    return "\n".join((*lines, "</table>"))


SIGHT = (
    "What trackers do: correlated-k: noise of k sigma that keeps 0.8 of itself from step to step (AR(1), "
    "the same standard deviation). dropout-k: k percent of the observations are missing; the last stands in."
)
THROWS = (
    "delay-k: k ms from observation to action. ramp: a ball that leaves a ramp horizontally at this speed "
    "[m/s] and drops 0.3 m to within 5 cm of a point, slower and flatter than any in training; success is to "
    "be on the plate after ten seconds. worst-case: the lowest success on a grid of 81 points over the four "
    "physical parameters (54 of them different, as dynamic friction is at most static)."
)


def cost_part(results: Results, paper: dict[str, Any], preset: str) -> list[str]:
    """Equal interaction under a preset, and what everything took."""
    measure = results.measures(preset)[-1]
    known = paper.get("equal_interaction", {})
    rows = [
        f"<table><tr><th>method<th>success at 2 sigma, {title_of(measure)}<th>paper<th>peak memory<th>paper"
        "<th>wall time, median"
    ]
    for method in ("e2e", "e2e-x50", "dris-50"):
        cells = results.cells.get((preset, method), [])
        found = estimate(results.scores(preset, method, "noise-2", measure))
        seconds = [cell["seconds"] for cell in cells if cell["seconds"]]
        memory = max((cell["peak_memory_mb"] for cell in cells), default=None)
        rows.append(
            f"<tr>{_named(method, [found], results.planned(preset, method))}<td>{_show(found)}"
            f"<td>{known.get('success', {}).get(method, '&ndash;')}"
            f"<td>{f'{memory / 1024:.2f} GB' if memory else 'missing'}"
            f"<td>{known.get('memory_gb', {}).get(method, '&ndash;')} GB (GPU)"
            f"<td>{_minutes(seconds)}"
        )
    runs, timed = results.seconds()
    hours = ", ".join(f"{makespan(runs, cores) / 3600:.1f} h on {cores}" for cores in CORES)
    return [
        "<h2>Equal interaction</h2>",
        f"<p>Preset <code>{preset}</code>. e2e-x50: 128 x 50 environments of one ball, as many balls as "
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
        "scoring, and what the cluster itself takes, come on top (docs/reports/study.md).</p>",
    ]


def _minutes(seconds: list[float]) -> str:
    if not seconds:
        return "missing"
    low, high = min(seconds) / 60, max(seconds) / 60
    return f"{median(seconds) / 60:.1f} min <small>[{low:.1f}, {high:.1f}], {len(seconds)} timed</small>"
