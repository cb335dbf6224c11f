"""Measured joints held to workspace, keep-out and plate speed: an arm that overshoots them is stopped."""

from __future__ import annotations

import numpy as np

from dris.robot.clearance import Clearance
from dris.robot.safety import outside
from dris.robot.safety_config import Clause, SafetyConfig


class Boundary:
    """What one motion may do.

    An arm that begins outside may come in: how far it is outside may never grow by more than the overshoot
    that is allowed.
    """

    def __init__(self, config: SafetyConfig, clearance: Clearance, q: np.ndarray):
        """Begin at measured joints [M]."""
        self._config, self._clearance = config, clearance
        self._allowed: dict[Clause, np.ndarray] = outside(config, clearance, q)
        self._overshoot: dict[Clause, float] = {
            "workspace": config.workspace_overshoot,
            "keep-out": config.keep_out_overshoot,
        }

    def broken(self, q: np.ndarray, dq: np.ndarray) -> str:
        """What measured joints [M] and speeds [M] pass, by name and how far; nothing if they are inside."""
        fastest = self._clearance.velocity_maps(q).fastest(dq)
        most_speed = self._config.plate_overshoot * self._config.plate_speed
        if most_speed < fastest < np.inf:  # numbers that are none are for the filter
            return f"plate speed: plate or flange move at {fastest:.2f} m/s, {most_speed:.2f} m/s is allowed"
        found = outside(self._config, self._clearance, q)
        for clause, beyond in found.items():
            most = self._overshoot[clause]
            too_far = beyond - self._allowed[clause]
            if not (too_far <= most).all():  # not finite, too
                return f"{clause}: the arm itself is {too_far.max():.3f} m beyond it, {most} m is allowed"
            self._allowed[clause] = np.minimum(self._allowed[clause], beyond)
        return ""
