"""Lemma 1 of The Entropy Mechanism (section 3.1, proof in appendix C.2).

Assumption: the logits z of a state are free parameters.
Statement: a step Δz changes the entropy by ΔH = −Cov_{a~p}(log p_a, Δz_a) + O(‖Δz‖²).
"""

from math import log

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import derivative, entropy, policies, same, seeds, theorem, vector
from tests.theory.simulations import RATES, error_order, second, updated

from entrostat.entropy_change import lemma1


@theorem
@given(policies(), seeds)
def test_the_covariance_is_the_derivative(z, seed):
    step = vector(z, seed)
    same(lemma1(torch.log_softmax(z, -1), step), derivative(z, step))


@theorem
@given(policies(), seeds, st.floats(-3, 0))
def test_the_remainder_is_of_second_order(z, seed, log_size):
    """|ΔH + Cov| ≤ max(1, ln K / 4)·‖Δz‖∞²; the constant is ours."""
    step = 10**log_size * vector(z, seed).sign()
    remainder = entropy(z + step) - entropy(z) - lemma1(torch.log_softmax(z, -1), step)
    assert remainder.abs() <= max(1, log(len(z)) / 4) * 10 ** (2 * log_size) + 1e-14


@theorem
@given(policies(), seeds, st.floats(-50, 50))
def test_a_constant_in_the_step_or_the_logits_has_no_effect(z, seed, constant):
    step = vector(z, seed)
    moved = lemma1(torch.log_softmax(z + constant, -1), step - constant)
    torch.testing.assert_close(moved, lemma1(torch.log_softmax(z, -1), step), rtol=1e-9, atol=1e-11)


def test_no_constant_serves_every_vocabulary():
    """Counter-example to a constant without K: a fifth of the mass is spread evenly, and moves against one arm."""
    ratios = []
    for arms in (1000, 50_000):
        z, step = torch.zeros(arms, dtype=torch.float64), torch.full((arms,), 0.01, dtype=torch.float64)
        z[0], step[0] = log(4 * (arms - 1)), -0.01
        remainder = entropy(z + step) - entropy(z) - lemma1(torch.log_softmax(z, -1), step)
        ratios.append(float(remainder.abs()) / 0.01**2)
    assert 1 < ratios[0] < ratios[1] - 0.7


def test_simulated():
    """Three updates on sampled tokens, with a bonus: whatever made Δz, the covariance has all of the first order."""
    found = updated(controller="clip_higher+entropy_bonus", controller_args={"coef": 0.2}, passes=3, group=8)
    rates = torch.tensor(RATES, dtype=torch.float64).unsqueeze(-1)
    assert second(error_order(found, lemma1(found.logp, found.step) / rates))
    assert not second(error_order(found, lemma1(found.logp, found.step) / rates / 2))
