"""What weights by the sign of A can do, where P control rests, and which PI loops are stable."""

from dataclasses import replace
from math import log

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from entrostat import StepStats, Tokens, make, pi_control
from toybandit.claims.entropic import alpha_star, collinearity_error, expected_step
from toybandit.claims.feedback import stability_mismatches
from toybandit.environments import ENVIRONMENTS
from toybandit.policy import Policy, logit_gradient, token_logp


def state(logits: list[float], success: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """One run of one state."""
    return torch.tensor([[logits]], dtype=torch.float64), torch.tensor([[success]], dtype=torch.float64)


def number(x: float) -> torch.Tensor:
    return torch.tensor([x], dtype=torch.float64)


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 24), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 3.0]), st.floats(-2, 2))
@example(arms=2, seed=0, spread=0.0, alpha=1.0)
@example(arms=50_000, seed=0, spread=3.0, alpha=-1.0)
def test_collinearity(arms, seed, spread, alpha):
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(1, 1, arms, generator=generator, dtype=torch.float64)
    success = torch.rand(1, 1, arms, generator=generator, dtype=torch.float64)
    assert collinearity_error(logits, success, number(alpha)) < 1e-10


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 16), st.floats(-2, 2), st.floats(0, 1), st.floats(0, 1))
def test_collinearity_of_a_policy_that_is_all_but_certain(arms, alpha, right, wrong):
    """1 − p = 1e-12: the steps are of that size, and rounding is seen at 1e-16."""
    logits, success = state([log((arms - 1) * 1e12)] + [0.0] * (arms - 1), [right] + [wrong] * (arms - 1))
    base, step = (expected_step(logits, success, number(a)) for a in (0.0, alpha))
    rate = (torch.softmax(logits, -1) * success).sum()
    assert base.abs().max() < 1e-11
    torch.testing.assert_close(step, (1 + alpha * (1 - 2 * rate)) * base, rtol=1e-10, atol=1e-15)


def test_collinearity_needs_weights_on_all_tokens():
    """With τ above 0 some tokens are left alone, and the step turns: that is the control authority of EntroPIC."""
    logits, success = state([2.0, 1.0, 0.0], [0.5, 0.6, 0.1])
    base, step = (expected_step(logits, success, number(a), tau=0.5).flatten() for a in (0.0, 0.5))
    assert torch.softmax(logits, -1).max() > 0.5
    assert torch.cosine_similarity(base, step, dim=0) < 0.99


def test_collinearity_needs_binary_rewards():
    """Three equal arms that earn ½ always, 0 or 1 by a coin, and 0 always: ρ = ⅓, two arms are as good as each other.

    With α = ½ the coin's successes count 1.5 times and its failures half, so that it gains on the arm that earns ½:
    E[A·w] is ¼, 5/12 and −⅙ where E[A] is ⅙, ⅙ and −⅓.
    """
    arm, share = torch.tensor([[[0, 1, 1, 2]]]), torch.tensor([[1 / 3, 1 / 6, 1 / 6, 1 / 3]], dtype=torch.float64)
    advantage = torch.tensor([[1 / 6, 2 / 3, -1 / 3, -1 / 3]], dtype=torch.float64)
    policy = Policy(torch.zeros(1, 1, 3, dtype=torch.float64))
    logp, steps = token_logp(policy, arm), []
    for alpha in (0.0, 0.5):
        controller = make("entropic", target=0.0, kp=1.0, ki=0.0, tau=0.0)
        controller.observe(StepStats(entropy=number(alpha)))
        dlogp, _ = controller.plan(Tokens(logp=logp, old_logp=logp, advantage=advantage)).coefficients(logp)
        steps.append(-logit_gradient(policy, arm, 4 * share * dlogp, None).flatten())
    expected = torch.tensor([[1 / 6, 1 / 6, -1 / 3], [1 / 12, 1 / 4, -1 / 3]], dtype=torch.float64) / 3
    torch.testing.assert_close(torch.stack(steps), expected)


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 64), st.floats(0.51, 0.999), st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_fixed_point(arms, p, q1, q2):
    """α* leaves no drift of the right arm's logit against the others; half of it does."""
    assume(q1 - q2 > 0.01)
    environment = replace(ENVIRONMENTS["exact"], arms=arms, reward_right=q1, reward_wrong=q2, right_arms=1)
    logits, success = state([log(p / (1 - p) * (arms - 1))] + [0.0] * (arms - 1), [q1] + [q2] * (arms - 1))
    star = float(alpha_star(torch.tensor(p, dtype=torch.float64), environment))
    rest, half = (expected_step(logits, success, number(-a), tau=0.5).flatten() for a in (star, star / 2))
    assert (rest[0] - rest[1]).abs() < 1e-14
    assert half[0] - half[1] > 1e-6


@settings(derandomize=True, deadline=None)
@given(st.floats(0.01, 10), st.floats(-0.5, 2.5), st.floats(-0.5, 4.5))
def test_stability_region(g, s, c):
    """A loop whose gains are 1% inside the region forgets where it started; 1% outside it does not."""
    assume(min(abs(s), abs(s - 2), abs(c), abs(2 * s + c - 4)) > 0.01)
    step = pi_control.transition(g, s / g, c / g)
    later = torch.linalg.matrix_power(step, 2**14).abs().max()
    assert bool(pi_control.stable(g, s / g, c / g)) == bool(later < 1)


def test_stability_of_random_loops():
    assert stability_mismatches(20_000)[0] == 0


@pytest.mark.parametrize(
    ("kp", "ki", "settles"),
    [(1.9, 0.1, True), (2.1, 0.1, False), (0.5, 2.9, True), (0.5, 3.1, False), (1.0, -0.1, False)],
)
def test_stability_of_loops_that_are_run(kp, ki, settles):
    """With g = 1 and a drift: the integral removes it where the loop is stable."""
    errors = pi_control.step_response(1.0, kp, ki, error=0.1, drift=0.05, steps=3000)
    assert bool(errors[-100:].abs().max() < 1e-6) == settles
