"""Equation 7 of The Entropy Mechanism (section 3.3): whole responses y of L tokens as the actions of theorem 1.

Assumption: one table of logits over all responses; the log-probability is divided by L.
Statement: −ΔH ∝ Cov_{y~π}(log π(y), π(y)·A(y)).
"""

from math import log

import numpy as np
import torch
from hypothesis import given
from tests.theory.policies import covariance, derivative, mean, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import error_order, second, updated

from entrostat.entropy_change import policy_gradient
from toybandit import Config, simulate


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


def test_simulated_table_over_responses():
    """Nine responses of two tokens as the arms of a state; the equation without 1/L, which only rescales the step."""
    tokens = torch.randn(32, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    joint = (tokens.unsqueeze(-1) + tokens.unsqueeze(-2)).flatten(1)
    found = updated(logits=joint, arms=9, controller="clip_free", gradient="exact")
    p = found.logp.exp()
    centred = found.success - mean(p, found.success).unsqueeze(-1)
    assert second(error_order(found, policy_gradient(found.logp, centred)))


def test_simulated_table_for_each_token():
    """Counter-example in the simulator, arms ¾, ¼ at two tokens that earn 1 and 0: the mean entropy of the tokens falls
    by Cov_p(log p, p·E[A | token])/L, not by equation 7."""
    p, eta, prompts = row(0.75, 0.25), 0.01, 400
    tree = {"length": 2, "branching": 1, "arms": 2, "right_arms": 1, "logit_std": 0.0, "group": 64}
    tables = {"logits": (tuple(p.log().tolist()),), "success": ((1.0, 0.0),)}
    config = Config(
        states=prompts, rollouts=1, passes=1, lr=eta, advantage="rloo", controller="clip_free", **tree, **tables
    )
    run = simulate(config, range(4))
    entropies = -(run.probabilities * np.log(run.probabilities)).sum(-1)
    falls = torch.from_numpy(entropies + mean(p, p.log()).item()).flatten() / -eta
    measured, error = falls.mean(), falls.std() / len(falls) ** 0.5
    gain = row(1 - 0.75, 0 - 0.75) / 2  # E[A | token]: half of the reward is the token's own
    token = covariance(p, p.log(), p * gain) / 2
    response, advantage = torch.outer(p, p).flatten(), row(0.25, -0.25, -0.25, -0.75)
    whole = covariance(response, response.log() / 2, response * advantage)
    assert abs(measured - token) < 4 * error + eta * token
    assert abs(measured - whole) > 10 * error
