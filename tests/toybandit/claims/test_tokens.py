"""The exact flow of one token, and the sign that simpler formulas get wrong."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import entropy_change
from toybandit.claims.registry import QUICK
from toybandit.claims.tokens import every_token, wrong_signs

LOGITS = st.lists(st.floats(-4, 4), min_size=3, max_size=12).map(lambda z: torch.tensor([z], dtype=torch.float64))


@settings(derandomize=True, deadline=None)
@given(LOGITS, st.floats(0.1, 3), st.sampled_from([-1.0, 1.0]))
def test_flow_is_the_first_order_change(logits, size, sign):
    flow, truth = every_token(logits, torch.full_like(logits, sign * size))
    # A step of w·1e-3 has ‖Δz‖∞ ≤ w·1e-3 and a remainder of at most its square (K ≤ 64).
    assert (flow - truth).abs().max() <= 1e-3 * size**2 + 1e-11


def test_exact_flow_has_the_right_sign():
    def exact(logp, entropy, weight):
        p = logp.exp()
        s2, s2l = (p * p).sum(-1, keepdim=True), (p * p * logp).sum(-1, keepdim=True)
        return entropy_change.exact(logp, entropy, s2, s2l, weight)

    assert wrong_signs(exact, QUICK, 2.0) < 1e-3
    assert 0.04 < wrong_signs(entropy_change.steer, QUICK, 2.0) < 0.2
    assert wrong_signs(entropy_change.steer, QUICK, 2.0) == wrong_signs(entropy_change.opefo, QUICK, 2.0)
