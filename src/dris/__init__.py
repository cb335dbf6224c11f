"""dris: Domain-Randomized Instance Sets. What a user of the library imports is here."""

import os

# Torch's OpenMP threads wait for work by spinning, and so take the cores from the world's own threads: an
# iteration at N = 200 takes a fifth longer. It is read when torch is first imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from dris.check import check_task as check_task
from dris.domain import Domain as Domain
from dris.domain import Range as Range
from dris.draws import Draws as Draws
from dris.env import DivergedError as DivergedError
from dris.env import Env as Env
from dris.env import EnvConfig as EnvConfig
from dris.env import Observation as Observation
from dris.env import Step as Step
from dris.task import Task as Task

__version__ = "0.1.0"
