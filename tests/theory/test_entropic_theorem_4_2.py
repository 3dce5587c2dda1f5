"""Theorem 4.2 of EntroPIC (section 4.2, proof in appendix A.2): P and PI control, on-policy.

Symbols: e = H − H*, S⁺ = S + e, g the fall of entropy per unit of α = Kp·e + Ki·S⁺, d the drift without control.
Assumption: e⁺ = e + d − g·α with d = 0 at the target, which the paper takes from "the entropy stabilises".
Statement: e → 0 for small gains. P: |1 − gKp| < 1. PI: (1 − gKp)² < 1 − gKi, from V = e² + gKi/(1 − gKi)·S².
The formulas of A.2 are derived again from its steps.
"""

from dataclasses import replace
from math import log

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import row, same, theorem
from tests.theory.simulations import loops, resting

from entrostat.numbers import pi_control
from toybandit.claims.entropic import alpha_star, expected_step
from toybandit.claims.gains import allowed
from toybandit.environments import ENVIRONMENTS


@theorem
@given(st.floats(0.1, 10), st.floats(0.05, 1.95), st.floats(-1, 1))
def test_p_control_without_drift(g, s, start):
    errors = pi_control.step_response(g, s / g, 0.0, error=start, steps=3)
    same(errors, start * (1 - s) ** row(0, 1, 2, 3))


@theorem
@given(st.floats(0.1, 10), st.floats(0.1, 1.9), st.floats(-0.2, 0.2))
def test_p_control_with_drift(g, s, drift):
    """Counter-example with d ≠ 0: e rests at d/(g·Kp)."""
    errors = pi_control.step_response(g, s / g, 0.0, drift=drift, steps=400)
    same(errors[-1], row(drift / s)[0])


@theorem
@given(st.integers(2, 64), st.floats(0.51, 0.999), st.floats(0.05, 0.93), st.floats(0, 1))
def test_the_bandit_drifts(arms, p, q2, share):
    """An arm pays q1, the others q2: only α* = (q1−q2)/(q1(1−ρ) + (1−q1)ρ), not 0, stops its logit, so P control ends
    at |e| = α*/Kp; half of α* leaves a drift."""
    q1 = q2 + 0.02 + share * (0.93 - q2)
    environment = replace(ENVIRONMENTS["exact"], arms=arms, reward_right=q1, reward_wrong=q2, right_arms=1)
    z, success = torch.zeros(1, 1, arms, dtype=torch.float64), torch.full((1, 1, arms), q2, dtype=torch.float64)
    z[..., 0], success[..., 0] = log(p / (1 - p) * (arms - 1)), q1
    star = float(alpha_star(row(p)[0], environment))
    rest, half = (expected_step(z, success, row(-alpha), tau=0.5).flatten() for alpha in (star, star / 2))
    assert (rest[0] - rest[1]).abs() < 1e-14
    assert half[0] - half[1] > 1e-6


@st.composite
def allowed_gains(draw: st.DrawFn) -> tuple[float, float]:
    """s = g·Kp and c = g·Ki with (1 − s)² < 1 − c."""
    s = draw(st.floats(0.05, 1.95))
    return s, draw(st.floats(0.01, 0.99)) * (1 - (1 - s) ** 2)


@theorem
@given(st.tuples(st.floats(-0.2, 2.2), st.floats(0.01, 0.99)), st.floats(-1, 1), st.floats(-1, 1))
def test_change_of_the_lyapunov_function(gains, e, total):
    """ΔV = ((1−s)²/(1−c) − 1)·e² − c²/(1−c)·S²."""
    s, c = gains
    after_e, after_total = (pi_control.transition(1.0, s, c) @ row(e, total)).tolist()
    # S is summed before its use: S⁺ = S + e⁺ is the proof's variable, S the loop's.
    kappa = c / (1 - c)
    before = e**2 + kappa * (total + e) ** 2
    after = after_e**2 + kappa * (after_total + after_e) ** 2
    expected = ((1 - s) ** 2 / (1 - c) - 1) * e**2 - c**2 / (1 - c) * (total + e) ** 2
    same(row(after - before), row(expected))


@theorem
@given(allowed_gains(), st.floats(-1, 1), st.floats(-1, 1))
def test_the_condition_is_sufficient(gains, e, total):
    """Under it ΔV is negative for all e and S, and both poles are inside the unit circle."""
    s, c = gains
    assert allowed(row(s), row(c))
    assert ((1 - s) ** 2 / (1 - c) - 1) * e**2 - c**2 / (1 - c) * (total + e) ** 2 <= 0
    assert pi_control.poles(1.0, s, c).abs().max() < 1


def test_the_condition_is_not_necessary():
    """Counter-example to its converse: s = ½, c = 1 is stable, and (1 − s)² = ¼ is not below 1 − c = 0."""
    assert pi_control.stable(1.0, 0.5, 1.0)
    assert not allowed(row(0.5), row(1.0))


def test_simulated():
    """P control in a simulated bandit settles for gKp = ½ and 1.7, not for 2.3, and leaves the error that has α = −α*.

    g is the fall of the entropy in a rollout per unit of α, from two runs of one rollout with other gains.
    """
    near = loops([1.0, 1.1], [0.0, 0.0], 1, right=0.812)
    alpha, change = near.metrics["entropic/alpha"][:, 0], near.entropy[:, 1] - near.entropy[:, 0]
    g = float((change[0] - change[1]) / (alpha[1] - alpha[0]))
    assert 0.01 < g < 1
    run = loops([0.5 / g, 1.7 / g, 2.3 / g], [0.0] * 3, 200, right=0.812)
    still = np.ptp(run.entropy[:, -20:], axis=1)
    assert (still[:2] < 1e-9).all()
    assert still[2] > 1e-3
    error, alpha, needed = (x[:2] for x in resting(run))
    torch.testing.assert_close(alpha, needed, rtol=0, atol=1e-9)
    torch.testing.assert_close(error * row(0.5, 1.7) / g, alpha, rtol=0, atol=1e-7)
