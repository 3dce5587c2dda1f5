"""Covariance by difficulty, by hand."""

import numpy as np
import pytest

from llmtrain.evaluation.difficulty import by_difficulty, covariances


def test_covariance_of_each_question_is_numpys():
    generator = np.random.default_rng(0)
    logp, advantage = generator.normal(size=(2, 50))
    question = np.sort(generator.integers(0, 3, 50))
    found = covariances(logp, advantage, question)
    for q in range(3):
        mine = question == q
        assert found[q] == pytest.approx(np.cov(logp[mine], advantage[mine], ddof=0)[0, 1])


def test_an_entry_counts_as_often_as_it_has_tokens():
    # Means −2.5 and −0.5, so that the entries are 1.5·1.5 once and −0.5·−0.5 three times.
    assert covariances([-1.0, -3.0], [1.0, -1.0], [0, 0], [1, 3]) == pytest.approx([(2.25 + 3 * 0.25) / 4])


def test_question_without_tokens_has_none():
    found = covariances([-1.0, -2.0], [1.0, -1.0], [0, 2])
    assert np.isnan(found[1])
    assert found[[0, 2]].tolist() == [0, 0]


def test_groups_by_accuracy():
    groups = by_difficulty([1.0, 3.0, 5.0, np.nan], tokens=[10, 20, 30, 0], accuracy=[0.0, 0.2, 1.0, 0.5])
    assert [g.questions for g in groups] == [2, 0, 0, 0, 1]
    assert (groups[0].covariance, groups[0].tokens) == (2.0, 30)
    assert np.isnan(groups[2].covariance)
    assert (groups[4].low, groups[4].high, groups[4].covariance) == (0.8, 1.0, 5.0)


def test_sizes_must_fit():
    with pytest.raises(ValueError, match="do not fit"):
        covariances([-1.0], [1.0, 2.0], [0])
