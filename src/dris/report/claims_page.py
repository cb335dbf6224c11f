"""The part of a study's page that answers its claims."""

from __future__ import annotations

from typing import Any

from dris.experiments.study.claims import ALPHA, CLAIMS, Answer, Claim, answers, summary
from dris.experiments.study.distance import published
from dris.experiments.study.results import Results, title_of

Asked = list[tuple[Claim, dict[str, list[Answer]]]]
"""Claims, with the answers by measure of success."""


def ask(results: Results, presets: tuple[str, ...]) -> Asked:
    """What the runs say of the claims about some presets, by every measure that the runs have."""
    return [
        (claim, {measure: answers(results, claim, measure) for measure in results.measures(claim.preset)})
        for claim in CLAIMS
        if claim.preset in presets
    ]


def claims_part(asked: Asked, paper: dict[str, Any]) -> list[str]:
    """The questions and what the runs answer: in short, and with the figures."""
    measures = list(dict.fromkeys(measure for _, found in asked for measure in found)) or ["success"]
    return [
        "<h3>In short</h3><ul>",
        *(f"<li>{claim.text}. {_in_short(found)} {claim.note}" for claim, found in asked),
        "</ul><h3>The claims, with their figures</h3>",
        "<p>Success is an average over the claim's conditions. The probability that a run of A beats a run "
        "of B is, too, with its 95 % bootstrap interval, and small below it for each condition; a half means "
        "no difference. p is that of Mann and Whitney's exact test on the runs' averages, two-sided; seen: p "
        f"is at most {ALPHA}, which three runs against three, or one against five, cannot reach: those claims "
        f"are described, not decided. {_false_discoveries(asked)} DRIS runs of one seed share throws and "
        "encoder, which the test does not use.</p>",
        _table(asked, measures, paper),
    ]


def _in_short(found: dict[str, list[Answer]]) -> str:
    """The verdicts, once if all measures agree."""
    # Ramps have one measure: to be on the plate after ten seconds.
    by_measure = {measure: summary(pairs) for measure, pairs in found.items() if pairs}
    if len(set(by_measure.values())) <= 1:
        return f"{next(iter(by_measure.values()), 'missing')}."
    return " ".join(f"{title_of(measure)}: {words}." for measure, words in by_measure.items())


def _table(asked: Asked, measures: list[str], paper: dict[str, Any]) -> str:
    heads = "".join(
        f"<th>{title_of(measure)}: A, B<th>probability of A over B<th>p<th>verdict" for measure in measures
    )
    theirs = "<th class=paper>paper: A, B" if paper else ""
    lines = [f"<div class=wide><table class=claims><tr><th>claim: A beats B<th>A<th>B<th>runs{theirs}{heads}"]
    for claim, found in asked:
        pairs = {(a.first, a.second) for pairs in found.values() for a in pairs}
        rows = [pair for pair in claim.pairs if pair in pairs]
        for place, pair in enumerate(rows):
            by_measure = {
                measure: next((a for a in found.get(measure, []) if (a.first, a.second) == pair), None)
                for measure in measures
            }
            known = next(a for a in by_measure.values() if a is not None)
            cells = "".join(_cells(answer) for answer in by_measure.values())
            lines.append(
                f"<tr><td>{'' if place else _worded(claim)}<td>{pair[0]}<td>{pair[1]}"
                f"<td>{known.runs[0]}, {known.runs[1]}{_theirs(claim, pair, paper)}{cells}"
            )
        if not rows:
            lines.append(f"<tr><td>{_worded(claim)}<td colspan={4 + 4 * len(measures)}>missing")
    return "\n".join((*lines, "</table></div>"))


def _cells(answer: Answer | None) -> str:
    if answer is None:
        return "<td>missing<td><td><td>"
    return (
        f"<td>{answer.rates[0]:.2f}, {answer.rates[1]:.2f}<td>{_show_chance(answer)}<td>{answer.p:.3f}"
        f"<td class=verdict>{answer.verdict}"
    )


def _theirs(claim: Claim, pair: tuple[str, str], paper: dict[str, Any]) -> str:
    """The paper's own values of a pair, averaged over the claim's conditions."""
    if not paper:
        return ""
    shown = []
    for method in pair:
        values = [published(paper, "success", method, condition) for condition in claim.conditions]
        if method == "e2e-x50" and claim.conditions == ("noise-2",):
            values = [paper.get("equal_interaction", {}).get("success", {}).get(method)]
        known = [value for value in values if value is not None]
        shown.append(f"{sum(known) / len(known):.2f}" if known and len(known) == len(values) else "&ndash;")
    return f"<td class=paper>{', '.join(shown)}"


def _false_discoveries(asked: Asked) -> str:
    """How many differences remain if one in twenty of those that are seen may be luck."""
    from scipy.stats import false_discovery_control

    p = [answer.p for _, found in asked for pairs in found.values() for answer in pairs]
    if not p:
        return ""
    remain = int((false_discovery_control(p) <= ALPHA).sum())
    return (
        f"Of {len(p)} tests {sum(value <= ALPHA for value in p)} are below that, {remain} also after "
        "Benjamini and Hochberg's correction for their number."
    )


def _show_chance(answer: Answer) -> str:
    low, high = answer.chance[1:]
    single = " ".join(f"{value:.2f}" for value in answer.by_condition.values())
    each = f"<br><small>{single}</small>" if len(answer.by_condition) > 1 else ""
    return f"{answer.chance[0]:.2f} <small>[{low:.2f}, {high:.2f}]</small>{each}"


def _worded(claim: Claim) -> str:
    """The claim and where it is asked."""
    return f"{claim.text} <small>{' '.join(claim.conditions)}</small>"
