"""Figures of a study, in the paper's arrangement: ours as lines and bars, the paper's beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dris.experiments.study.results import FIVE, NOISE, Results, estimate, title_of

COLOURS = dict(zip(FIVE, ("#4885ed", "#3cba54", "#d9a400", "#ff8c00", "#db3236"), strict=True))


def _canvas(width: float, height: float, rows: int, columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        one.grid(alpha=0.3)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _legend(axes: Any, title: str = "") -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9, title=title)


def curves(results: Results, preset: str, file: Path) -> None:
    """Reward and success by iteration, a column per noise level; bands are the range over seeds."""
    figure, axes = _canvas(15, 5.6, 2, len(NOISE))
    for row, key in enumerate(("reward", "success")):
        for column, condition in enumerate(NOISE):
            one = axes[row, column]
            for method in FIVE:
                cells = results.cells.get((preset, method), [])
                name = f"{condition}/{key}"
                lines = [[(r["iteration"] + 1, r[name]) for r in c["curve"] if name in r] for c in cells]
                if not lines or not all(lines):
                    continue
                steps = [step for step, _ in lines[0]]
                values = np.array([[value for _, value in line] for line in lines])
                one.plot(steps, values.mean(axis=0), color=COLOURS[method], label=method, linewidth=1.4)
                one.fill_between(
                    steps, values.min(axis=0), values.max(axis=0), color=COLOURS[method], alpha=0.15, lw=0
                )
            one.set_ylim((-0.6, 0.9) if key == "reward" else (0, 1.02))
            if row == 0:
                one.set_title(condition)
            else:
                one.set_xlabel("iteration")
        axes[row, 0].set_ylabel(key)
    _legend(axes[0, 0])
    figure.savefig(file, dpi=110)


def noise_sweep(results: Results, preset: str, paper: dict[str, Any], file: Path) -> None:
    """Reward and success against noise: ours solid with intervals, the paper's bands shaded."""
    figure, axes = _canvas(11, 4.4, 1, 2)
    for one, key in zip(axes[0], ("reward", "success"), strict=True):
        for method in FIVE:
            known = paper.get(key, {}).get(method, {})
            bands = [known.get(condition) for condition in NOISE]
            if all(bands):
                low, high = np.array(bands).T
                one.fill_between(range(5), low, high, color=COLOURS[method], alpha=0.18, lw=0)
            found = [estimate(results.late(preset, method, condition, key)) for condition in NOISE]
            if all(found):
                middle = [e.value for e in found if e]
                reach = [[e.value - e.low for e in found if e], [e.high - e.value for e in found if e]]
                one.errorbar(
                    range(5), middle, yerr=np.maximum(reach, 0), color=COLOURS[method], marker="o",
                    markersize=4, capsize=3, label=method,
                )  # fmt: skip
        one.set(xticks=range(5), xticklabels=("0", "1", "2", "3", "4"), xlabel="noise [sigma]", ylabel=key)
    axes[0, 1].set_ylim(0, 1.02)
    _legend(axes[0, 0], title="ours; bands: the paper" if paper else "")
    figure.savefig(file, dpi=110)


def claims_figure(results: Results, preset: str, paper: dict[str, Any], file: Path) -> None:
    """What the paper's claims are about: ours and the paper's, a row a measure of success."""
    measures = results.measures(preset)
    figure, axes = _canvas(15, 3.6 * len(measures), len(measures), 4)
    for row, measure in zip(axes, measures, strict=True):
        for method in FIVE:
            known = [paper.get("success", {}).get(method, {}).get(condition) for condition in NOISE]
            if all(known):
                middle = [sum(band) / 2 for band in known if band]
                row[0].plot(range(5), middle, color=COLOURS[method], marker="o", mfc="white", ls="--", lw=1)
            found = [estimate(results.scores(preset, method, condition, measure)) for condition in NOISE]
            if all(found):
                row[0].plot(
                    range(5), [e.value for e in found if e], color=COLOURS[method], marker="o", label=method
                )
        row[0].set(xticks=range(5), xlabel="observation noise [sigma]", ylabel=f"success {title_of(measure)}")
        _pairs_of_bars(row[1], results, preset, FIVE, "execution", measure, paper.get("success", {}))
        _pairs_of_bars(row[2], results, preset, FIVE, "restitution", measure, paper.get("success", {}))
        equal = paper.get("equal_interaction", {}).get("success", {})
        theirs = {method: {"noise-2": (value, value)} for method, value in equal.items()}
        methods = ("e2e", "e2e-x50", "dris-50")
        _pairs_of_bars(row[3], results, preset, methods, "noise-2", measure, theirs)
        for one, title in zip(
            row, ("observation noise", "execution error", "unseen restitution", ""), strict=True
        ):
            one.set(ylim=(0, 1.03), title=title or "equal interaction, 2 sigma")
    _legend(axes[-1, 0], title="filled: ours; hollow: the paper")
    figure.savefig(file, dpi=100)


def _pairs_of_bars(
    one: Any,
    results: Results,
    preset: str,
    methods: tuple[str, ...],
    condition: str,
    measure: str,
    theirs: dict[str, Any],
) -> None:
    """Success of methods under one condition: ours filled with its interval, the paper's hollow."""
    for place, method in enumerate(methods):
        colour = COLOURS.get(method, "#7b5ea7")
        found = estimate(results.scores(preset, method, condition, measure))
        if found:
            reach = np.maximum([[found.value - found.low], [found.high - found.value]], 0)
            one.bar(place - 0.2, found.value, 0.38, yerr=reach, capsize=3, color=colour)
        else:
            one.text(place - 0.2, 0.02, "missing", rotation=90, ha="center", va="bottom", fontsize=8)
        band = theirs.get(method, {}).get(condition)
        if band:
            one.bar(place + 0.2, sum(band) / 2, 0.38, color="white", edgecolor=colour)
    one.set(xticks=range(len(methods)), xticklabels=methods)
    one.tick_params(axis="x", labelrotation=20)


def bars(results: Results, preset: str, condition: str, paper: dict[str, Any], file: Path) -> None:
    """Reward and success of the planned methods under one condition, ours beside the paper's."""
    figure, axes = _canvas(11, 3.8, 1, 2)
    methods = [method for method in FIVE if method in results.methods(preset)]
    for one, key in zip(axes[0], ("reward", "success"), strict=True):
        for place, method in enumerate(methods):
            found = estimate(results.scores(preset, method, condition, key))
            band = paper.get(key, {}).get(method, {}).get(condition)
            if found:
                reach = np.maximum([[found.value - found.low], [found.high - found.value]], 0)
                one.bar(place - 0.2, found.value, 0.38, yerr=reach, capsize=3, color=COLOURS[method])
            else:
                one.text(place - 0.2, 0.02, "missing", rotation=90, ha="center", va="bottom", fontsize=8)
            if band:
                middle, half = (band[0] + band[1]) / 2, (band[1] - band[0]) / 2
                one.bar(
                    place + 0.2, middle, 0.38, yerr=half, capsize=3, color="white", edgecolor=COLOURS[method],
                    hatch="///",
                )  # fmt: skip
        one.set(xticks=range(len(methods)), xticklabels=methods, ylabel=key, title=f"{condition}: {key}")
        one.set(xlim=(-0.6, len(methods) - 0.4), ylim=(0, 0.9 if key == "reward" else 1.02))
    if paper:
        axes[0, 0].bar(0, 0, color="#888", label="ours")
        axes[0, 0].bar(0, 0, color="white", edgecolor="#888", hatch="///", label="the paper")
    _legend(axes[0, 0])
    figure.savefig(file, dpi=110)
