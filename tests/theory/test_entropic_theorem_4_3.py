"""Theorem 4.3 of EntroPIC (section 4.2, proof in appendix A.3): P and PI control with a drift.

Symbols as in theorem 4.2: e⁺ = e + d − g(Kp·e + Ki·S⁺), S⁺ = S + e, s = g·Kp, c = g·Ki.
Assumption: the loop is stable. Exactly (ours, by Jury's conditions): 0 < s < 2, c > 0, 2s + c < 4.
Statement: P control leaves the error d/(g·Kp); PI control leaves none, and S rests at d/(g·Ki).
"""

from math import cos, pi

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import row, same, theorem
from tests.theory.simulations import loops, resting

from entrostat.numbers import pi_control

drifts = st.floats(-0.2, 0.2)


@st.composite
def stable_gains(draw: st.DrawFn, largest: float = 0.95) -> tuple[float, float]:
    """s = g·Kp and c = g·Ki of a loop whose poles, real or complex, have at most this modulus.

    The product of the poles is 1 − s, and c = (1 − z₁)(1 − z₂).
    """
    if draw(st.booleans()):
        first, second = draw(st.floats(-largest, largest)), draw(st.floats(-largest, largest))
        return 1 - first * second, (1 - first) * (1 - second)
    modulus, angle = draw(st.floats(0, largest)), draw(st.floats(0, pi))
    return 1 - modulus**2, 1 - 2 * modulus * cos(angle) + modulus**2


@theorem
@given(st.floats(0.1, 10), stable_gains(), drifts)
def test_pi_control_leaves_no_error(g, gains, drift):
    s, c = gains
    found = pi_control.response(g, s / g, c / g, drift=drift, steps=700)
    assert found.error[-1].abs() < 1e-12
    torch.testing.assert_close(found.total[-1], row(drift / c)[0], rtol=1e-9, atol=1e-12)


@theorem
@given(st.floats(0.1, 10), st.floats(0.2, 1.8), drifts)
def test_p_control_leaves_an_error(g, s, drift):
    errors = pi_control.step_response(g, s / g, 0.0, drift=drift, steps=400)
    same(errors[-1], row(drift / s)[0])


@theorem
@given(st.floats(0.01, 10), stable_gains(0.99))
def test_inside_the_stability_region(g, gains):
    """A loop forgets where it started."""
    s, c = gains
    assert pi_control.stable(g, s / g, c / g)
    assert torch.linalg.matrix_power(pi_control.transition(g, s / g, c / g), 2**14).abs().max() < 1


@theorem
@given(st.floats(0.01, 10), st.floats(0.01, 1.5), st.floats(0, 1), st.sampled_from(["s > 2", "c < 0", "2s + c > 4"]))
def test_outside_the_stability_region(g, beyond, share, side):
    """It does not, if one of the three conditions is broken by .01 or more."""
    s = 2 + beyond if side == "s > 2" else 2 * share
    c = {"s > 2": share, "c < 0": -beyond, "2s + c > 4": 4 - 2 * s + beyond}[side]
    assert not pi_control.stable(g, s / g, c / g)
    assert torch.linalg.matrix_power(pi_control.transition(g, s / g, c / g), 2**8).abs().max() > 1


def test_gains_that_are_too_large():
    """Counter-example without stability: with s = ½ the limit of c is 3; at 3.1 the integral drives the error away."""
    near, beyond = (pi_control.step_response(1.0, 0.5, c, error=0.1, drift=0.05, steps=3000) for c in (2.9, 3.1))
    assert near[-100:].abs().max() < 1e-6
    assert beyond[-1].abs() > 1e6


def test_simulated():
    """In a simulated bandit that drifts, P control ends at the error −α*/Kp; PI control at none, with S = −α*/Ki."""
    kp, ki = row(2, 4, 2, 4), row(0, 0, 0.05, 0.1)
    run = loops(kp.tolist(), ki.tolist(), 300)
    error, alpha, needed = resting(run)
    torch.testing.assert_close(alpha, needed, rtol=0, atol=1e-4)
    torch.testing.assert_close(error[:2], needed[:2] / kp[:2], rtol=0, atol=1e-4)
    assert (error[:2].abs() > 0.1).all()
    assert (error[2:].abs() < 1e-4).all()
    total = torch.from_numpy(run.metrics["entropic/integral"][2:, -1])
    torch.testing.assert_close(total * ki[2:], needed[2:], rtol=0, atol=1e-3)
