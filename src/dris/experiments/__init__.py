"""Experiments: the study, the theory, trials in the laboratory, tracking, gains, benchmarks."""

from typing import Literal

World = Literal["training", "twin", "physx"]
"""Where a policy acts: see `dris.experiments.worlds`. Here, so that a command line is read without torch."""
