"""What can be done with a session's log: look at it, and live through it again."""

from __future__ import annotations

from pathlib import Path

import tyro

from dris.core import validation

SUFFIX = ".jsonl"
"""How logs' names end."""


def play_log(log: Path, html: bool, out: Path) -> int:
    """Write a film of a log's first catch, or a replay in 3-D."""
    validation.check_out(out)
    if html:
        validation.check_extra("viser", "view")
    from dris.robot.log_frames import shown

    found = shown(log)
    if html:
        from dris.view.replay import save_frames

        print(f"replay   {save_frames(found.stage, found.frames, found.title, out / f'{log.stem}.html')}")
    else:
        from dris.view.film import save_film

        print(f"video    {save_film(found.mount, found.frames, found.title, out / f'{log.stem}.mp4')}")
    return 0


def replay(log: tyro.conf.Positional[Path], policy: str | None = None) -> int:
    """Live through a session again from its log, and compare what it sends, tick by tick.

    Arm and eyes tell what they told then; policy, approach, law and safety filter compute anew. Exits with 1
    if a tick differs. To look at a log, use `dris play`.

    Args:
        log: File of `dris deploy --logs`.
        policy: The one that acted then: a folder that `dris export` made, or a name. By default the one that
            the log names; either is refused if its weights are others.
    """
    from dris.cli.robot import exported
    from dris.robot.contract import WEIGHTS
    from dris.robot.log import read_log
    from dris.robot.replay import replay as again
    from dris.robot.runtime import Runtime

    named = policy or str(read_log(log)[0].get("policy", ""))
    if not named:
        raise ValueError(f"{log} names no policy: say who acted, --policy NAME")
    with exported(named) as folder:
        runtime = Runtime(folder)
        found = again(log, runtime.act_one, runtime.contract.files[WEIGHTS])
    if found.differs:
        print(f"{log}: {found.ticks} ticks, the last differs: {found.differs}")
        return 1
    rest = found.ticks - found.same
    exact = (
        "all to the last bit" if not rest else f"{rest} not to the last bit, by {found.largest:.1e} at most"
    )
    print(f"{log}: {found.ticks} ticks give the same references, {exact}")
    if not found.ended:
        print(f"{log} does not tell how its session ended: it was killed, or the file is cut")
    return 0
