"""Does contact do what it is asked to? Each ball on a plate that nothing can move: bounce, slide, roll.

Restitution is asked of one number, the damping ratio (lab.py); nothing is tuned here, so asked and measured
can disagree, and how much they do is the result. An impact meets the time grid at some phase, which scatters
its restitution; drops from slightly different heights sample that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from dris.lab.forces import Forces
from dris.lab.model import LabConfig, build_bench
from dris.lab.objects import BALLS, CatchObject
from dris.lab.twin import TICK_S

DROP_HEIGHTS = (0.3, 1.5)
"""[m]: impacts at 2.4 and 5.4 m/s."""
ROLL_TILT = 0.1
"""[rad]"""


@dataclass(frozen=True)
class Row:
    """One quantity of one ball; `low` and `high` span repeated measurements."""

    thing: str
    quantity: str
    asked: float
    measured: float
    low: float
    high: float


class Bench:
    """A ball on or over a fixed padded plate, tilted about y; x points downhill."""

    def __init__(self, config: LabConfig, thing: CatchObject, tilt: float = 0.0):
        """In a vacuum: air has its own test."""
        config = replace(config, air_density=0.0)
        self.model = build_bench(config, thing, tilt)
        self.data = mujoco.MjData(self.model)
        self._forces = Forces(self.model, config, thing)
        self._steps = round(TICK_S / config.timestep)
        self.downhill = np.array([math.cos(tilt), 0.0, -math.sin(tilt)])
        self.normal = np.array([math.sin(tilt), 0.0, math.cos(tilt)])

    def place(self, position: np.ndarray, velocity: np.ndarray, spin_y: float = 0.0) -> None:
        """Put the ball somewhere, turning about y."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:3], self.data.qvel[:3] = position, velocity
        self.data.qvel[4] = spin_y
        mujoco.mj_forward(self.model, self.data)

    def advance(self, ticks: int) -> None:
        """Let milliseconds pass."""
        for _ in range(ticks):
            self._forces.apply(self.data)
            mujoco.mj_step(self.model, self.data, nstep=self._steps)

    @property
    def speed(self) -> float:
        """Downhill [m/s]."""
        return float(self.data.qvel[:3] @ self.downhill)

    def acceleration(self, settle: int, ticks: int) -> float:
        """Mean downhill acceleration over `ticks`, after `settle` [m/s2]."""
        self.advance(settle)
        before = self.speed
        self.advance(ticks)
        return (self.speed - before) / (ticks * TICK_S)


def restitution(config: LabConfig, thing: CatchObject, height: float, drops: int = 12) -> list[float]:
    """Restitution of drops from about a height [m]: speed after the contact over speed before it."""
    bench = Bench(config, thing)
    speed = math.sqrt(2 * config.gravity * height)
    results = []
    for phase in np.arange(drops) / drops:
        # The last half millisecond of the fall; the phase shifts where on the time grid it ends.
        gap = (0.5e-3 + phase * config.timestep) * speed
        bench.place(np.array([0.0, 0.0, thing.radius + gap]), np.array([0.0, 0.0, -speed]))
        before = speed
        while bench.data.qpos[2] > thing.radius:
            before = -float(bench.data.qvel[2])
            mujoco.mj_step(bench.model, bench.data)
        while bench.data.qpos[2] <= thing.radius + 1e-5:
            mujoco.mj_step(bench.model, bench.data)
        results.append(float(bench.data.qvel[2]) / before)
    return results


def sliding_friction(config: LabConfig, thing: CatchObject) -> float:
    """Friction coefficient from sliding down a plate too steep to roll: a = g (sin - mu cos)."""
    factor = thing.inertia[0] / (thing.mass * thing.radius**2)
    tilt = math.atan(1.5 * thing.friction * (1 + 1 / factor))  # it slips where tan > mu (1 + 1 / k)
    bench = Bench(config, thing, tilt)
    bench.place(thing.radius * bench.normal, np.zeros(3))
    pull = bench.acceleration(50, 150)
    return (math.sin(tilt) - pull / config.gravity) / math.cos(tilt)


def rolling_acceleration(
    config: LabConfig, thing: CatchObject, tilt: float = ROLL_TILT
) -> tuple[float, float]:
    """Downhill acceleration of a rolling ball [m/s2]: by formula, g (sin - c cos) / (1 + k), and measured."""
    factor = thing.inertia[0] / (thing.mass * thing.radius**2)
    expected = config.gravity * (math.sin(tilt) - thing.rolling * math.cos(tilt)) / (1 + factor)
    bench = Bench(config, thing, tilt)
    speed = 0.2  # already rolling: resistance fades at rest
    bench.place(thing.radius * bench.normal, speed * bench.downhill, speed / thing.radius)
    return expected, bench.acceleration(50, 300)


def calibration(config: LabConfig | None = None) -> list[Row]:
    """Asked and measured for the four balls."""
    config = config or LabConfig()
    rows = []
    for name, thing in BALLS.items():
        for height in DROP_HEIGHTS:
            values = restitution(config, thing, height)
            label = f"restitution, {height:g} m"
            rows.append(Row(name, label, thing.restitution, float(np.mean(values)), min(values), max(values)))
        slide = sliding_friction(config, thing)
        rows.append(Row(name, "sliding friction", thing.friction, slide, slide, slide))
        asked, roll = rolling_acceleration(config, thing)
        rows.append(Row(name, f"rolling at {ROLL_TILT:g} rad, m/s2", asked, roll, roll, roll))
    return rows
