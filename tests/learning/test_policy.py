"""FilmModel as rsl_rl builds it, and the policy that acts."""

import json
from dataclasses import asdict

import pytest
import torch
import tyro
from fakes import LineTask
from recipes import TINY_ENCODER
from tensordict import TensorDict

from dris.core.env import Observation
from dris.evaluation.registry import load_policy
from dris.learning.config import EncoderConfig, PolicyConfig
from dris.learning.encoder import SetEncoder
from dris.learning.policy import FilmModel, Policy

GAUSSIAN = {"class_name": "GaussianDistribution", "init_std": 0.3, "std_type": "log"}
SCALE = [0.1, 0.2]
GROUPS = {
    "actor": ["tilt", "states", "speed"],
    "coded": ["code", "tilt"],
    "bare": ["states"],
    "flat": ["tilt"],
}


def observations(sets: int = 5, instances: int = 3) -> TensorDict:
    """Groups of different rank: states [B, N, 2], a code [B, 4] and two conditions, [B, 2] and [B, 1]."""
    shapes = {"states": (instances, 2), "code": (4,), "tilt": (2,), "speed": (1,)}
    generator = torch.Generator().manual_seed(0)
    return TensorDict(
        {name: torch.randn(sets, *shape, generator=generator) for name, shape in shapes.items()},
        batch_size=[sets],
    )


def film(obs_set: str = "actor", **values) -> FilmModel:
    config = {"hidden_dims": [8], "distribution_cfg": GAUSSIAN, "scale": SCALE, "encoder": {"latent": 6}}
    return FilmModel(observations(), GROUPS, obs_set, 3, **json.loads(json.dumps({**config, **values})))


def test_the_condition_is_all_groups_but_the_states_in_their_order():
    model, obs = film(film_width=4), observations()
    code = model.encoder(obs["states"])
    torch.testing.assert_close(model.get_latent(obs), code)  # lambda = 1 and mu = 0 at the start
    with torch.no_grad():
        # One hidden unit that is tilt_x + 10 speed where that is positive; lambda = 1 + it, mu = 2 * it.
        model.film[0].weight.zero_()
        model.film[0].bias.zero_()
        model.film[0].weight[0] = torch.tensor([1.0, 0.0, 10.0])
        model.film[2].weight[:6, 0], model.film[2].weight[6:, 0] = 1.0, 2.0
    obs["tilt"][:, 0], obs["speed"][:, 0] = 0.25, 0.125  # 1.5
    torch.testing.assert_close(model.get_latent(obs), 2.5 * code + 3.0)
    assert model(obs).shape == (5, 3)


def test_a_group_of_two_dimensions_is_a_code_made_outside():
    model, obs = film("coded", state_group="code", conditioning="concat", scale=None), observations()
    assert model.encoder is None and model.film is None
    assert torch.equal(model.get_latent(obs), torch.cat((obs["code"], obs["tilt"]), dim=1))


def test_without_a_condition_the_latent_is_the_code():
    model, obs = film("bare", obs_normalization=True), observations()
    model.update_normalization(obs)  # of nothing
    assert torch.equal(model.get_latent(obs), model.encoder(obs["states"]))


def test_normalisation_is_of_the_condition():
    model = film("coded", state_group="code", conditioning="concat", obs_normalization=True)
    obs = observations(sets=4)
    obs["tilt"] = torch.tensor([[-1.0, 3.0], [1.0, 7.0]]).repeat(2, 1)
    model.update_normalization(obs)  # mean (0, 5), standard deviation (1, 2); rsl_rl adds 0.01 to it
    latent = model.get_latent(obs)
    assert torch.equal(latent[:, :4], obs["code"])
    torch.testing.assert_close(latent[0, 4:], torch.tensor([-1 / 1.01, -2 / 2.01]))


@pytest.mark.parametrize(
    ("obs_set", "values", "words"),
    [
        ("flat", {}, r"'flat' needs a group 'states' .*got \{'tilt': \(5, 2\)\}"),
        ("actor", {"scale": None}, r"scale must be 2 positive numbers, one a component, got \(\)"),
        ("actor", {"scale": [0.1, 0.0]}, r"scale must be 2 positive numbers"),
        ("actor", {"conditioning": "add"}, "conditioning must be 'film' or 'concat', got 'add'"),
        ("actor", {"encoder": {"latent": 0}}, "latent must be at least 1, got 0"),
    ],
)
def test_what_makes_no_model_is_refused(obs_set, values, words):
    with pytest.raises(ValueError, match=words):
        film(obs_set, **values)
    with pytest.raises(ValueError, match=r"'states': \(5, 1, 2, 2\)"):
        obs = observations().set("states", torch.zeros(5, 1, 2, 2))
        FilmModel(obs, GROUPS, "bare", 1, scale=SCALE)


@pytest.mark.parametrize("kind", ["learned", "frozen"])
def test_a_policys_actor_is_the_model_a_runner_would_build(kind):
    """From plain values and the same random numbers, bit for bit."""
    config = PolicyConfig(encoder=kind, hidden=(16,), film_width=4)
    torch.manual_seed(3)
    policy = Policy(LineTask(), TINY_ENCODER, config)
    torch.manual_seed(3)
    SetEncoder(2, LineTask.noise_scale, TINY_ENCODER)  # the policy's own comes first
    shown = policy.inputs(Observation(torch.zeros(4, 3, 2), torch.zeros(4, 0)))
    group = {"learned": "states", "frozen": "code"}[kind]
    values = {"hidden_dims": [16], "scale": [0.1, 0.1], "encoder": asdict(TINY_ENCODER), "film_width": 4}
    model = FilmModel(
        shown,
        {"actor": [group, "condition"]},
        "actor",
        1,
        distribution_cfg=GAUSSIAN,
        state_group=group,
        **values,
    )
    expected, got = policy.actor.state_dict(), model.state_dict()
    assert expected.keys() == got.keys() and all(torch.equal(expected[n], got[n]) for n in expected)
    critic = policy.model(1)
    assert critic(shown).shape == (4, 1) and critic.distribution is None


@pytest.mark.parametrize(
    ("obs_set", "names", "values"),
    [
        ("actor", ["states", "condition"], {"obs_normalization": True}),
        ("coded", ["states", "condition"], {"state_group": "code"}),
        ("bare", ["states"], {}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is deprecated. Please switch to:DeprecationWarning")
def test_exports_are_the_whole_model(obs_set, names, values):
    model, obs = film(obs_set, **values), observations()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    model.update_normalization(obs)
    wanted = model(obs, stochastic_output=True) * 0 + model(obs)  # with a distribution that has been used
    inputs = (obs[values.get("state_group", "states")],)
    if len(names) == 2:
        inputs += (torch.cat([obs[name] for name in GROUPS[obs_set] if name in ("tilt", "speed")], dim=1),)
    exported = model.as_onnx()
    assert exported.input_names == names
    assert [t.shape[1:] for t in exported.get_dummy_inputs()] == [t.shape[1:] for t in inputs]
    torch.testing.assert_close(exported(*inputs), wanted)
    torch.testing.assert_close(model.as_jit()(*inputs), wanted)
    exported.eval()
    assert model.training  # the model itself is left alone


def test_act_keeps_to_the_range_of_actions():
    policy = Policy(LineTask(), TINY_ENCODER, PolicyConfig(hidden=(4,)))
    observation = Observation(torch.zeros(2, 3, 2), torch.zeros(2, 0))
    last = policy.actor.mlp[-1]
    for mean, acted in ((3.0, 1.0), (-1.5, -1.0), (0.25, 0.25)):
        with torch.no_grad():
            last.weight.zero_()
            last.bias.fill_(mean)
        assert policy(observation).tolist() == [[mean]] * 2
        assert policy.act(observation).tolist() == [[acted]] * 2


def test_default_set_sizes_go_as_far_as_the_instances():
    assert EncoderConfig().sizes == (1, 2, 5, 10, 20, 50, 64)
    assert EncoderConfig(instances=16).sizes == (1, 2, 5, 10)
    assert EncoderConfig(instances=16, set_sizes=(3, 16)).sizes == (3, 16)
    config = tyro.cli(EncoderConfig, args=["--instances", "16"], default=EncoderConfig())
    assert config == EncoderConfig(instances=16)  # though a default given whole names 64, too


def test_chunks_of_sets_have_the_bits_of_all_at_once():
    encoder = SetEncoder(2, SCALE, EncoderConfig(latent=8, widths=(16,)))
    states = torch.randn(7, 2000, 2, generator=torch.Generator().manual_seed(0))  # 3, 3 and 1 sets a chunk
    assert torch.equal(encoder.encode_chunked(states), encoder(states))
    with pytest.raises(ValueError, match=r"scale must be 2 positive numbers, one a component, got \(0.1,\)"):
        SetEncoder(2, (0.1,))


def test_what_is_no_observation_is_not_acted_on():
    policy = load_policy("dris-10")
    good = Observation(torch.zeros(1, 1, 6), torch.zeros(1, 2))
    assert policy.act(good).abs().max() <= 1
    for states, condition, words in (
        (torch.full((1, 1, 6), float("nan")), torch.zeros(1, 2), "not finite"),
        (torch.zeros(1, 1, 5), torch.zeros(1, 2), r"\[B, N, 6\] \(dx, dy, dz, vx, vy, vz\), got \[1, 1, 5\]"),
        (torch.zeros(1, 6), torch.zeros(1, 2), r"got \[1, 6\]"),
        (torch.zeros(1, 1, 6), torch.zeros(1, 3), r"must be \[1, 2\], got \[1, 3\]"),
    ):
        with pytest.raises(ValueError, match=words):
            policy.act(Observation(states, condition))
