"""EntroPIC, figures 3, 5 and 11. Training runs are those of QUICK effort: 24 states, 80 or 120 rollouts, 2 seeds."""

import pytest

from toybandit.reproduce import OUT_OF_REACH
from toybandit.reproduce.entropic import CUTS, OFF, ON, masked_tokens, p_and_pi, thresholds
from toybandit.reproduce.registry import QUICK

pytestmark = pytest.mark.slow


def test_what_needs_a_language_model_is_out_of_reach():
    assert {"entropic-1", "entropic-12"} <= set(OUT_OF_REACH)


def test_masks_move_the_entropy_by_quadrant_and_unlikely_negatives_the_most(drawn_from_its_table):
    data = masked_tokens(QUICK)
    for env in (ON, OFF):
        effect = {
            kind: data.numbers[f"no {kind}, 0.8 / 0.2, {env}"]
            for kind in ("likely positives", "unlikely positives", "likely negatives", "unlikely negatives")
        }
        assert effect["likely positives"] > 0 > effect["likely negatives"]
        assert effect["unlikely negatives"] > 0 > effect["unlikely positives"]
        assert effect["unlikely negatives"] > 2 * effect["likely positives"]
    assert set(CUTS) == {"0.95 / 0.05", "0.8 / 0.2", "0.5 / 0.5"}
    assert drawn_from_its_table(masked_tokens, data)


def test_p_leaves_an_error_that_pi_removes(drawn_from_its_table):
    data = p_and_pi(QUICK)
    off = {name: data.numbers[f"error of {name}, {OFF}"] for name in ("none", "P", "PI")}
    assert off["none"] < off["P"] - 0.05
    assert off["P"] < -0.03
    assert off["PI"] == pytest.approx(0, abs=0.05)
    assert data.numbers[f"error of P, {ON}"] < -0.05  # on-policy too, against theorem 4.2
    assert drawn_from_its_table(p_and_pi, data)


def test_the_threshold_must_leave_something_to_act_on(drawn_from_its_table):
    data = thresholds(QUICK)
    assert abs(data.numbers[f"error, τ = 0.5, {OFF}"]) < 0.05
    assert data.numbers[f"error, τ = 0.95, {OFF}"] < -0.05
    assert data.numbers[f"error, τ = 0, {ON}"] < -0.1
    assert drawn_from_its_table(thresholds, data)
