"""The verbs that take a policy to a robot: export, deploy."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from dris.core import validation
from dris.experiments.trials.config import Kind
from dris.robot.excitation import ExcitationConfig
from dris.robot.rig_config import RigConfig
from dris.robot.site_config import SiteConfig

if TYPE_CHECKING:
    from dris.robot.runtime import Runtime
    from dris.robot.session import Session


def export(
    policy: tyro.conf.Positional[str],
    out: Path | None = None,
    episodes: int = 1000,
    task: str | None = None,
) -> int:
    """Write a policy as a folder that needs no dris: ONNX, contract, golden cases, model card, run.py.

    Args:
        policy: One that ships (dris-200), a run folder or a file.
        out: Folder for it, new, empty or of an earlier export; by default runs/export and the policy's name.
        episodes: Of each of the model card's scores; 0: leave them out.
        task: Where the policy's task is now, if not where its file says.
    """
    if episodes < 0:
        raise ValueError(f"episodes must be 0 or more, got {episodes}")
    out = out or Path("runs/export") / Path(policy).name.removesuffix(".safetensors")
    from dris.robot.contract import check_folder

    validation.check_out(out)
    check_folder(out)
    from dris.robot.export import export as write

    if episodes:
        print(
            f"scoring it for the model card, {episodes} episodes a condition (--episodes 0: not)", flush=True
        )
    contract = write(policy, out, episodes, task)
    print(f"{contract['policy']} is in {out}: {', '.join(sorted(p.name for p in out.iterdir()))}")
    print(f"try `python {out}/run.py`, which needs NumPy and onnxruntime alone")
    return 0


_RIG, _SITE = RigConfig(), SiteConfig()
FIRST_SPEED_SHARE = 0.2
"""Of all that a real arm may do, unless somebody says otherwise."""
_OF_TWIN: dict[str, Any] = {
    "kind": "ramps", "trials": 3, "seed": 70001, "sight": "cameras", "tick_s": 0.001, "json": None,
    "address": "127.0.0.1",
}  # fmt: skip
"""What only the twin's trials have, and its defaults."""


def deploy(
    policy: tyro.conf.Positional[str],
    twin: bool = False,
    robot: str | None = None,
    move: bool = False,
    rig: RigConfig = _RIG,
    site: SiteConfig = _SITE,
    gains: Path | None = None,
    kind: Kind = _OF_TWIN["kind"],
    trials: int = _OF_TWIN["trials"],
    seed: int = _OF_TWIN["seed"],
    sight: Literal["cameras", "perfect"] = _OF_TWIN["sight"],
    speed_share: float | None = None,
    tick_s: float = _OF_TWIN["tick_s"],
    address: str = _OF_TWIN["address"],
    logs: Path | None = None,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
    resume: bool = False,
) -> int:
    """Run a policy on an arm: the twin behind Franka's protocol, or a real FR3.

    Looks at everything that can be known without moving, then catches: eyes, runtime without torch, approach,
    safety filter, driver, FCI. An FR3 can hurt people: its enabling device and stop are the only safety
    function. Exit code 1 if the preflight refuses, if a trial was stopped, or if it ended in a fault.

    Args:
        policy: A folder that `dris export` made, or a policy by name, which is exported first.
        twin: The simulated robot on a loopback address, driven by the driver that a real one gets.
        robot: Address of a real FR3. Without --move nothing is sent but questions, and collision
            thresholds for a robot at rest.
        move: Let the real arm move: home, then towards every ball that comes, until interrupted. No real
            arm has moved by this command yet: docs/guides/real_robot.md has the steps before it.
        rig: The real cameras, which are looked through before anything moves, too.
        site: Where the real arm stands: its table, its room, pushes that stop it, how good the stamps are.
        gains: File of `dris identify-gains --json` with this policy: the real arm is driven with the gains
            that match. By default the policy's own; a real arm needs it where those are too stiff for FCI
            (presets paper and exact).
        kind: Of the trials in the twin, their cells in turn: see `dris trials`.
        trials: How many.
        seed: Of the first round of cells.
        sight: cameras: from rendered images. perfect: the true position and velocity.
        speed_share: Of all that the arm may do, in (0, 1]; by default all in the twin, 0.2 on a real arm.
            Slow arms miss balls.
        tick_s: In the twin, the session acts so often [s], whole milliseconds up to 0.01: try a computer that
            is slower than the robot.
        address: Loopback address of the twin's robot.
        logs: Folder for a log of every tick: of the twin a file a trial, some 8 MB each; of a real arm that
            moves some 40 MB a minute, by default in logs/DATE-TIME.
        json_file: Also write the outcome to this file, after every trial.
        resume: Go on with the trials of that file where they were interrupted; those that never began or lost
            the robot are run again.
    """
    validation.check_at_least_one(trials=trials)
    validation.check_seed(seed)
    validation.check_json(json_file)
    validation.check_out(logs, "--logs")
    if twin == (robot is not None):
        raise ValueError("say which arm: --twin, or --robot ADDRESS")
    if twin and move:
        raise ValueError("--move is for a real arm: the twin's moves anyway")
    _refuse_of_robot(twin, site=(site, _SITE), rig=(rig, _RIG), gains=(gains, None))
    if resume and (json_file is None or not twin):
        raise ValueError("--resume goes on with the twin's trials in a file: name it with --json FILE")
    if move and rig.file is None:
        raise ValueError("an arm that moves needs eyes: --rig.file FILE, the calibration of its cameras")
    if rig.file is None and rig != _RIG:
        raise ValueError("--rig flags are of cameras, of no effect without their calibration, --rig.file")
    _refuse_at_rest(robot is not None and not move, logs=logs)
    if not (0.001 <= tick_s <= 0.01 and abs(1e3 * tick_s - round(1e3 * tick_s)) < 1e-6):
        raise ValueError(f"tick_s must be whole milliseconds from 0.001 to 0.01, got {tick_s}")
    if robot is not None:
        _refuse_of_twin(
            kind=kind, trials=trials, seed=seed, sight=sight, tick_s=tick_s, json=json_file, address=address
        )
    share = (FIRST_SPEED_SHARE if robot else 1.0) if speed_share is None else speed_share
    if not 0 < share <= 1:
        raise ValueError(f"speed_share must lie in (0, 1], got {share}")
    from dris.robot.runtime import Runtime

    with exported(policy) as folder:
        runtime = Runtime(folder)
        if robot is not None:
            from dris.experiments.real_arm import on_robot

            return on_robot(runtime, robot, move, share, rig, site, gains, logs)
        from dris.experiments.deployment import settings_of

        values = {"kind": kind, "seed": seed, "sight": sight, "speed_share": share, "tick_s": tick_s}
        settings = settings_of(runtime.contract, **values)
        return _in_twin(runtime, address, trials, settings, logs, json_file, resume)


def _refuse_of_robot(twin: bool, **given: tuple[object, object]) -> None:
    """The twin stands where it always does, with its own cameras and gains."""
    others = [f"--{name}" for name, (value, default) in given.items() if value != default]
    if twin and others:
        raise ValueError(f"{', '.join(others)}: of a real arm, and of no effect on the twin: leave it out")


def _refuse_at_rest(rests: bool, **given: Path | None) -> None:
    """A real arm that does not move leaves nothing to write down."""
    files = [f"--{name}" for name, file in given.items() if file is not None]
    if rests and files:
        raise ValueError(f"{', '.join(files)}: of an arm that moves; a dry run keeps none: add --move")


def _refuse_of_twin(**given: object) -> None:
    """A real arm meets the balls that people throw, as often as it can: nothing here decides which."""
    others = [f"--{name.replace('_', '-')}" for name, value in given.items() if value != _OF_TWIN[name]]
    if others:
        raise ValueError(
            f"{', '.join(others)}: of the twin's trials; a real arm meets every ball that comes, and "
            "--logs keeps what it did"
        )


def plate(
    mount: Literal["down", "level"] = "down",
    out: Path = Path("plate.stl"),
    drawing: Path | None = None,
    cover_m: float = 0.0,
) -> int:
    """Write the plate with its grip as an STL file to print, from the same numbers as the simulations.

    Args:
        mount: down: beside a hand that points down, as the policies that ship want it. level: ahead of it.
        out: The file, in millimetres; its origin is the middle of the plate's top face.
        drawing: Also write a drawing with lengths, a .png or .pdf file.
        cover_m: Thickness of what is glued on top afterwards, such as 0.003; the print is thinner by it, so
            that the top is where the simulations have it.
    """
    if out.suffix != ".stl":
        raise ValueError(f"--out {out}: name a file that ends in .stl")
    if drawing is not None and drawing.suffix not in (".png", ".pdf"):
        raise ValueError(f"--drawing {drawing}: name a file that ends in .png or .pdf")
    for file in (out, drawing):
        if file is not None and not file.parent.is_dir():
            raise ValueError(f"there is no folder {file.parent} to write {file.name} to")
    from dris.robot.plate_drawing import draw
    from dris.robot.plate_print import plate_parts, volume, write_stl

    parts = plate_parts(mount, cover_m)
    triangles = parts.surface()
    write_stl(out, triangles)
    print(f"{out}: {len(triangles)} triangles, {1e6 * volume(triangles):.0f} cm3")
    if drawing is not None:
        draw(parts, f"plate and grip, mount {mount}", drawing)
        print(drawing)
    return 0


_EXCITATION = ExcitationConfig()


def identify_gains(
    policy: tyro.conf.Positional[str] = "belief-robot",
    twin: bool = False,
    robot: str | None = None,
    move: bool = False,
    site: SiteConfig = _SITE,
    excitation: ExcitationConfig = _EXCITATION,
    address: str = _OF_TWIN["address"],
    log: Path | None = None,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> int:
    """Find an arm's stiffness, damping and friction by a slow motion of every joint about home.

    The paper's step of matching the controller to the simulation. Goes through session, safety filter and
    driver, as `dris deploy` does, and says which gains to tell the controller. In the twin it also tells how
    far what it found is from the truth. An FR3 can hurt people: its enabling device and stop are the only
    safety function.

    Args:
        policy: Whose gains, home and mount: a folder that `dris export` made, or a policy by name.
        twin: The simulated robot on a loopback address, driven by the driver that a real one gets.
        robot: Address of a real FR3. Without --move nothing is sent but questions, and collision
            thresholds for a robot at rest.
        move: Let the real arm move: home at 7.5 percent of its speeds, then every joint for some seconds.
        site: Where the real arm stands: its table, its room, and pushes that stop it.
        excitation: How far and how fast.
        address: Loopback address of the twin's robot.
        log: Keep the log of every tick in this file, some 30 MB; of a real arm, which must move for it, by
            default in logs/DATE-TIME.
        json_file: Also write the result to this file; a real arm must move for it.
    """
    validation.check_json(json_file)
    if twin == (robot is not None):
        raise ValueError("say which arm: --twin, or --robot ADDRESS")
    if twin and move:
        raise ValueError("--move is for a real arm: the twin's moves anyway")
    _refuse_of_robot(twin, site=(site, _SITE))
    if robot is not None and address != _OF_TWIN["address"]:
        raise ValueError("--address: of the twin's robot; a real one's stands after --robot")
    _refuse_at_rest(robot is not None and not move, log=log, json=json_file)
    from dris.cli.identification import on_robot, on_twin
    from dris.robot.log import new_folder
    from dris.robot.runtime import Runtime

    with exported(policy) as folder, tempfile.TemporaryDirectory(prefix="dris-identify-") as scratch:
        runtime = Runtime(folder)
        kept = log or (new_folder() if robot and move else Path(scratch)) / "excitation.jsonl"
        if robot is None:
            return on_twin(runtime, address, excitation, kept, json_file)
        return on_robot(runtime, robot, move, site, excitation, kept, json_file)


@contextlib.contextmanager
def exported(policy: str) -> Iterator[Path]:
    """The folder of an exported policy; one that is not yet is exported for the while."""
    if (Path(policy) / "contract.json").is_file():
        yield Path(policy)
        return
    from dris.robot.export import export as write

    with tempfile.TemporaryDirectory(prefix="dris-export-") as folder:
        write(policy, Path(folder), episodes=0)
        yield Path(folder)


def _in_twin(
    runtime: Runtime,
    address: str,
    trials: int,
    settings: dict[str, Any],
    logs: Path | None,
    json_file: Path | None,
    resume: bool,
) -> int:
    from dris.experiments.deploy import TwinRig, run_trials
    from dris.experiments.deployment import (
        KIND,
        read_outcomes,
        summary,
        with_outcome,
        write_outcomes,
        writing,
    )
    from dris.robot.ending import Ended, ended_by_signals, heed
    from dris.robot.preflight import passed, preflight
    from dris.robot.terminal import LiveView

    view, perfect, ended = LiveView(), settings["sight"] == "perfect", ""

    def show(session: Session) -> None:
        heed()  # between ticks: the session stops the arm softly
        view.show(session)

    with writing(json_file, KIND):
        outcomes = [] if json_file is None else read_outcomes(json_file, settings, resume)
        done, began = [one.name for one in outcomes if one.counts], time.monotonic()
        if again := len(outcomes) - len(done):
            print(f"{again} trials never began or lost the robot: they are run again", flush=True)
        try:
            with (
                ended_by_signals(unless_ignored=True),
                TwinRig(runtime, address, settings["speed_share"], settings["tick_s"]) as rig,
            ):
                if not passed(preflight(runtime, rig.arm, settings["speed_share"])):
                    return 1
                kind, seed = settings["kind"], settings["seed"]
                todo = run_trials(rig, kind, trials, seed, perfect, logs, show, done)
                for number, outcome in enumerate(todo, 1):
                    view.clear()
                    outcomes = with_outcome(outcomes, outcome)
                    write_outcomes(json_file, settings, trials, outcomes)
                    each_s = (time.monotonic() - began) / number
                    left = f"{each_s * (trials - len(done) - number) / 60:.0f} min left"
                    print(f"{outcome.name:<36} {outcome.told()}; {left}", flush=True)
        except Ended as signalled:
            view.clear()
            ended = f"ended by {signalled}" + ("; --resume goes on" if json_file else "")
    told = summary(settings["policy"], outcomes)
    print(
        f"{told['policy']}: {told['caught']} of {told['trials']} caught, {told['reflexes']} reflexes, "
        f"{told['faults']} faults, {told['stopped']} stopped, {told['repeated']} run again"
    )
    if ended:
        print(ended)
        return 130
    return int(told["reflexes"] + told["faults"] + told["stopped"] > 0)
