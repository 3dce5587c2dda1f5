"""Theorem 4.3 of EntroPIC (section 4.2, proof in appendix A.3): P and PI control with a drift.

Symbols as in theorem 4.2: e⁺ = e + d − g(Kp·e + Ki·S⁺), S⁺ = S + e, s = g·Kp, c = g·Ki.
Assumption: the loop is stable. Exactly (ours, by Jury's conditions): 0 < s < 2, c > 0, 2s + c < 4.
Statement: P control leaves the error d/(g·Kp); PI control leaves none, and S rests at d/(g·Ki).
"""

import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.theory.policies import row, same, theorem

from entrostat.numbers import pi_control

drifts = st.floats(-0.2, 0.2)


@theorem
@given(st.floats(0.1, 10), st.floats(0.2, 1.8), st.floats(0.05, 0.95), drifts)
def test_pi_control_leaves_no_error(g, s, share, drift):
    c = share * (4 - 2 * s)
    assume(pi_control.poles(1.0, s, c).abs().max() < 0.95)
    found = pi_control.response(g, s / g, c / g, drift=drift, steps=700)
    assert found.error[-1].abs() < 1e-12
    torch.testing.assert_close(found.total[-1], row(drift / c)[0], rtol=1e-9, atol=1e-12)


@theorem
@given(st.floats(0.1, 10), st.floats(0.2, 1.8), drifts)
def test_p_control_leaves_an_error(g, s, drift):
    errors = pi_control.step_response(g, s / g, 0.0, drift=drift, steps=400)
    same(errors[-1], row(drift / s)[0])


@theorem
@given(st.floats(0.01, 10), st.floats(-0.5, 2.5), st.floats(-0.5, 4.5))
def test_stability_region(g, s, c):
    """1% inside the region a loop forgets where it started; 1% outside it does not."""
    assume(min(abs(s), abs(s - 2), abs(c), abs(2 * s + c - 4)) > 0.01)
    later = torch.linalg.matrix_power(pi_control.transition(g, s / g, c / g), 2**14).abs().max()
    assert bool(pi_control.stable(g, s / g, c / g)) == bool(later < 1)


def test_gains_that_are_too_large():
    """Counter-example without stability: with s = ½ the limit of c is 3; at 3.1 the integral drives the error away."""
    near, beyond = (pi_control.step_response(1.0, 0.5, c, error=0.1, drift=0.05, steps=3000) for c in (2.9, 3.1))
    assert near[-100:].abs().max() < 1e-6
    assert beyond[-1].abs() > 1e6
