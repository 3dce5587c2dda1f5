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
