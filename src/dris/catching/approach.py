"""The approach: bring the plate to where the ball will arrive, facing it, before the policy takes over.

    arrival -> pose of the plate -> joints -> time-optimal motion inside limits -> joint reference, 1 kHz

Policies of preset `released` begin with the plate at the point of arrival, its normal against the ball's
velocity. `Approach.update` takes an estimate of the arrival as often as there is one; `Approach.reference`
gives what the torque law tau = K (q~ - q) - D dq + C + g should be told now. The path knows nothing of
cameras, of the twin or of a robot: it runs on times that are handed in.

What it will not do it says, once per change: see `Outcome`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from ruckig import ControlInterface, InputParameter, Result, Ruckig, Trajectory

from dris.catching.frames import tilt_of_normal
from dris.catching.settings import CatchingConfig
from dris.perception.arrival import Arrival

Outcome = Literal["waiting", "going", "late", "uncertain", "past", "out of reach", "halted"]
"""waiting: no arrival is known. going: will stand there when the policy takes over. late: will not, but gets
as near as it can, because a policy can still make up for some of the way. uncertain: too few sights or sights
that contradict each other; the robot keeps the last goal that it trusted. past: the ball comes down outside
the catching region. out of reach: no pose of the arm meets it. In these two cases the robot goes back to
where it started and no policy begins. halted: the eyes doubt themselves; it brakes and stays."""


SLOWEST = 0.05
"""A motion needs some speed, also at the very end of a joint's range [rad/s]."""


@dataclass(frozen=True)
class ApproachLimits:
    """How fast the arm may approach, and which arrivals it believes in."""

    speed_share: float = 0.75
    """Of the joint speeds that the FR3 allows where the joint is [design]."""
    acceleration: tuple[float, ...] = (20.0, 20.0, 20.0, 20.0, 30.0, 30.0, 30.0)
    """[rad/s2] of each joint: two and three times the 10 published for motion generators, which torque
    control need not keep. With 10 the arm is late for the fastest ramp [design]."""
    jerk: tuple[float, ...] = (300.0, 300.0, 300.0, 300.0, 1000.0, 1000.0, 1000.0)
    """[rad/s3] of each joint, published: 5000. Torque changes by inertia times jerk: 2 kg m2 x 300 rad/s3 is
    600 Nm/s of FCI's 1000 [design]."""
    replan_rad: float = 0.005
    """A goal that moved by less in every joint is the same goal; 2.5 mm of the plate [design]."""
    region_radius: float = 0.3
    """Arrivals further than this from the plate's home, horizontally, fly past [m]: the training's 0.2 m and
    half as much for what an early estimate may be wrong. It counts without air, which brings a light ball
    down up to 0.1 m sooner [design]."""
    facing: float = 0.6
    """The plate tilts no further to face a ball [rad]; the training's come in at 0.1 to 0.45 [design]."""
    place_sigma: float = 0.05
    """An estimate less sure of the place is too uncertain to act on [m] [design]."""
    time_sigma: float = 0.03
    """The same for the time [s] [design]."""
    misfit: float = 3.0
    """Sights that lie this far from the parabola contradict it [standard deviations of a sight] [design]."""
    settle_s: float = 0.03
    """Estimates are believed once they have been about the same for so long: two to three frames [design],"""
    drift: float = 0.03
    """that is, have not moved further [m]. A ball that still rolls down a ramp may look like a flight for a
    moment, but its arrival moves by 0.03 to 0.1 m in that time; air moves that of a light ball by 0.01 m
    [design]."""

    def __post_init__(self) -> None:
        """Refuse limits that allow no motion."""
        if not 0 < self.speed_share <= 1:
            raise ValueError(f"speed_share must lie in (0, 1], got {self.speed_share}")
        for name in ("acceleration", "jerk"):
            if len(getattr(self, name)) != 7 or not min(getattr(self, name)) > 0:
                raise ValueError(f"{name} needs 7 positive values, got {getattr(self, name)}")
        believed = ("place_sigma", "time_sigma", "misfit", "settle_s", "drift")
        for name in ("replan_rad", "region_radius", "facing", *believed):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")


class ArmKinematics(Protocol):
    """What an approach asks of an arm with a plate."""

    home: np.ndarray
    """Joints [M]."""
    home_position: np.ndarray
    """Centre [3] of the plate's top face at home, base frame."""

    def speed_limits_at(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Largest speeds [M] down and up that are allowed at joints q [M], both positive [rad/s]."""

    def solve(
        self, position: np.ndarray, tilt: np.ndarray, start: np.ndarray, iterations: int
    ) -> tuple[np.ndarray, bool]:
        """Joints [M] for the plate's centre [3] and tilt [2], and whether they reach it."""

    def inertial_torque(self, q: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """Mass matrix times acceleration [M] [Nm]."""


class Approach:
    """The way to one arrival.

    A motion is planned anew from where the last plan has the arm, not from measured joints: the reference
    then never jumps, and noise of the joints' sensors does not reach it.
    """

    def __init__(
        self, config: CatchingConfig, kinematics: ArmKinematics, limits: ApproachLimits | None = None
    ):
        """Get ready; `start` begins.

        Args:
            config: Gains of the torque law, and how long before the arrival the policy takes over.
            kinematics: Of the arm.
            limits: Of the motion, and of what is believed.
        """
        self.limits = limits = limits or ApproachLimits()
        self._kinematics = kinematics
        self._stiffness, self._damping = np.array(config.stiffness), np.array(config.damping)
        self.lead_s = sum(config.lead_s) / 2
        """The policy takes over so long before the arrival: the middle of what it was trained for."""
        self._near_rad = 2 * config.joint_noise  # as near as the starts that the policy was trained with
        joints = len(config.home)
        self._planner, self._input = Ruckig(joints), InputParameter(joints)
        self._input.max_acceleration, self._input.max_jerk = list(limits.acceleration), list(limits.jerk)
        self.start(kinematics.home, 0.0)

    def start(self, q: np.ndarray, now_s: float) -> None:
        """Begin at rest at joints q [M], which is also where the robot returns to."""
        self._rest = self.goal = np.array(q, dtype=float)
        self._trajectory: Trajectory | None = None
        self._since_s = now_s
        self._estimates: deque[tuple[float, np.ndarray]] = deque()
        self.arrival: Arrival | None = None
        """The last one that was trusted and can be met; None when there is none to meet."""
        self.outcome: Outcome = "waiting"
        self.changes: list[tuple[float, str]] = []
        """When the outcome changed [s], and to what, with the reason."""
        self.facing_cut = False
        """Whether the plate faces the ball less than wished, because it would tilt too far."""

    def update(self, arrival: Arrival | None, now_s: float) -> Outcome:
        """Take in an estimate of the arrival, or None if there is none, and plan."""
        if self.arrival is not None and now_s > self.arrival.time_s + self.lead_s:
            return self._refuse("waiting", "nothing came", now_s)
        if arrival is None:
            if self.outcome != "halted":  # out of sight, perhaps: a parabola stays what it is
                return self.outcome
            if self.arrival is None:  # none to meet: home
                return self._refuse("waiting", "", now_s)
            return self._say("waiting", "", now_s)
        self._estimates.append((now_s, arrival.ball_in_base))
        doubt = self._doubt(arrival, now_s)
        if doubt:
            return self._say("uncertain", doubt, now_s)
        off = float(np.linalg.norm((arrival.ball_in_base - self._kinematics.home_position)[:2]))
        if off > self.limits.region_radius:
            return self._refuse("past", f"arrives {off:.2f} m from the plate's home", now_s)
        joints, reached = self._meeting(arrival)
        if not reached:
            place = np.round(arrival.ball_in_base, 2).tolist()
            return self._refuse("out of reach", f"no pose of the arm meets the ball at {place}", now_s)
        self.arrival = arrival
        self._go(joints, now_s)
        left = float(np.abs(self.desired(max(arrival.time_s - self.lead_s, now_s))[0] - joints).max())
        if left > self._near_rad:
            return self._say("late", f"{left:.2f} rad from there when the policy takes over", now_s)
        return self._say("going", "", now_s)

    def halt(self, now_s: float) -> Outcome:
        """Brake along the way and stay there, until `update` is told of an arrival, or that there is none."""
        if self.arrival is not None and now_s > self.arrival.time_s + self.lead_s:
            self.arrival = None  # it has come down; the way home waits for eyes that are fine
        if self.outcome != "halted" and self.desired(now_s)[1].any():  # on its way home, too
            self._brake(now_s)
        return self._say("halted", "the eyes doubt themselves", now_s)

    def due(self, now_s: float) -> bool:
        """Whether it is time for the policy to take over."""
        return self.arrival is not None and self.arrival.time_s - now_s <= self.lead_s

    def reference(self, now_s: float) -> np.ndarray:
        """Joints [M] to tell the torque law now.

        With q~ = q_d + (D dq_d + M ddq_d) / K the law's own lag is made up for: the error e = q - q_d then
        obeys M e'' + D e' + K e = 0.
        """
        q, dq, ddq = self.desired(now_s)
        if not dq.any() and not ddq.any():
            return q
        return q + (self._damping * dq + self._kinematics.inertial_torque(q, ddq)) / self._stiffness

    def desired(self, now_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position, velocity and acceleration [M] that the plan has now."""
        elapsed_s = now_s - self._since_s
        if self._trajectory is None or elapsed_s >= self._trajectory.duration:
            return self.goal.copy(), np.zeros_like(self.goal), np.zeros_like(self.goal)
        q, dq, ddq = self._trajectory.at_time(max(elapsed_s, 0.0))[:3]
        return np.array(q), np.array(dq), np.array(ddq)

    def _doubt(self, arrival: Arrival, now_s: float) -> str:
        """Why an estimate is not to be acted on, or nothing."""
        limits = self.limits
        if not arrival.misfit <= limits.misfit:
            return f"sights lie {arrival.misfit:.1f} standard deviations from a parabola"
        if not arrival.place_sigma_m <= limits.place_sigma:
            return f"the place is known to {arrival.place_sigma_m:.2f} m only"
        if not arrival.time_sigma_s <= limits.time_sigma:
            return f"the time is known to {arrival.time_sigma_s:.3f} s only"
        then_s = now_s - limits.settle_s + 1e-9
        while len(self._estimates) > 1 and self._estimates[1][0] <= then_s:
            self._estimates.popleft()
        if self._estimates[0][0] > then_s:
            return "too few sights"
        moved = float(np.linalg.norm(arrival.ball_in_base - self._estimates[0][1]))
        if moved > limits.drift:
            return f"estimates contradict each other: {moved:.2f} m within {limits.settle_s:g} s"
        return ""

    def _meeting(self, arrival: Arrival) -> tuple[np.ndarray, bool]:
        """Joints [M] with the plate at the point of arrival and against the velocity; is that reached."""
        against = -arrival.velocity_in_base / np.linalg.norm(arrival.velocity_in_base)
        tilt = tilt_of_normal(against)
        size = float(np.linalg.norm(tilt))
        self.facing_cut = size > self.limits.facing
        tilt = tilt * (self.limits.facing / max(size, self.limits.facing))
        # From home, whatever came before: the same arrival then has the same pose. Again from the answer:
        # the pull to where a search starts lets go.
        joints, reached = self._kinematics.solve(arrival.ball_in_base, tilt, self._kinematics.home, 60)
        for _ in range(3):
            joints, reached = self._kinematics.solve(arrival.ball_in_base, tilt, joints, 60)
        return joints, reached

    def _refuse(self, outcome: Outcome, reason: str, now_s: float) -> Outcome:
        """Go home, and say why."""
        self.arrival = None
        self._go(self._rest, now_s)
        return self._say(outcome, reason, now_s)

    def _say(self, outcome: Outcome, reason: str, now_s: float) -> Outcome:
        if outcome != self.outcome:
            self.changes.append((now_s, f"{outcome}: {reason}" if reason else outcome))
        self.outcome = outcome
        return outcome

    def _go(self, joints: np.ndarray, now_s: float) -> None:
        """Plan to rest at joints [M] from where the present plan has the arm."""
        if np.abs(joints - self.goal).max() < self.limits.replan_rad:
            return
        q = self._set_out(now_s)
        plan = self._input
        plan.control_interface, plan.target_position = ControlInterface.Position, list(joints)
        # Less is allowed near the end of a joint's range: on the way the least is at one of its ends.
        here, there = self._kinematics.speed_limits_at(q), self._kinematics.speed_limits_at(joints)
        down, up = (np.maximum(np.minimum(a, b), SLOWEST) for a, b in zip(here, there, strict=True))
        plan.max_velocity = list(self.limits.speed_share * up)
        plan.min_velocity = list(-self.limits.speed_share * down)
        self._trajectory, self._since_s, self.goal = self._planned(), now_s, joints

    def _brake(self, now_s: float) -> None:
        """Plan to come to rest as soon as acceleration and jerk allow."""
        self._set_out(now_s)
        plan = self._input
        plan.control_interface, plan.target_velocity = ControlInterface.Velocity, [0.0] * len(self.goal)
        self._trajectory, self._since_s = self._planned(), now_s
        self.goal = np.array(self._trajectory.at_time(self._trajectory.duration)[0])

    def _set_out(self, now_s: float) -> np.ndarray:
        """Let the next plan begin where the present one has the arm; its joints [M] there."""
        q, dq, ddq = self.desired(now_s)
        plan = self._input
        plan.current_position, plan.current_velocity, plan.current_acceleration = list(q), list(dq), list(ddq)
        return q

    def _planned(self) -> Trajectory:
        plan = self._input
        trajectory = Trajectory(len(self.goal))
        result = self._planner.calculate(plan, trajectory)
        if result not in (Result.Working, Result.Finished):  # the arguments are ours: this is a defect
            asked = f"from {plan.current_position}, {plan.current_velocity} to {plan.target_position}"
            raise RuntimeError(f"no motion {asked}: {result}")
        return trajectory
