"""Zero net flow of OPEFO (section 5, equations 7 to 9).

Assumption: the flows φ_t of the tokens are exact, and some raise the entropy (P = Σφ⁺) while others lower it (M = Σφ⁻).
Statement: λ* = (M − P)/(M + P) is the only λ with (1+λ)P = (1−λ)M, and the update so weighted leaves H as it is, up to
O(η²).
"""

from math import log

import torch
from hypothesis import given
from tests.theory.policies import derivative, entropy, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import order, second, updated

from entrostat import Tokens, make
from entrostat.entropy_change import exact


def weights(z, advantage, estimator):
    """Return OPEFO's weight of each arm as a sampled token of one state."""
    logp, p = torch.log_softmax(z, -1), torch.softmax(z, -1)
    moments = {"s2": p.square().sum(), "s2l": (p.square() * logp).sum(), "entropy": entropy(z)}
    tokens = Tokens(
        logp=logp, old_logp=logp, advantage=advantage, **{name: x.expand(len(z)) for name, x in moments.items()}
    )
    return make("opefo", estimator=estimator).plan(tokens).weight.expand(len(z)).double()


def step(z, weight):
    """Return Σ_a w_a·(e_a − p), the step of all arms as sampled tokens."""
    return weight - torch.softmax(z, -1) * weight.sum()


@theorem
@given(policies(even=False, rarest=4), seeds)
def test_the_net_flow_is_zero(z, seed):
    logp, advantage = torch.log_softmax(z, -1), vector(z, seed)
    p = logp.exp()
    flow = exact(logp, entropy(z), p.square().sum(), (p.square() * logp).sum(), advantage)
    if not (flow.min() < 0 < flow.max()):  # flows of one sign: the advantage of an arm that gives the other is turned
        advantage = torch.where(torch.arange(len(z)) == flow.abs().argmin(), -advantage, advantage)
        flow = exact(logp, entropy(z), p.square().sum(), (p.square() * logp).sum(), advantage)
    assert flow.min() < 0 < flow.max()
    change = derivative(z, step(z, weights(z, advantage, "exact") * advantage))
    assert change.abs() < 1e-9 * flow.abs().sum()


def test_flows_of_equation_6():
    """Counter-example with inexact flows: p = ½, ¼, ¼ and A = 1, 1, 0 have the exact flows −3/16 and 3/16 ln 2.

    They are balanced. Equation 6 has −1/8 and 9/32 ln 2, so λ* = −5/13, the weights are 18/13 and 8/13, and the entropy
    falls by 3/16·10/13 ln 2.
    """
    z, advantage = row(0.5, 0.25, 0.25).log(), row(1, 1, 0)
    same(weights(z, advantage, "exact")[:2], row(1, 1))
    found = weights(z, advantage, "paper")
    same(found[:2], row(18, 8) / 13)
    same(derivative(z, step(z, found * advantage)), row(-30 / 208 * log(2))[0])


def test_simulated():
    """On sampled tokens the mean entropy moves by O(η²); GRPO's own update moves it by O(η)."""
    for controller, args, is_that in (("opefo", {"estimator": "exact"}, True), ("clip_free", {}, False)):
        found = updated(controller=controller, controller_args=args)
        assert second(order(found.change.mean(-1, keepdim=True))) is is_that
