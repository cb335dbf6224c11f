"""Every refusal before an arm moves, by its name; nothing is sent to the arm but questions."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rooms
from arms_without_robots import HOME, LIMITS, MASSES, TASK, SoftArm, quick_runtime
from sessions import make

from dris.catching.settings import PRESETS
from dris.experiments import real_arm
from dris.experiments.deploy import TwinRig
from dris.perception.calibration import CalibrationError, save_rig
from dris.perception.camera import laboratory_rig
from dris.robot.arm import ArmError, Carried, Payload, masses_of_urdf
from dris.robot.fr3 import Fr3
from dris.robot.payload import payload_of
from dris.robot.preflight import passed, preflight
from dris.robot.ready import STILL
from dris.robot.rig_config import RigConfig
from dris.robot.site_config import SiteConfig

ONE = np.eye(7)


SITE = SiteConfig()


class Questioned(SoftArm):
    """Whatever is wrong with it, in place of what is right."""

    def __init__(self, q=HOME, dq=0.0, error="", **told):
        super().__init__(q=q)
        self.dq, self.error, self.told = np.full(7, dq), error, told

    def __getattribute__(self, name):
        told = super().__getattribute__("__dict__").get("told", {})
        return (lambda: told[name]) if name in told else super().__getattribute__(name)


def looked(arm, speed_share=1.0, **policy):
    """All checks by their names, and that the arm was only asked."""
    checks = {check.name: check for check in preflight(quick_runtime(**policy), arm, speed_share)}
    assert arm.asked == [] and not arm.moving
    return checks


def test_an_arm_at_home_passes_with_its_versions(capsys):
    checks = looked(Questioned())
    assert [name for name, check in checks.items() if check.ok] == [
        "policy", "latency", "task", "driver", "arm", "limits", "masses", "posture", "site", "way", "payload",
    ]  # fmt: skip
    assert checks["driver"].found == "of no robot"
    assert passed(iter(checks.values())) and "    ok  way      inside" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_home_is_inside_the_walls_whatever_the_preset(name):
    task = PRESETS[name]
    assert looked(Questioned(q=np.array(task.home)), task=task)["way"].ok


def test_a_policy_trained_without_the_robot_s_limits_is_told():
    assert "task" not in looked(Questioned(), task=PRESETS["fr3"])
    told = looked(Questioned(), task=PRESETS["released"])["task"]
    assert told.ok and "without an FR3's limits" in told.found and "--preset fr3" in told.found


SLOW_JOINT = replace(LIMITS, speed=LIMITS.speed * (1 - 0.5 * ONE[2]))
SHORT_JOINT = replace(LIMITS, high=LIMITS.high - 0.1 * ONE[1])
HAND, BOTH = payload_of(TASK.mount, "hand"), payload_of(TASK.mount, "hand", "plate")
FR3_V2 = (2.437700, 2.237500, 2.185794, 2.175867, 2.174817, 1.567617, 0.682876)
"""Masses of the FR3 v2's links 1 to 7, as Franka publishes them in franka_description [kg]."""
AWAY = HOME + 1.9 * ONE[0]
"""By hand: 0.4369 m from the first axis, 0.4369 (1 - cos 1.9) - 0.45 = 0.128 m too far back."""
AT_THE_END = np.where(ONE[3] > 0, LIMITS.high, HOME)


@pytest.mark.parametrize(
    ("arm", "name", "words"),
    [
        ({"error": "stopped by a reflex: joint_reflex"}, "arm", "joint_reflex; look at why, clear it at the robot, and begin anew"),
        ({"error": "the user stop is pressed: release it"}, "arm", "user stop is pressed"),
        ({"error": "somebody guides the robot: let go of it"}, "arm", "guides the robot"),
        ({"dq": 2 * STILL}, "arm", "a joint moves at 0.10 rad/s: let go of the robot"),
        ({"dq": np.nan}, "arm", "a joint moves at nan rad/s"),
        ({"limits": SLOW_JOINT}, "limits", "joint 3 may go at 1.31 rad/s, in training 2.62: this is another arm"),
        ({"masses": FR3_V2}, "masses", "link 2 weighs 2.24 kg by the robot, 2.94 kg by the model, at most 10 %"),
        ({"masses": tuple(0.4 * np.array(MASSES))}, "masses", "another variant needs its own"),
        ({"masses": (*MASSES[:6], 0.70)}, "masses", "link 7 weighs 0.70 kg by the robot, 0.63 kg"),
        ({"q": AT_THE_END}, "posture", "joint 4 is at the end of its range: guide it away"),
        ({"q": HOME + np.nan}, "posture", "joint 1 is at the end"),
        ({"q": HOME + np.nan}, "way", "there is no way home from"),
        ({"q": AWAY}, "way", "where it is now the plate is 0.128 m behind (-x) its workspace: guide it"),
        ({"carries": Carried(BOTH, Payload())}, "payload", "add the plate again"),
        ({"carries": Carried(Payload(), Payload())}, "payload", "end effector is 0.00 kg"),
    ],
)  # fmt: skip
def test_an_arm_that_must_not_move_is_refused(arm, name, words):
    check = looked(Questioned(**arm))[name]
    assert not check.ok and words in check.found, check


def test_a_policy_trained_without_the_robot_s_limits_is_none_for_a_real_arm():
    """`dris-200` passed every check, and moved."""
    free, bound = quick_runtime(task=PRESETS["released"]), quick_runtime(task=PRESETS["fr3"])
    checks = [
        {check.name: check for check in preflight(one, Questioned(), is_real=True)} for one in (free, bound)
    ]
    assert not checks[0]["task"].ok and "no policy for a real arm; --preset fr3" in checks[0]["task"].found
    assert "task" not in checks[1]


@pytest.mark.parametrize("past_home", [-0.2, 0.04])
def test_a_home_that_the_robot_cannot_reach_is_refused(past_home):
    """It passed every line, moved for nine seconds, and stopped 0.27 rad away: references stay off an end."""
    short = replace(LIMITS, high=LIMITS.high.copy())
    short.high[3] = HOME[3] + past_home
    check = looked(Questioned(q=HOME - 0.3 * ONE[3], limits=short))["posture"]
    assert not check.ok and check.found.startswith("at the policy's home joint 4 is at the end of its range")


def test_a_range_that_ends_sooner_is_told_and_kept():
    check = looked(Questioned(limits=SHORT_JOINT))["limits"]
    assert check.ok
    assert check.found == "narrower than in training: high of joint 2, which the filter keeps to"


def test_a_shorter_range_does_not_hide_that_an_arm_is_slower():
    """It passed: speeds were not looked at once a range was shorter."""
    limits = replace(LIMITS, low=LIMITS.low + 0.1, speed=0.3 * LIMITS.speed)
    check = looked(Questioned(limits=limits))["limits"]
    assert not check.ok and "joint 1 may go at 0.79 rad/s, in training 2.62" in check.found


def test_limits_that_are_wider_than_the_published_ones_do_not_count():
    """A range of 3 rad more and no braking before its end passed as "or wider", and the filter used them."""
    wide = replace(
        LIMITS, low=LIMITS.low - 3, high=LIMITS.high + 3, offset=0 * LIMITS.offset,
        deceleration=LIMITS.deceleration + 2 * ONE[4],
    )  # fmt: skip
    check = looked(Questioned(limits=wide))["limits"]
    assert check.ok and check.found == (
        "wider than published: low of joint 1, 2, 3, 4, 5, 6, 7, high of joint 1, 2, 3, 4, 5, 6, 7, "
        "offset of joint 1, 2, 3, 4, 5, 6, 7, deceleration of joint 5, of which the published ones count"
    )
    beyond = np.where(ONE[3] > 0, LIMITS.high + 0.1, HOME)  # inside what it tells, outside what is published
    assert "joint 4 is at the end" in looked(Questioned(q=beyond, limits=wide))["posture"].found
    session, arm, _ = make(arm=Questioned(limits=wide))
    session.connect()
    for name, values in vars(LIMITS).items():
        assert (getattr(session.limits, name) == values).all(), name


def test_links_that_weigh_nearly_the_same_pass():
    """By hand: 0.68 kg for 0.627 are 8 %."""
    check = looked(Questioned(masses=(*MASSES[:6], 0.68)))["masses"]
    assert check.ok and "within 8 %" in check.found


def test_a_robot_that_tells_no_masses_is_refused():
    class Untold(SoftArm):
        def masses(self):
            return masses_of_urdf("<robot/>")

    check = looked(Untold())["masses"]
    assert not check.ok and "does not tell plausible masses of all seven links" in check.found


def test_a_policy_that_takes_too_long_is_refused():
    check = looked(Questioned(), act=lambda states, condition: time.sleep(0.0011))["latency"]
    assert not check.ok and "close what else runs on this machine" in check.found


def test_an_arm_that_does_not_answer_is_refused_and_asked_on():
    class Mute(SoftArm):
        def state(self):
            raise ArmError("the robot has told nothing for 3 s: check cable and power")

    checks = looked(Mute())
    for name in ("arm", "posture", "way"):
        assert not checks[name].ok and "check cable and power" in checks[name].found
    assert checks["limits"].ok and checks["payload"].ok
    assert not passed(iter(checks.values()))


@pytest.mark.parametrize(
    ("joint", "by", "words"),
    [
        (1, 0.9, "m below its workspace"),
        (1, 0.9, "m too near to the table"),
        (3, 0.9, "m above its workspace"),
        (1, 1.8, "plate, hand or wrist are 0."),
    ],
)
def test_what_is_in_the_way_is_named(joint, by, words):
    check = looked(Questioned(q=HOME + by * ONE[joint]))["way"]
    assert not check.ok and words in check.found and "guide it by hand to near its home" in check.found, check


def test_a_way_that_leads_outside_is_refused_where_its_ends_are_clear(monkeypatch):
    class Detour:
        duration_s = 2.0

        def __init__(self, q, home, limits):
            self._home = home

        def at(self, time_s):
            return self._home + 1.9 * np.sin(np.pi * time_s / self.duration_s) * ONE[0]

    monkeypatch.setattr("dris.robot.preflight.WayHome", Detour)
    check = looked(Questioned())["way"]
    assert not check.ok and "s into its way home the plate is 0.0" in check.found, check


# What an FR3 says of its modes, by franky.


def why_not(mode):
    franky = pytest.importorskip("franky")
    arm = Fr3.__new__(Fr3)
    arm._franky = franky
    found = SimpleNamespace(
        robot_mode=getattr(franky.RobotMode, mode), current_errors="", last_motion_errors="joint_reflex"
    )
    return arm._why_not(found)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("UserStopped", "the user stop is pressed: release it"),
        ("Guiding", "somebody guides the robot: let go of it"),
        ("Reflex", "stopped by a reflex: joint_reflex"),
        ("AutomaticErrorRecovery", "the robot recovers from an error: wait"),
        ("Other", "the robot is in mode Other, as with locked joints: unlock them in Desk"),
    ],
)
def test_modes_in_which_an_fr3_would_not_obey_are_named(mode, words):
    assert why_not(mode).startswith(words)


def test_modes_in_which_it_obeys_are_no_error():
    assert why_not("Idle") == why_not("Move") == ""


# The command itself: whatever is wrong, the arm does not begin.


@pytest.fixture
def on_robot(monkeypatch, tmp_path):
    """The command with `--move`, on an arm that is no robot, before a room without a plate."""

    def run(arm, **rig):
        monkeypatch.setattr(real_arm, "DriverProcess", lambda make, config: arm)
        monkeypatch.setattr(real_arm, "_catch", lambda *others: arm.asked.append("moved") or True)
        file = tmp_path / "rig.json"
        save_rig(file, laboratory_rig())
        told = RigConfig(**{"file": file, "cameras": f"{rooms.__file__}:empty", **rig})
        return real_arm.on_robot(quick_runtime(), "127.0.0.1", True, 0.2, told, SITE, None, None)

    return run


@pytest.mark.parametrize("wrong", [{"error": "the user stop is pressed"}, {"q": AWAY}])
def test_nothing_moves_before_an_arm_that_is_not_ready(on_robot, wrong, capsys):
    arm = Questioned(**wrong)
    assert on_robot(arm, unconfirmed=True) == 1
    assert arm.asked == ["stop"] and "not ready: see above" in capsys.readouterr().out  # closed at the end


def test_nothing_moves_by_cameras_that_nothing_confirms(on_robot, capsys):
    arm = Questioned()
    assert on_robot(arm) == 1
    assert arm.asked == ["stop"] and "FAILED  eyes" in capsys.readouterr().out
    arm = Questioned()
    assert on_robot(arm, unconfirmed=True) == 0
    assert arm.asked == ["moved", "stop"]


def test_a_dry_run_without_cameras_says_that_it_did_not_look(on_robot, capsys):
    """It said that all was well; and a real arm behind a tunnel was silently taken for a simulated one."""
    assert on_robot(Questioned(), file=None) == 0
    told = capsys.readouterr().out
    assert "    --  eyes     not looked at: tell --rig.file FILE" in told
    assert told.startswith("    ok  robot    127.0.0.1 is on this computer, so it is taken for SIMULATED")
    assert ", the policy's own; at 0.2 of all speeds\n" in told
    gains = real_arm.driven_with(real_arm.drive_of(TASK, None, True), Path("gains.json"), 1.0).found
    assert gains.startswith("K = [120.0, 70.0, ") and gains.endswith("], of gains.json; at 1 of all speeds")
    found = real_arm.taken_for("172.16.0.2").found
    assert found.startswith("172.16.0.2 is taken for a real arm: with a real-time kernel")


@pytest.mark.parametrize("belief", ["kalman", "particles", "nominal"])
def test_a_belief_that_no_robot_has_is_refused_before_anything_is_asked(belief):
    """The dry run said ok, and --move refused after all checks."""
    runtime = quick_runtime(belief=belief)
    with pytest.raises(ValueError, match="beside one robot a belief is an ensemble"):
        real_arm.on_robot(runtime, "127.0.0.1", False, 0.2, RigConfig(), SITE, None, None)
    with pytest.raises(ValueError, match="beside one robot a belief is an ensemble"), TwinRig(runtime):
        pass


def test_nothing_moves_without_a_calibration_file(on_robot, tmp_path):
    arm = Questioned()
    with pytest.raises(CalibrationError, match=r"there is no calibration file .*none\.json: calibrate"):
        on_robot(arm, file=tmp_path / "none.json")
    assert arm.asked == ["stop"]
