"""The policy: what tokens see, and the gradient that reaches the logits."""

import pytest
import torch

from entrostat import StepStats, Tokens, list_controllers, make, policy_stats
from entrostat.numbers.support import Support, truncated_entropy
from toybandit.policy import (
    Policy,
    logit_gradient,
    per_token,
    proxy_logp,
    token_logp,
    token_moments,
    truncated,
    truncated_gradient,
)

RUNS, STATES, SAMPLES, ARMS = 3, 5, 8, 7
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = 2 * torch.randn(RUNS, STATES, ARMS, generator=GENERATOR, dtype=torch.float64)
OLD = LOGITS + 0.4 * torch.randn(RUNS, STATES, ARMS, generator=GENERATOR, dtype=torch.float64)
ARM = torch.randint(ARMS, (RUNS, STATES, SAMPLES), generator=GENERATOR)
ADVANTAGE = 2 * torch.randn(RUNS, STATES * SAMPLES, generator=GENERATOR, dtype=torch.float64)
NONTRIVIAL = {
    "entropic": {"tau": 0.0},
    "adaptive_entropy": {"initial": 0.004, "target": 5.0},
    "clip_cov": {"k": 0.1},
    "lp_reg": {"share": 0.5},
    "siren": {"beta": 0.5, "tau": 0.5, "per_response": False},
    "truncated_entropy_bonus": {"coef": 0.5, "top_k": 3},
}
ANCHOR = {"siren/entropy": 2.0, "siren/updates": 1.0}
"""Info of the plans of a first rollout."""


def tokens() -> Tokens:
    policy, old = Policy(LOGITS), Policy(OLD)
    return Tokens(
        logp=token_logp(policy, ARM),
        old_logp=token_logp(old, ARM),
        advantage=ADVANTAGE,
        entropy=per_token(policy.entropy, ARM),
        old_entropy=per_token(old.entropy, ARM),
        seq_id=torch.arange(STATES * SAMPLES),
        group_id=torch.arange(STATES).repeat_interleave(SAMPLES),
        position=torch.zeros(STATES * SAMPLES, dtype=torch.int64),
        turn_id=torch.zeros(STATES * SAMPLES, dtype=torch.int64),
        reward=(ADVANTAGE > 0).double(),
        ref_logp=token_logp(old, ARM),
        rollout_logp=token_logp(policy, ARM),
        truncated_entropy=per_token(policy.entropy, ARM),
        proxy_logp=proxy_logp(old, Support(min_p=0.02), ARM),
        **token_moments(policy, ARM, {"s2", "s2l", "s2ll"}),
    )


@pytest.mark.parametrize("name", list_controllers())
def test_logit_gradient_is_that_of_autograd(name):
    controller = make(name, **NONTRIVIAL.get(name, {}))
    entropy = torch.tensor([0.2, 0.9, 1.5], dtype=torch.float64)
    controller.observe(StepStats(entropy=entropy, planned=ANCHOR, total_steps=4))
    seen = tokens()
    plan = controller.plan(seen, seed=torch.arange(RUNS))
    ours = logit_gradient(Policy(LOGITS), ARM, *plan.coefficients(seen.get("logp"), seen.get("entropy")))
    support = controller.support
    if support is not None:
        ours = ours + truncated_gradient(Policy(LOGITS), support, ARM, plan.truncated_coefficient())
    logits = LOGITS.clone().requires_grad_()
    policy = Policy(logits)
    inside = None if support is None else per_token(truncated_entropy(logits, support), ARM)
    plan.loss(token_logp(policy, ARM), per_token(policy.entropy, ARM), truncated_entropy=inside).sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() > 1e-4
    torch.testing.assert_close(ours, logits.grad, rtol=0, atol=1e-12)


def test_logit_gradient_in_a_tree_is_that_of_autograd():
    """Three nodes a prompt: of log π, of the entropy and of the truncated entropy at the node of each token."""
    generator, support = torch.Generator().manual_seed(1), Support(top_k=2)
    logits = torch.randn(RUNS, STATES * 3, ARMS, generator=generator, dtype=torch.float64, requires_grad=True)
    node = torch.randint(3, ARM.shape, generator=generator)
    dlogp, dentropy, dtail = torch.randn(3, RUNS, STATES * SAMPLES, generator=generator, dtype=torch.float64)

    def at_node(x: torch.Tensor) -> torch.Tensor:
        run, prompt, _ = torch.meshgrid(*map(torch.arange, ARM.shape), indexing="ij")
        return x.unflatten(1, (STATES, 3))[run, prompt, node]

    logp = at_node(logits.log_softmax(-1)).gather(-1, ARM.unsqueeze(-1))
    values = (logp, at_node(policy_stats(logits).entropy), at_node(truncated_entropy(logits, support)))
    sum((d * x.reshape(d.shape)).sum() for d, x in zip((dlogp, dentropy, dtail), values, strict=True)).backward()
    policy, arm = Policy(logits.detach()), node * ARMS + ARM
    torch.testing.assert_close(token_logp(policy, arm), values[0].detach().reshape(RUNS, -1), rtol=1e-12, atol=0)
    ours = logit_gradient(policy, arm, dlogp, dentropy, node) + truncated_gradient(policy, support, arm, dtail, node)
    torch.testing.assert_close(ours, logits.grad, rtol=0, atol=1e-12)


def test_tokens_see_their_own_state():
    policy = Policy(LOGITS)
    stats = policy_stats(LOGITS)
    moments = token_moments(policy, ARM, {"s2", "s2ll"})
    assert set(moments) == {"s2", "s2ll"}
    logp = token_logp(policy, ARM)
    for token in (0, 7, 8, STATES * SAMPLES - 1):
        state, sample = divmod(token, SAMPLES)
        expected = torch.stack([stats.logp[run, state, ARM[run, state, sample]] for run in range(RUNS)])
        torch.testing.assert_close(logp[:, token], expected, rtol=1e-14, atol=0)
        assert torch.equal(moments["s2ll"][:, token], stats.s2ll[:, state])
    torch.testing.assert_close(policy.entropy, stats.entropy, rtol=1e-14, atol=0)


def test_the_proxy_is_the_policy_of_each_node_without_its_noise():
    """Two nodes a prompt, of three actions: the last of the first node is noise, and none of the second."""
    p = torch.tensor([[[0.6, 0.3, 0.1], [0.4, 0.3, 0.3]]], dtype=torch.float64)
    found = proxy_logp(Policy(p.log()), Support(min_p=0.4), torch.arange(6)[None, None]).exp()
    expected = torch.tensor([[2 / 3, 1 / 3, 0, 0.4, 0.3, 0.3]], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_truncated_entropy_of_every_state():
    logp, entropy = truncated(Policy(LOGITS), Support(top_k=2))
    two = LOGITS.topk(2).values.softmax(-1)
    torch.testing.assert_close(entropy, -(two * two.log()).sum(-1), rtol=1e-12, atol=0)
    assert (logp > -torch.inf).sum(-1).eq(2).all()


def test_no_moments_unless_needed():
    assert token_moments(Policy(LOGITS), ARM, {"logp", "entropy"}) == {}
