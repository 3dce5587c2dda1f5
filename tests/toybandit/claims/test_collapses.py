"""Runs below half their anchor, and how they are told."""

from types import SimpleNamespace

import numpy as np
import pytest

from toybandit.claims.anchoring import lost
from toybandit.claims.collapses import EVERY, siren_collapse
from toybandit.claims.registry import Effort, holds_if


def test_a_run_is_lost_below_half_its_anchor():
    entropy = np.array([[2.0, 1.5, 1.1], [2.0, 0.5, 0.9]])
    metrics = {"siren/entropy": 4 * entropy, "siren/updates": np.full_like(entropy, 4)}
    assert lost(SimpleNamespace(metrics=metrics)).tolist() == [False, True]


@pytest.mark.slow
def test_lost_runs_are_counted():
    record = siren_collapse(Effort(instances=1, runs=6, states=32, rollouts=100))
    assert record.verdict == holds_if(EVERY)
    assert record.numbers["runs lost, top_p = 0.8, on"] >= 4
    assert record.numbers["runs lost, top_p = 1, on"] == 0
    assert "of 6 runs (95%" in record.measured
