"""Diversity against hand-counted n-grams and sacrebleu's own sentence BLEU."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from llmtrain.evaluation.diversity import diversity, length_summary, ngrams, reflective

texts = st.lists(st.text(alphabet="ab1+ \n", max_size=24), min_size=1, max_size=5)


def test_ngram_diversity_by_hand():
    # "a b a": unigrams a b a → 2/3; bigrams ab ba → 1; trigrams aba → 1; no 4-gram.
    assert diversity(["a b a"]).ngrams == pytest.approx((2 / 3 + 1 + 1) / 3)
    # Twice the same: half as many unique ones in each order.
    assert diversity(["a b a", "a b a"]).ngrams == pytest.approx((2 / 6 + 1 / 2 + 1 / 2) / 3)


def test_ngrams_do_not_cross_responses():
    bigrams = list(ngrams(["a b", "c d"]))[1]
    assert len(bigrams.gram) == 2
    assert bigrams.owner.tolist() == [0, 1]


def test_words_are_split_at_punctuation():
    assert diversity(["(3+5)*2"]).ngrams == diversity(["( 3 + 5 ) * 2"]).ngrams


def test_without_words_there_is_no_diversity():
    assert np.isnan(diversity(["", " \n"]).ngrams)
    assert np.isnan(diversity([]).ngrams)


@given(texts)
@settings(max_examples=150, deadline=None)
def test_ngram_diversity_counts_like_a_set(responses):
    words = [re.findall(r"\w+|[^\w\s]", text) for text in responses]
    shares = []
    for n in range(1, 5):
        grams = [tuple(w[i : i + n]) for w in words for i in range(len(w) - n + 1)]
        if grams:
            shares.append(len(set(grams)) / len(grams))
    assert diversity(responses).ngrams == pytest.approx(np.mean(shares) if shares else np.nan, nan_ok=True)


@given(texts)
@settings(max_examples=150, deadline=None)
def test_self_bleu_is_sacrebleus(responses):
    words = [" ".join(re.findall(r"\w+|[^\w\s]", text)) for text in responses]
    words = [text for text in words if text]
    if len(words) < 2:
        assert np.isnan(diversity(responses).self_bleu)
        return
    metrics = [BLEU(max_ngram_order=n, effective_order=True, tokenize="none") for n in range(1, 5)]
    scores = [
        metric.sentence_score(text, words[:i] + words[i + 1 :]).score
        for i, text in enumerate(words)
        for metric in metrics
    ]
    assert diversity(responses).self_bleu == pytest.approx(np.mean(scores) / 100)


def test_self_bleu_of_copies_is_one_and_of_strangers_near_zero():
    assert diversity(["the sum is 4 + 5", "the sum is 4 + 5"]).self_bleu == pytest.approx(1)
    assert diversity(["a b c d e f g h", "i j k l m n o p"]).self_bleu < 0.1
    assert np.isnan(diversity(["alone"]).self_bleu)


def test_reflective_phrases_are_whole_words_in_any_case():
    found = reflective(["Wait, 3? wait. Alternatively", "waiter", "Let’s reconsider this", ""])
    assert found.tolist() == [3, 0, 1, 0]


def test_length_summary_by_hand():
    assert length_summary([1, 2, 3, 4, 10]) == {"mean": 4, "q25": 2, "median": 3, "q75": 4, "max": 10}
    with pytest.raises(ValueError, match="no response"):
        length_summary([])
