"""Figures of the page about beliefs, as PNG."""

from __future__ import annotations

from dris.experiments.study.filters import Filters
from dris.experiments.study.published import Published, bands_of
from dris.experiments.study.results import NOISE, Results, estimate
from dris.report.figures import BLUE, GREY, RED, canvas, panel, png

COLOURS = {"none": GREY, "kalman": "#3cba54", "nominal": "#d9a400", "particles": "#7b5ea7", "ensemble": RED}
NAMES = {"none": "raw observation", "kalman": "Kalman, no simulator", "nominal": "ensemble, nominal physics"}
HARDER = (
    "correlated-2", "bias-2", "dropout-40", "delay-40", "restitution", "execution", "ramp-2.0-noise-2"
)  # fmt: skip
PRESET = "released"


def leading(results: Results, paper: Published) -> dict[str, bytes]:
    """What a filter brings: success by noise, and under other troubles."""
    figure, [[left, right]] = canvas(12.5, 4.4, 1, 2)
    levels = range(len(NOISE))
    published = bands_of(paper, "success").get("dris-200", {})
    if published:
        middle = [sum(published[condition]) / 2 for condition in NOISE]
        left.plot(levels, middle, ":", color="black", lw=1, label="the paper's DRIS-200 (0.2 m/s)")
    lines = [("e2e", belief) for belief in COLOURS] + [("loop", "ensemble")]
    for method, belief in lines:
        found = [estimate(results.scores(PRESET, method, f"{belief}/{c}")) for c in NOISE]
        known = [(k, e) for k, e in enumerate(found) if e]
        if known:
            label = NAMES.get(belief, belief) if method == "e2e" else "ensemble, also in training"
            style = {"color": COLOURS[belief], "marker": "o", "ls": "-" if method == "e2e" else "--"}
            left.plot([k for k, _ in known], [e.value for _, e in known], label=label, **style)
    left.set(xticks=levels, xlabel="observation noise [sigma]", ylabel="success at 0.1 m/s", ylim=(0, 1.03))
    left.set_title("E2E behind a filter, by noise")
    left.legend(frameon=False, fontsize=9)
    for shift, (method, belief) in zip((-0.27, 0.0, 0.27), (*lines[:1], *lines[4:]), strict=True):
        colour = {"none": GREY, "ensemble": RED}[belief]
        for place, condition in enumerate(HARDER):
            if one := estimate(results.scores(PRESET, method, f"{belief}/{condition}")):
                filled = {"color": colour} if method == "e2e" else {"color": "white", "edgecolor": colour}
                right.bar(place + shift, one.value, 0.25, **filled)
    right.set(xticks=range(len(HARDER)), xticklabels=HARDER, ylim=(0, 1.03))
    right.set_title("raw (grey), behind the ensemble (red), and trained with it (hollow)", fontsize=10)
    right.tick_params(axis="x", labelrotation=20)
    return {"belief.png": png(figure, right)}


def quality(found: Filters) -> dict[str, bytes]:
    """How good the filter is: by size, by the noise it is told, beside exact answers."""
    sizes, told = [p.value for p in found.sizes], [p.value for p in found.told]
    exact = [0.9 * (n - 1) / (n + 1) for n in sizes]
    linear, bounce = found.linear, found.bounce
    ideal = [linear.mean[0] * (linear.sizes[0] / n) ** 0.5 for n in linear.sizes]
    log = {"xscale": "log", "xlabel": "instances, N"}
    return {
        "belief-size.png": panel([
            (sizes, [p.success for p in found.sizes], "o-", BLUE, "success"),
            (sizes, [p.inside for p in found.sizes], "s-", RED, "truth inside the middle 90 %"),
            (sizes, exact, "-", GREY, "of N draws that include the truth's"),
        ], ylabel="share", ylim=(0, 1.03), **log),
        "belief-told.png": panel([
            (told, [p.success for p in found.told], "o-", BLUE, "success"),
            (told, [p.inside for p in found.told], "s-", RED, "truth inside the middle 90 %"),
            (told, [p.error / 2 for p in found.told], "x-", GREY, "error of the mean / 2 [sigma]"),
        ], ylabel="share", xlabel=f"noise that the filter is told [sigma]; it is {found.config.noise:g}",
            xscale="log"),
        "belief-exact.png": panel([
            (linear.sizes, linear.mean, "o-", BLUE, "linear: from the Kalman filter"),
            (linear.sizes, ideal, "-", GREY, "1 / sqrt(N)"),
            (bounce.sizes, bounce.mean, "s-", RED, "a bounce: from 100,000 particles"),
        ], ylabel="distance of the means [deviations]", yscale="log", **log),
    }  # fmt: skip
