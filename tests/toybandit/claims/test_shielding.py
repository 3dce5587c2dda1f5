"""What a penalty does to a token, against autograd and against updates of a policy, on instances of Hypothesis."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from entrostat import policy_stats
from toybandit.claims.registry import Effort
from toybandit.claims.shielding import least_likely, pushed_down, shielded

EFFORT = Effort(instances=1, runs=3, states=8, rollouts=20)
SEEDS = st.integers(0, 2**31)


def random_logits(arms: int, spread: float, seed: int) -> torch.Tensor:
    return spread * torch.randn(4, arms, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(2, 30), st.floats(0.1, 5), st.floats(0.01, 0.9), SEEDS)
def test_the_least_likely_action_that_is_no_noise(arms, spread, min_p, seed):
    p = policy_stats(random_logits(arms, spread, seed)).logp.exp()
    logp, proxy = least_likely(p.log(), min_p)
    for row, own, told in zip(p, logp.exp(), proxy.exp(), strict=True):
        kept = row[row >= min_p * row.max()]
        assert float(own) == pytest.approx(float(kept.min()), rel=1e-12)
        assert float(told) == pytest.approx(float(kept.min() / kept.sum()), rel=1e-12)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.floats(0.05, 0.99), st.floats(-4, -0.1), st.floats(0.1, 10), SEEDS)
def test_the_push_is_the_slope_of_the_loss(ratio, advantage, beta, seed):
    old, proxy = least_likely(random_logits(12, 2.0, seed))
    assume(bool((ratio * old.exp() < 0.999 * proxy.exp()).all()))
    logp = (old + torch.tensor(ratio, dtype=torch.float64).log()).requires_grad_()
    r, x = (logp - old).exp(), proxy - logp
    penalty = beta * (x.exp() - x - 1)
    plain, whole = pushed_down(old, proxy, ratio, advantage, beta)
    for found, loss in ((plain, -r * advantage), (whole, -r * advantage + penalty)):
        (slope,) = torch.autograd.grad(loss.sum(), logp, retain_graph=True)
        torch.testing.assert_close(found, slope, rtol=1e-10, atol=1e-12)


def test_runs_start_from_the_same_policies_and_differ_after():
    runs = [run for found in shielded(EFFORT).values() for run in found.values()]
    assert len(runs) == 6
    assert all((run.entropy[:, 0] == runs[0].entropy[:, 0]).all() for run in runs)
    assert len({float(run.entropy[:, -1].mean()) for run in runs[3:]}) == 3
