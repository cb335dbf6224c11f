"""What a person names on a command line and has written: `package.module:name` or `path/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def find_module(name: str) -> ModuleType:
    """A module by its name, or by the path of its file.

    Raises:
        ValueError: There is none, or it cannot be imported; the message says why.
    """
    if not name.endswith(".py"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(f"cannot import '{name}': {error}; for a file write {name}.py") from error
    path = Path(name)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # holds for any .py file
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))  # it may import its neighbours, as a script may
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # anything may stand in a user's file
        raise ValueError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module
