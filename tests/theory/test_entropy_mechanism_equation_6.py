"""Equation 6 of The Entropy Mechanism (section 2.4), and what it says of the end of training.

Statement: R = −a·e^H + b, so that dR/dH = −a·e^H, and the ceiling at H = 0 is b − a.
Assumption: none but the fit; it is an empirical law.
"""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import theorem

from entrostat.logs.laws import fit
from toybandit import Config, simulate


@theorem
@given(st.floats(0.01, 2), st.floats(-1, 2), st.floats(0.5, 3))
def test_points_of_the_law_give_it_back(a, b, top):
    h = np.linspace(0.1, top, 6)
    law = fit(h, -a * np.exp(h) + b)
    assert (law.a, law.b, law.ceiling) == pytest.approx((a, b, b - a), abs=1e-9)
    assert (law(h + 1e-6) - law(h)) / 1e-6 == pytest.approx(-a * np.exp(h), rel=1e-4)


def test_two_arms_are_at_their_ceiling_before_the_entropy_is_gone():
    """Counter-example at the end: arms that pay 1 and 0 have R = p and dR/dH = −1/ln(p/(1−p)).

    The law has −a·e^H. The rate a that a point implies goes to 0 as p goes to 1: the last of the entropy earns less
    than the law says.
    """

    def rate(p):
        h = -p * log(p) - (1 - p) * log(1 - p)
        return 1 / log(p / (1 - p)) / np.exp(h)

    assert rate(0.7) == pytest.approx(0.6407, abs=1e-4)
    assert rate(1 - 1e-9) < 0.05


def test_simulated():
    """GRPO in the bandit keeps to the law, and a hundred rollouts foretell the reward of the last third.

    With two arms and the expected gradient, dR/dH follows the counter-example above instead.
    """
    run = simulate(Config(states=32), range(3))
    h, reward = run.entropy[:, :-1].mean(0), run.reward.mean(0)
    assert fit(h, reward).r2 > 0.95
    ahead = fit(h[:100], reward[:100])(h[200:]).mean()
    risen = reward[200:].mean() - reward[0]
    assert abs(ahead - reward[200:].mean()) < 0.15 * risen

    arms = {"arms": 2, "right_arms": 1, "success": ((1.0, 0.0),), "logits": ((log(0.7 / 0.3), 0.0),)}
    exact = simulate(Config(env="exact", rollouts=200, **arms), [0], keep_policies=True)
    assert exact.policies is not None
    p, h = exact.policies[0, :, 0, 0], exact.entropy[0]
    middle = (p[1:] + p[:-1]) / 2
    assert np.diff(p) / np.diff(h) == pytest.approx(-1 / np.log(middle / (1 - middle)), rel=2e-3)
    assert exact.reward[0] == pytest.approx(p[:-1], abs=1e-12)
