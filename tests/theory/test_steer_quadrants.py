"""The four quadrants of STEER (section 3.1, remark 3, figure 2).

Assumption 1: a sampled token moves its own logit alone. "Likely" means p > e^(−H), where δ = −p(1−p)(log p + H) < 0.
Statement: rewarding likely tokens (I) and punishing unlikely ones (III) lowers H; rewarding unlikely tokens (II) and
punishing likely ones (IV) raises it. The paper's text on III says "increasing"; its heading and figure say this.
"""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import derivative, entropy, gradient, policies, row, theorem
from tests.theory.simulations import arms_of, moved_alone, updated

from toybandit.claims.tokens import boundary


@theorem
@given(policies(even=False, rarest=6), st.sampled_from([1.0, -1.0]))
def test_quadrants(z, advantage):
    """Every policy that is not uniform has arms that are likely and arms that are not."""
    logp = torch.log_softmax(z, -1)
    change = gradient(entropy, z) * advantage * (1 - logp.exp())
    likely = logp > -entropy(z)
    clear = (logp + entropy(z)).abs() > 1e-9
    assert (clear & likely).any()
    assert (clear & ~likely).any()
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


def test_simulated():
    """One sampled token a state. Moving alone, it turns the entropy as its quadrant says; under the simulator's whole
    gradient the sign turns at p* instead, and some tokens between e^(−H) and p* go the other way."""
    differ = 0
    for advantage in ("psr", "nsr"):
        found = updated(controller="reinforce", advantage=advantage, group=1, states=400)
        a, logp = found.tokens.advantage[0], found.logp
        arm, acts = arms_of(logp, found.tokens), a != 0
        lp, h = logp.gather(-1, arm)[:, 0], entropy(logp)
        lowers = (lp > -h) == (a > 0)
        alone = moved_alone(logp, arm, a.unsqueeze(-1))[-1]
        assert torch.equal((alone < 0)[acts], lowers[acts])
        exactly, change = (lp.exp() > boundary(logp)) == (a > 0), found.change[-1]
        clear = change.abs() > 1e-5  # the remainder of second order may turn smaller ones
        assert torch.equal((change < 0)[clear], exactly[clear])
        differ += int((lowers != exactly)[clear].sum())
        assert clear.sum() > 100
    assert differ > 20
