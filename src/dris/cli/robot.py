"""The verbs that take a policy to a robot: export."""

from __future__ import annotations

from pathlib import Path

import tyro

from dris.core import validation


def export(
    policy: tyro.conf.Positional[str],
    out: Path | None = None,
    episodes: int = 1000,
    task: str | None = None,
) -> int:
    """Write a policy as a folder that needs no dris: ONNX, contract, golden cases, model card, run.py.

    Args:
        policy: One that ships (dris-200), a run folder or a file.
        out: Folder for it; by default runs/export and the policy's name.
        episodes: Of each of the model card's scores; 0: leave them out.
        task: Where the policy's task is now, if not where its file says.
    """
    if episodes < 0:
        raise ValueError(f"episodes must be 0 or more, got {episodes}")
    out = out or Path("runs/export") / Path(policy).name.removesuffix(".safetensors")
    validation.check_out(out)
    from dris.robot.export import export as write

    contract = write(policy, out, episodes, task)
    print(f"{contract['policy']} is in {out}: {', '.join(sorted(p.name for p in out.iterdir()))}")
    print(f"try `python {out}/run.py`, which needs NumPy and onnxruntime alone")
    return 0
