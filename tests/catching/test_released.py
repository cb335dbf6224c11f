"""The laboratory's published policy: its networks, its units, and what is refused."""

import importlib.util
import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from dris.catching.actions import decode
from dris.catching.released import TASK, Released, ReleasedAgent, load_released
from dris.catching.task import CatchingTask
from dris.cli.experiments import released
from dris.core.env import Observation


class Encoder(nn.Module):
    """A network of the published encoder's shape."""

    def __init__(self, code=64):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(6, 64, 1), nn.Conv1d(64, 128, 1)
        self.conv3 = nn.Conv1d(128, code, 1)
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm1d(64), nn.BatchNorm1d(128), nn.BatchNorm1d(code)
        self.dec1 = nn.Linear(code, 256)

    def forward(self, points):
        x = torch.relu(self.bn1(self.conv1(points.transpose(1, 2))))
        return self.bn3(self.conv3(torch.relu(self.bn2(self.conv2(x))))).amax(dim=2)


class Actor(nn.Module):
    """A network of the published policy's shape."""

    def __init__(self):
        super().__init__()
        self.film = nn.Module()
        self.film.net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 128))
        self.post_ln = nn.LayerNorm(64)
        self.actor_mean = nn.Module()
        sizes = (64, 256, 256, 256)
        hidden = [f for a, b in zip(sizes, sizes[1:], strict=False) for f in (nn.Linear(a, b), nn.ELU())]
        self.actor_mean.mlp = nn.Sequential(*hidden, nn.Linear(256, 5))

    def forward(self, code, tilt):
        gamma, beta = self.film.net(tilt).chunk(2, dim=-1)
        return self.actor_mean.mlp(self.post_ln(gamma * code + beta))


@pytest.fixture
def networks():
    torch.manual_seed(0)
    encoder, actor = Encoder(), Actor()
    encoder.train()
    with torch.no_grad():  # batch norms that are not the identity
        encoder(3 * torch.randn(50, 20, 6) + 1)
        for norm in (encoder.bn1, encoder.bn2, encoder.bn3, actor.post_ln):
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.uniform_(-0.5, 0.5)
    return encoder.eval(), actor.eval()


@pytest.fixture
def files(networks, tmp_path):
    paths = tmp_path / "encoder.pt", tmp_path / "policy.pt"
    for network, path in zip(networks, paths, strict=True):
        torch.save(network.state_dict(), path)
    return paths


def test_the_networks_are_those_of_torchs_own_layers(networks, files):
    encoder, actor = networks
    points, tilt = torch.randn(7, 5, 6), 0.3 * torch.randn(7, 2)
    with torch.no_grad():
        expected = actor(encoder(points), tilt)
    found = load_released(*files).action(points, tilt)
    assert expected.std() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-5)


class Says(Released):
    """Weights that always give one action, and keep what they were shown."""

    def action(self, points, tilt):
        self.encoder["shown"] = points
        return self.policy["action"].expand(len(points), 5)


def test_an_action_means_what_it_means_there():
    task = CatchingTask(TASK)
    weights = Says({}, {"action": torch.tensor([4.0, -2.0, 1.0, 0.0, 1.0])})
    # The plate leans by 0.2 rad about x: its normal is (0, -sin 0.2, cos 0.2).
    states, tilt = torch.tensor([[[0.1, 0.2, 0.3, 1.0, 2.0, 3.0]]]), torch.tensor([[0.2, 0.0]])
    agent = ReleasedAgent(weights, task)
    displacement, wished, limited = decode(task.config, agent(Observation(states, tilt)))
    up, lean = 0.005 * math.cos(0.2), -0.005 * math.sin(0.2)
    np.testing.assert_allclose(
        weights.encoder["shown"][0, 0], [0.1, 0.2 + lean, 0.3 + up, 1, 2, 3], atol=1e-6
    )
    np.testing.assert_allclose(wished[0], [0.0, 0.3], atol=1e-6)
    # The box's middle moves by 0.025 a; our centre of the top is 5 mm along the normal from it: the new one,
    # (sin 0.3, 0, cos 0.3), less the old one.
    turned = [0.005 * math.sin(0.3), -lean, 0.005 * math.cos(0.3) - up]
    np.testing.assert_allclose(displacement[0], np.array([0.1, -0.05, 0.025]) + turned, atol=1e-6)
    assert not bool(limited) and (agent.actions, agent.cut) == (1, 0)
    wild = ReleasedAgent(Says({}, {"action": torch.tensor([0.0, 0.0, 0.0, 3.0, 0.0])}), task)
    wild(Observation(states, tilt))
    assert wild.cut == 1


def test_the_command_scores_it_in_every_world(files, tmp_path, capsys):
    worlds = ("training", "twin") + ("physx",) * (importlib.util.find_spec("sapien") is not None)
    out = tmp_path / "scores.json"
    assert released(*files, worlds, ("clean", "execution"), episodes=2, json_file=out) == 0
    said = capsys.readouterr().out
    found = json.loads(out.read_text())
    assert [(row["world"], row["condition"]) for row in found["rows"]] == [
        (world, condition) for world in worlds for condition in ("clean", "execution")
    ]
    for row in found["rows"]:
        assert row["episodes"] == 2 and row["seed"] == 30011
        assert 0 <= row["success"] <= row["success_0.2"] <= 1 and 0 <= row["cut_actions"] <= 1
    assert found["paper_dris_200"]["success"]["noise-2"] == pytest.approx((0.913 + 0.939) / 2)
    assert "paper, success" in said and "0.926" not in said  # noise-2 was not asked for


def test_other_files_are_refused_in_one_line(files, tmp_path):
    encoder, policy = files
    wider = tmp_path / "wider.pt"
    torch.save(Encoder(code=128).state_dict(), wider)
    text = tmp_path / "text.pt"
    text.write_text("weights")
    code = tmp_path / "code.pt"
    torch.save({"conv1.weight": Encoder()}, code)  # a pickled object, not a tensor
    for arguments, message in (
        ((wider, policy), "expected conv3.weight of shape (64, 128, 1), found (128, 128, 1); take"),
        ((policy, encoder), "expected conv1.weight of shape (64, 6, 1), found nothing; take"),
        ((encoder, text), "text.pt is no file of weights that torch reads safely"),
        ((code, policy), "code.pt is no file of weights that torch reads safely"),
        ((tmp_path / "none.pt", policy), "there is no file"),
    ):
        with pytest.raises(ValueError) as refused:
            load_released(*arguments)
        assert message in str(refused.value) and "ManiDreams" in str(refused.value)
    with pytest.raises(ValueError, match=r"conv3\.weight"):
        released(wider, policy, ("training",))
    with pytest.raises(ValueError, match="not 'delay-20'"):
        released(encoder, policy, ("twin",), ("delay-20",))
