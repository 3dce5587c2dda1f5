"""Equation 7 of The Entropy Mechanism (section 3.3): whole responses y of L tokens as the actions of theorem 1.

Assumption: one table of logits over all responses; the log-probability is divided by L.
Statement: −ΔH ∝ Cov_{y~π}(log π(y), π(y)·A(y)).
"""

from math import log

import torch
from hypothesis import given
from tests.theory.policies import covariance, derivative, mean, policies, row, same, seeds, theorem, vector


@theorem
@given(policies(largest=64), seeds)
def test_a_table_over_responses(z, seed):
    """Two tokens, K² responses with a logit each: theorem 1 for the entropy of the response."""
    joint = (z.unsqueeze(-1) + z).flatten()
    p, advantage = torch.softmax(joint, -1), vector(joint, seed)
    advantage = advantage - mean(p, advantage)
    same(-covariance(p, torch.log_softmax(joint, -1), p * advantage), derivative(joint, p * advantage))


def test_a_table_for_each_token():
    """Counter-example: arms ¾, ¼ at both tokens, and the likeliest response alone is right.

    A token's step is p·E[A | token] = ±9/64, so its entropy falls by 27/512·ln 3; equation 7 gives 189/4096·ln 3, ⅞.
    """
    p, advantage = row(0.75, 0.25), row(7, -9, -9, -9) / 16
    response = torch.outer(p, p).flatten()
    step = (response * advantage).reshape(2, 2).sum(-1)
    same(derivative(p.log(), step), row(-27 / 512 * log(3))[0])
    same(covariance(response, response.log() / 2, response * advantage), row(189 / 4096 * log(3))[0])
