"""EntroPIC: the fixed point of P control, and PI control on its target."""

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.claims.entropic import GAINS, TARGET, TAU, final_errors, fixed_point_error


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
