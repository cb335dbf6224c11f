"""The training's throws in both worlds: the same starts, the same measures, the same conditions."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dris.catching.baselines import still
from dris.catching.settings import TEXT, CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.conditions import Condition, find_condition
from dris.core.rollout import Outcomes, run_episodes
from dris.evaluation.registry import PolicyHandle, find_policy
from dris.experiments import twin_episodes as compare
from dris.lab.drives import drive
from dris.lab.launch import Drop, Placed
from dris.lab.objects import BALLS
from dris.lab.trial import run_trial
from dris.lab.twin import Twin

TASK = CatchingConfig()
IDEAL = drive("ideal")  # what the training world has
STILL = PolicyHandle("still", CatchingTask, TEXT, still)  # from home, where the text's policies begin


def test_on_the_trainings_throws_an_ideal_robot_catches_in_both_worlds():
    result = compare.evaluate_in_twin(find_policy("dris-robot"), Condition(), episodes=12)
    training = result.training.success["success"].bool().tolist()
    assert sum(training) >= 7 and sum(result.kept) >= 7  # of a policy that catches four of five
    assert sum(a == b for a, b in zip(training, result.kept, strict=True)) >= 10
    chance = compare.evaluate_in_twin(find_policy("random"), Condition(), episodes=4)
    assert sum(chance.kept) == float(chance.twin.success["success"].sum()) == 0


def test_on_the_trainings_throws_both_worlds_judge_alike():
    stays = compare.evaluate_in_twin(find_policy("still"), Condition(), episodes=12)
    alone = run_episodes(CatchingTask, still, Condition(), 12)
    assert torch.equal(stays.training.success["success"], alone.success["success"])
    assert list(stays.twin.success) == ["success", "success_0.2", "success_released"]
    # The same balls meet the same plate; soft contact without a threshold changes who keeps still, not the sum.
    assert float(stays.twin.reward.mean()) == pytest.approx(float(alone.reward.mean()), abs=0.2)


def outcomes(*success):
    caught = torch.tensor(success)
    return Outcomes({"success": caught, "success_0.2": caught}, torch.zeros(len(success)))


def test_a_row_tells_what_stands_beside_the_twins_rates():
    row = compare.Comparison(
        outcomes(True, True, False), outcomes(True, False, False), (True, True, False), (0.9, 1.1, 2.0)
    ).row("clean", 5)
    assert row["success"] == row["success_0.2"] == pytest.approx(1 / 3)
    assert row["training_success"] == pytest.approx(2 / 3)
    assert row["same_outcome"] == pytest.approx(2 / 3) and row["on_plate"] == pytest.approx(2 / 3)
    assert row["on_plate_within_speed_limits"] == pytest.approx(1 / 3)


def test_the_twin_pays_for_a_state_as_the_training_does():
    """A ball that lies 5 cm from the centre of a level plate, and one that lies beside it."""
    rubber = BALLS["rubber"]
    for x, expected in ((0.05, 1.0), (0.11, 1.0), (0.15, 0.0)):  # slow balls earn 1, lost ones lose 1
        twin = Twin(IDEAL)
        plate = twin.reset(rubber, Placed((2.0, 0.0, 1.0), (0.0, 0.0, 0.0)), 0).plate_position
        placed = (plate[0] + x, plate[1], plate[2] + rubber.radius)
        state = twin.reset(rubber, Placed(placed, (0.0, 0.0, 0.0)), 0)
        trial = SimpleNamespace(states=[state] * 21)
        success, reward = compare.judge(trial, rubber, TASK)
        assert reward == pytest.approx(expected) and success["success"] == success["success_0.2"] == (
            x < 0.12
        )
        assert success["success_released"] == (x < 0.1)
        rolling = replace(state, thing_velocity=np.array([0.15, 0.0, 0.0]))
        success, reward = compare.judge(SimpleNamespace(states=[rolling] * 21), rubber, TASK)
        assert reward == pytest.approx(expected - 0.5 + 0.5 * math.exp(-(0.6**2)))
        assert not success["success"] and success["success_0.2"] == (x < 0.12)


def test_execution_error_reaches_the_twins_references():
    sent = []

    class Listening(Twin):
        def set_reference(self, q):
            sent.append(q)
            super().set_reference(q)

    drop, ideal = Drop(0.3), drive("ideal", TEXT)  # from home: an approach sends references, too
    trials = [
        run_trial(STILL, BALLS["foam"], drop, 0, Listening(ideal), duration_s=0.2, execution_error=width)
        for width in (0.0, 0.05)
    ]
    errors = np.array(sent[4:]) - [decision.joints for decision in trials[1].decisions]
    np.testing.assert_array_equal(sent[:4], [decision.joints for decision in trials[0].decisions])
    assert 0.03 < np.abs(errors).max() <= 0.05 and np.abs(errors.mean()) < 0.02


def test_the_twin_knows_noise_execution_error_and_other_balls():
    policy = find_policy("still")
    row = compare.score_in_twin(policy, "restitution", 2, 5, "rate-limit")
    assert (row["world"], row["drive"], row["condition"], row["episodes"]) == (
        "twin",
        "rate-limit",
        "restitution",
        2,
    )
    balls = [
        ball.restitution
        for ball, _ in compare.training_starts(
            CatchingTask(), find_condition("restitution", CatchingTask.conditions()), 20, 5
        )
    ]
    assert min(balls) >= 0.45 and max(balls) <= 0.5  # 0.7 to 0.8, averaged with the plate's 0.2
    for name in ("worst-case", "ramp-1.3", "delay-20", "dropout-20", "correlated-2"):
        with pytest.raises(ValueError, match=f"'{name}'"):
            compare.score_in_twin(policy, name, 2, 5, "rate-limit")
