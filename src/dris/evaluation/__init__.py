"""Evaluation: conditions, scores, statistics, and tasks and policies by name."""
