from math import exp, log

import pytest
import torch

from entrostat import Tokens, make, policy_stats
from entrostat.numbers.kl import kl_estimate

LOGP = torch.tensor([log(0.5), log(0.2)], dtype=torch.float64)
REF = torch.tensor([log(0.25), log(0.4)], dtype=torch.float64)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        ("k1", [log(2), -log(2)]),
        ("k2", [log(2) ** 2 / 2, log(2) ** 2 / 2]),
        ("k3", [0.5 - log(0.5) - 1, 2 - log(2) - 1]),  # ratios .5 and 2 of the reference
    ],
)
def test_by_hand(estimator, expected):
    assert kl_estimate(LOGP, REF, estimator).tolist() == pytest.approx(expected, rel=1e-14)
    tokens = Tokens(logp=LOGP, old_logp=LOGP, advantage=torch.zeros(2).double(), ref_logp=REF)
    loss = make("kl_ref", beta=0.3, estimator=estimator).plan(tokens).loss(LOGP)
    assert loss.item() == pytest.approx(0.3 * sum(expected) / 2, rel=1e-14)


def expectations(estimator: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean estimate over samples of π, mean of its gradient in the logits, and the logits' gradient of KL itself."""
    z = torch.tensor([0.3, -1.0, 0.9], dtype=torch.float64, requires_grad=True)
    ref = policy_stats(torch.tensor([1.0, 0.0, -0.5], dtype=torch.float64)).logp
    logp = torch.log_softmax(z, -1)
    p = logp.detach().exp()
    estimate = (p * kl_estimate(logp, ref, estimator)).sum()
    divergence = (logp.exp() * (logp - ref)).sum()
    found, expected = (torch.autograd.grad(x, z, retain_graph=True)[0] for x in (estimate, divergence))
    return estimate - divergence, found, expected


def test_k1_and_k3_are_unbiased_and_only_k2_has_the_gradient_of_the_divergence():
    for estimator in ("k1", "k3"):
        assert abs(expectations(estimator)[0]) < 1e-14
    _, none, expected = expectations("k1")
    assert none.abs().max() < 1e-14
    torch.testing.assert_close(expectations("k2")[1], expected, rtol=1e-12, atol=1e-14)
    assert (expectations("k3")[1] - expected).abs().max() > 0.01


def test_k3_of_the_reverse_divergence():
    """The mean gradient of k3 is that of KL(π_ref ‖ π): p − π_ref in the logits."""
    z = torch.tensor([0.3, -1.0, 0.9], dtype=torch.float64)
    ref = torch.softmax(torch.tensor([1.0, 0.0, -0.5], dtype=torch.float64), -1)
    torch.testing.assert_close(expectations("k3")[1], torch.softmax(z, -1) - ref, rtol=1e-12, atol=1e-14)


def test_far_references_stay_finite():
    far = kl_estimate(torch.tensor([-900.0, 0.0]), torch.tensor([0.0, -900.0]), "k3")
    assert far.tolist() == pytest.approx([exp(20) - 1 - 900, exp(-20) - 1 + 900], rel=1e-5)


def test_bad_settings_and_twice():
    with pytest.raises(ValueError, match="estimator must be one of k1, k2, k3"):
        make("kl_ref", estimator="k4")
    with pytest.raises(ValueError, match="beta must not be negative"):
        make("kl_ref", beta=-1.0)
    tokens = Tokens(logp=LOGP, old_logp=LOGP, advantage=LOGP, ref_logp=REF)
    plan = make("kl_ref").plan(tokens)
    with pytest.raises(ValueError, match="already has a penalty"):
        plan.add_ref_kl(torch.zeros(1), REF, "k1")
    with pytest.raises(ValueError, match=r"'kl_ref' needs Tokens\.ref_logp"):
        make("kl_ref").plan(Tokens(logp=LOGP, old_logp=LOGP, advantage=LOGP))
