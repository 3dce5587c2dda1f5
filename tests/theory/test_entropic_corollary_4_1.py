"""Corollary 4.1 of EntroPIC (section 4.1, proof in appendix A.1), and what holds in its place (ours).

Assumption: binary rewards R, A = R − ρ with ρ = E[R], on-policy gradient of one state.
Statement: the positive samples alone lower the entropy, the negative ones alone raise it. It fails: see below.
Ours: weights (1+α) on A > 0 and (1−α) on A < 0 only rescale the step, E[Δz_α] = (1 + α(1 − 2ρ))·E[Δz_0].
"""

from math import log

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import covariance, derivative, mean, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import error_order, second, updated

from entrostat import StepStats, Tokens, make
from entrostat.entropy_change import policy_gradient
from toybandit.claims.entropic import expected_step
from toybandit.policy import Policy, logit_gradient, token_logp


def step(z, success, alpha, tau=0.0):
    """Return E[Δz] of EntroPIC's weights on the tokens of p > τ."""
    return expected_step(z[None, None], success[None, None], row(alpha), tau).flatten()


def test_positive_samples_that_raise_the_entropy():
    """Counter-example: p = .8, .1, .1, and only an arm of .1 is ever right. The step is .09·2·(e_1 − p), α = 1."""
    p = row(0.8, 0.1, 0.1)
    positive = step(p.log(), row(0, 1, 0), 1.0)
    same(positive, 0.18 * (row(0, 1, 0) - p))
    assert derivative(p.log(), positive) > 0.07


@theorem
@given(policies())
def test_the_step_of_the_proof(z):
    """Cov_p(log p, p) ≥ 0 does hold, but its step has the same A > 0 for every arm, which is not centred: by theorem 1
    of The Entropy Mechanism it moves nothing."""
    p = torch.softmax(z, -1)
    assert covariance(p, torch.log_softmax(z, -1), p) >= -1e-15


@theorem
@given(policies(), seeds, st.floats(-1, 1))
def test_collinearity(z, seed, alpha):
    success = vector(z, seed).abs()
    rate = mean(torch.softmax(z, -1), success)
    same(step(z, success, alpha), (1 + alpha * (1 - 2 * rate)) * step(z, success, 0.0))


def test_weights_on_some_tokens_turn_the_step():
    """Counter-example with τ = ½: only the likeliest arm is weighted, which is EntroPIC's control authority."""
    z, success = row(2, 1, 0), row(0.5, 0.6, 0.1)
    assert torch.cosine_similarity(step(z, success, 0.0, 0.5), step(z, success, 0.5, 0.5), dim=0) < 0.99


def test_rewards_that_are_not_binary():
    """Counter-example: three equal arms earn ½ always, 0 or 1 by a coin, and 0 always; ρ = ⅓.

    With α = ½ the coin gains on the arm that earns ½: E[A·w] is ¼, 5/12, −⅙ where E[A] is ⅙, ⅙, −⅓.
    """
    arm, share = torch.tensor([[[0, 1, 1, 2]]]), row(1 / 3, 1 / 6, 1 / 6, 1 / 3)
    policy = Policy(torch.zeros(1, 1, 3, dtype=torch.float64))
    logp, steps = token_logp(policy, arm), []
    for alpha in (0.0, 0.5):
        controller = make("entropic", target=0.0, kp=1.0, ki=0.0, tau=0.0)
        controller.observe(StepStats(entropy=row(alpha)))
        tokens = Tokens(logp=logp, old_logp=logp, advantage=row(1 / 6, 2 / 3, -1 / 3, -1 / 3)[None])
        dlogp, _ = controller.plan(tokens).coefficients(logp)
        steps.append(-logit_gradient(policy, arm, 4 * share * dlogp, None).flatten())
    same(torch.stack(steps), torch.stack([row(1 / 6, 1 / 6, -1 / 3), row(1 / 12, 1 / 4, -1 / 3)]) / 3)


@theorem
@given(st.integers(2, 16), st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))
def test_collinearity_where_the_policy_is_all_but_certain(arms, alpha, right, wrong):
    """1 − p = 1e-12: steps are of that size, and still rescaled alone."""
    z, success = torch.zeros(arms, dtype=torch.float64), torch.full((arms,), wrong, dtype=torch.float64)
    z[0], success[0] = log((arms - 1) * 1e12), right
    rate = mean(torch.softmax(z, -1), success)
    expected = (1 + alpha * (1 - 2 * rate)) * step(z, success, 0.0)
    torch.testing.assert_close(step(z, success, alpha), expected, rtol=1e-10, atol=1e-15)


def test_simulated():
    """EntroPIC's P control with H* far below and far above: α = ±½ only rescales the simulated update and its ΔH."""
    args = {"tau": 0.0, "kp": 1.0, "ki": 0.0, "alpha_max": 0.5}
    plain = updated(controller="clip_free", gradient="exact")
    rate = mean(plain.logp.exp(), plain.success).unsqueeze(-1)
    for target, alpha in ((0.0, 0.5), (5.0, -0.5)):
        found = updated(controller="clip_free+entropic", target=target, controller_args=args, gradient="exact")
        factor = 1 + alpha * (1 - 2 * rate)
        same(found.step, factor * plain.step)
        flow = policy_gradient(found.logp, found.success - rate)
        assert second(error_order(found, factor[:, 0] * flow))
        assert not second(error_order(found, flow))
