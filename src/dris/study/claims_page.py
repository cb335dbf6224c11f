"""The part of a study's page that answers its claims."""

from __future__ import annotations

from dris.study.claims import CLAIMS, SURE, Answer, Claim, answers, summary
from dris.study.results import Results


def claims_part(results: Results) -> list[str]:
    """The questions and what the runs answer: in short, and with the figures."""
    asked = [(claim, answers(results, claim)) for claim in CLAIMS if claim.preset in results.presets()]
    lines = [
        "<table class=claims><tr><th>claim: A beats B<th>A<th>B<th>success of A and B<th>runs"
        "<th>probability of A over B<th>p<th>verdict"
    ]
    for claim, found in asked:
        lines += [
            f"<tr><td>{'' if place else _worded(claim)}<td>{a.first}<td>{a.second}"
            f"<td>{a.rates[0]:.2f}, {a.rates[1]:.2f}<td>{a.runs[0]}, {a.runs[1]}"
            f"<td>{_show_chance(a)}<td>{a.p:.3f}"
            f"<td>{a.verdict}"
            for place, a in enumerate(found)
        ] or [f"<tr><td>{_worded(claim)}<td colspan=7>missing"]
    return [
        "<h2>In short</h2><ul>",
        *(f"<li>{claim.text}. {summary(found)}. {claim.note}" for claim, found in asked),
        "</ul><h2>The claims, with their figures</h2>",
        "<p>Success is an average over the claim's conditions. The probability that a run of A beats a run "
        "of B is, too, with its 95 % bootstrap interval, and small below it for each condition; a half means "
        "no difference. p is that of Mann and Whitney's exact test on the runs' averages, two-sided; seen: p "
        f"is at most {SURE}, which three runs against three, or one against five, cannot reach: those claims "
        f"are described, not decided. {_false_discoveries(asked)} DRIS runs of one seed share throws and "
        "encoder, which the test does not use. Claims, test and the aim of the ramps were revised when the "
        "scores of 20 runs had been seen, the tables' arrangement at 40 (docs/study.md).</p>",
        "\n".join((*lines, "</table>")),
    ]


def _false_discoveries(asked: list[tuple[Claim, list[Answer]]]) -> str:
    """How many differences remain if one in twenty of those that are seen may be luck."""
    from scipy.stats import false_discovery_control

    p = [answer.p for _, found in asked for answer in found]
    if not p:
        return ""
    remain = int((false_discovery_control(p) <= SURE).sum())
    return (
        f"Of {len(p)} pairs {sum(value <= SURE for value in p)} are below that, {remain} also after "
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
