"""The file of a deployment, and what the command makes of its trials; nothing moves here."""

import json
import signal
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dris.cli.robot import _in_twin
from dris.experiments.deployment import KIND, Outcome, read_outcomes, write_outcomes, writing

SETTINGS = {
    "policy": "p", "sight": "perfect", "speed_share": 1.0, "tick_s": 0.001, "kind": "ramps", "seed": 1
}  # fmt: skip


def with_trials(monkeypatch, trials):
    """The command's part in the twin, with other trials and no robot."""
    rig = SimpleNamespace(arm=None)
    monkeypatch.setattr("dris.experiments.deploy.TwinRig", lambda *given: nullcontext(rig))
    monkeypatch.setattr("dris.experiments.deploy.run_trials", trials)
    monkeypatch.setattr("dris.robot.preflight.preflight", lambda *given: [])
    monkeypatch.setattr("dris.robot.preflight.passed", lambda checks: True)


def test_an_interrupted_deployment_goes_on_with_what_is_missing(tmp_path):
    """Nothing moves here: outcomes written, read back, and refused under other settings."""
    file, settings = tmp_path / "table.json", {"policy": "p", "seed": 1, "kind": "ramps"}
    one = Outcome("foam/R/1", True, True, "catching", "", ("a reflex",), {"stale": 2}, {}, 0.5, 900)
    one = replace(one, belief={"refused": 4, "restarts": 1})
    assert read_outcomes(file, settings, resume=True) == []
    totals = write_outcomes(file, settings, 2, [one])
    assert (totals["caught"], totals["trials"], totals["reflexes"]) == (1, 1, 1)
    assert totals["belief"] == {"refused": 4, "restarts": 1}
    table = json.loads(file.read_text())
    assert table["kind"] == "deployment"
    assert read_outcomes(file, settings, resume=True) == [one]
    del table["rows"][0]["belief"]  # as before beliefs were counted
    file.write_text(json.dumps(table))
    assert read_outcomes(file, settings, resume=True) == [replace(one, belief={})]
    with pytest.raises(ValueError, match="choose another --json"):
        read_outcomes(file, settings | {"kind": "throws"}, resume=True)
    with pytest.raises(ValueError, match="lacks 1 of its trials: go on with --resume"):
        read_outcomes(file, settings, resume=False)
    # One that lost the robot is still to be run: the file is not made anew for it.
    write_outcomes(file, settings, 1, [replace(one, reflexes=(), state="fault", lost=True)])
    with pytest.raises(ValueError, match="lacks 1 of its trials"):
        read_outcomes(file, settings, resume=False)
    write_outcomes(file, settings, 1, [one])
    assert read_outcomes(file, settings, resume=False) == []  # a whole one may be made again
    with pytest.raises(ValueError, match=r"holds trials of \{'seed': 1\}, not of \{'seed': 2\}"):
        read_outcomes(file, settings | {"seed": 2}, resume=False)  # but not lost to others
    file.write_text("{}")
    with pytest.raises(ValueError, match="holds no deployment"):
        read_outcomes(file, settings, resume=True)


RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize(
    ("held", "named"),
    [
        ("trials/ramps.json", "results of kind 'trials'"),
        ("deploy/wild.json", "results of kind 'soak'"),
        (b'{"what": "a person wrote"}', "something else"),
        (b"[1, 2]", "something else"),
    ],
)
def test_a_file_with_other_results_is_refused_and_kept(held, named, tmp_path):
    file = tmp_path / "table.json"
    content = held if isinstance(held, bytes) else (RESULTS / held).read_bytes()
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"table.json holds {named}, not a deployment: choose another"):
        _in_twin(None, "127.0.0.1", 2, SETTINGS, None, file, False)
    assert file.read_bytes() == content and list(tmp_path.iterdir()) == [file]


def test_two_processes_do_not_write_one_file(tmp_path):
    file = tmp_path / "table.json"
    with writing(file, KIND):
        with (
            pytest.raises(ValueError, match=r"another process is writing .*table\.json"),
            writing(file, KIND),
        ):
            pass
        with writing(tmp_path / "other.json", KIND):  # another one beside it may be written
            pass
    with writing(file, KIND), writing(None, KIND):
        pass
    assert list(tmp_path.iterdir()) == []


def test_whoever_forgets_to_go_on_is_told_what_is_run_anew(tmp_path, capsys):
    file = tmp_path / "table.json"
    write_outcomes(file, SETTINGS, 1, [Outcome("ball", True, True, "catching", "", (), {}, {}, 0.5, 900)])
    assert len(read_outcomes(file, SETTINGS, True)) == 1 and capsys.readouterr().out == ""
    assert read_outcomes(file, SETTINGS, False) == []
    assert "had 1 such trials, which are run anew; --resume would have kept them" in capsys.readouterr().out


def test_trials_that_lost_the_robot_are_run_again_and_counted(tmp_path, monkeypatch, capsys):
    """Those that only a person at the robot could have helped; not lost balls, stops and reflexes."""
    lost = "the robot tells no state: Net Exception"
    first = [
        Outcome("lost ball", False, True, "homed", "", (), {}, {}, 0.5, 900),
        Outcome("mid-way", False, True, "fault", lost, (), {}, {}, 0.5, 1767),
        Outcome("never began", False, False, "fault", lost, (), {}, {}, 0.5, 0),
        Outcome("reflex", False, True, "fault", "r", ("r",), {}, {}, 0.5, 900),
        Outcome("not home", False, False, "stopped", "keep-out", (), {}, {}, 0.5, 0),
        Outcome("eyes", False, True, "stopped", "the eyes", (), {}, {}, 0.5, 900),
    ]
    file = tmp_path / "table.json"
    write_outcomes(file, SETTINGS, 7, first)
    seen = []

    def trials(rig, kind, number, seed, perfect, logs, show, done):
        seen.append(list(done))
        for name in ("mid-way", "never began", "not home", "new"):
            state = "fault" if name == "mid-way" else "catching"
            yield Outcome(name, state == "catching", True, state, "", (), {}, {}, 0.5, 900)

    with_trials(monkeypatch, trials)
    assert _in_twin(None, "127.0.0.1", 7, SETTINGS, None, file, True) == 1
    assert seen == [["lost ball", "reflex", "eyes"]]
    told = json.loads(file.read_text())
    names = {row["name"]: (row["state"], row["repeated"]) for row in told["rows"]}
    assert names == {
        "lost ball": ("homed", 0), "reflex": ("fault", 0), "eyes": ("stopped", 0), "new": ("catching", 0),
        "mid-way": ("fault", 1), "never began": ("catching", 1), "not home": ("catching", 1),
    }  # fmt: skip
    counted = [told[name] for name in ("trials", "caught", "reflexes", "faults", "stopped", "repeated")]
    assert counted == [7, 3, 1, 2, 1, 3]
    out = capsys.readouterr().out
    assert "3 trials never began or lost the robot: they are run again" in out
    assert "1 stopped, 3 run again" in out


def test_a_signal_ends_it_with_what_there_is(tmp_path, monkeypatch, capsys):
    """SIGTERM once ended the process with no word, and left the driver to find out by itself."""
    file = tmp_path / "table.json"

    def trials(rig, kind, number, seed, perfect, logs, show, done):
        yield Outcome("one", True, True, "catching", "", (), {}, {}, 0.5, 900)
        signal.raise_signal(signal.SIGTERM)
        show(None)
        raise AssertionError("it goes on")

    with_trials(monkeypatch, trials)
    before = signal.getsignal(signal.SIGTERM)
    assert _in_twin(None, "127.0.0.1", 2, SETTINGS, None, file, False) == 130
    assert signal.getsignal(signal.SIGTERM) is before
    out = capsys.readouterr().out
    assert "1 of 1 caught" in out and "ended by SIGTERM; --resume goes on" in out
    assert json.loads(file.read_text())["asked"] == 2


@pytest.mark.parametrize(
    ("states", "reflexes", "code"),
    [
        (("catching", "catching"), (), 0),
        (("homed", "catching"), (), 0),  # a ball that is lost is no failure of the command
        (("catching", "fault"), (), 1),
        (("catching", "stopped"), ("joint_velocity_violation",), 1),
        (("catching", "stopped"), (), 1),  # by eyes, boundary or filter: neither reflex nor fault
    ],
)
def test_the_exit_code_tells_of_reflexes_and_faults(states, reflexes, code, monkeypatch):
    outcomes = [
        Outcome(str(k), state == "catching", True, state, "", reflexes, {}, {}, 0.5, 100)
        for k, state in enumerate(states)
    ]
    with_trials(monkeypatch, lambda *given: iter(outcomes))
    assert _in_twin(None, "127.0.0.1", 2, SETTINGS, None, None, False) == code
