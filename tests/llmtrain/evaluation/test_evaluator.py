"""The evaluation of a training step: every question in its own row, names, sources, and all samples counted."""

import numpy as np
import pytest
import torch
from evaluated import TOKENIZER, questions, small_model, verify

from llmtrain.evaluation.quick import evaluate
from llmtrain.rollout import HFRollout
from llmtrain.verdict import Verdict


def sampler(seed=0):
    return HFRollout(small_model(), TOKENIZER, max_new_tokens=5, generator=torch.Generator().manual_seed(seed))


def test_every_question_is_scored_in_its_own_row():
    asked = questions(5)
    easy = set(asked[1:3])

    def judge(some, responses):
        return [Verdict(question in easy, "chosen by question") for question in some]

    scores = evaluate(sampler(), asked, judge, 4, batch_size=2)
    assert scores["eval/avg@4"] == scores["eval/pass@4"] == scores["eval/pass@1"] == pytest.approx(2 / 5)
    assert scores["eval/maj@4"] == pytest.approx(2 / 5)
    assert 1 <= scores["eval/length"] <= 5
    assert 0 <= scores["eval/finished"] <= 1
    assert 0 < scores["eval/ngram_diversity"] <= 1
    assert scores["eval/reflective"] == 0
    assert len(scores) == 8  # one source: nothing by source


def test_numbers_are_those_of_the_responses():
    asked = questions(4)
    rollouts = sampler().generate(TOKENIZER([q.prompt for q in asked])["input_ids"], 6)
    texts = rollouts.texts(TOKENIZER)
    verdicts = verify([q for q in asked for _ in range(6)], texts)
    correct = np.array([v.correct for v in verdicts]).reshape(4, 6)
    assert 0 < correct.mean() < 1
    scores = evaluate(sampler(), asked, verify, 2, samples=6)
    assert scores["eval/avg@2"] == pytest.approx(correct.mean())
    wrong = (~correct).sum(1)
    assert scores["eval/pass@2"] == pytest.approx((1 - wrong * (wrong - 1) / 30).mean())
    assert scores["eval/length"] == pytest.approx(rollouts.response_lengths.double().mean().item())
    assert scores["eval/finished"] == pytest.approx(rollouts.finished.double().mean().item())


def test_each_source_has_scores_of_its_own():
    asked = [*questions(3, "a"), *questions(2, "b")]

    def judge(some, responses):
        return [Verdict(question.source == "b", "") for question in some]

    scores = evaluate(sampler(), asked, judge, 2)
    assert (scores["eval/a/avg@2"], scores["eval/b/avg@2"], scores["eval/b/maj@2"]) == (0, 1, 1)
    assert scores["eval/avg@2"] == pytest.approx(2 / 5)


def test_no_question_is_refused():
    with pytest.raises(ValueError, match="at least one question"):
        evaluate(sampler(), [], verify, 2)


def test_a_rank_without_a_question_has_nothing_to_say():
    rollouts = sampler().generate(TOKENIZER(["1="])["input_ids"], 2, mine=[])
    assert rollouts.texts(TOKENIZER) == []
