"""The loop that a real arm gets meets one ball after another: eyes, track and belief live on over all of them.

Behind it stand the twin's robot over FCI and the twin's cameras; time passes with the loop's ticks.
"""

import importlib.util
import queue

import numpy as np
import pytest

from dris.catching.belief_observer import BeliefObserver, beside_one_robot
from dris.experiments.deploy import TwinRig
from dris.lab.camera_observer import CameraObserver, CameraObserverConfig, detector
from dris.lab.launch import Ramp, Scene
from dris.lab.objects import BALLS
from dris.lab.sensor import SensorConfig
from dris.perception.eyes import Eyes
from dris.robot.export import export
from dris.robot.live import run_live
from dris.robot.log import Log
from dris.robot.rig_observer import RigObserver
from dris.robot.runtime import Runtime

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("franky") is None, reason="franky is not installed: pip install 'dris[fr3]'"
)
BALL, RAMP, HIDDEN = BALLS["foam"], Ramp(0.20), np.array([6.0, 0.0, 0.05])
"""Cameras do not see what lies behind them."""


class Room:
    """What `run_live` takes for eyes: whole frames as a real rig gives them, and somebody with balls.

    A ball stays on the plate while the arm goes home with it. Once that is armed again, the ball is taken away,
    and a little later another one let go.
    """

    def __init__(self, rig, balls):
        self._rig, self._left = rig, balls
        self.kept, self.off_home, self.session = [], [], None
        self._out, self._given_s = False, None
        rig.plant.start_trial(BALL, RAMP, 0)
        self._put(HIDDEN, np.zeros(3))
        sees = CameraObserverConfig(SensorConfig(subframes=1), window_half_px=None)
        self._frames: queue.Queue = queue.Queue()
        self._cameras = CameraObserver(rig.twin, BALL, sees, wires=self._frames.put)  # no eyes of their own
        for camera in rig.drive.lab.cameras:
            rig.twin.render(camera.name)
        eyes = Eyes(self._cameras.rig, BALL.outline, detector(BALL))
        self.seen = RigObserver(self._source(), eyes, BALL.radius, lambda: rig.twin.time_s)

    def _source(self):
        while (frame := self._frames.get()) is not None:
            yield frame
            self._frames.task_done()

    @property
    def trust(self):
        return self.seen.trust

    def tick(self):
        self._rig.gate.tick(self._work, self._rig.moves)

    def _work(self):
        planned = self._cameras._planned
        while planned[0].true_s < self._rig.twin.time_s - 0.02:  # from before the loop began
            planned.popleft()
        self._play()
        self._cameras.tick()
        self._frames.join()  # until the observer's thread has taken them
        self.seen.tick()

    def _play(self):
        changed_s, state, _ = self.session.changes[-1]
        armed_s = self.session.clock() - changed_s
        if state != "armed" or changed_s == self._given_s:
            return
        twin = self._rig.twin
        if self._out and armed_s >= 0.2:
            self.kept.append(twin.state().on_plate(BALL.reach))
            self.off_home.append(np.abs(twin.joints() - twin.config.home).max())
            self._put(HIDDEN, np.zeros(3))
            self._out = False
        elif not self._out and self._left and armed_s >= 0.4:
            scene = Scene(self._rig.drive.lab, BALL, twin.kinematics)
            start = RAMP.start(scene, np.random.default_rng(self._left))
            self._put(start.position, start.velocity)
            self._left, self._out, self._given_s = self._left - 1, True, changed_s

    def _put(self, position, velocity):
        ball = self._rig.twin.data.joint("thing")
        ball.qpos[:], ball.qvel[:] = (*position, 1, 0, 0, 0), (*velocity, 0, 0, 0)

    def close(self):
        self._frames.put(None)
        self.seen.close()


def test_every_ball_that_comes_is_met_by_one_pair_of_eyes(tmp_path, monkeypatch):
    monkeypatch.setattr("dris.robot.live.KEEP_S", 1.0)
    monkeypatch.setattr("dris.robot.tick_times.MOST_MEDIAN_S", 1.0)  # drawing takes its time
    export("belief-robot", tmp_path / "exported", 0)
    lines = []
    with TwinRig(Runtime(tmp_path / "exported"), "127.0.0.12") as rig:
        room = Room(rig, balls=3)
        session = room.session = rig.session(Log())
        believed = beside_one_robot(rig.runtime.contract.filter())
        session.observer = BeliefObserver(room.seen, rig.twin.kinematics, believed)
        enough = lambda: len(room.kept) == 3 or session.clock() > 30  # noqa: E731
        acted = run_live(session, room, lines.append, enough, sleep=lambda s: None)
        reflexes, looked = list(rig.server.cabinet.reflexes), room.seen.frames
    assert (acted, room.kept, reflexes) == (3, [True] * 3, []), lines
    assert (session.state, session.reason) == ("stopped", "the session is over"), lines
    states = [state for _, state, _ in session.changes if state != "hold"]
    states = [one for one, before in zip(states, ["", *states], strict=False) if one != before]
    ball = ["armed", "approaching", "catching", "returning", "homed"]
    assert states == ["connected", "homing", "homed", *ball * 3, "armed", "stopped"], lines
    assert max(room.off_home) < 0.03 and room.seen.dropped == 0 and looked > 1000
