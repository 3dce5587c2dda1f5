"""Real data sets, if they are available."""

import warnings
from collections import Counter

import pytest

from llmtrain.data import read

FILES = {  # questions, rows of each
    "DAPO-Math-17k.parquet": (17398, 1),
    "aime24.parquet": (30, 32),
    "aime25.parquet": (30, 32),
    "amc23.parquet": (40, 32),
    "math500.parquet": (500, 1),
    "minerva_math.parquet": (272, 1),
    "olympiadbench.parquet": (675, 1),
    "gsm8k_train.jsonl": (7473, 1),
    "gsm8k_test.jsonl": (1319, 1),
}


@pytest.mark.parametrize("name", FILES)
def test_each_question_is_read_once(real, name):
    count, repeats = FILES[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        questions, skipped = read(real(name))
    assert not skipped
    assert ["615 rows with control characters" in str(one.message) for one in told] == [True] * name.startswith("DAPO")
    assert len(questions) == count
    assert Counter(q.repeats for q in questions) == {repeats: count}
    assert len({q.source for q in questions}) == 1
    assert all(isinstance(q.ground_truth, str) and q.ground_truth.strip() for q in questions)
    chat = name.endswith(".parquet")
    assert all(isinstance(q.prompt, tuple if chat else str) for q in questions)


@pytest.mark.parametrize("name", ["gsm8k_train.jsonl", "gsm8k_test.jsonl"])
def test_gsm8k_has_numbers_and_worked_solutions_without_calculator_marks(real, name):
    for question in read(real(name)).questions:
        float(question.ground_truth)
        assert question.solution
        assert "<<" not in question.solution
        assert question.solution.rpartition("#### ")[2].replace(",", "") == question.ground_truth
