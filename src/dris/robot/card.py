"""The model card of an exported policy."""

from __future__ import annotations

from typing import Any

_UNFIT = """\
- **No robot has run it** unless somebody says so elsewhere: the scores are simulated. An FR3 can hurt people;
  its enabling device and stop are the only safety function.
- It checks nothing: limits, workspace, stale or wrong observations are the caller's (`dris deploy` has them).
- Other gains, another mount of the plate, another control rate or other frames than `contract.json` says.
- Objects, noise and delays outside what it was trained on, above, unless a score says otherwise."""
_THROWS = {
    "distance": "m", "flight_s": "s", "region_radius": "m", "lead_s": "s", "incoming": "rad",
    "spawn_height": "m",
}  # fmt: skip
"""Values of the catching task that say which throws there are, and their units."""


def model_card(contract: dict[str, Any], scores: list[dict[str, Any]]) -> str:
    """As Markdown, with the front matter that model hubs read.

    Args:
        contract: As `dris.robot.export.contract_of` gives it.
        scores: Rows of `dris.evaluation.scores.score`, in the training world.
    """
    name, belief = contract["policy"], contract["belief"]["update"]
    states, size = ", ".join(contract["states"]["names"]), contract["condition"]["size"]
    besides = f" and a condition [batch, {size}]" if size else ""
    lines = [
        "---", "library_name: dris", "license: apache-2.0", "pipeline_tag: robotics",
        "tags: [robotics, reinforcement-learning, sim-to-real, domain-randomization, onnx]", "---", "",
        f"# {name}", "",
        f"A policy of Domain-Randomized Instance Sets, trained in simulation by dris {contract['dris']} on "
        f"`{contract['task']}`.", "",
        "    pip install numpy onnxruntime", "    python run.py", "",
        f"`policy.onnx` takes states [batch, instances, {len(contract['states']['names'])}] ({states})"
        f"{besides}, and gives actions [batch, {contract['action']['size']}] within [-1, 1] every "
        f"{contract['step_s']} s. At deployment the set is the one object that is seen: instances = 1. "
        "`contract.json` says what every number means.", "",
    ]  # fmt: skip
    if belief != "none":
        lines += [
            f"It was trained behind a belief (`{belief}`), and expects that belief's mean in place of what "
            "is seen: see `belief` in `contract.json` and `dris.catching.ball_belief`.", "",
        ]  # fmt: skip
    if scores:
        lines += _table(scores)
    return "\n".join([*lines, *_training(contract), "## What it is not fit for", "", _UNFIT, ""])


def _training(contract: dict[str, Any]) -> list[str]:
    """The ranges that it was trained on, as a table."""
    trained, config = contract["trained_on"], contract["task_config"]
    rows = [
        f"| {name} | {_span([r['low'], r['high']])} | {r['unit']} | {_span(r['of_task'])} |"
        for name, r in trained["ranges"].items()
    ]
    lines = [
        "## What it was trained on", "",
        "Drawn evenly from these ranges (`trained_on` in `contract.json`); nothing is promised outside them. "
        "Scores are told on the task's own.", "",
        "| value | range | unit | the task's own |", "|---|---|---|---|",
        *rows, "",
    ]  # fmt: skip
    noise, delay = _span(trained["noise"]), _span(trained["delay_s"])
    lines += [
        f"Observation noise: {noise} times `noise_scale` of the states. From what is seen to the moment its "
        f"command acts: {delay} s.", "",
    ]  # fmt: skip
    if "contact" in trained:
        contact = trained["contact"]
        throws = ", ".join(f"{name} {_span(config[name])} {unit}" for name, unit in _THROWS.items())
        lines += [
            f"Contact preset `{contact['name']}`; frictions and restitution are the ball's, and `trained_on` "
            f"says how they meet the plate's. Throws, from `task_config`: {throws}.", "",
        ]  # fmt: skip
    return lines


def _span(values: float | list[float]) -> str:
    """A range as words; one value if its ends are equal."""
    ends = values if isinstance(values, list) else [values]
    return " to ".join(f"{end:.4g}" for end in dict.fromkeys(ends))


def _table(scores: list[dict[str, Any]]) -> list[str]:
    """Success with its interval, simulated."""
    first = scores[0]
    return [
        "## Scores", "",
        f"Simulated, training world, one object; {first['episodes']} episodes a row, seed {first['seed']}, "
        "Wilson intervals (95 %).", "",
        "| condition | success | interval | reward |", "|---|---|---|---|",
        *(
            f"| {row['condition']} | {row['success']:.3f} | [{row['low']:.3f}, {row['high']:.3f}] | "
            f"{row['reward']:.3f} |"
            for row in scores
        ),
        "",
    ]  # fmt: skip
