"""Experiments: the study, the theory, trials in the laboratory, tracking, gains, benchmarks."""
