"""Clip-Cov and KL-Cov on four tokens whose covariances are 3, 1, 1, 3 by hand."""

from dataclasses import replace

import pytest
import torch
from helpers import sampled_tokens

from entrostat import CompositionWarning, LocalReduce, StepStats, Tokens, make
from entrostat.controller import Context
from entrostat.controllers.covariance import token_covariance

# mean lp −2.5, mean A 0: cov = (−1.5·−2, −.5·−2, .5·2, 1.5·2)
LOGP = torch.tensor([-4.0, -3.0, -2.0, -1.0], dtype=torch.float64)
ADVANTAGE = torch.tensor([-2.0, -2.0, 2.0, 2.0], dtype=torch.float64)


def tokens(old=LOGP) -> Tokens:
    return Tokens(logp=LOGP, old_logp=old, advantage=ADVANTAGE)


def covariance(logp: torch.Tensor, advantage: torch.Tensor) -> list[float]:
    t = Tokens(logp=logp, old_logp=logp, advantage=advantage)
    return token_covariance(Context(t, LocalReduce(), seed=0, step=0)).tolist()


def test_clip_cov_drops_only_within_the_band():
    plan = make("clip_cov", k=0.5, omega_low=2.0).plan(tokens())
    assert plan.weight.tolist() == [0, 1, 1, 0]
    assert plan.keep.tolist() == [False, True, True, False]
    outside = make("clip_cov", k=0.5, omega_low=5.0, omega_high=9.0).plan(tokens())
    assert outside.weight.tolist() == [1, 1, 1, 1]
    strict = make("clip_cov", k=1.0, omega_low=1.0, omega_high=3.0).plan(tokens())
    assert strict.weight.tolist() == [1, 1, 1, 1]  # both bounds are exclusive


def test_clip_cov_draws_at_least_one():
    plan = make("clip_cov", k=1e-9, omega_low=2.0).plan(tokens())
    assert sorted(plan.weight.tolist()) == [0, 1, 1, 1]


def test_clip_cov_draws_only_tokens_that_clipping_leaves_alive():
    old = LOGP - torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=torch.float64)  # last ratio e > 1 + 1
    for preset in ("paper", "released"):
        plan = make("clip_cov", preset, k=0.5, omega_low=2.0).plan(tokens(old))
        assert plan.weight.tolist() == [0, 1, 1, 1]
    every = make("clip_cov", k=0.5, omega_low=2.0, exclude_clipped=False).plan(tokens(old))
    assert every.weight.tolist() == [0, 1, 1, 0]


def test_clip_cov_needs_a_band():
    for low in (3.0, 4.0):
        with pytest.raises(ValueError, match="omega_low must be below omega_high"):
            make("clip_cov", omega_low=low, omega_high=3.0)


def test_clip_cov_draw_is_uniform_over_candidates():
    t = sampled_tokens(3000, 20)
    spec = make("clip_cov", k=0.05, omega_low=-100.0, omega_high=100.0)
    dropped = (spec.plan(t, seed=torch.arange(3000)).weight == 0).double()
    assert dropped.sum(-1).unique().tolist() == [1]
    # 3000 draws of one in 20: each share is .05 ± .004; five standard deviations fail once in 90,000 runs of 20
    assert (dropped.mean(0) - 0.05).abs().max() < 5 * (0.05 * 0.95 / 3000) ** 0.5


def test_kl_cov_penalises_the_largest():
    t = tokens(old=LOGP - 0.5)
    plan = make("kl_cov", k=0.5, beta=0.7).plan(t)
    assert plan.kl_coef.tolist() == [0.7, 0, 0, 0.7]
    assert plan.loss(LOGP).item() == pytest.approx(make("clip_free").plan(t).loss(LOGP).item() + 0.7 * 0.5 * 2 / 4)


def test_kl_cov_is_plain_policy_gradient_strictly_on_policy():
    t = tokens()
    grads = [make(spec).plan(t).coefficients(LOGP)[0] for spec in ("kl_cov", "clip_free", "grpo")]
    assert torch.equal(grads[0], grads[1])
    assert torch.equal(grads[0], grads[2])


@pytest.mark.parametrize(("dtype", "noise"), [(torch.float32, 3e-7), (torch.float64, 1e-15)])
def test_kl_cov_takes_no_rounding_for_a_step(dtype, noise):
    """Sums in another order change log-probabilities by a few units of their last place: no penalty, either way."""
    g = torch.Generator().manual_seed(0)
    old = -3 * torch.rand(64, generator=g, dtype=dtype)
    advantage = torch.randn(64, generator=g, dtype=dtype)
    plan = make("kl_cov", k=0.5).plan(Tokens(logp=old, old_logp=old, advantage=advantage))
    plain = make("grpo").plan(Tokens(logp=old, old_logp=old, advantage=advantage))
    cut = (old + noise * torch.randn(64, generator=g, dtype=dtype)).requires_grad_()
    for found in (plan.coefficients(cut)[0], torch.autograd.grad(plan.loss(cut), cut)[0]):
        torch.testing.assert_close(found, plain.coefficients(cut)[0], rtol=1e-5, atol=0)
    moved = old + 1e-4
    assert (plan.coefficients(moved)[0] != plain.coefficients(moved)[0]).sum() == 32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_kl_cov_sees_steps_in_narrow_log_probabilities(dtype):
    old = torch.full((8,), -2.0, dtype=dtype)
    advantage = torch.tensor([1.0, -1.0] * 4, dtype=dtype)
    plan = make("kl_cov", k=1.0).plan(Tokens(logp=old, old_logp=old, advantage=advantage))
    plain = make("grpo").plan(Tokens(logp=old, old_logp=old, advantage=advantage))
    moved = old + 0.0625
    assert (plan.coefficients(moved)[0] != plain.coefficients(moved)[0]).all()


def test_means_are_of_the_mini_batch_and_of_finite_numbers():
    """Mean lp −2.5 without the infinite one, mean A 3."""
    logp = torch.tensor([-4.0, -3.0, -2.0, -1.0, -torch.inf], dtype=torch.float64)
    advantage = torch.tensor([-1.0, -1.0, 4.0, 2.0, 11.0], dtype=torch.float64)
    assert covariance(logp, advantage) == [6, 2, 0.5, -1.5, 0]
    for first in (-torch.inf, -2.0):
        assert covariance(torch.tensor([first, -torch.inf]), torch.tensor([1.0, -1.0])) == [0, 0]


def test_no_covariance_where_numbers_differ_from_their_mean_by_rounding():
    equal, advantage = torch.full((3,), -12.7, dtype=torch.float64), torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
    assert equal.mean() != equal[0]
    assert covariance(equal, advantage) == covariance(advantage - 13, equal) == [0, 0, 0]


def test_implied_surrogates():
    assert repr(make("clip_cov").surrogate).startswith("PPO")
    assert make("clip_cov").surrogate.eps_high == 1.0
    assert make("kl_cov").surrogate.name == "clip_free"
    assert make("clip_higher+clip_cov").surrogate.eps_high == 0.28
    with pytest.raises(ValueError, match="imply different surrogates"):
        make("clip_cov+kl_cov")


def test_kl_cov_tells_that_it_is_idle_on_policy():
    rule, t = make("kl_cov", k=0.5), tokens()
    rule.plan(replace(t, logp=t.old_logp))
    with pytest.warns(CompositionWarning, match="'kl_cov' is without effect"):
        rule.observe(StepStats(entropy=1.0))
