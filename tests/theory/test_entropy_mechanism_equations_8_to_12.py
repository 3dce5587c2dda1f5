"""Equations 8 to 12 of The Entropy Mechanism (section 4.1): scores of tokens, and the KL penalty on the highest.

Statement (8): the expectation of Cov(y) = (lp − mean lp)(A − mean A) is the covariance of theorem 2.
Assumption: the tokens of the mini-batch are of one state, or A has the same mean in each.
Statement (12, ours): strictly on-policy the penalty D_KL(π_old ‖ π) has no gradient, so KL-Cov is GRPO.
"""

import torch
from hypothesis import given
from tests.theory.policies import covariance, gradient, mean, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import RATES, updated

from entrostat.entropy_change import covariance as score
from entrostat.entropy_change import natural_policy_gradient


@theorem
@given(policies(), seeds)
def test_equation_8(z, seed):
    logp, advantage = torch.log_softmax(z, -1), vector(z, seed)
    p = logp.exp()
    found = mean(p, score(logp, advantage, mean(p, logp), mean(p, advantage)))
    same(found, -natural_policy_gradient(logp, advantage))


@theorem
@given(policies(largest=64), seeds)
def test_centred_advantages_of_two_states(z, seed):
    """The states' mean log p differs, their mean A does not: the mean score is the mean of their covariances."""
    states = torch.stack([z, z / 3 + vector(z, seed)])
    logp = torch.log_softmax(states, -1)
    p, advantage = logp.exp(), torch.stack([vector(z, seed + 1), vector(z, seed + 2)])
    advantage = advantage - mean(p, advantage).unsqueeze(-1)
    batch = covariance((p / 2).flatten(), logp.flatten(), advantage.flatten())
    same(batch, covariance(p[0], logp[0], advantage[0]) / 2 + covariance(p[1], logp[1], advantage[1]) / 2)


def test_states_of_different_mean_advantage():
    """Counter-example: a coin and a certain arm, with A = 0 and A = 1, have no covariance; the batch has ¼·ln 2."""
    share, logp, advantage = row(0.25, 0.25, 0.5), row(0.5, 0.5, 1).log(), row(0, 0, 1)
    same(mean(share, score(logp, advantage, mean(share, logp), mean(share, advantage))), 0.25 * row(2).log()[0])


@theorem
@given(policies(), seeds)
def test_equation_12(z, seed):
    """∇_z D_KL(π_old ‖ π) = π − π_old: 0 on-policy, and a pull to π_old elsewhere."""
    old = torch.softmax(z, -1)
    away = z + vector(z, seed)
    for at in (z, away):
        found = gradient(lambda z: -mean(old, torch.log_softmax(z, -1)), at)
        torch.testing.assert_close(found, torch.softmax(at, -1) - old, rtol=1e-9, atol=1e-12)


def test_simulated():
    """The mean score of sampled tokens foretells what the simulator's natural gradient does to the mean entropy.

    A share 1/G of the covariance is lost to the group's own mean, G = 16.
    """
    p = torch.softmax(torch.randn(32, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64), -1)
    table = tuple(map(tuple, (0.2 + 0.6 * p).tolist()))
    exact = updated(logits=p.log(), success=table, controller="clip_free", gradient="exact", update="npg")
    fall = -exact.change[-1].mean() / RATES[-1]
    scores = []
    for seed in range(24):
        tokens = updated(seed, p.log(), success=table, advantage="dr_grpo", group=16, controller="clip_free").tokens
        logp, advantage = tokens.get("logp")[0], tokens.advantage[0]
        scores.append(score(logp, advantage, logp.mean(), advantage.mean()).mean())
    found = torch.stack(scores) * 16 / 15
    error = found.std() / len(scores) ** 0.5
    assert error < 0.2 * fall
    assert (found.mean() - fall).abs() < 4 * error + RATES[-1] * fall


def test_simulated_kl_cov():
    """KL-Cov on every token: the same run as without a penalty if strictly on-policy; else the penalty pulls back."""
    for passes, is_same in ((1, True), (2, False)):
        kl_cov, free = (
            updated(controller=name, controller_args=args, advantage="grpo", group=8, passes=passes)
            for name, args in (("kl_cov", {"k": 1.0}), ("clip_free", {}))
        )
        assert torch.equal(kl_cov.step, free.step) is is_same
        assert is_same or kl_cov.step[0].norm() < free.step[0].norm()
