"""EntroPIC: collinear steps, and the fixed point of P control."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from toybandit import Config, simulate
from toybandit.claims.entropic import GAINS, TARGET, TAU, collinearity_error, final_errors, fixed_point_error


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 24), st.floats(0.1, 3), st.floats(-2, 2))
def test_weights_by_sign_cannot_turn_the_expected_step(seed, arms, spread, alpha):
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(1, 4, arms, generator=generator, dtype=torch.float64)
    success = torch.rand(1, 4, arms, generator=generator, dtype=torch.float64)
    error = collinearity_error(logits, success, torch.tensor([alpha], dtype=torch.float64))
    assert error < 1e-10


def test_p_control_stops_at_its_closed_form():
    gains = [1.0, 1.7, 4.0, 6.0]
    args = {"kp": gains, "ki": 0.0, "tau": TAU}
    config = Config(env="exact", controller="entropic", target=TARGET, controller_args=args, rollouts=1500)
    errors = TARGET - simulate(config, [0] * len(gains)).entropy[:, -1]
    np.testing.assert_allclose(errors, [fixed_point_error(kp) for kp in gains], rtol=0, atol=1e-5)


def test_numbers_of_the_closed_form():
    assert fixed_point_error(1.0) == pytest.approx(0.4133, abs=5e-5)
    assert fixed_point_error(4.0) == pytest.approx(0.1027, abs=5e-5)


def test_pi_control_ends_on_target():
    assert set(final_errors()) == set(GAINS)
    assert final_errors()["PI"] <= 1e-10
