"""The ensemble update against the Kalman filter, and what it refuses."""

import numpy as np
import pytest
import torch

from dris.belief.ensemble import ensemble_update, whiten

H = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]])
PRIOR = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 0.5]])
MEAN, SEEN, SIGMA = np.array([1.0, -1.0, 0.5]), np.array([2.0, -2.5]), np.array([0.3, 0.5])


def kalman():
    """Mean, and covariance (I - K H) P, of the exact update."""
    gain = PRIOR @ H.T @ np.linalg.inv(H @ PRIOR @ H.T + np.diag(SIGMA**2))
    return MEAN + gain @ (SEEN - H @ MEAN), (np.eye(3) - gain @ H) @ PRIOR


def ensemble(count, sets=1, seed=0):
    x = np.random.default_rng(seed).multivariate_normal(MEAN, PRIOR, (sets, count))
    values, predicted = torch.tensor(x), torch.tensor(x @ H.T)
    return ensemble_update(values, predicted, torch.tensor(SEEN).expand(sets, 2), torch.tensor(SIGMA))


def test_a_large_ensemble_is_the_kalman_filter():
    mean, covariance = kalman()
    found = ensemble(200_000)
    np.testing.assert_allclose(found.values[0].mean(dim=0), mean, atol=0.01)
    np.testing.assert_allclose(np.cov(found.values[0].T.numpy()), covariance, atol=0.02)
    # The observation's likelihood under the prior, by its own formula.
    spread, off = H @ PRIOR @ H.T + np.diag(SIGMA**2), SEEN - H @ MEAN
    surprise = off @ np.linalg.solve(spread, off)
    assert float(found.surprise) == pytest.approx(surprise, rel=0.02)
    expected = -0.5 * (surprise + np.log(np.linalg.det(2 * np.pi * spread)))
    assert float(found.log_likelihood) == pytest.approx(expected, rel=0.02)


def test_the_spread_of_any_ensemble_is_the_kalman_filter_s_for_its_own_covariance():
    """Exactly, for as few as four instances: a gain that is merely halved would leave it too wide."""
    x = np.random.default_rng(1).multivariate_normal(MEAN, PRIOR, 4)
    found = ensemble_update(x, x @ H.T, SEEN, SIGMA)
    prior = np.cov(x.T)
    gain = prior @ H.T @ np.linalg.inv(H @ prior @ H.T + np.diag(SIGMA**2))
    np.testing.assert_allclose(np.cov(found.values.T), (np.eye(3) - gain @ H) @ prior, atol=1e-12)
    np.testing.assert_allclose(
        found.values.mean(axis=0), x.mean(axis=0) + gain @ (SEEN - H @ x.mean(axis=0)), atol=1e-12
    )


def test_two_numbers_of_one_ensemble_in_closed_form_are_lapack_s():
    """What one robot computes of a camera's sight, beside the same numbers as torch's."""
    draw = np.random.default_rng(5)
    for scale in (1e-3, 1.0, 1e4):
        x = draw.standard_normal((50, 14))
        h = scale * (x[:, :2] @ draw.standard_normal((2, 2)) + 0.1 * draw.standard_normal((50, 2)))
        seen, sigma = scale * draw.standard_normal(2), np.array([0.5, 0.2])
        one = ensemble_update(x, h, seen, sigma)
        other = ensemble_update(*(torch.tensor(part) for part in (x, h, seen, sigma)))
        for name in ("values", "surprise", "log_likelihood"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8, atol=1e-8)
    # Where all instances predict the same, an observation is expected to vary as its deviation says.
    x[:] = x[0]
    same = ensemble_update(x, np.zeros((50, 2)), np.array([1.0, 2.0]), sigma)
    assert same.surprise == pytest.approx(4 + 100, rel=1e-12)
    np.testing.assert_allclose(same.values, x, atol=1e-12)


def test_an_observation_with_a_covariance_is_the_kalman_filter_s():
    """A pixel whose errors along and across the ball's way differ, against the filter's formula."""
    noise = np.array([[0.09, 0.08], [0.08, 0.25]])
    x = np.random.default_rng(1).multivariate_normal(MEAN, PRIOR, 30)
    found = ensemble_update(x, *whiten(x @ H.T, SEEN, noise), np.ones(2))
    prior = np.cov(x.T)
    gain = prior @ H.T @ np.linalg.inv(H @ prior @ H.T + noise)
    np.testing.assert_allclose(np.cov(found.values.T), (np.eye(3) - gain @ H) @ prior, atol=1e-12)
    np.testing.assert_allclose(
        found.values.mean(axis=0), x.mean(axis=0) + gain @ (SEEN - H @ x.mean(axis=0)), atol=1e-12
    )


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (np.eye(3), r"a covariance of 3 numbers .* goes with 3 of an observation, got \(2,\)"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "a covariance is symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "no negative eigenvalue, got -1"),
        (np.zeros((2, 2)), "exact along no axis"),
        (np.full((2, 2), np.nan), "must be finite"),
    ],
)
def test_what_is_no_covariance_is_refused(noise, message):
    with pytest.raises(ValueError, match=message):
        whiten(np.zeros((5, 2)), SEEN, noise)


def test_it_converges_as_one_over_the_root_of_n():
    mean, _ = kalman()
    errors = [
        float((ensemble(n, sets=400).values.mean(dim=1) - torch.tensor(mean)).norm(dim=1).mean())
        for n in (25, 100, 400)
    ]
    for few, many in zip(errors, errors[1:], strict=False):
        assert few / many == pytest.approx(2.0, rel=0.25)


def test_sets_do_not_depend_on_each_other():
    many = ensemble(20, sets=5)
    x = np.random.default_rng(0).multivariate_normal(MEAN, PRIOR, (5, 20))[3:4]
    one = ensemble_update(
        torch.tensor(x), torch.tensor(x @ H.T), torch.tensor(SEEN)[None], torch.tensor(SIGMA)
    )
    np.testing.assert_allclose(one.values[0], many.values[3], atol=1e-12)


def test_a_sure_belief_is_hardly_moved_and_a_vague_observation_hardly_moves():
    x = torch.tensor(MEAN) + 1e-4 * torch.randn(1, 50, 3, generator=torch.Generator().manual_seed(0))
    h = x @ torch.tensor(H).T
    found = ensemble_update(x, h, torch.tensor(SEEN)[None], torch.tensor(SIGMA))
    assert float((found.values - x).abs().max()) < 1e-5
    vague = ensemble_update(x, h, torch.tensor(SEEN)[None], torch.tensor([1e6, 1e6]))
    assert float((vague.values - x).abs().max()) < 1e-12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 1}, "at least 2 instances"),
        ({"observed": torch.zeros(1, 3)}, r"has shape \(1, 2\), got \(1, 3\)"),
        ({"observed": torch.tensor([[0.0, float("nan")]])}, "not finite: leave it out"),
        ({"deviation": torch.tensor([0.1, 0.0])}, "positive and finite, got 0"),
        ({"deviation": 0.1}, "arrays, NumPy's or torch's"),
        ({"values": [[0.0]]}, "arrays, NumPy's or torch's"),
        ({"values": torch.zeros(1, 4, 3)}, r"\(1, 4, 3\) and what they predict \(1, 5, 2\) must agree"),
        ({"values": torch.full((1, 5, 3), torch.nan)}, "an instance is not finite: put a copy"),
        ({"predicted": torch.full((1, 5, 3), torch.nan)}, "what an instance predicts is not finite"),
    ],
)
def test_what_is_no_observation_is_refused(change, message):
    x = torch.zeros(1, change.get("count", 5), 3)
    asked = {"values": x, "predicted": x[..., :2], "observed": torch.zeros(1, 2), "deviation": torch.ones(2)}
    asked |= {name: value for name, value in change.items() if name != "count"}
    with pytest.raises(ValueError, match=message):
        ensemble_update(**asked)


def test_a_covariance_goes_with_as_many_numbers():
    for predicted, seen in (
        (np.zeros((5, 2)), np.zeros(3)),
        (np.zeros((5, 3)), np.zeros(2)),
        (np.zeros((5, 2)), 0.0),
    ):
        with pytest.raises(ValueError, match=r"2 numbers has shape \(2, 2\) and goes with 2 of"):
            whiten(predicted, seen, np.eye(2))
