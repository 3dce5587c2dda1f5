"""Words of numbers."""

import pytest

from llmtrain.verifiers.math.word_number import in_digits, number_before


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("6 million", "6000000"),
        ("6.5 million", "6500000"),
        ("1,200 thousand", "1200000"),
        ("5 dozen", "60"),
        ("2 hundred thousand", "200000"),
        ("3 out of 4", "3/4"),
        ("1 over 3", "1/3"),
        ("6.5 millionths", "6.5 millionths"),
        ("6 million 5", "6 million 5"),
        ("0.1 dozen", "0.1 dozen"),  # no whole number
        ("3 in 4", "3 in 4"),
    ],
)
def test_words_with_one_meaning_are_digits(text, digits):
    assert in_digits(text) == digits


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The probability is 3 out of ", "3 out of "),
        ("The total is ", ""),
        ("5 times 3 is ", ""),
        ("The odds are 3 in ", None),
        ("We get 3 (mod ", None),
        ("The maximum is 3, at x = ", ""),
        ("by Theorem ", None),
    ],
)
def test_words_that_belong_to_the_number_after_them(text, words):
    assert number_before(text) == words
