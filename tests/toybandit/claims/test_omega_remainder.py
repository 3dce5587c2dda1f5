"""The bound of STEER's remainder on policies that Hypothesis looks for, and the steps that it is about."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import policy_stats
from toybandit.claims.ensembles import entropy_change
from toybandit.claims.omega_remainder import CONSTANT, omega, own_step, whole_step


def drawn(seed, arms, spread):
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(1, arms, generator=generator, dtype=torch.float64)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.integers(0, 2**32 - 1), st.integers(2, 64), st.floats(0, 8), st.integers(0, 63), st.floats(-2, 1), st.booleans()
)
def test_what_omega_leaves_out_is_bounded(seed, arms, spread, action, log_size, rewarded):
    logits, chosen = drawn(seed, arms, spread), torch.tensor([action % arms])
    size = (1 if rewarded else -1) * 10**log_size
    error = entropy_change(logits, own_step(logits, chosen, size)) - omega(logits, chosen, size)
    assert float(error.abs()) <= CONSTANT * size**2 + 1e-15


def test_steps():
    logits, chosen = drawn(1, 4, 1.0), torch.tensor([2])
    p = torch.softmax(logits, -1)
    expected = torch.zeros_like(p)
    expected[0, 2] = 0.1 * (1 - p[0, 2])
    torch.testing.assert_close(own_step(logits, chosen, 0.1), expected)
    torch.testing.assert_close(whole_step(logits, chosen, 0.1), 0.1 * (torch.eye(4, dtype=torch.float64)[2:3] - p))


def test_omega_is_the_derivative_of_its_step():
    logits, chosen = drawn(2, 6, 2.0), torch.tensor([1])
    change = entropy_change(logits, own_step(logits, chosen, 1e-6)) / 1e-6
    torch.testing.assert_close(omega(logits, chosen, 1.0), change, rtol=1e-4, atol=1e-6)
    assert policy_stats(logits).entropy > 0
