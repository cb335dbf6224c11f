"""The command `dris`: one line of what went wrong instead of a traceback, and every verb loaded on use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

import tyro

from dris import __version__
from dris.cli import experiments, laboratory, learning, logs, robot, soaking, viewing
from dris.core.errors import DrisError
from dris.core.process import draw_without_screen
from dris.core.validation import missing


def verbs(arguments: list[str]) -> dict[str, Callable[..., int]]:
    """What the command can do; the flags of `train` are those of the task that is named."""
    return {
        "check": learning.check,
        "train": learning.train_verb(arguments[1:] if arguments[:1] == ["train"] else []),
        "evaluate": learning.evaluate,
        "play": learning.play,
        "view": viewing.view,
        "export": robot.export,
        "deploy": robot.deploy,
        "identify-gains": robot.identify_gains,
        "replay": logs.replay,
        "plate": robot.plate,
        "soak": soaking.soak,
        "report": experiments.report,
        "study": experiments.study,
        "trials": experiments.trials,
        "released": experiments.released,
        "bench": experiments.bench,
        "lab": laboratory.lab,
        "fci-twin": laboratory.fci_twin,
    }


GOES_ON = ("train", "study", "trials")
"""Verbs that keep what they have done: the same command goes on where it stopped."""


DRAWS = ("check", "play", "deploy", "soak", "identify-gains", "trials", "bench", "lab")
"""Verbs that draw pictures or what cameras see; the others need no way to draw."""


class _Plain:
    """A stream without tyro's inner names in it."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write on."""
        return self._stream.write(
            text.replace("__tyro-dummy-inner__.", "").replace("parsing config.", "parsing ")
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


EXTRAS = {"cv2": "eyes", "franky": "fr3", "onnxruntime": "robot", "onnx": "export", "viser": "view"}
"""Modules that come with an extra, and its name, where nothing asks for them before they are imported."""


def _words(error: Exception) -> object:
    """An error as a user reads it."""
    if isinstance(error, KeyError):  # str() would quote it
        return error.args[0]
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return missing(error.name, EXTRAS[error.name])
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return error


def main() -> None:
    """Entry point of the command."""
    sys.stderr = _Plain(sys.stderr)  # type: ignore[assignment]
    arguments = sys.argv[1:]
    if arguments and arguments[0] in DRAWS:
        draw_without_screen()  # before the verb: whatever imports MuJoCo first decides how it draws
    if arguments == ["--version"]:
        print(f"dris {__version__}")
        return
    try:
        code = tyro.extras.subcommand_cli_from_dict(
            verbs(arguments),
            description="Domain-Randomized Instance Sets: N worlds at once under one shared action.",
            prog="dris",
            args=arguments,
        )
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read, `head` for instance, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the exit would write to it again
        code = 141
    except KeyboardInterrupt:
        kept = "; the same command goes on where it stopped" if arguments and arguments[0] in GOES_ON else ""
        print(f"dris: interrupted{kept}", file=sys.stderr)
        code = 130
    except (DrisError, ValueError, KeyError, ImportError, OSError) as error:
        print(f"dris: {_words(error)}", file=sys.stderr)
        code = 2
    sys.exit(code)
