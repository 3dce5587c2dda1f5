"""pass@k against hand-computed values, and a whole evaluation."""

from itertools import combinations

import numpy as np
import pytest
import torch

from llmtrain.evaluate import avg_at_k, evaluate, pass_at_k
from llmtrain.model import build_tiny
from llmtrain.rollout import HFRollout
from llmtrain.tasks import countdown
from llmtrain.tokenizer import build_char_tokenizer


def test_pass_at_k_by_hand():
    assert pass_at_k(np.array([[1, 0, 0, 0]]), 1) == pytest.approx(0.25)
    assert pass_at_k(np.array([[1, 0, 0, 0]]), 2) == pytest.approx(1 - 3 / 6)
    assert pass_at_k(np.array([[1, 1, 0, 0]]), 2) == pytest.approx(1 - 1 / 6)
    assert pass_at_k(np.array([[1, 1, 1, 0]]), 2) == 1.0
    assert pass_at_k(np.array([[0, 0, 0, 0]]), 4) == 0.0
    assert pass_at_k(np.array([[1, 0, 0, 0], [0, 0, 0, 0]]), 4) == pytest.approx(0.5)
    # n = 10, c = 3, k = 5: 1 − C(7, 5) / C(10, 5) = 1 − 21/252.
    assert pass_at_k(np.array([[1] * 3 + [0] * 7]), 5) == pytest.approx(1 - 21 / 252)


def test_pass_at_k_is_the_average_over_all_subsets():
    correct = np.random.default_rng(0).random((5, 7)) < 0.3
    for k in range(1, 8):
        brute = np.mean([[row[list(s)].any() for s in combinations(range(7), k)] for row in correct])
        assert pass_at_k(correct, k) == pytest.approx(brute)


def test_pass_at_k_survives_many_samples():
    correct = np.zeros((1, 20_000))
    correct[0, 0] = 1
    assert pass_at_k(correct, 5_000) == pytest.approx(0.25)


def test_avg_at_k():
    correct = np.array([[1, 0, 1, 1], [0, 0, 1, 1]])
    assert avg_at_k(correct, 4) == pytest.approx(5 / 8)
    assert avg_at_k(correct, 2) == pytest.approx(1 / 4)


@pytest.mark.parametrize(("shape", "k"), [((2, 3), 4), ((2, 3), 0), ((0, 3), 1), ((3,), 1)])
def test_bad_shapes_and_k(shape, k):
    with pytest.raises(ValueError, match="outcomes of shape"):
        pass_at_k(np.zeros(shape), k)


def test_evaluate_scores_every_problem_in_its_own_row():
    tokenizer = build_char_tokenizer(countdown.ALPHABET)
    model = build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16)
    rollout = HFRollout(model, tokenizer, max_new_tokens=5, generator=torch.Generator().manual_seed(0))
    problems = countdown.generate(5, 0)
    easy = set(problems[1:3])

    def verify(problem, response):
        return countdown.Verdict(problem in easy, "chosen by problem")

    scores = evaluate(rollout, problems, verify, 4, prompt=countdown.prompt, batch_size=2)
    assert scores["eval/avg@4"] == scores["eval/pass@4"] == scores["eval/pass@1"] == pytest.approx(2 / 5)
    assert 1 <= scores["eval/length"] <= 5
    assert 0 <= scores["eval/finished"] <= 1
