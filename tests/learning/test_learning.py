"""Encoder, FiLM, PPO and the trainer: by hand where a hand can do it, bit for bit where it matters."""

from dataclasses import replace

import pytest
import torch
from fakes import LineTask
from recipes import TINY_ENCODER, tiny, train, weights

from dris.catching.task import CatchingTask
from dris.core.conditions import Condition
from dris.core.env import Observation
from dris.core.rollout import run_episodes
from dris.learning.checkpoint import load_checkpoint
from dris.learning.config import EncoderConfig, PolicyConfig, PpoConfig
from dris.learning.encoder import SetEncoder
from dris.learning.load import load_policy_for
from dris.learning.policy import Policy
from dris.learning.pretraining import chamfer
from dris.learning.trainer import Trainer

# Encoder


def test_chamfer_by_hand():
    a = torch.tensor([[[0.0, 0.0], [3.0, 0.0]]])
    b = torch.tensor([[[0.0, 1.0], [0.0, 2.0], [3.0, 4.0]]])
    # a to b: 1 and min(10, 13, 16) = 10, mean 5.5; b to a: 1, 4, 16, mean 7.
    assert float(chamfer(a, b)) == pytest.approx(12.5)
    assert float(chamfer(a, a)) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("size", [1, 2, 10, 200, 1000])
def test_codes_ignore_order_and_repetition(size):
    encoder = SetEncoder(6, CatchingTask().noise_scale)
    states = torch.randn(3, size, 6, generator=torch.Generator().manual_seed(0))
    code = encoder(states)
    assert code.shape == (3, 64)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(encoder(states[:, order]), code)
    torch.testing.assert_close(encoder(torch.cat((states, states[:, :1]), dim=1)), code)


@pytest.mark.parametrize("spread", [1.0, 0.3])
def test_standardised_codes_have_mean_0_and_the_asked_spread(spread):
    encoder = SetEncoder(6, CatchingTask().noise_scale, EncoderConfig(code_spread=spread))
    states = torch.randn(500, 20, 6, generator=torch.Generator().manual_seed(0))
    for _ in range(2):  # doing it again changes nothing but the last digits
        encoder.standardise(states, (1, 20))
        codes = torch.cat((encoder(states[:, :1]), encoder(states)))
        torch.testing.assert_close(codes.mean(dim=0), torch.zeros(64), atol=1e-4, rtol=0)
        deviation = codes.std(dim=0) / spread
        moving = deviation > 0.5
        assert float(moving.float().mean()) > 0.9
        torch.testing.assert_close(deviation[moving], torch.ones(int(moving.sum())), atol=0.05, rtol=0)


def test_states_are_measured_in_noise_units():
    encoder = SetEncoder(2, (0.1, 0.1), EncoderConfig(unit=5.0))  # unit 0.5
    torch.testing.assert_close(
        encoder.normalise(torch.tensor([[0.5, -0.5]])), torch.tensor([[1.0, -1.0]]).asinh()
    )


def test_pretraining_learns_to_reconstruct(tmp_path):
    config = tiny(encoder=replace(TINY_ENCODER, episodes=20, passes=8), iterations=1)
    losses = [r.figures["chamfer"] for r in train(tmp_path, config) if r.stage == "encoder"]
    assert len(losses) == 20 and losses[-1] < 0.2 * losses[0]
    stored = load_checkpoint(tmp_path / "encoder.safetensors", "encoder").progress["held_out_chamfer"]
    assert stored["1"] < 0.2 * losses[0]


# FiLM


class Conditioned(LineTask):
    condition_size = 2

    def condition(self):
        return torch.full((len(self.x), 2), 0.5)


def test_film_is_an_affine_map_of_the_code():
    task = Conditioned()
    policy = Policy(task, TINY_ENCODER, PolicyConfig(hidden=(4,), film_width=3))
    states = torch.randn(5, 2, 2, generator=torch.Generator().manual_seed(0))
    inputs = policy.inputs(Observation(states, torch.ones(5, 2)))
    model = policy.actor
    code = inputs["code"]
    torch.testing.assert_close(model.get_latent(inputs), code)  # lambda = 1 and mu = 0 at the start
    with torch.no_grad():
        model.film[-1].bias[:8] = 1.0  # lambda = 2
        model.film[-1].bias[8:] = 0.5  # mu = 0.5
    torch.testing.assert_close(model.get_latent(inputs), 2 * code + 0.5)


def test_moments_by_hand():
    encoder = SetEncoder(2, (0.1, 0.1), replace(TINY_ENCODER, pooling="moments", unit=1e4))
    # Noise scale 0.1 and a unit of 1e4: the asinh is linear here, x / 1000.
    code = encoder(torch.tensor([[[1.0, 0.0], [3.0, 0.0], [5.0, 6.0]]])) * 1e3
    expected = torch.tensor([[3.0, 2.0, (8 / 3) ** 0.5, 8**0.5]])
    torch.testing.assert_close(code, expected, rtol=1e-3, atol=1e-3)
    single = encoder(torch.tensor([[[1.0, 2.0]]]))
    assert single[0, 2:].tolist() == [0.0, 0.0]


def test_concatenation_puts_the_condition_beside_the_code():
    policy = Policy(Conditioned(), TINY_ENCODER, PolicyConfig(hidden=(4,), conditioning="concat"))
    inputs = policy.inputs(Observation(torch.zeros(5, 2, 2), torch.full((5, 2), 0.5)))
    latent = policy.actor.get_latent(inputs)
    assert latent.shape == (5, 10) and policy.actor.film is None
    torch.testing.assert_close(latent, torch.cat((inputs["code"], torch.full((5, 2), 0.5)), dim=1))


def test_a_policy_that_sees_the_first_instance_is_blind_to_the_others():
    policy = Policy(LineTask(), TINY_ENCODER, PolicyConfig(hidden=(4,), visible="first", encoder="learned"))
    states = torch.randn(3, 7, 2, generator=torch.Generator().manual_seed(1))
    acted = policy(Observation(states, torch.zeros(3, 0)))
    states[:, 1:] = 5.0
    assert torch.equal(acted, policy(Observation(states, torch.zeros(3, 0))))
    states[:, 0] = 5.0
    assert not torch.equal(acted, policy(Observation(states, torch.zeros(3, 0))))


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder": replace(TINY_ENCODER, pooling="moments")},
        {"policy": PolicyConfig(hidden=(16,), conditioning="concat")},
        {"policy": PolicyConfig(hidden=(16,), visible="first", encoder="learned")},
    ],
)
def test_every_baseline_trains_and_loads(tmp_path, changes):
    train(tmp_path, tiny(**changes))
    load_policy_for(tmp_path / "policy.safetensors", LineTask())


def test_end_to_end_learns_its_encoder_and_dris_does_not():
    for kind, learns in (("learned", True), ("frozen", False)):
        policy = Policy(LineTask(), TINY_ENCODER, PolicyConfig(encoder=kind, hidden=(4,)))
        names = [n for n, p in policy.actor.named_parameters() if p.requires_grad]
        assert any(n.startswith("encoder.") for n in names) == learns
        assert not any(p.requires_grad for p in policy.encoder.parameters())


# PPO


@pytest.mark.parametrize(
    ("encoder", "decay_encoder", "decaying"),
    [
        ("frozen", False, ("actor.mlp",)),
        ("learned", False, ("actor.mlp",)),
        ("learned", True, ("actor.mlp", "actor.encoder")),
    ],
)
def test_only_the_actors_weight_matrices_decay(tmp_path, encoder, decay_encoder, decaying):
    ppo = PpoConfig(learning_rate=0.1, weight_decay=0.5, decay_encoder=decay_encoder)
    policy = replace(tiny().policy, encoder=encoder)
    trainer = Trainer(LineTask, tiny(iterations=1, ppo=ppo, policy=policy), tmp_path)
    list(trainer.run())
    actor, critic = trainer.policy.actor, trainer.algorithm.critic
    optimizer = trainer._optimizer(critic)
    named = {f"actor.{n}": p for n, p in actor.named_parameters()}
    named |= {f"critic.{n}": p for n, p in critic.named_parameters()}
    before = {name: p.detach().clone() for name, p in named.items()}
    for p in named.values():
        p.grad = torch.zeros_like(p)
    optimizer.step()  # no gradient: what moves, decays, by lr * decay = 5 %
    for name, p in named.items():
        decays = name.startswith(decaying) and name.endswith("weight")
        torch.testing.assert_close(p.detach(), before[name] * (0.95 if decays else 1.0))


def test_the_last_state_of_a_truncated_episode_is_bootstrapped(tmp_path):
    """Advantages of a rollout against the recursion written out, with gamma 0.9 and lambda 0.8."""
    config = tiny(ppo=PpoConfig(gamma=0.9, gae_lambda=0.8), iterations=1)
    trainer = Trainer(LineTask, config, tmp_path)
    list(trainer.run())
    algorithm = trainer.algorithm
    kept = {}

    def keep():  # instead of an update
        st = algorithm.storage
        kept.update(r=st.rewards.clone(), v=st.values.clone(), returns=st.returns.clone())
        st.clear()
        return {"value": 0.0}

    algorithm.update = keep
    last = {}
    compute = algorithm.compute_returns

    def remember(inputs):
        last["v"] = algorithm.critic(inputs).detach()
        compute(inputs)

    algorithm.compute_returns = remember
    trainer._iterate(0)
    v = torch.cat((kept["v"], last["v"][None]))
    advantage = torch.zeros_like(last["v"])
    for t in reversed(range(4)):
        delta = kept["r"][t] + 0.9 * v[t + 1] - v[t]
        advantage = delta + 0.9 * 0.8 * advantage
        torch.testing.assert_close(kept["returns"][t], advantage + v[t])


def test_learning_is_proven_on_a_tiny_task(tmp_path):
    """Points on a line are brought to the origin: chance is about a half, learning nearly all."""
    config = tiny(iterations=25, sets=64, evaluate_every=25, evaluate_episodes=200, evaluate_on=("clean",))
    reports = train(tmp_path, config)
    untrained = run_episodes(LineTask, lambda t, n: lambda o: torch.zeros(n, 1), Condition(), 200).score()
    assert untrained.success < 0.6
    assert reports[-1].figures["clean/success"] > 0.95
    assert reports[-1].figures["reward"] > reports[4].figures["reward"] + 0.05


# The policy that is kept


def test_the_kept_policy_is_a_running_mean_of_the_learner_s_weights(tmp_path):
    # A window of 0.125 x 10 = 1.25 iterations keeps 1 - 1 / 1.25 = 0.2 of the mean.
    trainer = Trainer(LineTask, tiny(iterations=10, ppo=PpoConfig(ema_window=0.125)), tmp_path)
    seen = []
    for progress in trainer.run():
        if progress.stage == "policy":
            seen.append(trainer.policy.actor.mlp[0].weight.detach().clone())
    # The share kept is (1 + i) / (10 + i) while that is less than 0.2: 1/10, 2/11, then 0.2.
    mean = weights_at_start()
    for i, new in enumerate(seen):
        keep = min(0.2, (1 + i) / (10 + i))
        mean = keep * mean + (1 - keep) * new
    torch.testing.assert_close(weights(tmp_path)["actor.mlp.0.weight"], mean)
    train(tmp_path / "none", tiny(ppo=PpoConfig(ema_window=0.0)))
    last = load_checkpoint(tmp_path / "none" / "last.safetensors", "training").tensors
    assert torch.equal(weights(tmp_path / "none")["actor.mlp.0.weight"], last["actor.mlp.0.weight"])


def weights_at_start() -> torch.Tensor:
    """Of the actor's first layer, before the first update: a run of the same seed has them too."""
    with torch.random.fork_rng():
        torch.manual_seed(tiny().seed)
        return Policy(LineTask(), TINY_ENCODER, tiny().policy).actor.mlp[0].weight.detach()


def test_the_learning_rate_falls_linearly_to_its_least_share(tmp_path):
    reports = train(tmp_path, tiny(iterations=10, ppo=PpoConfig(learning_rate=1e-3, min_lr_fraction=0.35)))
    rates = [r.figures["learning_rate"] for r in reports if r.stage == "policy"]
    assert rates == pytest.approx([1e-3, 9e-4, 8e-4, 7e-4, 6e-4, 5e-4, 4e-4, 3.5e-4, 3.5e-4, 3.5e-4])


def test_exploration_stays_between_its_bounds(tmp_path):
    """From 0.3 the ceiling falls geometrically to 0.1 over ten iterations; the floor is 0.05."""
    config = tiny(iterations=10, ppo=PpoConfig(last_std=0.1, least_std=0.05, learning_rate=1e-9))
    trainer, stds = Trainer(LineTask, config, tmp_path), []
    for report in trainer.run():
        if report.stage == "policy":
            stds.append(report.figures["std"])
            with torch.no_grad():  # as if the fifth update had made it explore next to nothing
                trainer.policy.actor.distribution.log_std_param.sub_(9.0 if report.done == 5 else 0.0)
    assert stds[:5] == pytest.approx([0.3 * (1 / 3) ** (i / 10) for i in range(5)], rel=1e-4)
    assert stds[5:] == pytest.approx([0.05] * 5, rel=1e-4)
    with pytest.raises(ValueError, match=r"least_std must lie in \[0, last_std 0.1\], got 0.2"):
        PpoConfig(least_std=0.2)
    with pytest.raises(ValueError, match="begins at policy.first_std 0.05, below ppo.least_std 0.08"):
        tiny(ppo=PpoConfig(least_std=0.08), policy=replace(tiny().policy, first_std=0.05))


def rates_of(folder, **ppo):
    config = tiny(iterations=10, ppo=PpoConfig(learning_rate=1e-3, min_lr_fraction=0.35, **ppo))
    return [r.figures["learning_rate"] for r in train(folder, config) if r.stage == "policy"]


def test_a_learning_rate_that_adapts_keeps_updates_small_and_itself_below_its_schedule(tmp_path):
    """rsl_rl multiplies or divides it by 1.5 before each of the 20 steps of an iteration but the first."""
    anything = rates_of(tmp_path / "anything", desired_kl=1e6)
    # 1e-5 x 1.5^12 is beyond 1e-3: within the first iteration it is where the schedule alone would have it.
    assert anything == pytest.approx([1e-3, 9e-4, 8e-4, 7e-4, 6e-4, 5e-4, 4e-4, 3.5e-4, 3.5e-4, 3.5e-4])
    nothing = rates_of(tmp_path / "nothing", desired_kl=1e-12)
    assert nothing == pytest.approx([1e-5] * 10)  # rsl_rl's least
    with pytest.raises(ValueError, match="desired_kl must be None or positive and finite, got 0"):
        PpoConfig(desired_kl=0.0)
    with pytest.raises(ValueError, match="with desired_kl learning_rate is at most 0.01, got 0.03"):
        PpoConfig(desired_kl=0.02, learning_rate=0.03)
