"""The belief over one ball beside one robot: N balls that fly, bounce and roll as those in training do.

They meet the plate that the robot measures, and every sight of the ball pulls them, at its own time. NumPy
and Warp only: it runs in a control loop. Times are seconds of one clock; frames are the robot's base.
"""

from __future__ import annotations

import math

import numpy as np

from dris.belief.ensemble import check_observation, pulled, whitening
from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.believed_balls import DRAG, PHYSICS, STATE, SUBSTEP_S, Balls
from dris.catching.instances import RADII, PlateMotion, keep_possible, possible_parameters
from dris.catching.plate_past import KEPT_S, PlatePast
from dris.core.covariance import principal
from dris.core.process import start_warp
from dris.perception.triangulate import Bearing

LONGEST_S = KEPT_S
"""A belief is carried on at most so far [s]."""
OLDEST_S = 0.02
"""A sight older than the belief by more is refused; by less, balls are carried back on a line [s]."""
LIFTED_M = 0.005
"""A ball that lies and is pulled so far off the plate flies [m] [design]: 2 and 20 mm do the same. Held down
it would never follow what is seen, and one of fifty that came to lie where the real ball bounced would
stretch their covariance until it pulls all the others wrong, by 1 m/s. In training sights are too inexact for
that."""
_NO_ERROR = np.zeros(2)


class BallBelief:
    """N balls that agree with what was seen. `begin` it, `track_plate`, `see` sights, ask `at` a time.

    Attributes:
        time_s: What it was last pulled at; None: there is no ball.
        refused: Sights in a row that surprised too much.
        repaired: Balls that a sight put where they cannot be.
    """

    def __init__(
        self,
        plate_half_size: tuple[float, float, float],
        config: BallBeliefConfig | None = None,
        seed: int = 0,
    ):
        start_warp()
        self.config = config or BallBeliefConfig()
        self._half = plate_half_size
        self._balls, self._ahead = (Balls(self.config.instances, plate_half_size) for _ in range(2))
        self._generator = np.random.default_rng(seed)
        self._drawn = np.zeros((self.config.instances, 3))
        self._past = PlatePast()
        self.time_s: float | None = None
        self.refused = self.repaired = 0
        self._touched_s = self._bounced_s = -math.inf
        self._plate: np.ndarray | None = None  # where it was when the balls were last carried on
        # Times and plate that go with the balls in _ahead.
        self._before: tuple[float, float, float, np.ndarray | None] = (0.0, 0.0, 0.0, None)

    def track_plate(self, time_s: float, position: np.ndarray, rotation: np.ndarray) -> None:
        """Where the plate's centre [3] is and how it is turned [3, 3], as the joints say.

        Raises:
            ValueError: That is no place, or no rotation.
        """
        self._past.add(time_s, position, rotation)

    def begin(self, time_s: float, mean: np.ndarray, covariance: np.ndarray, radius_m: float) -> None:
        """Believe in a ball in flight.

        Args:
            time_s: When.
            mean: [6] position and velocity,
            covariance: [6, 6] of them.
            radius_m: As the eyes have it.

        Raises:
            ValueError: A number is not finite, the radius is none, or the covariance is none.
        """
        if np.shape(mean) != (6,):
            raise ValueError(f"a belief begins at position and velocity (6,), got {np.shape(mean)}")
        if not (np.abs(mean).max() < 1e3 and math.isfinite(time_s)):  # NaN too
            raise ValueError(
                f"a belief begins at finite numbers, below 1000 m and m/s, got {mean}, {time_s} s"
            )
        if not 0 < radius_m < math.inf:
            raise ValueError(f"a ball's radius must be positive and finite, got {radius_m} m")
        spread, axes = principal(covariance, 6)
        config, draw, count = self.config, self._generator, self.config.instances
        states = mean + (draw.standard_normal((count, 6)) * np.sqrt(spread.clip(0.0))) @ axes.T
        radius = (radius_m + config.radius_sigma * draw.standard_normal(count)).clip(0.01, 0.06)
        rolled = draw.uniform(0, 1, count) / radius
        across = np.stack((-states[:, 4], states[:, 3], np.zeros(count)), axis=1)
        friction = draw.uniform(*config.static_friction, count)
        balls = self._balls
        balls.pos[0], balls.vel[0] = states[:, :3], states[:, 3:]
        balls.spin[0] = rolled[:, None] * across + config.spin_sigma * draw.standard_normal((count, 3))
        balls.radius[0], balls.static_friction[0] = radius, friction
        balls.dynamic_friction[0] = draw.uniform(0.5, 1.0, count) * friction
        balls.restitution[0] = draw.uniform(*config.restitution, count)
        balls.mode[0], balls.impacts[0] = 0, 0
        balls.drag[:] = draw.uniform(*config.drag, count)
        self.time_s, self.refused, self._plate = time_s, 0, None
        self._touched_s = self._bounced_s = -math.inf

    def see_state(self, time_s: float, observed: np.ndarray, deviation: np.ndarray) -> float:
        """Take in position and velocity [6] with deviations [6]; returns the surprise.

        Raises:
            ValueError: There is no ball yet, or this is no observation; the belief is as it was.
        """
        check_observation(observed, deviation, 6)
        values, lag = self._move_to(time_s)
        predicted = values[:, STATE].copy()
        predicted[:, :3] -= lag * values[:, 3:6]
        gate = 3 * self.config.gate  # six numbers, not two
        return self._pull(values, predicted / deviation, observed / deviation, gate)

    def see(self, sight: Bearing, noise_px: float | np.ndarray) -> float:
        """Take in where one camera saw the ball; returns the surprise.

        Args:
            sight: With its time.
            noise_px: Its deviation [px], or its covariance [2, 2] [px^2] in the camera's axes.

        Raises:
            ValueError: As `see_state`.
        """
        to_axes = whitening(noise_px, 2) if isinstance(noise_px, np.ndarray) else None
        sigma_px = 1.0 if isinstance(noise_px, np.ndarray) else noise_px
        values = sight.values.sum() + sight.rows.sum() + sight.offset  # a sum keeps any NaN
        if not (math.isfinite(values) and 0 < sigma_px < math.inf):
            told = f"got {sight.values} and {sigma_px} px: leave it out"
            raise ValueError(f"a sight must be finite and its deviation positive, {told}")
        values, lag = self._move_to(sight.time_s)
        points = values[:, :3] - lag * values[:, 3:6] if lag else values[:, :3]
        depth = np.maximum(points @ sight.axis - sight.offset, 0.05)
        error = (points @ sight.rows.T - sight.values) * (sight.focal_px / sigma_px / depth)[:, None]
        error = error if to_axes is None else error @ to_axes
        return self._pull(values, error, _NO_ERROR, self.config.gate)

    def at(self, time_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Mean [6] and deviations [6] of position and velocity at a time, which is not pulled there.

        A little before the last sight balls are carried back on a line.

        Raises:
            ValueError: There is no ball yet, or the time is too long before or after the last sight.
        """
        self._check_begun(time_s)
        assert self.time_s is not None
        ahead = self._ahead
        ahead.copy(self._balls)
        if time_s > self.time_s:
            self._carry(ahead, self.time_s, time_s)
        elif time_s < self.time_s:
            ahead.pos += (time_s - self.time_s) * ahead.vel
        states = ahead.values[:, STATE].astype(np.float64)
        mean = states.sum(axis=0) / len(states)
        off = (states - mean).T
        return mean, np.sqrt(np.vecdot(off, off) / (len(states) - 1))

    @property
    def places(self) -> np.ndarray:
        """Of the balls [N, 3] when it was last pulled."""
        return self._balls.pos[0].copy()

    @property
    def physics(self) -> dict[str, np.ndarray]:
        """Parameters of the balls [N] each, as they are believed."""
        names = ("radius", "static_friction", "dynamic_friction", "restitution")
        return {name: getattr(self._balls, name)[0].copy() for name in names}

    @property
    def centre(self) -> np.ndarray:
        """Mean position [3] when it was last pulled."""
        return self._balls.pos[0].mean(axis=0)

    @property
    def speed(self) -> float:
        """Mean speed then [m/s]."""
        return float(np.linalg.norm(self._balls.vel[0].mean(axis=0)))

    def is_stale(self, time_s: float) -> bool:
        """Whether it has seen nothing for so long that it is not carried on to a time."""
        return self.time_s is not None and time_s > self.time_s + LONGEST_S

    def is_too_old(self, time_s: float) -> bool:
        """Whether a time lies too long before its last sight."""
        return self.time_s is not None and time_s < self.time_s - OLDEST_S

    def _check_begun(self, time_s: float) -> None:
        if self.time_s is None:
            raise ValueError("there is no ball yet: call begin first")
        if not math.isfinite(time_s) or time_s > self.time_s + LONGEST_S:
            raise ValueError(
                f"a belief is carried on by at most {LONGEST_S} s, to {self.time_s + LONGEST_S:.3f} s, got "
                f"{time_s}: begin anew"
            )
        if time_s < self.time_s - OLDEST_S:
            raise ValueError(
                f"{time_s:.4f} s is more than {OLDEST_S} s before the belief's last sight, of "
                f"{self.time_s:.4f} s: leave it out"
            )

    def _carry(self, balls: Balls, start_s: float, end_s: float) -> None:
        count = math.ceil((end_s - start_s) / SUBSTEP_S - 1e-6)
        plate = self._past.between(start_s, end_s, count + 1)
        balls.advance(plate, end_s - start_s)
        if balls is self._balls:
            self._plate = plate[-1]

    def _move_to(self, time_s: float) -> tuple[np.ndarray, float]:
        """Carry the balls on to a time, and tell what is to be pulled there.

        Returns:
            All that is uncertain of the balls [N, 14], finite or not, which `_pull` gives back to them; and
            how much older the time is than they are [s].

        Raises:
            ValueError: It is too old, or too far ahead.
        """
        self._check_begun(time_s)
        assert self.time_s is not None
        elapsed, balls, config = time_s - self.time_s, self._balls, self.config
        self._ahead.copy(balls)
        self._before = self.time_s, self._touched_s, self._bounced_s, self._plate
        if elapsed <= 1e-6:
            return balls.values.astype(np.float64), -elapsed
        before = balls.impacts[0].copy()
        self._carry(balls, self.time_s, time_s)
        values = balls.values.astype(np.float64)
        hit = balls.impacts[0] > before
        hits = int(np.count_nonzero(hit))
        if hits:
            values[hit, 12] += config.restitution_walk * self._generator.standard_normal(hits)
        lying = np.count_nonzero(balls.mode)
        if hits or lying:
            self._touched_s = time_s
        if hits and 2 * lying < len(values):
            self._bounced_s = time_s
        bounced = time_s - self._bounced_s < config.contact_s
        walk = config.bounce_walk if bounced else config.speed_walk
        values[:, 3:6] += self._noise(walk * math.sqrt(elapsed))
        self.time_s = time_s
        return values, 0.0

    def _pull(self, values: np.ndarray, predicted: np.ndarray, observed: np.ndarray, gate: float) -> float:
        """Pull the balls [N, 14] to an observation [S]; one that surprises too much leaves all as it was.

        What each would be seen as [N, S] and what was seen are in deviations of the observation.
        """
        balls, config = self._balls, self.config
        if not math.isfinite(values.sum()):  # a sum keeps any NaN
            values, predicted = self._without_lost(values, predicted)
        after, surprise, _ = pulled(values, predicted, observed)
        surprise = float(surprise)
        if not surprise <= gate:
            self.refused += 1
            self._balls, self._ahead = self._ahead, self._balls
            self.time_s, self._touched_s, self._bounced_s, self._plate = self._before
            return surprise
        self.refused = 0
        assert self.time_s is not None
        if self.time_s - self._touched_s >= config.contact_s:
            after[:, PHYSICS] = values[:, PHYSICS]
        after[:, :3] += self._noise(config.jitter_m)
        after[:, DRAG] = np.minimum(np.maximum(after[:, DRAG], config.drag[0]), config.drag[1])
        self._keep(after)
        balls.values[:] = after
        return surprise

    def _noise(self, deviation: float) -> np.ndarray:
        """A vector for every ball [N, 3], in memory that the next call writes."""
        self._generator.standard_normal(out=self._drawn)
        self._drawn *= deviation
        return self._drawn

    def _keep(self, values: np.ndarray) -> None:
        """Keep balls [N, 14] possible, in contact or not."""
        assert self.time_s is not None
        if self._plate is None:
            self._plate = self._past.between(self.time_s, self.time_s, 1)[0]
        plate, mode = _motion(self._plate), self._balls.mode[0]
        lies = mode > 0
        if lies.any():
            lies &= (values[:, :3] - plate.position) @ plate.normal - values[:, 9] < LIFTED_M
            mode *= lies
        if lies.any() or ((values[:, :3] - plate.position) @ plate.normal).min() < RADII[1]:
            values[:, :DRAG], changed = keep_possible(values[:, :DRAG], lies, plate, self._half[0])
        else:  # nothing is near the plate
            values[:, 9:DRAG], changed = possible_parameters(values[:, 9:DRAG])
        self.repaired += int(np.count_nonzero(changed))

    def _without_lost(self, values: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Balls [N, 14], and what they predict, with copies of others in place of those that are not finite.

        Raises:
            ValueError: None is finite; the belief has ended.
        """
        finite = np.isfinite(values).all(axis=1)
        if not finite.any():
            self.time_s = None
            raise ValueError("no ball of the belief is finite any more: begin anew")
        index = np.arange(len(values))
        index[~finite] = self._generator.choice(index[finite], int((~finite).sum()))
        self.repaired += int((~finite).sum())
        values = values[index]
        self._balls.values[:], self._balls.contact[:] = values, self._balls.contact[:, index]
        return values, predicted[index]


def _motion(sample: np.ndarray) -> PlateMotion:
    """Of one plate, from its sample [22]; the product omega x normal in plain numbers, which are faster."""
    normal = sample[15:22:3]  # the axes' third column
    (nx, ny, nz), (wx, wy, wz) = normal.tolist(), sample[10:13].tolist()
    rate = np.array((wy * nz - wz * ny, wz * nx - wx * nz, wx * ny - wy * nx))
    return PlateMotion(sample[:3], normal, sample[7:10], rate)
