"""Trials against what is known from elsewhere, and at the edges of their sliders."""

import itertools

import numpy as np
import pytest

from toybandit.claims import CLAIMS
from toybandit.claims.entropic import fixed_point_error
from toybandit.trials import TRIALS

pytestmark = pytest.mark.slow


def extremes(parameter):
    if parameter.options:
        return parameter.options
    return (False, True) if isinstance(parameter.default, bool) else (parameter.low, parameter.high)


CHEAP = ("first-order", "token-flow", "token-sign", "linear-loop", "collinear", "opefo-step", "omega-or-cov")


@pytest.mark.parametrize("name", CHEAP)
def test_no_corner_of_the_sliders_breaks_a_trial(name):
    found = TRIALS[name]
    kinds = [type(parameter.default) for parameter in found.parameters]
    for corner in itertools.product(*(extremes(parameter) for parameter in found.parameters)):
        values = {p.key: kind(value) for p, kind, value in zip(found.parameters, kinds, corner, strict=True)}
        outcome = found.run(**values)
        assert isinstance(outcome.holds, bool)
        assert np.isfinite(outcome.x).all()


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.long] * x.startswith("trap-")) for x in TRIALS if x not in CHEAP],
)
def test_either_end_of_each_slider_can_be_run(name):
    found = TRIALS[name]
    length = {"rollouts": 40 if name == "law" else 10} if "rollouts" in found.defaults else {}
    if name in ("opefo-run", "law-algorithms"):
        length = {"rollouts": 20}
    for parameter in found.parameters:
        if parameter.key == "rollouts":
            continue
        for value in extremes(parameter):
            kind = type(parameter.default)
            outcome = found.run(**{**length, parameter.key: kind(value)})
            assert isinstance(outcome.holds, bool), (parameter.key, value)
            assert outcome.because


def test_a_shift_of_the_advantage_changes_the_prediction_and_not_what_happens():
    case = CLAIMS["thm1-centred"].live
    centred, shifted = case.run(), case.run(shift=1.0)
    np.testing.assert_allclose(shifted.measured, centred.measured, atol=1e-12)
    assert np.abs(shifted.residual).max() > 10 * np.abs(centred.residual).max()


def test_p_control_rests_where_the_claim_has_it():
    found = CLAIMS["thm4.2-fixed-point"].live.run(kp=4.0)
    assert 1 - found.measured[-1] == pytest.approx(fixed_point_error(4.0), abs=1e-6)
    without = CLAIMS["thm4.2-fixed-point"].live.run(kp=0.0)
    assert not without.holds
    assert np.isnan(without.predicted).all()


def test_half_rewards_and_reuse_turn_the_expected_step():
    case = CLAIMS["cor4.1-collinear"].live
    errors = [np.abs(case.run(**change).residual).max() for change in ({}, {"partial": 0.1}, {"passes": 2})]
    assert errors[0] < 1e-12 < min(errors[1:])


def test_the_linear_loop_is_the_exact_one_for_small_errors():
    found = CLAIMS["pi-stability-exact"].live.run(lr=0.5)
    assert np.abs(found.residual).max() < 0.1 * np.abs(found.measured).max()


def test_few_points_for_a_fit_are_one_line():
    with pytest.raises(ValueError, match=r"share 0.1 of 20 points is 2: a fit needs at least 4"):
        CLAIMS["law-prediction"].live.run(window=0.1, rollouts=20)
    assert (
        CLAIMS["law-fit"].live.run(right=0.6, wrong=0.6).because
        == "the reward does not vary, so that no law explains it."
    )
