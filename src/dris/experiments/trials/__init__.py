"""Trials in the twin laboratory, from rendered images to torques."""
