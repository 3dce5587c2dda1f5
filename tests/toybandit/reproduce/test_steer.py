"""STEER, figures 5, 8, 9, 18 and 19."""

import numpy as np
import pytest

from toybandit.reproduce import OUT_OF_REACH
from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.steer import (
    LAMBDAS,
    advantage_shaping,
    extreme_clip,
    mappings,
    sensitivity,
    weight_against_change,
)

pytestmark = pytest.mark.slow


def test_what_needs_a_language_model_is_out_of_reach():
    assert {"steer-6", "steer-table-3", "steer-table-5"} <= set(OUT_OF_REACH)


def test_entropy_advantage_speeds_the_collapse_up(drawn_from_its_table):
    data = advantage_shaping(QUICK)
    assert data.numbers["entropy advantage"] < 0.7 * data.numbers["GRPO"]
    assert drawn_from_its_table(advantage_shaping, data)


def test_without_a_clip_steer_is_as_grpo_is(drawn_from_its_table):
    data = extreme_clip(QUICK)
    assert data.numbers["STEER"] == pytest.approx(data.numbers["GRPO"], abs=0.1)
    assert data.numbers["entropy bonus"] > data.numbers["GRPO"] + 0.03
    assert drawn_from_its_table(extreme_clip, data)


def test_weights_fall_with_omega(drawn_from_its_table):
    data = weight_against_change(QUICK)
    weight = data.series("series")["by STEER's Ω"].table["weight"].astype(float)
    assert (np.diff(weight) < 0).all()
    centres = (np.arange(10) + 0.5) / 10
    assert np.abs(weight - 0.7**centres).max() < 0.02  # equation 3
    assert data.numbers["largest, exact"] > weight[-1] + 0.05
    assert drawn_from_its_table(weight_against_change, data)


def test_mappings_by_hand(drawn_from_its_table):
    data = mappings(QUICK)
    omega, weight = data.table["size"], data.table["weight"]
    np.testing.assert_allclose(weight[data.table["series"] == "exponential"], 0.7 ** omega[:201], rtol=1e-12)
    np.testing.assert_allclose(weight[data.table["series"] == "linear"], 1.2 - 0.5 * omega[:201], rtol=1e-12)
    binary = weight[data.table["series"] == "binary"]
    assert set(binary) == {0.7, 1.0}
    assert (binary == 0.7).sum() == 40
    assert data.numbers["binary, entropy"] < data.numbers["exponential, entropy"]
    assert drawn_from_its_table(mappings, data)


def test_only_a_small_lambda_keeps_entropy(drawn_from_its_table):
    data = sensitivity(QUICK)
    for label in ("clip 0.2", "clip all but removed"):
        entropy = {value: data.numbers[f"entropy, {value:g}, {label}"] for value in LAMBDAS}
        assert entropy[0.1] > entropy[1.0] + 0.03
        assert abs(entropy[0.7] - entropy[1.0]) < 0.1
    assert drawn_from_its_table(sensitivity, data)
