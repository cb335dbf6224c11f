"""Figures of the pages, as PNG: ours as lines and bars, the paper's beside them."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from dris.core.rollout import wilson
from dris.experiments.study.claims import EQUAL_INTERACTION
from dris.experiments.study.published import Bands, Published, bands_of, equal_success
from dris.experiments.study.results import FIVE, NOISE, Estimate, Results, estimate, title_of
from dris.experiments.study.theory import Theory

COLOURS = dict(zip(FIVE, ("#4885ed", "#3cba54", "#d9a400", "#ff8c00", "#db3236"), strict=True))
BLUE, RED, GREY = "#2f6fb0", "#db3236", "#888"
PANEL = (5.2, 3.7)
"""Of a picture that stands alone: its letters can be read at the width of a phone [inch]."""


def canvas(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """An empty picture of a size [inch], and its axes [rows, columns]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        one.grid(alpha=0.3)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def png(figure: Any, legend: Any, title: str = "", dpi: int = 110) -> bytes:
    """Content of the file, with a legend on the axes that has labels."""
    if legend.get_legend_handles_labels()[0]:
        legend.legend(frameon=False, fontsize=9, title=title)
    content = BytesIO()
    figure.savefig(content, dpi=dpi)
    return content.getvalue()


def panel(lines: list[tuple[Any, ...]], **axes: Any) -> bytes:
    """A picture of lines, each (x, y, style, colour, label); a linear x axis counts something."""
    from matplotlib.ticker import MaxNLocator, NullFormatter

    figure, [[one]] = canvas(*PANEL)
    for x, y, style, colour, label in lines:
        one.plot(x, y, style, color=colour, label=label.replace("$", r"\$"), markersize=5, linewidth=1.2)
    one.set(**axes)
    for axis in (one.xaxis, one.yaxis):
        axis.set_major_formatter("{x:g}")  # 100, not 10^2
        axis.set_minor_formatter(NullFormatter())
    if one.get_xscale() == "linear":
        one.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
    return png(figure, one, dpi=150)


def learning_curve(metrics: list[dict[str, Any]]) -> dict[str, bytes]:
    """Reward per iteration, and success wherever it was evaluated."""
    lines = []
    for key in ["reward", *sorted({key for row in metrics for key in row if key.endswith("/success")})]:
        seen = [(row["iteration"] + 1, row[key]) for row in metrics if key in row]
        lines.append((*zip(*seen, strict=True), "o-", None, key.removesuffix("/success")))
    reward = [(*lines[0][:2], "-" if len(metrics) > 1 else "o", BLUE, "")]
    last = max(row["iteration"] for row in metrics) + 1
    axes = {"xlabel": "iteration", "xlim": (0, 1.02 * last)}
    return {
        "reward.png": panel(reward, ylabel="mean reward per step", **axes),
        "success.png": panel(lines[1:], ylabel="success", ylim=(-0.02, 1.02), **axes),
    }


def of_preset(results: Results, preset: str, paper: Published) -> dict[str, bytes]:
    """All of a preset's, by the names of their files; none if none of the paper's methods has a run."""
    if not any(results.cells.get((preset, method)) for method in FIVE):
        return {}
    pictures = {"curves": curves(results, preset), "noise": noise_sweep(results, preset, paper)}
    pictures |= {name: bars(results, preset, name, paper) for name in ("execution", "restitution")}
    return {f"{preset}-{name}.png": content for name, content in pictures.items()}


def curves(results: Results, preset: str) -> bytes:
    """Reward and success by iteration, a column per noise level; bands are the range over seeds."""
    figure, axes = canvas(15, 5.6, 2, len(NOISE))
    for row, key in zip(axes, ("reward", "success"), strict=True):
        for one, condition in zip(row, NOISE, strict=True):
            name = f"{condition}/{key}"
            for method in FIVE:
                cells = results.cells.get((preset, method), [])
                lines = [{r["iteration"] + 1: r[name] for r in c.curve if name in r} for c in cells]
                steps = sorted(set.intersection(*map(set, lines))) if lines else []
                if not steps:
                    continue
                values = np.array([[line[step] for step in steps] for line in lines])
                one.plot(steps, values.mean(axis=0), color=COLOURS[method], label=method, linewidth=1.4)
                low, high = values.min(axis=0), values.max(axis=0)
                one.fill_between(steps, low, high, color=COLOURS[method], alpha=0.15, lw=0)
            one.set_ylim((-0.6, 0.9) if key == "reward" else (0, 1.02))
            if key == "reward":
                one.set_title(condition)
            else:
                one.set_xlabel("iteration")
        row[0].set_ylabel(key)
    return png(figure, axes[0, 0])


def noise_sweep(results: Results, preset: str, paper: Published) -> bytes:
    """Reward and success against noise: ours solid with intervals, the paper's bands shaded."""
    figure, axes = canvas(11, 4.4, 1, 2)
    for one, key in zip(axes[0], ("reward", "success"), strict=True):
        for method in FIVE:
            known = bands_of(paper, key).get(method, {})
            bands = [known.get(condition) for condition in NOISE]
            if all(bands):
                low, high = np.array(bands).T
                one.fill_between(range(5), low, high, color=COLOURS[method], alpha=0.18, lw=0)
            found = [estimate(results.late(preset, method, condition, key)) for condition in NOISE]
            if all(found):
                middle, reach = _with_reach([e for e in found if e])
                style = {"color": COLOURS[method], "marker": "o", "markersize": 4, "capsize": 3}
                one.errorbar(range(5), middle, yerr=reach, label=method, **style)
        one.set(xticks=range(5), xlabel="noise [sigma]", ylabel=key)
    axes[0, 1].set_ylim(0, 1.02)
    return png(figure, axes[0, 0], "ours; bands: the paper" if paper else "")


def claims(results: Results, preset: str, paper: Published) -> bytes:
    """What the paper's claims are about: ours and the paper's, a row a measure of success."""
    measures, known = results.measures(preset), bands_of(paper, "success")
    figure, axes = canvas(15, 3.6 * len(measures), len(measures), 4)
    told = equal_success(paper)
    methods = EQUAL_INTERACTION.get(preset, ())
    equal = {m: {"noise-2": (v, v)} for m in methods if (v := told.get(m.removesuffix("-short")))}
    titles = ("observation noise", "execution error", "unseen restitution", "equal interaction, 2 sigma")
    for row, measure in zip(axes, measures, strict=True):
        for method in FIVE:
            style = {"color": COLOURS[method], "marker": "o"}
            bands = known.get(method, {})
            if bands.keys() >= set(NOISE):
                middle = [sum(bands[condition]) / 2 for condition in NOISE]
                row[0].plot(range(5), middle, mfc="white", ls="--", lw=1, **style)
            found = [estimate(results.scores(preset, method, condition, measure)) for condition in NOISE]
            if all(found):
                row[0].plot(range(5), [e.value for e in found if e], label=method, **style)
        row[0].set(xticks=range(5), xlabel="observation noise [sigma]", ylabel=f"success {title_of(measure)}")
        _bars(row[1], results, preset, FIVE, "execution", measure, known)
        _bars(row[2], results, preset, FIVE, "restitution", measure, known)
        _bars(row[3], results, preset, methods, "noise-2", measure, equal)
        for one, title in zip(row, titles, strict=True):
            one.set(ylim=(0, 1.03), title=title)
    return png(figure, axes[-1, 0], "filled: ours; hollow: the paper", 100)


def bars(results: Results, preset: str, condition: str, paper: Published) -> bytes:
    """Reward and success of the planned methods under one condition, ours beside the paper's."""
    figure, axes = canvas(11, 3.8, 1, 2)
    methods = tuple(method for method in FIVE if method in results.methods(preset))
    for one, key in zip(axes[0], ("reward", "success"), strict=True):
        _bars(one, results, preset, methods, condition, key, bands_of(paper, key))
        one.set(ylabel=key, title=f"{condition}: {key}", ylim=(0, 0.9 if key == "reward" else 1.02))
    if paper:
        axes[0, 0].bar(0, 0, color=GREY, label="ours")
        axes[0, 0].bar(0, 0, color="white", edgecolor=GREY, label="the paper")
    return png(figure, axes[0, 0])


def _bars(
    one: Any, results: Results, preset: str, methods: tuple[str, ...], condition: str, key: str,
    theirs: Bands,
) -> None:  # fmt: skip
    """Methods under one condition: ours filled with its interval, the paper's hollow with its band."""
    for place, method in enumerate(methods):
        colour = COLOURS.get(method, "#7b5ea7")
        found = estimate(results.scores(preset, method, condition, key))
        if found:
            middle, reach = _with_reach([found])
            one.bar(place - 0.2, middle, 0.38, yerr=reach, capsize=3, color=colour)
        else:
            one.text(place - 0.2, 0.02, "missing", rotation=90, ha="center", va="bottom", fontsize=8)
        band = theirs.get(method, {}).get(condition)
        if band:
            half = (band[1] - band[0]) / 2 or None
            one.bar(
                place + 0.2, sum(band) / 2, 0.38, yerr=half, capsize=3, color="white", edgecolor=colour,
                ecolor=colour,
            )  # fmt: skip
    one.set(xticks=range(len(methods)), xticklabels=methods, xlim=(-0.6, len(methods) - 0.4))
    one.tick_params(axis="x", labelrotation=20)


def _with_reach(found: list[Estimate]) -> tuple[list[float], Any]:
    """Values, and how far their intervals reach down and up."""
    reach = [[e.value - e.low for e in found], [e.high - e.value for e in found]]
    return [e.value for e in found], np.maximum(reach, 0)


def trials_figure(tables: dict[str, dict[str, Any]]) -> bytes:
    """Share of the trials caught by policy, a panel a kind; the paper's real robot hollow beside it."""
    columns = min(len(tables), 2)
    rows = -(-len(tables) // columns)
    figure, axes = canvas(5.2 * columns, 3.2 * rows, rows, columns)
    for one, (title, table) in zip(axes.flat, tables.items(), strict=False):
        policies, real = list(table["config"].policies), table["real"]
        for place, caught in enumerate(table["all"]):
            if not caught:
                continue
            rate, (low, high) = sum(caught) / len(caught), wilson(sum(caught), len(caught))
            reach = [[max(rate - low, 0)], [max(high - rate, 0)]]
            one.bar(place, rate, 0.6, yerr=reach, capsize=3, color=BLUE)
        shown = [*policies, *(f"{policy} (real)" for policy in real.get("policies", ()))]
        for place, total in enumerate(real.get("totals", ()), start=len(policies)):
            caught, trials = (float(part) for part in total.split("/"))
            one.bar(place, caught / trials, 0.6, color="white", edgecolor=RED)
        one.set(xticks=range(len(shown)), xticklabels=shown, ylim=(0, 1.05), ylabel="caught", title=title)
        one.set_xlim(-0.6, max(len(shown), 4) - 0.4)  # bars of one width in all panels
        one.tick_params(axis="x", labelrotation=20)
    for one in list(axes.flat)[len(tables) :]:
        one.remove()
    return png(figure, axes.flat[0], dpi=120)


def theory_panels(found: Theory, gaps: dict[str, Estimate]) -> dict[str, bytes]:
    """What the theory predicts of N and what was measured, a picture a proposition."""
    gradient, cost, estimation = found.gradient, found.local_cost, found.estimation
    fewer = gradient.sizes[:-1]
    ideal = [estimation.error[0] * (estimation.sizes[0] / n) ** 0.5 for n in estimation.sizes]
    axes = {"xscale": "log", "yscale": "log", "xlabel": "instances in a set, N"}
    panels = {
        "theory-gradient.png": panel([
            (gradient.sizes, gradient.variance, "o", BLUE, "total"),
            (gradient.sizes, gradient.seen, "x", RED, "total, policy sees only N"),
            (fewer, gradient.falling, "s", BLUE, "falling part"),
            (fewer, gradient.fitted, "-", GREY, "predicted form"),
        ], ylabel="variance of the gradient", **axes),
        "theory-cost.png": panel([
            (cost.sizes, cost.noise, "o-", BLUE, "linear noise"),
            (cost.sizes, cost.signal, "o-", RED, "robustness signal, mean"),
            (cost.sizes, cost.signal_spread, ":", RED, "its spread over draws"),
        ], ylabel=f"local cost at step {cost.step}", **axes),
        "theory-estimation.png": panel([
            (estimation.sizes, estimation.error, "o-", BLUE, "measured"),
            (estimation.sizes, ideal, "-", GREY, "1 / sqrt(N)"),
        ], ylabel="error of the mean return", **axes),
    }  # fmt: skip
    if gaps:
        figure, [[one]] = canvas(*PANEL)
        values, reach = _with_reach(list(gaps.values()))
        one.errorbar(range(len(gaps)), values, yerr=reach, fmt="o", capsize=3, color=BLUE)
        one.set(xticks=range(len(gaps)), xticklabels=list(gaps), ylabel="reward a step lost")
        one.set_ylim(bottom=min(0.0, *(gap.low for gap in gaps.values())))
        panels["theory-gap.png"] = png(figure, one, dpi=150)
    return panels


def time_budget(result: dict[str, Any]) -> bytes:
    """How much of its time a robot's computer needs: `dris bench robot`, each bar a share of its period."""
    parts, periods = result["parts"], result["periods_ms"]
    names = {"decision": "a decision\n20 Hz", "frame": "a frame\n2 x 80 Hz", "tick": "a tick\n1 kHz"}
    inside = {
        "decision": ("act", "encode and act"),
        "frame": ("belief", "belief"),
        "tick": ("driver", "driver"),
    }
    figure, [[axes]] = canvas(7.0, 2.6)
    longest = 1.0
    for height, name in enumerate(names):
        (inner, label), besides = inside[name], name == "tick"  # the driver's process comes on top
        of_it = parts.get(inner, {"median_ms": 0.0, "p99_ms": 0.0})
        median, rare = (parts[name][key] + besides * of_it[key] for key in ("median_ms", "p99_ms"))
        share, inner_share = (value / periods[name] for value in (median, of_it["median_ms"]))
        axes.barh(height, share, color=BLUE, height=0.5)
        axes.barh(height, inner_share, left=share - inner_share, color="#d9a400", height=0.5)
        text = f"{median:.2f} of {periods[name]:g} ms ({label} {of_it['median_ms']:.2f}); 99 %: {rare:.1f}"
        axes.annotate(
            text,
            (share, height),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
        longest = max(longest, share)
    axes.axvline(1.0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(names)), list(names.values()))
    axes.set(xlabel="median, as a share of the time until the next one", xlim=(0, 1.9 * longest))
    return png(figure, axes, dpi=150)
