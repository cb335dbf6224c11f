"""The page about the theory's measurements, made from theory.json and, for the gap, a study's results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dris.core.files import read_json, write_atomically
from dris.experiments.study.results import Results, estimate, load_results
from dris.experiments.study.theory import FEW_SETS
from dris.report.run_page import STYLE

GAP = ("dris-1", "dris-10", "dris-50", "dris-200")


def report_theory(folder: Path, out: Path, study: Path | None = None) -> Path:
    """Write `out/index.html` and its figure; returns the page.

    Args:
        folder: Holds theory.json.
        out: Folder to write to.
        study: Results of the study of trained policies, for the gap on held-out physics.
    """
    found = read_json(folder / "theory.json")
    results = load_results(study) if study is not None and (study / "study.json").exists() else None
    out.mkdir(parents=True, exist_ok=True)
    gaps = generalisation_gaps(results) if results else {}
    _figure(found, gaps, out / "theory.png")
    config = found["config"]
    page = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>DRIS: the theory, measured</title>"
        f"<style>{STYLE}</style><h1>The theory, measured</h1>",
        f"<p>The paper's Appendix B predicts what more instances do. Measured with the policy <code>"
        f"{config['policy']}</code>, seed {config['seed']}, contact preset of that policy. The gradient: "
        f"{config['sets']} throws, actions with standard deviation {config['std']}. Local cost and mean "
        f"return: {min(config['sets'], FEW_SETS)} throws, no exploration. Propagation: one throw, random "
        "actions. Command: <code>dris study theory</code>.</p>",
        "<figure><img src=theory.png alt='four measurements by N'></figure>",
        *(f"<h2>{title}</h2><p>{text}</p>" for title, text in sentences(found, gaps)),
        "</html>",
    ]
    write_atomically(out / "index.html", ("\n".join(page) + "\n").encode())
    return out / "index.html"


def generalisation_gaps(results: Results) -> dict[str, Any]:
    """Reward on the training's physics less reward on unseen restitution, by method."""
    gaps = {}
    for method in GAP:
        inside = results.scores("paper", method, "clean", "reward")
        outside = results.scores("paper", method, "restitution", "reward")
        gap = estimate([a - b for a, b in zip(inside, outside, strict=True)])
        if gap:
            gaps[method] = gap
    return gaps


def sentences(found: dict[str, Any], gaps: dict[str, Any]) -> list[tuple[str, str]]:
    """Prediction and observation, one pair of title and text a theorem."""
    gradient, cost, estimation = found["gradient"], found["local_cost"], found["estimation"]
    exact = found["propagation"]["largest_difference"]
    seen, total = (gradient[key][-1] / gradient[key][0] for key in ("seen", "variance"))
    pairs = zip(gradient["falling"], gradient["fitted"], strict=True)
    miss = max(abs(found / fitted - 1) for found, fitted in pairs)
    fits = abs(gradient["power"] - 1) < 0.1
    signal = cost["signal"][-1] / cost["noise"][-1]
    first = cost["signal"][0] / cost["noise"][0]
    texts = [
        (
            "Particles are propagated exactly",
            f"Predicted: no difference between an instance in a set and the same instance alone. Seen: "
            f"{exact:g} in every state of an episode, for {found['propagation']['instances']} instances. "
            + ("As predicted." if exact == 0 else "Not as predicted."),
        ),
        (
            "The gradient's variance falls to a floor",
            "Predicted: sigma^2 (rho + (1 - rho) / N). Seen: the part that differs between N instances of a "
            f"set and all {gradient['sizes'][-1]} falls as (1/N - 1/{gradient['sizes'][-1]}) to the power "
            f"{gradient['power']:.2f} (predicted 1; single sizes miss the fit by up to {miss:.0%}), and "
            f"rho = {gradient['rho']:.3f} (returns less their mean over throws; training's critic would take "
            "out more). "
            + ("The form is seen" if fits else "The form is not seen")
            + (
                "; the floor is high: most of the variance is the throw's and the exploration's, which all "
                f"instances of a set share. The total is {total:.2f} of that at N = 1: what falls is too "
                "little to be seen in it, and is measured set by set. "
                if gradient["rho"] > 0.5
                else ". "
            )
            + f"There the policy sees all {gradient['sizes'][-1]} instances and is rewarded for N. In "
            "training it also sees N, and its score function changes with what it sees: then the variance at "
            f"N = {gradient['sizes'][-1]} is {seen:.2f} of that at N = 1, of which the proposition says "
            "nothing.",
        ),
        (
            "Linear noise fades, the robustness signal stays",
            f"Predicted: noise falls as N to the power -0.5, the signal does not depend on N and is positive "
            f"(locally convex cost). Seen at step {cost['step']}: power {cost['power']:.2f}; signal "
            f"{cost['signal'][0]:.2g} at N = 1 and {cost['signal'][-1]:.2g} at N = {cost['sizes'][-1]}; "
            f"signal over noise {first:.2g} and {signal:.2g}. But the signal itself scatters from draw to "
            f"draw by {cost['signal_spread'][0]:.2g} and {cost['signal_spread'][-1]:.2g}, "
            f"{cost['signal_spread'][-1] / abs(cost['signal'][-1]):.1f} times its mean even at N = "
            f"{cost['sizes'][-1]}. These are the sets in which the cost is convex "
            f"at the mean, {cost['convex']:.0%} of all; elsewhere the assumption does not hold. The signal "
            f"is a second-order estimate: what it stands for, the mean cost of a set less the cost at its "
            f"mean, is {cost['true']:.2g} in the same sets"
            + ("." if cost["true"] > 0 else ", of the other sign: the spread is too wide for the expansion."),
        ),
        (
            "N instances stand for the domain",
            "Predicted: the error of the mean return falls as N to the power -0.5. Seen: power "
            f"{estimation['power']:.2f}, from {estimation['error'][0]:.3f} at N = 1 to "
            f"{estimation['error'][-1]:.3f}. The power holds for independent draws whatever the physics; "
            "what is measured is the size.",
        ),
    ]
    if gaps:
        shown = "; ".join(f"{m} {g.value:.3f} [{g.low:.3f}, {g.high:.3f}]" for m, g in gaps.items())
        texts.append(
            (
                "The gap on physics never seen",
                "The bound has two parts: one that N reduces, between N instances and the domain they are "
                "drawn from (above, for a given policy), and one between that domain and another, of which "
                "the theorem says that N does not reduce it. The second is measured here, as reward a step "
                "on trained physics less that on restitution 0.7 to 0.8, preset paper, policies of the "
                f"study: {shown}. The theorem predicts nothing of how it changes with N; the paper's section "
                "on unseen restitution expects it to shrink. The first part cannot be seen in trained "
                "policies: the training draws new physics in every episode, so even N = 1 sees thousands of "
                "draws; the theorem's N is that of one update.",
            )
        )
    return texts


def _figure(found: dict[str, Any], gaps: dict[str, Any], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.6), layout="constrained")
    gradient, cost, estimation = found["gradient"], found["local_cost"], found["estimation"]
    panels = figure.subplots(1, 4 if gaps else 3)
    sizes = gradient["sizes"]
    panels[0].plot(sizes, gradient["variance"], "o", color="#2f6fb0", label="total variance")
    panels[0].plot(sizes, gradient["seen"], "x", color="#db3236", label="total, policy sees only N")
    panels[0].plot(sizes[:-1], gradient["falling"], "s", color="#2f6fb0", label="falling part")
    panels[0].plot(sizes[:-1], gradient["fitted"], color="#888", label="predicted form")
    panels[0].set(title="variance of the gradient", yscale="log")
    panels[1].plot(cost["sizes"], cost["noise"], "o-", color="#2f6fb0", label="linear noise")
    panels[1].plot(cost["sizes"], cost["signal"], "o-", color="#db3236", label="robustness signal, mean")
    panels[1].plot(cost["sizes"], cost["signal_spread"], ":", color="#db3236", label="its spread over draws")
    panels[1].set(title=f"local cost at step {cost['step']}", yscale="log", ylim=(None, 5))
    panels[2].plot(estimation["sizes"], estimation["error"], "o-", color="#2f6fb0", label="measured")
    ideal = [estimation["error"][0] / n**0.5 for n in estimation["sizes"]]
    panels[2].plot(estimation["sizes"], ideal, color="#888", label="1 / sqrt(N)")
    panels[2].set(title="error of the mean return", yscale="log")
    for axes in panels[:3]:
        axes.set(xscale="log", xlabel="N")
        axes.legend(frameon=False, fontsize=8, loc="center right" if axes is panels[0] else "upper right")
    if gaps:
        values = [gap.value for gap in gaps.values()]
        reach = [[g.value - g.low for g in gaps.values()], [g.high - g.value for g in gaps.values()]]
        panels[3].errorbar(range(len(gaps)), values, yerr=reach, fmt="o", capsize=3, color="#2f6fb0")
        panels[3].set(title="gap on unseen restitution", xticks=range(len(gaps)), xticklabels=list(gaps))
        panels[3].set_ylim(bottom=min(0.0, *(gap.low for gap in gaps.values())))
    for axes in panels:
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=110)
