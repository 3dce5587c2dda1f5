"""Numbers too large to evaluate."""

import pytest
from sympy import Add, Integer, Pow, Symbol, factorial

from llmtrain.verifiers.math.math_equal import equal
from llmtrain.verifiers.math.size import UndecidedError, require_small


def power(base, exponent):
    return Pow(base, exponent, evaluate=False)


def test_small_numbers_pass():
    for tree in (Integer(5), power(2, 1009), factorial(2009, evaluate=False), power(Symbol("x"), 10**6)):
        require_small(tree)


@pytest.mark.parametrize(
    "tree", [power(9, power(9, 9)), power(2, 10**6), power(10, -(10**10)), factorial(10**20, evaluate=False)]
)
def test_large_ones_are_not_evaluated(tree):
    for one in (tree, Add(tree, 1, evaluate=False)):
        with pytest.raises(UndecidedError, match="too large"):
            require_small(one)


def test_answers_that_cannot_be_decided():
    for one, other, names in (("2^{1000000}", "2^{1000001}", "too large"), ("\\sqrt{x^2}", "x", "not shown")):
        with pytest.raises(UndecidedError, match=names):
            equal(one, other)
    assert equal("2^{1000000}", "2^{1000000}")
    assert equal("\\frac{1}{\\sqrt{m}}", "\\sqrt{\\frac{1}{m}}", "where m is positive")
