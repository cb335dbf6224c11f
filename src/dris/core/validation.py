"""What a person types, checked before any work is done."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

LARGEST_SEED = 2**31
"""Seeds are multiplied by a million and more to tell iterations apart, within 64 bits."""

KEPT = ("config.json", "versions.json", "study.json", "theory.json")
"""Names of files that results must not overwrite."""


def check_seed(seed: int) -> None:
    """Refuse seeds that are none."""
    if not 0 <= seed < LARGEST_SEED:
        raise ValueError(f"seed must lie in [0, {LARGEST_SEED}), got {seed}")


def check_at_least_one(**values: int) -> None:
    """Refuse counts below one."""
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def check_positive(config: Any, *names: str) -> None:
    """Refuse values of a configuration that are not positive and finite."""
    for name in names:
        if not 0 < getattr(config, name) < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {getattr(config, name)}")


def check_choices(config: Any) -> None:
    """Refuse values of a configuration that are none of those its Literal types name."""
    for name, kind in get_type_hints(type(config)).items():
        if get_origin(kind) is Literal and getattr(config, name) not in get_args(kind):
            known = ", ".join(get_args(kind))
            raise ValueError(f"{name} must be one of {known}, got '{getattr(config, name)}'")


def check_named(**lists: tuple[str, ...]) -> None:
    """Refuse lists of names that are empty."""
    for what, names in lists.items():
        if not names:
            raise ValueError(f"name at least one of {what}; add --help to see which there are")


def check_folder(folder: Path) -> None:
    """Refuse a folder to read from that is none."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")


def check_out(folder: Path | None, flag: str = "--out") -> None:
    """Refuse a folder to write to that is a file."""
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ValueError(f"{flag} {folder} is a file: name a folder")


def check_json(file: Path | None) -> None:
    """Refuse a file that results cannot or must not be written to."""
    if file is None:
        return
    if file.suffix != ".json" or file.name in KEPT or file.is_dir():
        raise ValueError(f"--json {file}: name a file that ends in .json and is none of {', '.join(KEPT)}")
    if not file.parent.is_dir():
        raise ValueError(f"there is no folder {file.parent} to write {file.name} to")


def check_extra(module: str, extra: str) -> None:
    """Refuse work that needs an extra of the package which is not installed."""
    if importlib.util.find_spec(module) is None:
        raise ImportError(missing(module, extra))


def missing(module: str, extra: str) -> str:
    """What there is to say of a module that comes with an extra of the package."""
    return f"this needs {module}: pip install 'dris[{extra}]'"
