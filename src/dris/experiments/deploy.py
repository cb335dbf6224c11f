"""A policy through the whole chain with no robot: images, runtime without torch, filter, franky, FCI, twin.

The twin stands behind Franka's protocol on a loopback address; the driver is the one that a real FR3 gets, in
a process of its own. Robot time passes a millisecond at a time, as slowly as drawing demands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from dris.catching.belief_observer import beside_one_robot
from dris.catching.control import Act, LookingObserver, troubles_of
from dris.catching.settings import CatchingConfig
from dris.experiments.deployment import Outcome, source
from dris.experiments.gate import Gate
from dris.experiments.trials.cells import cells_of
from dris.experiments.trials.config import Kind
from dris.lab.belief_observer import with_belief
from dris.lab.camera_observer import CameraObserver
from dris.lab.drives import as_driven, drive, law_of
from dris.lab.fci.plant import Plant
from dris.lab.fci.server import Server
from dris.lab.fci.server_config import ServerConfig
from dris.lab.launch import Launch
from dris.lab.objects import THINGS
from dris.lab.observer import TruthObserver
from dris.lab.trial import TRIAL_S, comes, is_lost
from dris.lab.twin import TICK_S, Twin, TwinConfig
from dris.perception.sources import Frame
from dris.robot.arm import Arm, ArmError
from dris.robot.driver import DriverProcess
from dris.robot.fr3 import Fr3
from dris.robot.fr3_config import Fr3Config
from dris.robot.log import Log, Tick
from dris.robot.payload import payload_of
from dris.robot.runtime import Runtime
from dris.robot.safety_config import SafetyConfig
from dris.robot.session import Session
from dris.robot.site_config import SiteConfig

GIVE_UP_S = 5.0
"""If nothing has come by then, nothing will [s]."""
LONGEST_HOMING_S = 30.0
TRUTH_TICKS = 10
"""A log tells so often where the thing truly is, for whoever watches it later."""


class _Timed:
    """An arm for whose soft stop robot time passes, also in the middle of a tick's work."""

    def __init__(self, arm: DriverProcess, gate: Gate):
        self._arm, self._gate = arm, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arm, name)

    def stop(self) -> None:
        """Let time run, and brake."""
        self._gate.release()
        self._arm.stop()


@dataclass
class TwinRig:
    """The twin behind FCI, and one arm connected to it; use as a context manager."""

    runtime: Runtime
    address: str = "127.0.0.1"
    speed_share: float = 1.0
    """Of what the arm may do, as for a first run."""
    tick_s: float = TICK_S
    """The session acts so often [s]: a computer may be slower than the robot's millisecond."""
    silence_s: float = 10.0
    """After which the driver stops an arm that nobody asks; drawing may take its time."""
    watch: Callable[[TwinRig], None] = lambda rig: None
    """Called after every millisecond of robot time, in the thread that lets it pass."""
    tell: Callable[[str], None] = lambda line: None
    said: list[str] = field(default_factory=list)

    def __enter__(self) -> TwinRig:
        self._believed = beside_one_robot(self.runtime.contract.filter())  # refuses what no robot has
        self.config: CatchingConfig = self.runtime.contract.catching()
        self.drive: TwinConfig = drive("fitted-gains", self.config)
        self.twin = Twin(self.drive)
        what, _, launch = cells_of("ramps")[0]
        self.twin.reset(THINGS[what], launch, 0)
        self.plant = Plant(self.twin, knows_plate=False)  # the driver must declare it, as on a real robot
        server = ServerConfig(self.address, pace=float("inf"), patience_s=0.9)
        self.server = Server(self.plant, server, lambda: self.watch(self), self._hear)
        self.gate = Gate(self.server.step, self.server.step_if_awake)
        self.gate.start()
        torques, force = SiteConfig().thresholds(self.speed_share)
        self.fr3 = Fr3Config(
            self.address,
            self.drive.stiffness,
            self.drive.damping,
            realtime=False,
            torque_thresholds=torques,
            force_threshold=force,
            payload=payload_of(self.config.mount, "plate"),
        )
        try:
            self.connect()
        except Exception:
            self._end()
            raise
        return self

    def connect(self) -> None:
        """Start a driver; one that was there before must be gone."""
        self.arm = DriverProcess(Fr3, self.fr3, self.silence_s)

    def tells(self) -> bool:
        """Whether the driver still tells the robot's state."""
        try:
            self.arm.state()
        except ArmError:
            return False
        return True

    def answers(self) -> bool:
        """Whether it does, and may clear one more error."""
        return self.tells() and self.arm.recoveries < self.arm.most_recoveries

    def reconnect(self) -> None:
        """Start a driver in place of one that is gone or has lost the robot.

        Raises:
            ArmError: The robot does not answer a new one either.
        """
        self.arm.process.kill()
        self.arm.close()
        self.connect()

    def __exit__(self, *_: object) -> None:
        self.gate.release()
        self.arm.close()
        self._end()

    def _end(self) -> None:
        self.gate.end()
        self.server.close()
        self.twin.close()

    def _hear(self, line: str) -> None:
        self.said.append(line)
        self.tell(line)

    def moves(self) -> bool:
        """Whether a motion runs on the robot."""
        return self.server.cabinet.motion is not None

    def eyes(
        self, what: str, seed: int, perfect: bool, wires: Callable[[Frame], Frame | None] | None = None
    ) -> LookingObserver:
        """What tells where the thing is: the truth or cameras, behind the policy's belief if it has one.

        Args:
            what: The thing.
            seed: Of cameras and belief.
            perfect: The truth.
            wires: What becomes of the cameras' frames on their way, if something does.
        """
        seen: LookingObserver = TruthObserver(self.twin)
        if not perfect:
            seen = CameraObserver(self.twin, THINGS[what], seed=seed, wires=wires)
        return with_belief(seen, self.runtime.contract.filter(), self.config, self.twin.kinematics, seed)

    def prepare(self, what: str, launch: Launch, seed: int, perfect: bool) -> None:
        """Build and draw once what a trial needs: while an arm moves, clients wait for a second at most."""
        self.plant.start_trial(THINGS[what], launch, seed)
        self.eyes(what, seed, perfect)
        for camera in () if perfect else self.drive.lab.cameras:
            self.twin.render(camera.name)
            self.twin.render(camera.name, (0, 0))

    def home(self, session: Session) -> None:
        """Connect a session and let it go home, as nothing but that happens.

        Raises:
            ArmError: It does not get there.
        """
        session.connect(clear=True)
        session.start()
        until = self.twin.time_s + LONGEST_HOMING_S
        while session.state == "homing" and self.twin.time_s < until:
            self.gate.tick(session.tick, self.moves)
        if session.state != "homed":
            raise ArmError(f"not homed: {session.state} {session.reason}")

    def session(self, log: Log, act: Act | None = None) -> Session:
        """A session on that arm, with the runtime's policy or another."""
        clock = lambda: self.twin.time_s  # noqa: E731
        arm, law = cast(Arm, _Timed(self.arm, self.gate)), law_of(self.drive)
        return Session(
            arm, TruthObserver(self.twin), act or self.runtime.act_one,
            as_driven(self.config, self.drive), law, clock, log,
            SafetyConfig(law.stiffness, law.damping).behind(self._believed), speed_share=self.speed_share,
            rehearse=self.runtime.rehearse if act is None else lambda: None,
        )  # fmt: skip


def run_trials(
    rig: TwinRig,
    kind: Kind,
    trials: int,
    seed: int,
    perfect_sight: bool,
    logs: Path | None,
    show: Callable[[Session], None] = lambda session: None,
    done: Collection[str] = (),
) -> Iterator[Outcome]:
    """Catch one thing after another, the cells of a kind of trials in turn; the arm goes home in between.

    `show` gets the session every tick. Trials of the names in `done` are left out.
    """
    cells, made_by = cells_of(kind), source()
    for k in range(trials):
        what, label, launch = cells[k % len(cells)]
        number = seed + k // len(cells)
        name = f"{what}/{label}/{number}"
        if name in done:
            continue
        log = Log.open(
            None if logs is None else logs / f"trial-{k}.jsonl",
            **rig.runtime.contract.named(), trial=name, ball_radius_m=THINGS[what].radius,
        )  # fmt: skip
        session = rig.session(log)

        def watch(session: Session, log: Log = log) -> None:
            show(session)
            if log.file is not None and session.loop is not None and rig.twin.ticks % TRUTH_TICKS == 0:
                state = rig.twin.state()
                log.add(Tick(state.time_s, session.state, [], [], ball=state.thing_position.tolist()))

        heard, stopped = len(rig.said), len(rig.server.cabinet.reflexes)
        try:
            outcome = _one(rig, session, what, launch, number, name, perfect_sight, stopped, watch)
        except ArmError as error:
            said = "; ".join(rig.said[heard:][-2:])
            reason = f"{error}; the robot's side: {said or 'nothing'}"
            outcome = Outcome(name, False, False, "fault", reason, (), {}, {}, rig.twin.speed_share, 0)
        finally:
            rig.gate.release()  # an arm that stops needs time to pass
            session.stop("the trial is over")
        lost = outcome.state == "fault" and not rig.tells()
        yield replace(outcome, source=made_by, lost=lost)
        if outcome.state == "fault" and not rig.answers():
            rig.reconnect()  # or every later trial would be lost with this one


def _one(
    rig: TwinRig,
    session: Session,
    what: str,
    launch: Launch,
    seed: int,
    name: str,
    perfect: bool,
    stopped: int,
    show: Callable[[Session], None],
) -> Outcome:
    rig.gate.tick(lambda: rig.prepare(what, launch, seed, perfect))
    rig.gate.release()
    session.connect(clear=True)
    session.start()
    eyes: LookingObserver | None = None
    caught = began = False
    ticks, every = 0, round(rig.tick_s / TICK_S)

    def work() -> None:
        nonlocal began
        if eyes is not None and rig.moves():
            eyes.tick()
        if rig.twin.ticks % every == 0:
            session.tick()
            began = began or (session.loop is not None and session.loop.began_s is not None)
            show(session)

    until = rig.twin.time_s + LONGEST_HOMING_S / rig.speed_share
    while session.state == "homing" and rig.twin.time_s < until:
        rig.gate.tick(work, rig.moves)
    if session.state == "homed":

        def begin() -> None:
            nonlocal eyes
            rig.plant.start_trial(THINGS[what], launch, seed)
            session.observer = eyes = rig.eyes(what, seed, perfect)
            session.begins_when_seen = not comes(launch)
            session.arm_now()

        rig.gate.tick(begin)
        while not _ended(rig, session, began):
            rig.gate.tick(work, rig.moves)
            ticks += 1
        state = rig.twin.state()
        caught = began and not is_lost(state) and state.on_plate(rig.twin.thing.reach)
        caught = caught and session.state not in ("stopped", "fault", "homed")  # nor given up before the end
    ended, reason, share = session.state, session.reason, rig.twin.speed_share
    troubles = None if eyes is None else troubles_of(eyes)
    if session.state not in ("stopped", "fault"):
        session.go_home()
        until = rig.twin.time_s + LONGEST_HOMING_S / rig.speed_share
        eyes, session.observer = None, TruthObserver(rig.twin)  # nobody looks, which eyes would notice
        while session.state == "returning" and rig.twin.time_s < until:
            rig.gate.tick(work, rig.moves)
        if session.state in ("stopped", "fault"):
            ended, reason = session.state, f"on its way home: {session.reason}"
    reflexes = tuple(str(reflex) for reflex in rig.server.cabinet.reflexes[stopped:])
    cut, beyond = dict(session.clauses), dict(session.beyond)
    belief = {} if troubles is None else troubles._asdict()
    return Outcome(name, caught, began, ended, reason, reflexes, cut, beyond, share, ticks, belief=belief)


def _ended(rig: TwinRig, session: Session, began: bool) -> bool:
    """Whether time is up, the thing lost, nothing came, or the session has stopped or has gone home."""
    if session.state in ("stopped", "fault") or (began and session.state == "homed"):
        return True
    began_s = None if session.loop is None else session.loop.began_s
    if began_s is None:
        return rig.twin.time_s > GIVE_UP_S
    if rig.twin.time_s - began_s >= TRIAL_S:
        return True
    return rig.twin.ticks % 5 == 0 and is_lost(rig.twin.state())
