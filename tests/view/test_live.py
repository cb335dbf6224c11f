"""Training that is watched: what the page reads of a run."""

import json
import os

import numpy as np
import torch
from fakes import LineTask
from recipes import tiny, train

from dris.belief.env import belief_env
from dris.catching.task import CatchingTask
from dris.core.env import EnvConfig
from dris.evaluation.registry import find_policy
from dris.learning.config import PolicyConfig
from dris.view.live import LivePage, learning_curve, present_policy
from dris.view.serve import close_server, open_server


def test_the_present_policy_is_what_the_run_would_save(tmp_path):
    """At the end the last checkpoint's running mean is the policy itself: the same actions to the bit."""
    config = tiny(task="catching", sets=4, instances=2, iterations=2, save_every=1)
    train(tmp_path, config, stop_after=None, make=CatchingTask)
    (handle, done), final = present_policy(tmp_path), find_policy(str(tmp_path))
    assert done == 2 and handle.task_config == final.task_config
    observation = belief_env(handle.make_task(), EnvConfig(sets=3, instances=2, seed=4)).reset()
    actions = [one.make_agent(one.make_task(), 3)(observation) for one in (handle, final)]
    assert torch.equal(*actions)


def test_before_the_first_checkpoint_the_policy_is_untrained(tmp_path):
    config = tiny(iterations=50, save_every=50, policy=PolicyConfig(encoder="learned", hidden=(8,)))
    train(tmp_path, config, stop_after=1)
    assert present_policy(tmp_path)[1] == 0 and present_policy(tmp_path)[0].task.__name__ == LineTask.__name__


def test_the_curve_has_what_was_measured(tmp_path):
    assert learning_curve(tmp_path) == {}
    rows = [
        {"iteration": 0, "reward": 0.1},
        {"iteration": 1, "reward": 0.3, "clean/success": 0.5, "std": 1.0},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = learning_curve(tmp_path)
    assert {name: [x.tolist(), y.tolist()] for name, (x, y) in found.items()} == {
        "reward": [[1, 2], [0.1, 0.3]], "clean/success": [[2], [0.5]],
    }  # fmt: skip


def test_the_page_takes_a_new_checkpoint_with_the_next_throw(tmp_path, free_port):
    config = tiny(
        task="catching",
        sets=4,
        instances=2,
        iterations=3,
        save_every=1,
        policy=PolicyConfig(encoder="learned"),
    )
    train(tmp_path, config, stop_after=2, make=CatchingTask)
    server = open_server("127.0.0.1", free_port, "test")
    try:
        page = LivePage(server, tmp_path)
        assert page._done == 2
        train(tmp_path, config, make=CatchingTask)
        os.utime(tmp_path / "last.safetensors")
        page._look_at_run()
        page._session.throw()
        assert page._done == 3 and page._session.settings.again
        assert np.isfinite(page._session.frame.scene.points).all()
    finally:
        close_server(server)
