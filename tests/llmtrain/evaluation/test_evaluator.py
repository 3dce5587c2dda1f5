"""Evaluation during training: every question in its own row, names, sources, all samples counted, and the start."""

from collections import Counter

import numpy as np
import pytest
import torch
from evaluated import TOKENIZER, evaluator, ids, questions, small_model, subject, verify

from llmtrain.evaluation.statistics import prompt_entropy, response_means
from llmtrain.policy.policy import Policy
from llmtrain.rollout.hf import HFRollout
from llmtrain.rollout.hf_engine import HFEngine
from llmtrain.rollout.rollout_engine import Sampler
from llmtrain.settings.config import RolloutConfig
from llmtrain.settings.sampling import Sampling
from llmtrain.verifiers.verdict import Verdict


class Drawn(HFRollout):
    """Takes a number of samples, or the sampling, of which it heeds the number alone."""

    asked: list

    def generate(self, prompt_ids, n, mine=None):
        self.asked = [*vars(self).get("asked", []), n]
        return super().generate(prompt_ids, getattr(n, "samples", n), mine)


def sampler(seed=0):
    return Drawn(small_model(), TOKENIZER, max_new_tokens=5, generator=torch.Generator().manual_seed(seed))


def by_source(right):
    return lambda some, responses: [Verdict(right(question), "chosen by question") for question in some]


def test_every_question_is_scored_in_its_own_row():
    asked = questions(5)
    easy = set(asked[1:3])
    judge = by_source(lambda question: question in easy)
    scores = evaluator(asked, judge, k=4, samples=4, batch_size=2)(sampler())
    assert scores["eval/avg@4"] == scores["eval/pass@4"] == scores["eval/pass@1"] == pytest.approx(2 / 5)
    assert scores["eval/maj@4"] == pytest.approx(2 / 5)
    assert scores["eval/avg@4/low"] < 2 / 5 < scores["eval/avg@4/high"]
    assert 1 <= scores["eval/length"] <= 5
    assert 0 <= scores["eval/finished"] <= 1
    assert 0 < scores["eval/ngram_diversity"] <= 1
    assert scores["eval/reflective"] == 0
    assert scores["eval/avg"] == scores["eval/avg@4"]
    assert all(key.count("/") == 1 or "@" in key or "covariance" in key for key in scores)  # nothing by source


def test_numbers_are_those_of_the_responses():
    asked, n = questions(4), 6
    rollouts = sampler().generate(ids(asked), n)
    verdicts = verify([q for q in asked for _ in range(n)], rollouts.texts(TOKENIZER))
    correct = np.array([v.correct for v in verdicts]).reshape(4, n)
    assert 0 < correct.mean() < 1
    scores = evaluator(asked, k=2, samples=n)(sampler())
    assert scores["eval/avg@2"] == pytest.approx(correct.mean())
    assert scores["eval/pass@1"] == pytest.approx(correct.mean())
    wrong = (~correct).sum(1)
    assert scores["eval/pass@2"] == pytest.approx((1 - wrong * (wrong - 1) / 30).mean())
    lengths = rollouts.response_lengths.double()
    assert scores["eval/length"] == pytest.approx(lengths.mean().item())
    assert scores["eval/finished"] == pytest.approx(rollouts.finished.double().mean().item())
    means = response_means(subject().policy, rollouts)
    assert scores["eval/entropy"] == pytest.approx(np.average(means.entropy, weights=lengths), abs=1e-5)
    right = correct.ravel()
    assert scores["eval/logp_gap"] == pytest.approx(means.logp[right].mean() - means.logp[~right].mean(), abs=1e-5)
    assert scores["eval/prompt_entropy"] == pytest.approx(prompt_entropy(subject().policy, ids(asked)).mean())


def test_log_probabilities_are_at_the_policys_temperature():
    found = evaluator(questions(3), policy=Policy(small_model(), temperature=2.0))(sampler())
    assert found["eval/entropy"] > evaluator(questions(3))(sampler())["eval/entropy"]


def test_prompt_entropy_is_told_against_the_first_evaluation():
    policy = Policy(small_model())
    evaluate = evaluator(questions(5), policy=policy)
    first = evaluate(sampler())
    assert first["eval/prompt_entropy_ratio"] == 1
    policy.temperature = 2.0
    assert len(evaluate.start) == 5
    resumed = evaluator(questions(5), policy=policy, start=list(evaluate.start))
    for again in (evaluate, resumed):
        second = again(sampler())
        ratio = second["eval/prompt_entropy"] / first["eval/prompt_entropy"]
        assert second["eval/prompt_entropy_ratio"] == pytest.approx(ratio)
        assert ratio > 1
    other = evaluator([*questions(3, "a"), *questions(1, "b")], policy=policy, start=list(evaluate.start))
    assert other(sampler())["eval/prompt_entropy_ratio"] == 1  # of other questions there is no start but this one


def test_each_source_has_a_record_of_its_own():
    asked = [*questions(3, "a"), *questions(2, "b")]
    scores = evaluator(asked, by_source(lambda question: question.source == "b"))(sampler())
    assert (scores["eval/a/avg@2"], scores["eval/b/avg@2"], scores["eval/b/maj@2"]) == (0, 1, 1)
    assert scores["eval/avg@2"] == pytest.approx(2 / 5)
    assert scores["eval/avg"] == pytest.approx(1 / 2)
    lengths = scores["eval/a/length"] * 3 + scores["eval/b/length"] * 2
    assert scores["eval/length"] == pytest.approx(lengths / 5)


def test_each_benchmark_is_sampled_in_its_own_way():
    """Two sources with 4 and 2 samples: records by source alone, and the mean of their averages."""
    few, many = (Sampling(temperature=t, samples=n, max_new_tokens=6) for t, n in ((0.0, 2), (1.0, 4)))
    asked = [*questions(1, "a"), *questions(2, "b"), *questions(2, "a")]
    evaluate = evaluator(asked, by_source(lambda question: question.source == "b"))
    evaluate.sampling, evaluate.k = {"a": many, "b": few}.__getitem__, 0
    drawn = sampler()
    scores = evaluate(drawn)
    assert drawn.asked == [many, few]
    assert (scores["eval/a/avg@4"], scores["eval/b/avg@2"], scores["eval/avg"]) == (0, 1, 0.5)
    assert {key.split("/")[1] for key in scores} == {"a", "b", "avg"}


def test_all_that_a_record_tells_has_a_name():
    asked = questions(4)
    scores = evaluator(asked, by_source(lambda question: question in asked[:2]), k=2, samples=3)(sampler())
    told = {key.removeprefix("eval/") for key in scores}
    scored = {f"{name}{end}" for name in ("avg@2", "pass@2", "maj@2") for end in ("", "/low", "/high")}
    assert told >= scored | {"pass@1", "self_bleu", "auroc", "logp_gap", "ece", "prompt_entropy_spearman"}
    assert {"covariance/0_to_0.2", "covariance/0.8_to_1"} <= told
    assert all(isinstance(value, float) for value in scores.values())


def test_what_has_no_number_is_left_out():
    scores = evaluator(questions(3), by_source(lambda question: False))(sampler())
    assert scores["eval/pass@2"] == 0
    assert not {"eval/auroc", "eval/logp_gap", "eval/prompt_entropy_spearman"} & set(scores)
    assert not np.isnan(list(scores.values())).any()


def test_batches_have_draws_of_their_own():
    """All batches have the same prompts, but different responses."""
    said = []

    def judge(some, responses):
        said.append(list(responses))
        return verify(some, responses)

    for _ in range(2):
        engine = HFEngine(small_model(), TOKENIZER, RolloutConfig(max_new_tokens=6))
        evaluator(questions(1) * 4, judge, samples=4, batch_size=2)(Sampler(engine, TOKENIZER, 3, 1))
    assert said[0] != said[1]
    assert said[:2] == said[2:]


def test_checks_that_fail_are_those_of_this_evaluation():
    counted = Counter(timeout=5, crash=2)  # in training, before

    def judge(some, responses):
        counted["timeout"] += len(responses)
        return verify(some, responses)

    evaluate = evaluator(questions(3), judge, failures=lambda: counted)
    for _ in range(2):
        told = {key: value for key, value in evaluate(sampler()).items() if "verify" in key}
        assert told == {"eval/verify/timeout": 6.0}
    assert counted == {"timeout": 17, "crash": 2}


def test_no_question_is_refused():
    with pytest.raises(ValueError, match="at least one question"):
        evaluator([])(sampler())


def test_a_rank_without_a_question_has_nothing_to_say():
    rollouts = sampler().generate(TOKENIZER(["1="])["input_ids"], 2, mine=[])
    assert rollouts.texts(TOKENIZER) == []
    assert response_means(subject().policy, rollouts).logp.shape == (0,)
    assert prompt_entropy(subject().policy, []).shape == (0,)
