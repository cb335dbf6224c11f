"""Which page a folder gets: by the kind of its result files."""

from __future__ import annotations

from pathlib import Path

from dris.core.schema import kind_of
from dris.experiments.study.results import load_results
from dris.report.belief_page import report_belief
from dris.report.run_page import report_run
from dris.report.study_page import report_study
from dris.report.theory_page import report_theory
from dris.report.trials_page import report_trials

PAGES = {"study": report_study, "theory": report_theory, "trials": report_trials}
BELIEF = "belief"
"""What the name of a study of beliefs begins with."""


def report_folder(folder: Path, out: Path) -> Path:
    """Write the page about a folder: of a study, the theory or trials, or else of a run; returns the page.

    Raises:
        ValueError: It holds results of several kinds, or a file is damaged. Nothing was written.
    """
    kinds = {kind_of(file) for file in sorted(folder.glob("*.json"))} & PAGES.keys()
    if len(kinds) > 1:
        raise ValueError(
            f"{folder} holds results of several kinds ({', '.join(sorted(kinds))}): a page tells of one, "
            "give each a folder"
        )
    kind = kinds.pop() if kinds else ""
    if kind == "study" and load_results(folder).plan.name.startswith(BELIEF):
        return report_belief(folder, out)
    return PAGES[kind](folder, out) if kind else report_run(folder, out)
