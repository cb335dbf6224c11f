"""dris: Domain-Randomized Instance Sets. What a user of the library imports is here, loaded on use."""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dris.belief.config import BeliefConfig as BeliefConfig
    from dris.belief.ensemble import ensemble_update as ensemble_update
    from dris.belief.env import belief_env as belief_env
    from dris.core.check import check_task as check_task
    from dris.core.conditions import Condition as Condition
    from dris.core.domain import Domain as Domain
    from dris.core.domain import Range as Range
    from dris.core.env import DivergedError as DivergedError
    from dris.core.env import Env as Env
    from dris.core.env import EnvConfig as EnvConfig
    from dris.core.env import Observation as Observation
    from dris.core.env import Step as Step
    from dris.core.errors import DrisError as DrisError
    from dris.core.process import set_threads as set_threads
    from dris.core.rng import KeyedRng as KeyedRng
    from dris.core.rollout import Score as Score
    from dris.core.rollout import rollout as rollout
    from dris.core.task import Task as Task
    from dris.core.typed import policy_field as policy_field
    from dris.evaluation.registry import PolicyHandle as PolicyHandle
    from dris.evaluation.registry import find_policy as find_policy
    from dris.evaluation.registry import load_policy as load_policy
    from dris.evaluation.scores import evaluate as evaluate
    from dris.learning.checkpoint import CheckpointError as CheckpointError
    from dris.learning.config import EncoderConfig as EncoderConfig
    from dris.learning.config import PolicyConfig as PolicyConfig
    from dris.learning.config import PpoConfig as PpoConfig
    from dris.learning.config import TrainConfig as TrainConfig
    from dris.learning.encoder import SetEncoder as SetEncoder
    from dris.learning.policy import FilmModel as FilmModel
    from dris.learning.policy import Policy as Policy
    from dris.learning.trainer import Trainer as Trainer

__version__ = "0.1.0"

# Torch's OpenMP threads wait for work by spinning, and so take the cores from the world's own threads: an
# iteration at N = 200 takes a fifth longer. It is read when torch is first imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

_HOME = {
    "belief.config": "BeliefConfig",
    "belief.ensemble": "ensemble_update",
    "belief.env": "belief_env",
    "core.check": "check_task",
    "core.conditions": "Condition",
    "core.domain": "Domain Range",
    "core.env": "DivergedError Env EnvConfig Observation Step",
    "core.errors": "DrisError",
    "core.process": "set_threads",
    "core.rng": "KeyedRng",
    "core.rollout": "Score rollout",
    "core.task": "Task",
    "core.typed": "policy_field",
    "evaluation.registry": "PolicyHandle find_policy load_policy",
    "evaluation.scores": "evaluate",
    "learning.checkpoint": "CheckpointError",
    "learning.config": "EncoderConfig PolicyConfig PpoConfig TrainConfig",
    "learning.encoder": "SetEncoder",
    "learning.policy": "FilmModel Policy",
    "learning.trainer": "Trainer",
}
"""Public names by the module that they live in."""
_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}
__all__ = sorted(_MODULE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'dris' has no attribute '{name}'")
    return getattr(importlib.import_module(f"dris.{_MODULE[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
