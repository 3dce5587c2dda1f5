"""First-order entropy change on policies of every kind: uniform, all but certain, with ties, of 2 to 50,000 arms."""

from math import log

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from entrostat import get_advantage, policy_stats
from entrostat.entropy_change import exact, lemma1, natural_policy_gradient, policy_gradient
from toybandit.claims.ensembles import median_order, random_logits, random_vector
from toybandit.claims.first_order import natural_gradient, remainder_ratio
from toybandit.claims.tokens import boundary, every_token

KINDS = ("uniform", "all but certain", "ties", "random")
CERTAIN = 1e-12
"""1 − p of the likeliest arm of a policy that is all but certain."""


def policy(kind: str, arms: int, seed: int = 0) -> torch.Tensor:
    """Logits (1, K) of a kind of policy."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.zeros(1, arms, dtype=torch.float64)
    if kind == "all but certain":
        logits[:, 0] = log((arms - 1) * (1 - CERTAIN) / CERTAIN)
    elif kind == "ties":
        logits = torch.randint(0, 3, (1, arms), generator=generator).double()
    elif kind == "random":
        logits = 3 * torch.randn(1, arms, generator=generator, dtype=torch.float64)
    return logits


def vector(arms: int, seed: int) -> torch.Tensor:
    """Numbers in (−1, 1), (1, K)."""
    return 2 * torch.rand(1, arms, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1


policies = st.builds(policy, st.sampled_from(KINDS), st.integers(2, 64), st.integers(0, 2**32 - 1))
seeds = st.integers(0, 2**32 - 1)
EXTREMES = [(kind, arms) for kind in KINDS for arms in (2, 50_000)]


def token_flows(logits: torch.Tensor) -> torch.Tensor:
    """Exact flow of each arm as the sampled token, of weight 1, (1, K)."""
    s = policy_stats(logits)
    return exact(s.logp, s.entropy.unsqueeze(-1), s.s2.unsqueeze(-1), s.s2l.unsqueeze(-1), torch.ones_like(logits))


def derivative(logits: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """Derivative of the entropy along a direction, by automatic differentiation of log-softmax, (1,)."""

    def entropy(z):
        logp = torch.log_softmax(z, -1)
        return -(logp.exp() * logp).sum(-1)

    return torch.func.jvp(entropy, (logits,), (direction,))[1]


@settings(derandomize=True, deadline=None)
@given(policies, seeds, st.floats(-3, 1))
def test_remainder_of_lemma_1(logits, seed, log_size):
    step = vector(logits.shape[-1], seed)
    ratio = remainder_ratio(logits, 10**log_size * step / step.abs().max())
    assert ratio.item() <= 1 + 1e-15 * 10 ** (-2 * log_size)  # and what rounding makes of ΔH


@pytest.mark.parametrize(("kind", "arms"), EXTREMES)
def test_remainder_of_lemma_1_at_the_extremes(kind, arms):
    for seed in range(3):
        assert remainder_ratio(policy(kind, arms, seed), 0.1 * vector(arms, seed).sign()).item() <= max(
            1, log(arms) / 4
        )


@settings(derandomize=True, deadline=None)
@given(policies, seeds)
def test_lemma_1_is_the_derivative(logits, seed):
    step = vector(logits.shape[-1], seed)
    torch.testing.assert_close(lemma1(policy_stats(logits).logp, step), derivative(logits, step), rtol=1e-9, atol=1e-14)


@settings(derandomize=True, deadline=None)
@given(policies, seeds)
def test_flow_of_a_token_is_the_derivative(logits, seed):
    arm = seed % logits.shape[-1]
    direction = torch.nn.functional.one_hot(torch.tensor([arm]), logits.shape[-1]) - torch.softmax(logits, -1)
    flow = token_flows(logits)[:, arm]
    torch.testing.assert_close(flow, derivative(logits, direction), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("kind", "arms"), EXTREMES)
def test_flow_of_a_token_at_the_extremes(kind, arms):
    """Where 1 − p = 1e-12 flows are of 1e-11, and logits near 40 leave rounding of 7e-15 in log p."""
    logits = policy(kind, arms)
    flow = token_flows(logits)
    for arm in (0, arms - 1):
        direction = -torch.softmax(logits, -1)
        direction[:, arm] += 1
        torch.testing.assert_close(flow[:, arm], derivative(logits, direction), rtol=1e-9, atol=1e-14)
    assert (torch.softmax(logits, -1) * flow).sum().abs() < 1e-14


@settings(derandomize=True, deadline=None)
@given(policies, seeds)
def test_flows_of_tokens_add(logits, seed):
    weight = vector(logits.shape[-1], seed)
    step = weight - torch.softmax(logits, -1) * weight.sum(-1, keepdim=True)
    total = (weight * token_flows(logits)).sum(-1)
    torch.testing.assert_close(total, derivative(logits, step), rtol=1e-9, atol=1e-13)


@settings(derandomize=True, deadline=None)
@given(policies)
@example(policy("uniform", 2))
@example(policy("uniform", 50_000))
@example(policy("all but certain", 2))
@example(policy("all but certain", 50_000))
@example(policy("ties", 50_000))
def test_sign_boundary(logits):
    """It lies above e^(−H), is the root, and every token is on the side that its flow says."""
    s = policy_stats(logits)
    star, flow = boundary(logits), token_flows(logits)
    assert (star >= (-s.entropy).exp() * (1 - 1e-12)).all()
    level = s.s2l + s.entropy * s.s2
    torch.testing.assert_close(star * (star.log() + s.entropy), level, rtol=1e-9, atol=1e-12)
    p = s.logp.exp()
    clear = (p / star.unsqueeze(-1) - 1).abs() > 1e-6
    assert torch.equal(clear & (p < star.unsqueeze(-1)), clear & (flow > 0))


@settings(derandomize=True, deadline=None)
@given(st.sampled_from(("uniform", "ties", "random")), st.integers(2, 12), seeds)
def test_pseudo_inverse_identity(kind, arms, seed):
    """The pseudo-inverse of the Fisher matrix times the gradient is the advantage without its mean, for any p > 0."""
    logits, advantage = policy(kind, arms, seed) / 2, vector(arms, seed)
    step = natural_gradient(policy_stats(logits).logp, advantage)
    torch.testing.assert_close(step, advantage - advantage.mean(-1, keepdim=True), rtol=0, atol=1e-9)


@settings(derandomize=True, deadline=None)
@given(policies, seeds, st.floats(-50, 50))
def test_logits_may_be_shifted(logits, seed, shift):
    torch.testing.assert_close(token_flows(logits + shift), token_flows(logits), rtol=1e-9, atol=1e-13)
    step = vector(logits.shape[-1], seed)
    same = lemma1(policy_stats(logits + shift).logp, step - shift)
    torch.testing.assert_close(same, lemma1(policy_stats(logits).logp, step), rtol=1e-9, atol=1e-12)


@settings(derandomize=True, deadline=None)
@given(policies, seeds)
def test_arms_may_be_permuted(logits, seed):
    order = torch.randperm(logits.shape[-1], generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(token_flows(logits[:, order]), token_flows(logits)[:, order], rtol=1e-9, atol=1e-14)
    torch.testing.assert_close(boundary(logits[:, order]), boundary(logits), rtol=1e-9, atol=1e-12)


@settings(derandomize=True, deadline=None)
@given(policies, seeds, st.floats(-5, 5))
def test_rewards_may_have_another_baseline(logits, seed, baseline):
    """Natural policy gradient does not see a constant in the advantage, nor do the estimators with a baseline."""
    logp, advantage = policy_stats(logits).logp, vector(logits.shape[-1], seed)
    shifted = natural_policy_gradient(logp, advantage + baseline)
    torch.testing.assert_close(shifted, natural_policy_gradient(logp, advantage), rtol=1e-9, atol=1e-12)
    reward, group = vector(16, seed), torch.arange(16) // 4
    for name in ("grpo", "dr_grpo", "rloo", "reinforce_pp"):
        estimate = get_advantage(name)
        torch.testing.assert_close(estimate(reward + baseline, group), estimate(reward, group), rtol=0, atol=1e-5)


def test_theorem_1_sees_the_baseline():
    """Its formula changes with a constant that leaves the true step as it is, so that it cannot hold for any A."""
    logp, advantage = policy_stats(policy("random", 8)).logp, vector(8, 1)
    assert (policy_gradient(logp, advantage + 1) - policy_gradient(logp, advantage)).abs().item() > 0.1


def test_theorem_2_needs_the_natural_gradient():
    logits, advantage = random_logits(40, 16, 2.0, "broken"), random_vector(40, 16, "broken advantage")
    p = torch.softmax(logits, -1)
    plain = p * (advantage - (p * advantage).sum(-1, keepdim=True))
    predicted = natural_policy_gradient(policy_stats(logits).logp, advantage)
    assert median_order(logits, advantage, predicted) == pytest.approx(2, abs=0.1)
    assert median_order(logits, plain, predicted) == pytest.approx(1, abs=0.1)


def test_flow_of_a_token_needs_all_logits():
    """Where a step moves the sampled token's logit alone, the flow of the full softmax gradient is not what happens."""
    logits = random_logits(40, 16, 2.0, "broken")
    flow, _ = every_token(logits, torch.ones_like(logits))
    own = torch.zeros_like(logits).index_fill(-1, torch.tensor(0), 1.0)
    assert median_order(logits, own, flow[:, 0]) == pytest.approx(1, abs=0.1)
