"""Faults at random, judged behind the protocol."""

import gc
import importlib.util
import json
import time
import weakref
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from dris.catching.control import BallEstimate
from dris.cli.soaking import soak as command
from dris.experiments.soak import Round, Watch, _Round, _told, missed, soak, summary
from dris.experiments.soak_faults import CAMERAS, GOES_ON, NETWORK, PAIRS, Eyes, Wires, together
from dris.perception.sources import Frame
from dris.robot.arm import ArmError


def a_round(number, fault, stopped_s=None, missed=False, memory=100.0, **more):
    values = {
        "reflexes": (),
        "recovered": False,
        "new_driver": False,
        "driver_mb": 50.0,
        "threads": 3,
        "files": 9,
    }
    return Round(
        number=number, fault=fault, ended="", injected=fault != "none", stopped_s=stopped_s, missed=missed,
        memory_mb=memory, **(values | more),
    )  # fmt: skip


def test_rounds_in_figures():
    told = summary(
        [
            a_round(0, "none"),
            a_round(1, "deaf", 0.2, recovered=True, reflexes=("communication_constraints_violation",)),
            a_round(2, "deaf", 0.3, memory=104.0),
            a_round(3, "closed", None, missed=True, new_driver=True, memory=101.5),
        ]
    )
    assert (told["rounds"], told["stops"], told["missed"], told["recovered"], told["new_drivers"]) == (
        4,
        2,
        1,
        1,
        1,
    )
    assert told["slowest_stop_s"] == {"deaf": 0.3} and told["faults"] == {"none": 1, "deaf": 2, "closed": 1}
    assert told["reflexes"] == {"communication_constraints_violation": 1}
    assert told["memory_growth_mb"] is None and not told["leaks"]  # one settled round tells nothing


@pytest.mark.parametrize(("each_mb", "growth_mb", "leaks"), [(90.0, 180.0, True), (4.0, 8.0, False)])
def test_memory_that_grows_after_the_first_rounds_is_a_leak(each_mb, growth_mb, leaks):
    """Six rounds of cameras; what the first three take is for renderers and models."""
    rounds = [a_round(k, "none", memory=500.0 + each_mb * k + 300.0 * (k > 0)) for k in range(6)]
    told = summary(rounds)
    assert (told["memory_growth_mb"], told["leaks"]) == (growth_mb, leaks)


@pytest.mark.parametrize(
    ("faults", "ended", "rested_s", "wrong"),
    [
        ("frozen-sight blind", "homed: nothing seen for 1.0 s", 3.9, False),  # the catch is given up
        ("frozen-sight blind", "homed", 3.9, True),  # nothing says why
        ("blind not-finite", "hold: no ball is seen", None, False),
        ("blind not-finite", "fault: an action is not finite", 0.2, False),
        ("blind not-finite", "catching", None, True),
        ("frozen-sight blind", "approaching", None, True),
        ("frozen-sight blind", "never began: no arm", None, True),
        ("blind distrust", "homed", 3.9, True),  # that one does not hide
        ("blind distrust", "stopped: the eyes", 0.4, False),
        ("blind deaf", "homed", 3.9, True),
        ("blind", "homed", 3.9, False),
        ("blind", "stopped: the eyes", 0.4, True),
        ("frozen-sight not-finite", "homed", 3.9, True),
        ("not-finite", "fault: an action is not finite", 1.6, True),
        ("deaf silent-session", "fault: nobody asks", 3.4, False),
        ("deaf silent-session", "fault: nobody asks", 4.6, True),
        ("none", "stopped: keep-out", 0.4, True),
    ],
)
def test_what_two_faults_at_once_ask_of_the_arm(faults, ended, rested_s, wrong):
    """An arm that sees no ball acts on none: what only shows in a catch cannot show beside that."""
    assert missed(tuple(faults.split()), ended, rested_s) == wrong


def test_an_arm_at_home_tells_why_it_returned():
    told = SimpleNamespace(state="homed", reason="", changes=[(1.0, "homed", "")])
    assert _told(told) == "homed"
    told.changes += [(2.0, "returning", "nothing seen for 1.0 s"), (4.0, "homed", "")]
    assert _told(told) == "homed: nothing seen for 1.0 s"
    told.state, told.reason = "stopped", "keep-out"
    assert _told(told) == "stopped: keep-out"


def test_robot_time_is_no_faster_than_the_wall_s_while_nobody_asks_the_driver(monkeypatch):
    """On a quick machine it ran three times as fast, and stops after 3 s of silence seemed to take 10."""
    monkeypatch.setattr("dris.experiments.soak.SILENCE_S", -0.9)
    passed_ms = []
    gate = SimpleNamespace(tick=lambda work, holds: passed_ms.append(work()))
    rig = SimpleNamespace(gate=gate, server=SimpleNamespace(connected=True), moves=lambda: True)
    began = time.monotonic()
    _Round(rig, Watch(), np.random.default_rng(0), 0, ("silent-session",))._be_silent()
    assert 0 < len(passed_ms) <= 1e3 * (time.monotonic() - began)


def test_a_round_lets_its_pictures_go(monkeypatch):
    """Sessions, eyes and pictures know each other in circles: 90 MB stayed of every round."""
    left = []

    class Circle(_Round):
        def run(self):
            self.itself = self
            left.append(weakref.ref(self))
            return self.number

    monkeypatch.setattr("dris.experiments.soak._Round", Circle)
    gc.disable()
    try:
        assert list(soak(None, Watch(), 1, lambda number: number == 3, (("none",),))) == [0, 1, 2]
        assert [one() for one in left] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.parametrize(("gained_mb", "code"), [(90.0, 1), (0.0, 0)])
def test_the_command_fails_when_memory_grows(gained_mb, code, tmp_path, monkeypatch):
    file = tmp_path / "soak.json"
    rounds = [a_round(k, "none", memory=500.0 + gained_mb * k) for k in range(6)]
    monkeypatch.setattr("dris.cli.soaking.exported", lambda policy: nullcontext(tmp_path))
    monkeypatch.setattr("dris.robot.runtime.Runtime", lambda folder: None)
    monkeypatch.setattr("dris.experiments.deploy.TwinRig", lambda *given, **named: nullcontext())
    monkeypatch.setattr("dris.experiments.soak.soak", lambda *given: iter(rounds))
    assert command(json_file=file) == code
    told = json.loads(file.read_text())
    assert (told["memory_growth_mb"], told["leaks"]) == (2 * gained_mb, bool(code))


def test_one_round_is_run_however_few_minutes_there_are(tmp_path, monkeypatch):
    """Preparing took longer than the time: there were no rounds to sum up, and an IndexError."""
    monkeypatch.setattr("dris.cli.soaking.exported", lambda policy: nullcontext(tmp_path))
    monkeypatch.setattr("dris.robot.runtime.Runtime", lambda folder: None)
    monkeypatch.setattr("dris.experiments.deploy.TwinRig", lambda *given, **named: nullcontext())

    def rounds(rig, watch, seed, enough, tried):
        number = 0
        while not enough(number):
            yield a_round(number, "none", memory=500.0)
            number += 1

    monkeypatch.setattr("dris.experiments.soak.soak", rounds)
    file = tmp_path / "soak.json"
    assert command(minutes=1e-9, json_file=file) == 0
    assert json.loads(file.read_text())["rounds"] == 1


@pytest.mark.parametrize("wishes", ["policy", "wild"])
def test_other_results_are_not_replaced(wishes, tmp_path):
    file = tmp_path / "ramps.json"
    file.write_text('{"kind": "deployment"}')
    with pytest.raises(ValueError, match="holds results of kind 'deployment', not a soak"):
        command(wishes=wishes, json_file=file)
    assert file.read_text() == '{"kind": "deployment"}'


def test_rest_is_judged_by_the_robot_itself():
    """Not by the session: no motion, and no joint faster than 0.01 rad/s."""
    server = SimpleNamespace(clock_ms=1000, cabinet=SimpleNamespace(motion="one"))
    rig, watch = SimpleNamespace(server=server, plant=SimpleNamespace(dq=np.full(7, 0.3))), Watch()
    watch(rig)
    assert watch.rested_s() is None  # no fault yet
    watch.begin(rig)
    for clock_ms, motion, speed in (
        (1100, "one", 0.0),
        (1200, None, 0.3),
        (1250, None, 0.005),
        (1400, None, 0.0),
    ):
        server.clock_ms, server.cabinet.motion, rig.plant.dq = clock_ms, motion, np.full(7, speed)
        watch(rig)
    assert watch.rested_s() == pytest.approx(0.25)


def test_pairs_of_faults_are_all_there_and_both_at_once():
    assert len(PAIRS) == 13 * 12 / 2 and len(set(map(frozenset, PAIRS))) == len(PAIRS)
    both = together([NETWORK["deaf"], NETWORK["lossy"]])
    assert (both.deaf_at_ms, both.deaf_ms, both.lost_states) == (0, 60, NETWORK["lossy"].lost_states)
    assert both.user_stop_at_ms is None


def test_sights_that_freeze_grow_old():
    class Truth:
        radius_m = 0.03

        def estimate(self, time_s):
            return BallEstimate(np.full(3, time_s), np.zeros(3))

    eyes = Eyes(Truth())
    assert eyes.estimate(1.0).position[0] == 1.0
    eyes.faults = ("frozen-sight",)
    assert eyes.estimate(1.3).position[0] == 1.0 and eyes.estimate(1.3).age_s == pytest.approx(0.3)
    eyes.faults = ("blind", "frozen-sight")
    assert eyes.estimate(1.4) is None


def test_what_becomes_of_frames_on_their_way():
    """Forty pictures of each camera, then the next with something wrong: pictures are numbered by time."""

    def frame(k, camera=0):
        return Frame(0.01 * k, camera, np.full((1, 1, 3), k, np.uint8))

    def after_forty(fault, camera=0, more=1):
        wires = Wires()
        for k in range(40):
            assert wires(frame(k, camera)).image[0, 0, 0] == k
        wires.faults = (fault,)
        return [wires(frame(40 + k, camera)) for k in range(more)]

    def pictures(frames):
        assert [one.time_s for one in frames] == pytest.approx([0.4, 0.41, 0.42])
        return [int(one.image[0, 0, 0]) for one in frames]

    assert pictures(after_forty("frozen-cameras", 1, 3)) == [39, 39, 39]
    assert pictures(after_forty("frozen-camera", 0, 3)) == [39, 39, 39]
    assert pictures(after_forty("frozen-camera", 1, 3)) == [40, 41, 42]
    assert pictures(after_forty("repeating-cameras", 0, 3)) == [0, 1, 2]
    assert after_forty("silent-cameras") == [None]
    assert after_forty("stamps-ahead")[0].time_s == pytest.approx(1.4)
    assert {name for (name,) in CAMERAS} == {
        "frozen-camera", "frozen-cameras", "repeating-cameras", "silent-cameras", "stamps-ahead"
    }  # fmt: skip


@pytest.mark.parametrize(("left", "new_driver"), [(1, False), (0, True)])
def test_a_driver_that_has_cleared_its_errors_is_replaced(left, new_driver):
    """The bound of a connection; somebody would have looked at a robot by then."""
    errors = ["joint_reflex"]

    def recover():
        if not left:
            raise ArmError("errors were cleared 3 times over this connection")
        errors[0] = ""
        return True

    replaced = []
    cabinet = SimpleNamespace(user_stop=lambda pressed: b"")
    rig = SimpleNamespace(
        server=SimpleNamespace(connected=False, set_faults=lambda faults: None, cabinet=cabinet),
        arm=SimpleNamespace(state=lambda: SimpleNamespace(error=errors[0]), recover=recover),
        reconnect=lambda: replaced.append(True),
    )
    one = _Round(rig, Watch(), np.random.default_rng(0), 0, ("deaf",))
    one._mend()
    assert (one.recovered, one.new_driver, bool(replaced)) == (not new_driver, new_driver, new_driver)


@pytest.mark.parametrize(("state", "missed"), [("fault", True), ("homed", False)])
def test_an_arm_that_stops_before_anything_is_wrong_has_missed(state, missed):
    """A fault that waits for a catch may never come to be; then nothing had to stop it."""

    class Nothing(_Round):
        def _begin(self, session):
            pass

        _throw = _begin

        def _mend(self):
            pass

    told = SimpleNamespace(state=state, reason="the robot tells no state", changes=[], stop=lambda why: None)
    rig = SimpleNamespace(
        server=SimpleNamespace(cabinet=SimpleNamespace(reflexes=[])),
        session=lambda log, act: told,
        gate=SimpleNamespace(release=lambda: None),
        arm=SimpleNamespace(process=SimpleNamespace(pid=None)),
    )
    found = Nothing(rig, Watch(), np.random.default_rng(0), 0, ("frozen-sight",)).run()
    assert (found.injected, found.stopped_s, found.missed) == (False, None, missed)


@pytest.mark.skipif(importlib.util.find_spec("franky") is None, reason="franky is not installed")
def test_an_arm_stops_for_what_must_stop_it_and_goes_on_afterwards(tmp_path):
    from dris.experiments.deploy import TwinRig
    from dris.robot.export import export
    from dris.robot.runtime import Runtime

    export("dris-200", tmp_path / "exported", 0)
    watch, faults = Watch(), (("deaf",), ("killed-driver", "lossy"), ("full-disk",), ("frozen-camera",))
    assert "lossy" in GOES_ON and "deaf" in NETWORK
    with TwinRig(Runtime(tmp_path / "exported"), "127.0.7.21", silence_s=5.0, watch=watch) as rig:
        deaf, killed, full, frozen = soak(rig, watch, 1, lambda number: number == 4, faults)
    assert not any(one.missed for one in (deaf, killed, full, frozen)), (deaf, killed, full, frozen)
    assert frozen.injected and "frozen camera" in frozen.ended
    assert deaf.reflexes == ("communication_constraints_violation",) and deaf.recovered
    assert killed.new_driver and "driver's process is gone" in killed.ended
    assert full.ended == "fault: the log cannot be written: No space left on device" and not full.new_driver
