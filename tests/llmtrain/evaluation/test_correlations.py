"""Correlations of entropy and scores over a run."""

import numpy as np
import pytest

from llmtrain.evaluation.correlations import over_run, spearman


def test_a_run_gives_a_row_for_each_source_and_score():
    lines = [
        {"step": 0, "entropy": 0.9, "eval/avg@8": 0.1, "eval/aime/pass@8": 0.5, "eval/length": 30},
        {"step": 1, "entropy": 0.8},
        {"step": 2, "entropy": 0.7, "eval/avg@8": 0.2, "eval/aime/pass@8": 0.4},
        {"step": 3, "entropy": 0.5},
        {"step": 4, "eval/avg@8": 0.3, "eval/aime/pass@8": 0.45},
    ]
    found = {(row.source, row.score): row for row in over_run(lines)}
    assert set(found) == {("", "avg@8"), ("aime", "pass@8")}
    assert found["", "avg@8"].spearman == pytest.approx(-1)  # the last evaluation takes the entropy of step 3
    assert found["", "avg@8"].points == 3
    assert found["aime", "pass@8"].spearman == pytest.approx(0.5)  # ranks of entropy 2 1 0, of the score 2 0 1


def test_too_few_points_say_nothing():
    assert np.isnan(spearman([1, 2], [1, 2]))
    assert np.isnan(spearman([1, 2, 3, np.nan], [1, 2, np.nan, 4]))
    assert spearman([1, 2, 3, np.nan], [1, 2, 3, 0]) == pytest.approx(1)


def test_a_run_without_entropy_is_refused():
    with pytest.raises(ValueError, match="no entropy"):
        over_run([{"step": 0, "eval/avg@8": 0.1}])
