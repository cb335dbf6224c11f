"""One control path: the loop that drives the twin drives the training world, and does there what training does."""

import numpy as np
import pytest

from dris import Env, EnvConfig
from dris.catching.control import Controller
from dris.catching.loop import CatchLoop
from dris.catching.task import CatchingTask
from dris.catching.training_robot import TrainingRobot
from dris.core.rollout import rollout
from dris.evaluation.registry import find_policy
from dris.lab.trial import one_robot


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_loop_on_the_training_world_does_what_the_environment_does(seed):
    policy = find_policy("dris-200")
    config = EnvConfig(sets=1, instances=1, seed=seed)
    task = CatchingTask()
    seen, actions = [], []
    for transition in rollout(Env(task, config), policy.make_agent(task, 1)):
        seen.append(transition.observation.states[0, 0].numpy())
        actions.append(transition.action[0].numpy())

    again = CatchingTask()
    Env(again, config).reset()
    robot = TrainingRobot(again)
    loop = CatchLoop(robot, robot, Controller(one_robot(policy, 1.0), again.config))
    for _ in range(200):  # ticks of the world's substep, 5 ms
        loop.tick()
        robot.advance(0.005)
    assert loop.began_s == 0.0 and [d.time_s for d in loop.decisions] == pytest.approx(np.arange(20) * 0.05)
    # The first step is the same to single precision; later ones as far as two solvers of one pose agree.
    np.testing.assert_allclose(loop.decisions[0].states, seen[0], atol=1e-5)
    np.testing.assert_allclose(loop.decisions[0].action, actions[0], atol=1e-4)
    ours = np.array([decision.states for decision in loop.decisions])
    assert np.abs(ours[:, :3] - np.array(seen)[:, :3]).max() < 0.02
    assert bool(task.other_successes()["success_0.2"].all())
    again._update_states()
    assert bool(again.other_successes()["success_0.2"].all())
