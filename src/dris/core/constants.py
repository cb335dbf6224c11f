"""Constants of nature, and the seeds of episodes that are told apart from training's."""

GRAVITY = 9.81
"""[m/s2]"""
EVALUATION_SEED = 10_007
"""Seed of evaluation episodes; training seeds are small, so that they never meet."""

VALIDATION_SEED = 20_011
"""Seed of the evaluations during training: whatever is chosen by them is reported on other episodes."""
STUDY_SEED = 30_011
"""Seed of the episodes that studies report on; no policy and no recipe was ever tuned on it."""
