"""The four quadrants of STEER (section 3.1, remark 3, figure 2).

Assumption 1: a sampled token moves its own logit alone. "Likely" means p > e^(−H), where δ = −p(1−p)(log p + H) < 0.
Statement: rewarding likely tokens (I) and punishing unlikely ones (III) lowers H; rewarding unlikely tokens (II) and
punishing likely ones (IV) raises it. The paper's text on III says "increasing"; its heading and figure say this.
"""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import derivative, entropy, gradient, policies, row, theorem


@theorem
@given(policies(), st.sampled_from([1.0, -1.0]))
def test_quadrants(z, advantage):
    logp = torch.log_softmax(z, -1)
    change = gradient(entropy, z) * advantage * (1 - logp.exp())
    likely = logp > -entropy(z)
    clear = (change.abs() > 1e-14) & ((logp + entropy(z)).abs() > 1e-9)
    lowers = likely if advantage > 0 else ~likely
    assert torch.equal(clear & (change < 0), clear & lowers)


def test_the_boundary_of_the_whole_gradient_lies_higher():
    """Counter-example without assumption 1: p = .5, .4, .1 has e^(−H) = .389, yet rewarding the arm of .4 raises H.

    Its gradient takes more logit from the arm of .5, −.5, than from itself.
    """
    p = row(0.5, 0.4, 0.1)
    assert (-entropy(p.log())).exp() < 0.4
    assert derivative(p.log(), row(0, 1, 0) - p) > 0.04
    assert derivative(p.log(), row(0, 0.6, 0)) < 0
