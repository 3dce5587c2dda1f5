import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat.numbers import pi_control

POLE = st.floats(0, 0.99)
GAIN = st.floats(1e-4, 100)


def random_gains(count: int) -> tuple[torch.Tensor, ...]:
    u = torch.rand(3, count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    g = 10 ** (4 * u[0] - 2)
    return g, (3.5 * u[1] - 0.5) / g, (6 * u[2] - 1) / g


def test_stability_region_is_that_of_the_eigenvalues_without_one_mismatch():
    g, kp, ki = random_gains(20_000)
    radius = torch.linalg.eigvals(pi_control.transition(g, kp, ki)).abs().amax(-1)
    predicted = pi_control.stable(g, kp, ki)
    assert int((predicted != (radius < 1)).sum()) == 0
    assert 0.1 < float(predicted.double().mean()) < 0.8


@pytest.mark.slow
def test_stability_region_is_that_of_the_simulation_without_one_mismatch():
    g, kp, ki = random_gains(5_000)
    sure = (torch.linalg.eigvals(pi_control.transition(g, kp, ki)).abs().amax(-1) - 1).abs() > 0.01
    errors = pi_control.step_response(g, kp, ki, steps=3000)
    settled = errors[:, -1].abs() < 1e-6
    assert int((settled != pi_control.stable(g, kp, ki))[sure].sum()) == 0
    assert float(sure.double().mean()) > 0.9


@pytest.mark.parametrize(
    ("kp", "ki", "inside"),
    [
        (0.0, 0.1, False),
        (0.1, 0.0, False),
        (1.0, 1.99, True),
        (1.0, 2.01, False),
        (1.99, 0.01, True),
        (2.0, 0.01, False),
    ],
)
def test_borders_by_hand(kp, ki, inside):
    """g = 1: 0 < kp < 2, ki > 0, 2kp + ki < 4."""
    assert bool(pi_control.stable(1.0, kp, ki)) is inside


def test_poles_by_hand():
    """g·kp = .28, g·ki = .02: z² − 1.7z + .72 = (z − .8)(z − .9)."""
    found = pi_control.poles(0.1, 2.8, 0.2)
    assert sorted(found.real.tolist()) == pytest.approx([0.8, 0.9], rel=1e-9)
    assert found.imag.abs().max() < 1e-9
    gains = pi_control.place_poles(0.1)
    assert (float(gains.kp), float(gains.ki)) == pytest.approx((2.8, 0.2), rel=1e-12)


@settings(derandomize=True, deadline=None)
@given(g=GAIN, first=POLE, second=POLE)
def test_placed_poles_are_where_they_were_put_and_stable(g, first, second):
    gains = pi_control.place_poles(g, first, second)
    found = sorted(torch.linalg.eigvals(pi_control.transition(g, *gains)).real.tolist())
    assert found == pytest.approx(sorted([first, second]), abs=1e-6)
    assert bool(pi_control.stable(g, *gains))


@settings(derandomize=True, deadline=None)
@given(first=POLE, second=POLE, wrong=st.floats(0.05, 1.9))
def test_a_wrong_plant_gain_stays_stable_up_to_twice(first, second, wrong):
    """Gains placed for g act on wrong·g: stable where 2·wrong·(1 − p₁p₂) + wrong·(1 − p₁)(1 − p₂) < 4."""
    gains = pi_control.place_poles(1.0, first, second)
    s, c = wrong * (1 - first * second), wrong * (1 - first) * (1 - second)
    assert bool(pi_control.stable(wrong, *gains)) is (s < 2 and 2 * s + c < 4)


def test_step_response_by_hand_and_drift_is_removed():
    """g = .5, kp = 1, ki = .2: e = 1, S = 1, α = 1.2, e⁺ = .4; S = 1.4, α = .68, e⁺ = .06."""
    errors = pi_control.step_response(0.5, 1.0, 0.2, steps=2)
    assert errors.tolist() == pytest.approx([1.0, 0.4, 0.06], rel=1e-12)
    with_drift = pi_control.step_response(0.5, 1.0, 0.2, drift=-0.1, steps=300)
    assert abs(float(with_drift[-1])) < 1e-12
    proportional = pi_control.step_response(0.5, 1.0, 0.0, drift=-0.1, steps=300)
    assert float(proportional[-1]) == pytest.approx(-0.1 / 0.5, rel=1e-9)


def test_the_sum_winds_up_without_anti_windup():
    """g = 1, kp = ki = 1, |α| ≤ .5, e = 2: α is saturated at 2 and 1.5; the sum is 2 + 1.5 without anti-windup."""
    given = {"error": 2.0, "alpha_max": 0.5, "steps": 1}
    plain, held = (pi_control.response(1.0, 1.0, 1.0, **given, anti_windup=x) for x in (False, True))
    assert plain.error.tolist() == held.error.tolist() == [2.0, 1.5]
    assert plain.alpha.tolist() == held.alpha.tolist() == [0.5, 0.5]
    assert (plain.total.tolist(), held.total.tolist()) == ([2.0, 3.5], [0.0, 0.0])
    below = pi_control.response(1.0, 1.0, 1.0, **{**given, "error": -2.0})
    assert (below.alpha.tolist(), below.total.tolist()) == ([-0.5, -0.5], [0.0, 0.0])
    far = {"error": 2.0, "alpha_max": 0.5, "steps": 200}
    wound, clean = (pi_control.response(1.0, 0.3, 0.1, **far, anti_windup=x).error for x in (False, True))
    assert float(pi_control.overshoot(wound)) > 2 * float(pi_control.overshoot(clean)) > 0
    assert float(wound[-1].abs()) < 1e-6


def test_the_sum_counts_what_just_reaches_the_bound():
    reached = pi_control.response(1.0, 0.5, 0.5, error=1.0, alpha_max=1.0, steps=0)
    assert (reached.alpha.tolist(), reached.total.tolist()) == ([1.0], [1.0])


def test_settling_time_and_overshoot_by_hand():
    errors = torch.tensor([[1.0, 0.5, -0.2, 0.04, 0.0], [-1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0]])
    assert pi_control.settling_time(errors, 0.05).tolist() == [3, 1, 5]
    assert pi_control.overshoot(errors).tolist() == pytest.approx([0.2, 0.0, 0.0])
    assert pi_control.overshoot(torch.tensor([[2.0, -0.5], [-0.5, 0.1]])).tolist() == pytest.approx([0.5, 0.1])


def test_default_poles_settle_in_20_steps_and_cross_zero_once():
    errors = pi_control.step_response(1.0, *pi_control.place_poles(1.0))
    assert int(pi_control.settling_time(errors, 0.1)) == 20
    assert float(pi_control.overshoot(errors)) == pytest.approx(0.145, abs=0.001)
    assert int((errors[1:].sign() != errors[:-1].sign()).sum()) == 1


def test_bad_numbers():
    with pytest.raises(ValueError, match="plant gain must be positive"):
        pi_control.place_poles(0.0)
    with pytest.raises(ValueError, match=r"poles must lie in \[0, 1\)"):
        pi_control.place_poles(1.0, 1.0, 0.5)
