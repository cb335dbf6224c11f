"""The policies that ship: they load by name, say how they were made, and do what is written of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dris.belief.config import BeliefConfig
from dris.catching.settings import FR3, ROBOT, CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.typed import to_plain, with_defaults
from dris.evaluation.registry import find_policy, policy_file
from dris.evaluation.scores import evaluate
from dris.learning.checkpoint import CheckpointError, load_checkpoint
from dris.learning.config import LITERAL_PPO, TrainConfig
from dris.learning.load import load_policy_for

SHIPPED = CatchingTask.policies()
PRIOR = (("restitution", 0.3, 0.85), ("static_friction", 0.0, 0.5), ("dynamic_friction", 0.0, 0.5))
RESULTS = Path(__file__).parents[2] / "results" / "policies"


def test_the_policy_for_a_robot_carries_limits_and_belief():
    file = policy_file("belief-robot")
    assert file.stat().st_size < 2_000_000
    config = load_checkpoint(file, "policy").config
    assert find_policy("belief-robot").task_config == FR3 and config["policy"]["encoder"] == "learned"
    assert find_policy("belief-robot").belief == BeliefConfig(prior=PRIOR)


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "belief-robot"])
def test_a_shipped_policy_says_how_it_was_made(name):
    file = policy_file(name)
    assert file.stat().st_size < 2_000_000
    made = TrainConfig(task="dris.catching.task:CatchingTask", task_config=CatchingConfig())
    config = with_defaults(load_checkpoint(file, "policy").config, made)  # of values newer than the file
    instances = {"e2e": 1, "dris-robot": 10}.get(name) or int(name.removeprefix("dris-"))
    encoder = "learned" if name == "e2e" else "frozen"
    assert (config["instances"], config["policy"]["encoder"]) == (instances, encoder)
    if name == "dris-robot":
        made = replace(made, task_config=ROBOT, iterations=400, ppo=LITERAL_PPO)
    recipe = to_plain(made)
    free = {
        "instances",
        "seed",
        "policy",
        "threads",
        "encoder_from",
        "evaluate_every",
        "evaluate_episodes",
        "evaluate_on",
    }
    assert {k: v for k, v in config.items() if k not in free | {"interface"}} == {
        k: v for k, v in recipe.items() if k not in free
    }
    assert config["policy"] == {**recipe["policy"], "encoder": encoder}


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        *(("e2e", "clean"), ("dris-10", "noise-2"), ("dris-200", "clean"), ("dris-robot", "clean")),
        ("belief-robot", "noise-4"),
    ],
)
def test_a_shipped_policy_does_what_is_written_of_it(name, condition):
    files = (*RESULTS.glob("*.json"), RESULTS.parent / "belief" / "belief-robot.json")
    rows = [row for file in files for row in json.loads(file.read_text())]
    written = next(r for r in rows if (r["policy"], r["condition"]) == (name, condition))
    score = evaluate(name, condition, 1000, seed=4321)
    # Other throws than those written of: four standard errors of the difference.
    rate = written["success"]
    error = (rate * (1 - rate) * (1 / 1000 + 1 / written["episodes"])) ** 0.5
    assert score.success == pytest.approx(rate, abs=4 * error)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_tilt": 0.4}, "was trained with another max_tilt: 0.25, now 0.4"),
        ({"mount": "down"}, "was trained with another mount: level, now down"),
        ({"displacement_curve": "linear"}, "displacement_curve: square, now linear"),
        ({"workspace_around": "start"}, "workspace_around: home, now start"),
    ],
)
def test_a_policy_is_refused_where_its_actions_mean_something_else(changes, message):
    with pytest.raises(CheckpointError, match=message):
        load_policy_for(SHIPPED["dris-robot"], CatchingTask(replace(ROBOT, **changes)))


def test_a_policy_may_be_tried_inside_other_limits_and_from_elsewhere():
    for changes in ({"joint_speed": 1.0}, {"torque_rate": None}, {"start": "arrival"}, {"contact": "exact"}):
        load_policy_for(SHIPPED["dris-robot"], CatchingTask(replace(ROBOT, **changes)))


def test_names_that_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match="'dris-7' is neither a known name .*dris-200.*veltrack"):
        policy_file("dris-7")
    with pytest.raises(ValueError, match="not of a run"):
        policy_file(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="not finished"):
        policy_file(str(tmp_path))
