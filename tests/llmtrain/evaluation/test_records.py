"""A record against numbers worked out by hand."""

import math

import numpy as np
import pytest

from llmtrain.evaluation.calibration import densities
from llmtrain.evaluation.records import Answered, measure
from llmtrain.settings.sampling import Sampling

SAMPLING = Sampling(samples=2, max_new_tokens=9)


def line(correct, answer, tokens, logp, entropy=1.0, response="x y", finished=True):
    return {
        "response": response,
        "extracted": answer,
        "correct": correct,
        "reason": "",
        "tokens": tokens,
        "finished": finished,
        "logp": logp,
        "entropy": entropy,
    }


@pytest.fixture
def answered():
    easy = [line(True, "7", 2, -0.1, 0.5), line(True, "7.0", 4, -0.3, 1.5, "Wait, wait: 7")]
    hard = [line(True, "3", 1, -0.2, 2.0), line(False, None, 3, -1.2, 3.0, finished=False)]
    return [Answered.of(easy), Answered.of(hard)]


def test_by_hand(answered):
    found = measure("a", SAMPLING, answered, np.array([2.0, 4.0]), np.array([4.0, 4.0]), ks=[2, 5])
    assert (found.questions, found.samples) == (2, 2)
    assert found.avg.mean == pytest.approx(3 / 4)
    assert {k: x.mean for k, x in found.pass_at.items()} == pytest.approx({1: 3 / 4, 2: 1})
    assert {k: x.mean for k, x in found.maj_at.items()} == pytest.approx({1: 3 / 4, 2: 1})  # who abstains has no vote
    assert found.length["mean"] == pytest.approx(2.5)
    assert found.finished == pytest.approx(3 / 4)
    assert found.entropy == pytest.approx((2 * 0.5 + 4 * 1.5 + 1 * 2 + 3 * 3) / 10)
    assert found.prompt_entropy.mean == pytest.approx(3)
    assert found.prompt_entropy_ratio == pytest.approx(3 / 4)
    assert found.reflective == pytest.approx(2 / 4)
    assert found.reflective_share == pytest.approx(1 / 4)
    assert found.calibration.gap == pytest.approx(-0.2 + 1.2)
    assert found.calibration.auroc == 1
    assert found.densities == densities(np.array([-0.1, -0.3, -0.2, -1.2]), np.array([True, True, True, False]))
    assert found.accuracy_of_question == [1, 0.5]
    assert found.prompt_entropy_of_question == [2, 4]
    for name in ("ngram_diversity", "self_bleu"):
        assert getattr(found, name).mean == pytest.approx(np.mean([getattr(one, name) for one in answered]))


def test_one_phrase_makes_a_response_reflective():
    one = Answered.of([line(True, "7", 1, -0.1, response=text) for text in ("wait: 7", "7")])
    found = measure("a", SAMPLING, [one], np.ones(1))
    assert (found.reflective, found.reflective_share) == (0.5, 0.5)


def test_powers_of_two_and_what_is_asked_for():
    one = Answered.of([line(i % 2 == 0, str(i), 1, -0.1, response=str(i)) for i in range(6)])
    found = measure("a", SAMPLING, [one, one], np.ones(2), ks=[0, 5, 7])
    assert list(found.pass_at) == list(found.maj_at) == [1, 2, 4, 5, 6]


def test_covariance_is_over_tokens_under_grpos_advantage(answered):
    hard, easy = (measure("a", SAMPLING, answered, np.ones(2)).difficulty[i] for i in (2, 4))
    assert (easy.questions, easy.covariance) == (1, 0)
    # ±½ over the unbiased standard deviation √½; log p −0.2 once and −1.2 three times.
    advantage = np.array([1, -1, -1, -1]) * 0.5 / (math.sqrt(0.5) + 1e-6)
    logp = np.array([-0.2, -1.2, -1.2, -1.2])
    assert (hard.questions, hard.tokens) == (1, 4)
    assert hard.covariance == pytest.approx(np.cov(logp, advantage, ddof=0)[0, 1])


def test_one_sample_has_neither_covariance_nor_self_bleu():
    one = Answered.of([line(False, "7", 2, -0.1)])
    found = measure("a", Sampling(samples=1, max_new_tokens=9), [one, one], np.full(2, np.nan))
    assert found.difficulty == []
    assert np.isnan(found.self_bleu.mean)
    assert np.isnan(found.prompt_entropy.mean)
    assert np.isnan(found.prompt_entropy_ratio)
    assert list(found.pass_at) == [1]


def test_equal_prompts_tie_in_rank_whatever_they_were_batched_with(answered):
    asked, entropy, rounding = answered * 2, np.array([2.0, 4.0, 2.0, 3.0]), np.array([0, 0, 1e-7, 0])
    plain, rounded = (measure("a", SAMPLING, asked, x).prompt_entropy_spearman for x in (entropy, entropy + rounding))
    # ranks of the entropies are 1½, 4, 1½, 3, those of the accuracies 3½, 1½, 3½, 1½
    assert rounded == plain == pytest.approx(-2 * math.sqrt(2) / 3)
