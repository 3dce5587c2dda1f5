"""Bins of the picture and text of the page."""

from dataclasses import replace

import numpy as np
import pytest

from llmtrain.studies.probe import ESTIMATORS, Probe
from llmtrain.studies.probe_page import BINS, binned, told


def test_bins_by_hand():
    """Values 0 to 1500 without the lowest and highest 1%; each bin has the values between its edges."""
    change = np.arange(1501.0)
    bins = binned(2 * change, change)
    edges = np.linspace(15, 1485, BINS + 1)
    np.testing.assert_allclose(bins["change"], (edges[:-1] + edges[1:]) / 2)
    np.testing.assert_allclose(bins["estimate"], 2 * bins["change"], atol=1.01)


def test_empty_bins_are_left_out():
    change = np.repeat([0.0, 1.0], 50)
    bins = binned(3 * change, change)
    assert bins["estimate"].tolist() == [0, 3]


@pytest.mark.parametrize(("omega", "has"), [(1, "a higher PCC, a higher SRCC"), (-1, "no advantage")])
def test_words(omega, has):
    """Cov is the change plus noise; Ω is plus or minus twice the change."""
    change = np.random.default_rng(0).normal(size=50)
    noise = np.random.default_rng(1).normal(size=50)
    estimates = dict.fromkeys(ESTIMATORS, np.zeros(50)) | {
        "exact flow": change,
        "STEER Ω": 2.0 * omega * change,
        "−Cov": change + (noise if omega > 0 else 0),
    }
    ones = {"p": change, "entropy": change, "weight": change, "updated": np.ones(50, dtype=bool)}
    found = Probe(step=0, optimizer="SGD", lr=1.0, length=1.0, change=change, estimates=estimates, **ones)
    text = told(found)
    assert "exact flow (1.000) has the highest SRCC" in text
    assert has in text
    assert "First order" not in text
    knowing = replace(found, estimates=estimates | {"output layer": noise, "all weights": change})
    text = told(knowing)
    assert "exact flow (1.000) has the highest SRCC" in text  # of the estimators of single tokens
    assert "First order in all weights has an SRCC of 1.000, 0.0% wrong signs, and leaves 0.000 of" in text


def test_nothing_is_best_where_nothing_can_be_compared():
    """No token has an advantage, but a penalty moves all tokens."""
    change, zeros = np.random.default_rng(0).normal(size=9), np.zeros(9)
    ones = {"p": change, "entropy": change, "weight": zeros, "updated": np.ones(9, dtype=bool)}
    estimates = dict.fromkeys(ESTIMATORS, zeros)
    text = told(Probe(step=0, optimizer="SGD", lr=1.0, length=1.0, change=change, estimates=estimates, **ones))
    assert text.startswith("Estimators cannot be compared")
    assert "nan" not in text
