"""Does a task keep the promises DRIS rests on? `check_task` asks; `dris check` is its command."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from dris.core.probe import NOT_OFFERED, MakeTask, TaskError
from dris.core.promises import PROMISES, it_can_be_built_and_begun, sizes_are_as_declared


@dataclass(frozen=True)
class Verdict:
    """Outcome of one check: its sentence, what was wrong (empty if nothing was), and what was measured."""

    promise: str
    problem: str
    detail: str = ""

    @property
    def offered(self) -> bool:
        """Whether the task has what the promise is about; what is optional it may lack."""
        return not self.detail.startswith(NOT_OFFERED)


def check_task(make: MakeTask) -> list[Verdict]:
    """Ask a task for all its promises; the first two alone, if it cannot begin or its sizes are wrong.

    Args:
        make: Builds a fresh task each time it is called, for instance the class itself.
    """
    verdicts: list[Verdict] = []
    for promise in PROMISES:
        problem, detail = "", None
        try:
            detail = promise(make)
        except TaskError as error:
            problem = str(error)
        except Exception as error:  # a user's task may fail in any way: say where, and go on
            where = traceback.extract_tb(error.__traceback__)[-1]
            problem = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        verdicts.append(Verdict(promise.__name__.replace("_", " "), problem, detail or ""))
        if problem and promise in (it_can_be_built_and_begun, sizes_are_as_declared):
            break  # the others would only say the same in other words
    return verdicts
