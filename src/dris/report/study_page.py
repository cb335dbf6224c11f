"""The page about a study, made from its result files alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dris.experiments.study.claims import (
    ALPHA,
    CLAIMS,
    EQUAL_INTERACTION,
    Answer,
    Claim,
    answers,
    summary,
)
from dris.experiments.study.distance import MEASURES, PUBLISHED, distances, outside_file, published
from dris.experiments.study.published import Published, bands_of, equal_success, load_published
from dris.experiments.study.results import FIVE, Estimate, Results, estimate, load_results, makespan, title_of
from dris.report import figures
from dris.report.html import write_page

RELEASED = "released"
"""The preset behind the paper's figures; the page leads with it."""
_REVERSED = "the reverse is seen"


def report_study(folder: Path, out: Path, paper: Published | None = None) -> Path:
    """Write `out/index.html`, its figures and `table.md` about the study in `folder`; returns the page.

    Args:
        folder: Of the results; nothing else is read.
        out: Folder to write to.
        paper: The paper's own values, by "success" or "reward", method and condition; by default those that
            it published.
    """
    results, paper = load_results(folder), load_published() if paper is None else paper
    found = distances(results, paper, outside_file(folder))
    first = RELEASED if RELEASED in results.presets() else results.presets()[0]
    presets = [first, *(preset for preset in results.presets() if preset != first)]
    files = {"claims.png": figures.claims(results, first, paper)}
    for preset in presets:
        files |= figures.of_preset(results, preset, paper if preset in (first, "paper") else {})
    files["table.md"] = markdown_table(results, paper, first).encode()
    return write_page(
        out, "study.html", files,
        results=results, paper=paper, presets=presets, study=StudyTables(results),
        distances=found, five=FIVE, alpha=ALPHA,
        makespan=makespan, title_of=title_of, theirs=theirs, false_discoveries=false_discoveries,
        asked=ask(results, presets[:1]), asked_literally=ask(results, presets[1:]), distance_of=MEASURES,
        verdict_words=verdict_words, equal_interaction=EQUAL_INTERACTION.get(first, ()),
    )  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A claim, and what the runs answer by every measure of success that they have."""

    claim: Claim
    found: dict[str, list[Answer]]

    @property
    def short(self) -> dict[str, dict[str, str]]:
        """Pairs by verdict by measure; under "" if all measures agree."""
        # Ramps have one measure: to be on the plate after ten seconds.
        told = {title_of(measure): summary(pairs) for measure, pairs in self.found.items() if pairs}
        alike = all(words == next(iter(told.values())) for words in told.values())
        return {"": next(iter(told.values()), {})} if alike else told

    def rows(self, measures: list[str]) -> list[tuple[tuple[str, str], list[Answer | None]]]:
        """Pairs that have answers, with those by measure."""
        known = {(measure, a.first, a.second): a for measure, found in self.found.items() for a in found}
        rows = [(pair, [known.get((measure, *pair)) for measure in measures]) for pair in self.claim.pairs]
        return [(pair, by_measure) for pair, by_measure in rows if any(by_measure)]


def ask(results: Results, presets: list[str]) -> list[Asked]:
    """What the runs say of the claims about some presets."""
    about = [claim for claim in CLAIMS if claim.preset in presets]
    return [Asked(c, {m: answers(results, c, m) for m in results.measures(c.preset)}) for c in about]


def verdict_words(asked: list[Asked]) -> str:
    """How many of the paper's comparisons are seen, in one sentence."""
    papers = [one for one in asked if one.claim.text.startswith("The paper") and one.found]
    found = [answer for one in papers for answer in list(one.found.values())[-1]]  # by the mildest measure
    if not found:
        return "None of its comparisons has its runs yet."
    counts = {verdict: sum(answer.verdict == verdict for answer in found) for verdict in ("seen", _REVERSED)}
    few = sum(answer.verdict.startswith("too few") for answer in found)
    rest = len(found) - sum(counts.values()) - few
    return (
        f"Of its {len(found)} comparisons {counts['seen']} are seen, {rest} are not, in {counts[_REVERSED]} "
        f"the reverse is seen, and {few} have too few runs to say."
    )


def theirs(claim: Claim, pair: tuple[str, str], paper: Published) -> list[float | None]:
    """The paper's own values of a pair, averaged over the claim's conditions."""
    shown = []
    for method in pair:
        method = method.removesuffix("-short")  # the paper's runs have one length
        values = [published(paper, "success", method, condition) for condition in claim.conditions]
        if method == "e2e-x50" and claim.conditions == ("noise-2",):
            values = [equal_success(paper).get(method)]
        known = [value for value in values if value is not None]
        shown.append(sum(known) / len(known) if known and len(known) == len(values) else None)
    return shown


def false_discoveries(asked: list[Asked]) -> tuple[int, int, int]:
    """Tests; those with a small p; those that remain if one in twenty of these may be luck."""
    from scipy.stats import false_discovery_control

    p = [answer.p for one in asked for pairs in one.found.values() for answer in pairs]
    remain = int((false_discovery_control(p) <= ALPHA).sum()) if p else 0
    return len(p), sum(value <= ALPHA for value in p), remain


@dataclass(frozen=True)
class StudyTables:
    """What the page's tables show of the results."""

    results: Results

    def conditions(self, preset: str, measure: str) -> dict[str, list[str]]:
        """Conditions by what they are: those of the paper, what trackers do, and other throws."""
        # Ramps have one measure: to be on the plate after ten seconds.
        throws = ("delay", "worst-case", *(("ramp",) if measure == "success" else ()))
        planned = self.results.conditions(preset)
        return {
            "published": [condition for condition in planned if condition in PUBLISHED],
            "seen": [condition for condition in planned if condition.startswith(("correlated", "dropout"))],
            "throws": [condition for condition in planned if condition.startswith(throws)],
        }

    def estimates(
        self, preset: str, method: str, conditions: list[str], measure: str
    ) -> list[Estimate | None]:
        """Success by condition."""
        return [estimate(self.results.scores(preset, method, name, measure)) for name in conditions]

    def trained_on(self, preset: str, method: str) -> list[Estimate | None]:
        """Success at 2 sigma early and late in training, and the change of a run: who loses robustness."""
        early, late = (self.results.late(preset, method, "noise-2", until=until) for until in (0.4, 1.0))
        change = [b - a for a, b in zip(early, late, strict=True)] if len(early) == len(late) else []
        return [estimate(values) for values in (early, late, change)]

    def sizes(self) -> dict[str, list[str]]:
        """Methods by the size of their runs, the most usual first."""
        sizes: dict[str, list[str]] = {}
        for (_, method), cells in self.results.cells.items():
            config = cells[0].stamp.config
            size = f"{config.sets} sets, {config.iterations} iterations of one episode each"
            if method not in sizes.setdefault(size, []):
                sizes[size].append(method)
        return dict(sorted(sizes.items(), key=lambda item: -len(item[1])))


def markdown_table(results: Results, paper: Published, preset: str) -> str:
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
            band = bands_of(paper, "success").get(method, {}).get(condition)
            cells.append(f"{sum(band) / 2:.2f}" if band else "")
        runs = f"{len(results.cells.get((preset, method), []))} of {results.planned(preset, method)}"
        lines.append(f"| {method} | {runs} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
