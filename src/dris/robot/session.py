"""A session on one robot: connect, home, arm, catch, return, and stop when anything is wrong.

    disconnected -> connected -> homed -> armed -> approaching -> catching -> returning -> homed
                                          homed -> following -> homed
                                       catching -> hold -> catching, returning
                                            any -> stopped, fault (need a person)

Once a tick: read the arm, hold it to its workspace, let the catch loop or a path ask for joints, shape that
by the governed law, pass it through the safety filter, send it, log it. The clock is handed in: a robot's, a
twin's, a test's; a tick has one time. Nothing moves outside the states of `MOVING`; after a stop nothing
moves until somebody calls `connect` again.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from dris.catching.approach import Approach, ApproachLimits
from dris.catching.control import Act, BallEstimate, BallObserver, Controller
from dris.catching.joint_limits import JointLimits
from dris.catching.kinematics import Kinematics
from dris.catching.law import TICK_S, LawConfig
from dris.catching.loop import CatchLoop
from dris.catching.plate_teller import PlateTeller
from dris.catching.settings import CatchingConfig
from dris.robot.arm import Arm, ArmError, ArmState
from dris.robot.boundary import Boundary
from dris.robot.clearance import Clearance
from dris.robot.ending import Ended
from dris.robot.log import Asked, Log, Tick
from dris.robot.paths import Path, WayHome
from dris.robot.ready import FROZEN_S, Heard, begins_at, cleared, stricter, why_not_now
from dris.robot.safety import filter_reference
from dris.robot.safety_config import TAU_MAX, SafetyConfig
from dris.robot.safety_limits import LONGEST_TICK_S, Measured, asked_torque
from dris.robot.shaping import Shaper
from dris.robot.sight_age import SightAge
from dris.robot.slowing import slowed
from dris.robot.states import CATCHING, MOVING, OF_APPROACH, STOPPED, WITH_LOOP, State
from dris.robot.told import Told
from dris.robot.wish import Wish

AT_HOME_RAD = 0.03
"""As near counts as home: soft gains leave some milliradians to friction [rad] [design]."""
LONGEST_HOLD_S = 1.0
"""With nothing seen for longer, the catch is given up and the arm returns [s] [design]."""
LATE_S, MOST_RECOVERIES = 0.0015, 3
"""After a tick that was longer [s], the torque is taken from where the arm has come to."""


class Session:
    """One policy on one arm."""

    def __init__(
        self,
        arm: Arm,
        observer: BallObserver,
        act: Act,
        config: CatchingConfig,
        law: LawConfig,
        clock: Callable[[], float],
        log: Log | None = None,
        safety: SafetyConfig | None = None,
        begins_when_seen: bool = False,
        speed_share: float = 1.0,
        rehearse: Callable[[], None] = lambda: None,
    ):
        """Get ready; nothing is sent.

        Args:
            arm: The robot.
            observer: Tells where the ball is.
            act: The policy, `dris.robot.runtime.Runtime.act_one` for instance.
            config: What its actions mean.
            law: The governed law; its gains are the arm's.
            clock: Time of robot and sights [s].
            log: Of every tick.
            safety: Limits of the filter; by default those of the law's gains.
            begins_when_seen: Whether the policy takes over as soon as a ball is seen, as for one that lies
                on the plate; otherwise the arm approaches first.
            speed_share: Of all that it may do, for a first run: joints, plate, approach and way home go no
                faster than this share of what they would.
            rehearse: Called in the tick before a decision, and once before the first, so that the policy is
                quick when it is asked: `dris.robot.runtime.Runtime.rehearse`.
        """
        self.arm, self.observer, self.clock = arm, observer, clock
        self.begins_when_seen, self.speed_share = begins_when_seen, speed_share
        self._log, safety = log or Log(), safety or SafetyConfig(law.stiffness, law.damping)
        self._log.tell(task_config=config, law=law, safety=safety, speed_share=speed_share)
        config, law, self.safety = slowed(speed_share, config, law, safety)
        self._act, self._config, self._law = act, config, law
        self._rehearse, self._tick_s = rehearse, TICK_S
        self.kinematics = Kinematics(config.home, config.mount)
        self._clearance = Clearance(self.kinematics.home, config.mount)
        self.limits: JointLimits = self.kinematics.limits
        self.state: State = "disconnected"
        self.reason = ""
        """Why it is in this state, where that needs saying."""
        self.clauses: Counter[str] = Counter()
        """Ticks in which each clause of the filter changed something."""
        self.beyond: Counter[str] = Counter()
        self.changes: list[tuple[float, State, str]] = []
        self.recoveries = 0
        self.loop: CatchLoop | None = None
        self._now_s = self._last_s = -np.inf
        self._sight = SightAge(config.step_s, 0.99 * safety.stop_age_s)
        self.measured: ArmState | None = None
        """What the arm told last."""
        self.seen: BallEstimate | None = None
        """What the policy acted on last, and"""
        self.fired: tuple[str, ...] = ()
        """clauses of the filter in the last tick."""
        self._blind, self._told = False, Told(observer)
        self._teller = PlateTeller(self.kinematics)

    # What a person asks for.

    def connect(self, clear: bool = False) -> None:
        """Read the arm and its limits; nothing moves, and what does is stopped.

        Args:
            clear: Clear an error, and say so: for simulated arms. A real one's clears who has looked.

        Raises:
            ArmError: It moves, does not answer or is in an error, or the session's log is closed.
        """
        if self.state in MOVING or self.state == "homed":
            raise ArmError(f"the session is {self.state}: stop it before connecting again")
        if self._log.closed:  # or the arm would move and nobody could say why
            raise ArmError("the log of this session is closed: make a new session, with a log of its own")
        state, self._now_s, said = self.arm.state(), self.clock(), ""
        may = clear and self.recoveries < MOST_RECOVERIES
        if state.error and may and (said := cleared(self.arm, state.error)):
            self.recoveries, state = self.recoveries + 1, self.arm.state()
        if why := why_not_now(self.arm, state):
            self._go("fault", why)
            raise ArmError(f"the arm does not begin: {why}")
        limits = stricter(self.arm.limits(), self.kinematics.limits)
        self._log.tell(limits=limits)
        self.limits = limits.slowed(self.speed_share)
        self._go("connected", said)

    def start(self) -> None:
        """Begin to obey references where the arm is, if nothing has stopped it meanwhile; go home slowly."""
        self._expect("connected")
        q = begins_at(self.arm, self.limits)
        self.arm.begin(q)
        self._sent, self._torque = q.copy(), self.kinematics.bias(q, np.zeros_like(q))
        self.measured, self._now_s = None, self.clock()
        self._last_s, self._heard = self._now_s, Heard(self._now_s)
        self.shaper = Shaper(self._law, self.limits, np.array(TAU_MAX))
        """What turns a wish into a reference for the filter; a test of the filter alone takes it away."""
        self._boundary = Boundary(self.safety, self._clearance, q)
        self._plan_home("homing", q, asked="start")

    def arm_now(self, unless: str = "") -> None:
        """Wait for a ball from now on, unless there is a reason not to: that is told, and it stays homed."""
        self._expect("homed")
        if unless:
            return self._go("homed", unless)
        assert self.measured is not None  # an arm that is homed has told where it is
        wish = self._wish = Wish(self._now_s, self.measured.q)
        controller = Controller(self._act, self._config)
        slow = ApproachLimits(speed_share=self.speed_share * ApproachLimits.speed_share)
        approach = None if self.begins_when_seen else Approach(self._config, self.kinematics, slow)
        if approach is not None:
            approach.start(self.kinematics.home, self._now_s)
        wish.wished = self.kinematics.home.copy()
        self._last_s = self._now_s - TICK_S  # a new ball may come with a clock of its own
        self._sight.forget()
        self.seen = None
        self._told.begin(self.observer)
        self.loop, self._blind = CatchLoop(wish, self._told, controller, approach, on_step=self._saw), False
        self._rehearse()
        self._go("armed", "", "arm when seen" if self.begins_when_seen else "arm")

    def follow(self, path: Path) -> None:
        """Go along a path that begins and ends at home; then it is homed again."""
        self._expect("homed")
        self._path, self._since_s = path, self._now_s
        self._go("following", "", "follow")

    def go_home(self) -> None:
        """Give up the catch and return."""
        if self.state in MOVING:
            self._now_s = self.clock()
            self._plan_home("returning", self._sent, asked="go home")

    def stop(self, reason: str, state: State = "stopped") -> None:
        """Stop softly, whatever is going on; nothing moves after this."""
        try:
            if self.state != "disconnected" and self.state not in STOPPED:
                self.arm.stop()
        except ArmError as error:
            state, reason = "fault", f"{reason}; {error}"
        self._now_s = self.clock()
        self._go(state, reason)
        with contextlib.suppress(OSError):  # a disk that is full was told of already
            self._log.close()

    # What others may look at.

    @property
    def sight_age_s(self) -> float:
        """Since the last sight that the policy acted on [s]."""
        return self._sight.since(self.clock())

    # What happens every tick.

    def tick(self) -> None:
        """Read, wish, filter, send, log."""
        if self.state not in MOVING and self.state != "homed":
            return
        now_s = self._now_s = self.clock()
        level, why = self._told.begin(self.observer)
        try:
            measured = self.arm.exchange(self._sent)
        except (ArmError, ValueError) as error:
            return self.stop(str(error), "fault")
        if measured.error or not measured.moving:
            return self.stop(measured.error or "the arm no longer obeys: the driver stopped it", "fault")
        if self._heard.frozen(measured.time_s, now_s):
            return self.stop(f"the arm has told the same state for {FROZEN_S} s, or no later one", "fault")
        self.measured = measured
        if broken := self._boundary.broken(measured.q, measured.dq):
            return self.stop(broken)
        if level == "stop":
            return self.stop(f"the eyes: {why}")
        try:
            if self.state not in WITH_LOOP:  # then the catch loop tells
                self._teller.tell_if_due(self.observer, now_s, measured.q)
            wished = self._wished(now_s, measured)
        except (ValueError, RuntimeError) as error:  # an action that is not finite, a way that is none
            return self.stop(str(error), "fault")
        except Exception as error:  # a mistake in somebody's program: the log must name it
            if not isinstance(error, Ended):
                self.stop(f"{type(error).__name__}: {error}", "fault")
            raise
        if self.state in MOVING or self.state == "homed":
            self._send(now_s, measured, wished)
        if self.state in CATCHING and self.loop is not None and self.loop.decides_at(now_s + self._tick_s):
            self._rehearse()

    def _wished(self, now_s: float, measured: ArmState) -> np.ndarray:
        """Joints that approach, policy or the way home ask for; changes the state as they say."""
        if self.state in ("homing", "returning"):
            return self._on_the_way_home(now_s, measured)
        if self.state == "following":
            if now_s - self._since_s >= self._path.duration_s:
                self._go("homed", "")
            return self._path.at(now_s - self._since_s)
        if self.state == "homed" or self.loop is None:
            return self.kinematics.home
        self._wish.time_s, self._wish.q = now_s, measured.q
        self.loop.tick()
        level, why = self._told.trust
        unseen = "no ball is seen" if level == "fine" else f"the eyes: {why}"
        if self.loop.began_s is not None:
            if self.loop.began_s == now_s:
                self._sight.begin(now_s)
            self._go(*("hold", unseen) if self._blind else ("catching", ""))
            if self._sight.since(now_s) > LONGEST_HOLD_S:
                self._plan_home("returning", measured.q, f"nothing seen for {LONGEST_HOLD_S} s")
                return measured.q
        elif self.loop.approach is not None:
            state = OF_APPROACH.get(self.loop.approach.outcome, "armed")
            self._go(state, unseen if state == "hold" else "")
        return self._wish.wished

    def _send(self, now_s: float, measured: ArmState, wished: np.ndarray) -> None:
        dt_s = now_s - self._last_s
        if dt_s <= 0:  # the same millisecond of the robot again
            return self._note(self._told.tick(now_s, self.state, measured, wished, self.loop))
        self._tick_s = min(dt_s, LONGEST_TICK_S)
        q, dq, arm = measured.q, measured.dq, self.kinematics.dynamics(measured.q, measured.dq)
        if dt_s > LATE_S:  # the arm has moved on under its last reference
            self._torque = asked_torque(self.safety, self._sent, q, dq, arm.bias)
            self.shaper.correct(arm, self._torque)
        shaped = self.shaper.reference(q, dq, wished, self._tick_s, arm)
        now = Measured(q, dq, self._sent, self._torque, dt_s, arm.bias, arm.inertia, self._age(now_s))
        safety = self.safety.blind if self._blind else self.safety
        safe = filter_reference(safety, self.limits, self._clearance, shaped, now)
        self._torque = asked_torque(self.safety, safe.reference, q, dq, arm.bias)
        if safe.clauses:
            self.shaper.correct(arm, self._torque)
        self.clauses.update(safe.clauses)
        self.beyond.update(safe.beyond)
        self._last_s, self._sent, self.fired = now_s, safe.reference, safe.clauses
        self._note(self._told.tick(now_s, self.state, measured, wished, self.loop, safe, now.age_s))
        if safe.verdict == "stop":
            self.stop(f"the filter: {', '.join(safe.clauses)}")

    def _saw(self, seen: BallEstimate | None) -> None:
        self._blind = seen is None
        if seen is not None:
            self.seen = seen
            self._sight.decided(self._now_s, seen.age_s)

    def _age(self, now_s: float) -> float:
        """Of what a wish rests on [s]: the last sight that the policy acted on."""
        if self.loop is None or self.loop.began_s is None or self.state not in CATCHING:
            return 0.0
        return self._sight.at(now_s)

    def _on_the_way_home(self, now_s: float, measured: ArmState) -> np.ndarray:
        elapsed_s = now_s - self._since_s
        if elapsed_s < self._path.duration_s:
            return self._path.at(elapsed_s)
        home = self.kinematics.home
        if np.abs(measured.q - home).max() < AT_HOME_RAD and np.abs(measured.dq).max() < 0.02:
            self.loop = None
            self._go("homed", "")
        elif elapsed_s > self._path.duration_s + 5.0:
            off = float(np.abs(measured.q - home).max())
            self.stop(f"the arm does not reach its home: {off:.3f} rad away; is something in its way?")
        return home

    def _plan_home(self, state: State, q: np.ndarray, reason: str = "", asked: Asked = "") -> None:
        self._path = WayHome(q, self.kinematics.home, self.limits)
        self._since_s = self._now_s
        self._go(state, reason, asked, q.tolist())

    def _expect(self, state: State) -> None:
        """Refuse what is asked for in another state; all that it does has one time."""
        if self.state != state:
            raise ArmError(f"the session is {self.state}, not {state}")
        self._now_s = self.clock()

    def _go(self, state: State, reason: str, asked: Asked = "", q: Sequence[float] = ()) -> None:
        changed = state != self.state or (state == "homed" and reason != self.reason)
        if changed:
            self.changes.append((self._now_s, state, reason))
            self.state, self.reason = state, reason
        if changed or asked:
            trust, note = self._told.trust, reason or "begins"
            self._note(Tick(self._now_s, state, list(q), [], trust=trust, note=note, asked=asked), flush=True)

    def _note(self, tick: Tick, flush: bool = False) -> None:
        """Log a tick; what cannot be written down does not go on."""
        try:
            self._log.add(tick, flush)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._log.close()
            if self.state in MOVING or self.state in ("connected", "homed"):
                self.stop(f"the log cannot be written: {error.strerror}", "fault")
