"""dris: Domain-Randomized Instance Sets. What a user of the library imports is here, loaded on use."""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dris.core.check import check_task as check_task
    from dris.core.domain import Domain as Domain
    from dris.core.domain import Range as Range
    from dris.core.env import DivergedError as DivergedError
    from dris.core.env import Env as Env
    from dris.core.env import EnvConfig as EnvConfig
    from dris.core.env import Observation as Observation
    from dris.core.env import Step as Step
    from dris.core.rng import KeyedRng as KeyedRng
    from dris.core.task import Task as Task

__version__ = "0.1.0"

# Torch's OpenMP threads wait for work by spinning, and so take the cores from the world's own threads: an
# iteration at N = 200 takes a fifth longer. It is read when torch is first imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

_HOME = {
    "check_task": "core.check",
    "Domain": "core.domain",
    "Range": "core.domain",
    "DivergedError": "core.env",
    "Env": "core.env",
    "EnvConfig": "core.env",
    "Observation": "core.env",
    "Step": "core.env",
    "KeyedRng": "core.rng",
    "Task": "core.task",
}
"""Where each public name lives."""
__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dris' has no attribute '{name}'")
    return getattr(importlib.import_module(f"dris.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
