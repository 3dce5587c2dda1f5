"""What math-verify reads by the quicker prediction is what it reads by the full one."""

import pytest
from antlr4 import PredictionMode
from math_verify.parser import parse_latex_cached
from sympy import srepr

from llmtrain.verifiers.math import math_equal
from llmtrain.verifiers.math.math_equal import equal

FORMS = r"""
x^{2} + 5 ; x^2+5 ; y^{3} - 2 x + 1 ; (x^{2})+3 ; -x^{2}+4 ; 100p^{\frac{1}{2}} ; [P^{2/5}-\frac{2}{5}z]^{5/2}
\frac{2-x^{2}}{x^{4}-\frac{63}{16}x^{2}+4} ; -\frac{1}{2}X^{-\frac{1}{2}} ; \sin^{2} x + 5 ; (1, 2) ; y = 3 ; 12_5
x \in [0, 1) ; \{1, 2\} ; \text{even} ; 3\pm 2\sqrt{2} ; \begin{pmatrix} 1 & 2 \end{pmatrix}
"""
TEXTS = [text for line in FORMS.split("\n") for text in line.split(" ; ") if text]


def told(found):
    return [part if isinstance(part, str) else srepr(part) for part in found]


@pytest.mark.parametrize("text", TEXTS)
def test_both_predictions_read_the_same(text):
    parse_latex_cached.cache_clear()
    quick = told(math_equal._read.__wrapped__(text))
    parse_latex_cached.cache_clear()
    assert quick == told(math_equal._read_by(PredictionMode.LL, text))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("x^{2} + 5", "5", False),
        ("x^2 + 5", "5+x^{2}", True),
        ("\\sin^{2} x + 5", "5", False),
        ("100p^{\\frac{1}{2}}", "\\frac{1}{2}", False),
    ],
)
def test_a_part_of_an_answer_is_not_the_answer(a, b, same):
    assert equal(a, b) is same


def test_numbers_are_put_in_for_variables_only():
    assert math_equal._value(math_equal._read("x+1")[0])
    with pytest.raises(ValueError, match="no variable"):
        math_equal._value(math_equal._read("\\text{42}")[0])


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        *(("x+1", "x+2", True), ("x+1", "1+x", False), ("x+1", "y+1", True)),
        *(("10\\% + 3", "5", False), ("5", "10\\% + 3", False)),
        *(("(1,2)", "(1,3)", False), ("\\text{42}", "43", False), ("?", "5", False)),
    ],
)
def test_values_tell_expressions_apart(a, b, apart):
    assert math_equal._apart(math_equal._read(a), math_equal._read(b)) is apart
