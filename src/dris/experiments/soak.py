"""Throws with random faults for a long time, through session, driver and Franka's protocol, in lockstep.

Every round is a throw; at a random moment something goes wrong, or two things at once, or nothing does.
Whether the arm came to rest in time is judged behind the protocol, by the robot's own joints, not by the
session. Afterwards somebody clears what is there and the next round begins; a driver that is gone is started
anew.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dris.experiments.deploy import TwinRig
from dris.experiments.soak_faults import (
    ALONE,
    CAMERAS,
    GOES_ON,
    HIDDEN,
    IN_CATCH,
    NETWORK,
    Eyes,
    Together,
    Wires,
    together,
)
from dris.experiments.trials.cells import cells_of
from dris.lab.fci.cabinet import STANDING
from dris.lab.fci.faults import Faults
from dris.lab.objects import THINGS
from dris.robot.arm import ArmError
from dris.robot.log import Log
from dris.robot.session import Session
from dris.robot.states import STOPPED, State

WITHIN_S = 1.5
"""An arm that has not come to rest by then, in robot time, has missed its stop [s]."""
SILENCE_S = 3.0
"""Of the driver's watch, by the wall's clock [s]: longer than on a robot, for this machine may be busy."""
HELD: tuple[State, ...] = ("hold", "returning", "homed")
"""States of an arm that sees no ball: it holds, gives the catch up after a second, and is home again."""
ROUND_S, LATEST_S = 3.0, 1.8
"""A throw is followed for so long, and faults begin within this time of it [s]: balls arrive after 1 s."""

SETTLING = 3
"""Rounds in which memory may grow: renderers, lens maps and models are made when they are first needed."""
MOST_GROWTH_MB, MOST_GROWTH_A_ROUND_MB = 100.0, 3.0
"""What this process may have gained since [MB]: about the pictures of one round of cameras, and in each
further round about twice the 1.4 MB that were measured [design]."""


@dataclass(frozen=True)
class Round:
    """What became of one throw."""

    number: int
    fault: str
    """By its name; two at once are joined by "and"."""
    ended: str
    """The session's state, and why."""
    injected: bool
    """Whether the fault came to be; one of what only a catch uses needs a catch."""
    stopped_s: float | None
    """From the fault to an arm at rest, in robot time, where it had to stop."""
    missed: bool
    """Whether it had to stop and did not, had to go on and stopped, or did not even begin: `missed`."""
    reflexes: tuple[str, ...]
    recovered: bool
    """Whether an error was cleared before the next round."""
    new_driver: bool
    memory_mb: float
    """Resident, of this process,"""
    driver_mb: float
    """and of the driver's."""
    threads: int
    files: int


class Watch:
    """When the arm came to rest after a fault, by the robot's clock; called every millisecond."""

    def __init__(self) -> None:
        self.began_ms: int | None = None
        self.rested_ms: int | None = None

    def begin(self, rig: TwinRig) -> None:
        """A fault begins now."""
        self.rested_ms, self.began_ms = None, rig.server.clock_ms

    def __call__(self, rig: TwinRig) -> None:
        """Look at the robot itself."""
        if self.began_ms is None or self.rested_ms is not None:
            return
        if rig.server.cabinet.motion is None and np.abs(rig.plant.dq).max() < STANDING:
            self.rested_ms = rig.server.clock_ms

    def rested_s(self) -> float | None:
        """From the fault to rest [s]."""
        if self.began_ms is None or self.rested_ms is None:
            return None
        return 1e-3 * (self.rested_ms - self.began_ms)


def soak(
    rig: TwinRig,
    watch: Watch,
    seed: int,
    enough: Callable[[int], bool],
    faults: tuple[Together, ...] = ALONE,
) -> Iterator[Round]:
    """Rounds until `enough` of their number; the first go through all faults once, then they are drawn.

    `watch` must be the rig's.
    """
    generator = np.random.default_rng(seed)
    number = 0
    while not enough(number):
        fault = faults[number] if number < len(faults) else faults[generator.integers(len(faults))]
        yield _Round(rig, watch, generator, number, fault).run()
        # A session and its loop know each other, and so do a belief and its eyes: left to themselves the
        # pictures of many rounds, 90 MB each, wait for the collector.
        gc.collect()
        number += 1


def must_stop(faults: Together) -> bool:
    """Whether the arm has to come to rest, and not only to hold or to go on."""
    seen = set(faults) - (set(HIDDEN) if "blind" in faults else set())
    return not seen <= set(GOES_ON)


def missed(faults: Together, ended: str, rested_s: float | None) -> bool:
    """Whether an arm did not do what it had to.

    Args:
        faults: That came to be.
        ended: The session's state at the end, and why.
        rested_s: From fault to rest, if the arm came to rest [s].
    """
    state = ended.split(":")[0]
    if must_stop(faults):
        within_s = WITHIN_S + (SILENCE_S if "silent-session" in faults else 0.0)
        return state not in STOPPED or rested_s is None or rested_s > within_s
    if set(faults) & set(HIDDEN):  # blind, which holds, and may stop
        return state not in (*HELD, *STOPPED) or ended == state  # for a reason that has a name
    return state in STOPPED or state.startswith("never")


def _told(session: Session) -> str:
    """The session's state and why; at home again, why it returned."""
    returned = [reason for _, state, reason in session.changes if state == "returning"]
    reason = returned[-1] if session.state == "homed" and returned else session.reason
    return f"{session.state}: {reason}" if reason else session.state


class _Round:
    def __init__(
        self,
        rig: TwinRig,
        watch: Watch,
        generator: np.random.Generator,
        number: int,
        faults: Together,
    ):
        self.rig, self.watch, self.number, self.faults = rig, watch, number, faults
        self.wires, self.perfect = Wires(), faults not in CAMERAS
        self.what, _, self.launch = cells_of("ramps")[int(generator.integers(len(cells_of("ramps"))))]
        self.seed, self.after_s = int(generator.integers(2**31)), float(generator.uniform(0.0, LATEST_S))
        self.injected, self.broken = False, False
        self.recovered = self.new_driver = False

    def run(self) -> Round:
        rig = self.rig
        before = len(rig.server.cabinet.reflexes)
        self.watch.began_ms = None
        ended = "never began"
        session = rig.session(Log(), self._act)
        try:
            self._begin(session)
            self._throw(session)
            ended = _told(session)
        except ArmError as error:
            ended = f"never began: {error}"
        finally:
            rig.gate.release()
            session.stop("the round is over")
        rested_s = self._wait_for_rest()
        wrong = missed(self.faults if self.injected else ("none",), ended, rested_s)
        self._mend()
        reflexes = tuple(", ".join(errors) for errors in rig.server.cabinet.reflexes[before:])
        stopped_s = rested_s if self.injected and must_stop(self.faults) else None
        return Round(
            self.number, " and ".join(self.faults), ended, self.injected, stopped_s, wrong, reflexes,
            self.recovered, self.new_driver,
            resident_mb(os.getpid()), resident_mb(rig.arm.process.pid), threading.active_count(),
            len(os.listdir("/proc/self/fd")),
        )  # fmt: skip

    def _act(self, states: np.ndarray, condition: np.ndarray) -> np.ndarray:
        wrong = "not-finite" in self.faults and self.injected
        return np.full(5, np.nan) if wrong else self.rig.runtime.act_one(states, condition)

    def _begin(self, session: Session) -> None:
        rig = self.rig
        rig.gate.tick(lambda: rig.prepare(self.what, self.launch, self.seed, self.perfect))
        rig.gate.release()
        rig.home(session)

    def _throw(self, session: Session) -> None:
        rig = self.rig
        eyes: Eyes

        def begin() -> None:
            nonlocal eyes
            rig.plant.start_trial(THINGS[self.what], self.launch, self.seed)
            seen = rig.eyes(self.what, self.seed, self.perfect, self.wires)
            session.observer = eyes = Eyes(seen)
            session.arm_now()

        def work() -> None:
            if rig.moves():
                eyes.tick()
            session.tick()

        rig.gate.tick(begin)
        end_s = ROUND_S
        while session.state not in ("stopped", "fault", "homed") and rig.twin.time_s < end_s:
            if not self.injected and self._now(session):
                self._tick(lambda: self._inject(session, eyes))
                end_s = rig.twin.time_s + (4.0 if "blind" in self.faults else WITHIN_S)
            if "silent-session" in self.faults and self.injected:
                self._be_silent()
            self._tick(work)

    def _be_silent(self) -> None:
        """Robot time goes on without us, no faster than the wall's: by that the driver counts its silence."""
        end_s = time.monotonic() + SILENCE_S + 1.0
        while time.monotonic() < end_s:
            self._tick(lambda: None)
            time.sleep(0.001)

    def _now(self, session: Session) -> bool:
        if self.faults == ("none",):
            return False
        if self.rig.twin.time_s < self.after_s:
            return False
        if not self.perfect:
            return session.state in ("approaching", "catching")
        return not set(self.faults) & set(IN_CATCH) or session.state == "catching"

    def _tick(self, work: Callable[[], None]) -> None:
        """In the next millisecond; where nobody is connected, robot time may stand."""
        if self.rig.server.connected:
            self.rig.gate.tick(work, self.rig.moves)
        else:
            self.rig.gate.release()
            work()

    def _inject(self, session: Session, eyes: Eyes) -> None:
        rig = self.rig
        self.injected = True
        self.watch.begin(rig)
        network = [NETWORK[fault] for fault in self.faults if fault in NETWORK]
        if network:
            rig.server.set_faults(together(network))
        if "killed-driver" in self.faults:
            rig.arm.process.kill()
        if "full-disk" in self.faults:  # told once what is buffered is written, as a real log's
            session._log.file = Path("/dev/full").open("w")  # noqa: SIM115
        eyes.faults = self.wires.faults = self.faults

    def _wait_for_rest(self) -> float | None:
        """Until the robot itself stands, or should have."""
        end = time.monotonic() + 10.0
        while self.injected and self.watch.rested_s() is None and time.monotonic() < end:
            time.sleep(0.01)
        return self.watch.rested_s()

    def _mend(self) -> None:
        """What a person does before the next throw."""
        rig = self.rig
        if rig.server.connected:
            rig.gate.tick(self._clear)
            rig.gate.release()
        else:
            self._clear()
        time.sleep(0.2)
        try:
            if rig.arm.state().error:
                self.recovered = rig.arm.recover()
            self.broken = bool(rig.arm.state().error)
        except ArmError:
            self.broken = True
        if self.broken:
            rig.reconnect()
            self.new_driver = True

    def _clear(self) -> None:
        self.rig.server.set_faults(Faults())
        self.rig.server.cabinet.user_stop(False)


def resident_mb(process: int | None) -> float:
    """Memory of a process that is in use [MB]."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def summary(rounds: list[Round]) -> dict[str, Any]:
    """All rounds in figures; memory, threads and files since those of the first few rounds."""
    settled = rounds[min(SETTLING, len(rounds) - 1) :]
    growth_mb = round(settled[-1].memory_mb - settled[0].memory_mb, 1) if len(settled) > 1 else None
    slowest = {
        fault: max(times)
        for fault in dict.fromkeys(r.fault for r in rounds)
        if (times := [r.stopped_s for r in rounds if r.fault == fault and r.stopped_s is not None])
    }
    return {
        "rounds": len(rounds),
        "faults": dict(Counter(r.fault for r in rounds if r.injected or r.fault == "none")),
        "stops": sum(r.stopped_s is not None for r in rounds),
        "missed": sum(r.missed for r in rounds),
        "recovered": sum(r.recovered for r in rounds),
        "new_drivers": sum(r.new_driver for r in rounds),
        "reflexes": dict(Counter(reflex for r in rounds for reflex in r.reflexes)),
        "slowest_stop_s": slowest,
        "memory_growth_mb": growth_mb,
        "leaks": growth_mb is not None and growth_mb > MOST_GROWTH_MB + MOST_GROWTH_A_ROUND_MB * len(settled),
        "threads": (settled[0].threads, settled[-1].threads),
        "files": (settled[0].files, settled[-1].files),
    }
