"""The command `dris`: one line of what went wrong instead of a traceback, and every verb loaded on use."""

from __future__ import annotations

import sys
from collections.abc import Callable

import tyro

from dris import __version__
from dris.cli import experiments, laboratory, learning
from dris.core.errors import DrisError


def verbs(arguments: list[str]) -> dict[str, Callable[..., int]]:
    """What the command can do; the flags of `train` are those of the task that is named."""
    return {
        "check": learning.check,
        "train": learning.train_verb(arguments[1:] if arguments[:1] == ["train"] else []),
        "evaluate": learning.evaluate,
        "play": learning.play,
        "report": experiments.report,
        "study": experiments.study,
        "trials": experiments.trials,
        "released": experiments.released,
        "bench": experiments.bench,
        "lab": laboratory.lab,
    }


def main() -> None:
    """Entry point of the command."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"dris {__version__}")
        return
    try:
        code = tyro.extras.subcommand_cli_from_dict(
            verbs(arguments),
            description="Domain-Randomized Instance Sets: N worlds at once under one shared action.",
            args=arguments,
        )
    except KeyboardInterrupt:
        print("dris: interrupted; where a command says that it goes on, repeat it", file=sys.stderr)
        code = 130
    except (DrisError, ValueError, KeyError, ImportError, OSError) as error:
        words = error.args[0] if isinstance(error, KeyError) else error  # str() would quote a KeyError
        print(f"dris: {words}", file=sys.stderr)
        code = 2
    sys.exit(code)
