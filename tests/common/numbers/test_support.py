from math import log

import pytest
import torch

from entrostat import StepStats, Tokens, make
from entrostat.numbers.support import Support, truncated_entropy, truncated_logp

P = torch.tensor([0.1, 0.4, 0.2, 0.3], dtype=torch.float64)


@pytest.mark.parametrize(
    ("support", "expected"),
    [
        (Support(), [True] * 4),
        (Support(top_k=2), [False, True, False, True]),
        (Support(top_p=0.39), [False, True, False, False]),
        (Support(top_p=0.41), [False, True, False, True]),
        (Support(top_p=0.71), [False, True, True, True]),
        (Support(top_k=1, top_p=0.9), [False, True, False, False]),
        (Support(top_k=9), [True] * 4),
        (Support(min_p=0.26), [False, True, True, True]),
        (Support(min_p=0.24), [True] * 4),
        (Support(min_p=1.0), [False, True, False, False]),
        (Support(min_p=0.6, top_k=3), [False, True, False, True]),
        (Support(min_p=0.26, top_k=2), [False, True, False, True]),
    ],
)
def test_which_actions_count(support, expected):
    assert support.mask(P.log()).tolist() == expected


def test_a_temperature_acts_on_what_is_left():
    found = truncated_logp(P.log(), Support(top_k=2, temperature=torch.tensor(0.5))).exp()
    assert found.tolist() == pytest.approx([0, 16 / 25, 0, 9 / 25], rel=1e-12)


def test_every_run_its_own():
    support = Support(top_k=torch.tensor([1.0, 3.0]), top_p=torch.tensor([1.0, 0.5]))
    found = support.mask(P.log().expand(2, 5, 4))
    assert found[:, 2].tolist() == [[False, True, False, False], [False, True, False, True]]
    found = Support(min_p=torch.tensor([0.6, 0.4])).mask(P.log().expand(2, 5, 4))
    assert found[:, 2].tolist() == [[False, True, False, True], [False, True, True, True]]


def test_entropy_of_the_renormalised_policy():
    q = (4 / 7, 3 / 7)
    expected = -sum(x * log(x) for x in q)
    assert truncated_entropy(P.log(), Support(top_k=2)).item() == pytest.approx(expected, rel=1e-14)
    assert truncated_entropy(P.log() + 3.0, Support(top_k=2)).item() == pytest.approx(expected, rel=1e-14)
    inside = truncated_logp(P.log(), Support(top_k=2))
    assert inside.exp().tolist() == pytest.approx([0, 4 / 7, 0, 3 / 7], rel=1e-14)


def test_gradient_is_that_of_the_entropy_inside_and_zero_outside():
    z = P.log().requires_grad_()
    h = truncated_entropy(z, Support(top_k=2))
    (found,) = torch.autograd.grad(h, z)
    expected = [0, *(-4 / 7 * (log(4 / 7) + h.item()),), 0, -3 / 7 * (log(3 / 7) + h.item())]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


def tokens(**fields) -> Tokens:
    zero = torch.zeros(2, dtype=torch.float64)
    return Tokens(logp=zero, old_logp=zero, advantage=zero, **fields)


def test_the_bonus_multiplies_what_is_passed_to_loss():
    h = torch.tensor([0.5, 1.5], dtype=torch.float64)
    c = make("truncated_entropy_bonus", coef=0.3, top_k=5)
    assert (c.support.top_k, c.support.top_p) == (5, 1.0)
    plan = c.plan(tokens(truncated_entropy=h))
    assert plan.loss(torch.zeros(2).double(), truncated_entropy=h).item() == pytest.approx(-0.3, rel=1e-15)
    assert plan.truncated_coefficient().tolist() == pytest.approx([-0.15, -0.15], rel=1e-15)
    assert plan.active().all()
    assert make("entropy_bonus").support is None
    assert make("ppo").plan(tokens()).truncated_coefficient() is None


def test_an_entropy_over_all_actions_is_not_taken_for_it():
    c = make("truncated_entropy_bonus")
    c.observe(StepStats(entropy=1.0))
    plan = c.plan(tokens(entropy=torch.ones(2)))
    with pytest.raises(ValueError, match="pass truncated_entropy to loss"):
        plan.loss(torch.zeros(2), torch.ones(2))


@pytest.mark.parametrize("settings", [{"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}])
def test_bad_settings(settings):
    with pytest.raises(ValueError, match="must"):
        make("truncated_entropy_bonus", **settings)
