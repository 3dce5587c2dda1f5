"""Finished numbers, and formulas of the question."""

import pytest

from llmtrain.verifiers.math.answer_latex import readable
from llmtrain.verifiers.math.math_equal import _parsed
from llmtrain.verifiers.math.math_reading import read
from llmtrain.verifiers.math.worked_out import copied, formulas, unfinished

FINISHED = r"""
7 ; -7 ; 0.5 ; \frac{3}{4} ; -\frac{3}{4} ; 2\frac{1}{3} ; 3\times 10^8 ; 10^{5} ; (1,2) ; \{1,\frac12\}
[0,\infty) ; 1<x<2
\begin{pmatrix}1\\2\end{pmatrix}
"""
IRRATIONAL = r"""
2\sqrt{3} ; \frac{\sqrt{3}}{2} ; \frac{2\sqrt{3}}{4} ; 1+\sqrt{2} ; \frac{1+\sqrt{5}}{2} ; \frac{\pi}{6} ; e^2 ; 3+4i
\sqrt[3]{54} ; 2\pi+1
17^{1/2} ; -\sqrt{2}+\sqrt{3}
"""
UNFINISHED = r"""
141-623 ; 2\cdot 3 ; 2(3) ; 2^{10} ; 5! ; \binom{6}{2} ; |-3| ; \sqrt{2}\sqrt{3} ; 1+1+\sqrt{2}
\sqrt{2}+\sqrt{2} ; \sum_{n=1}^{5} n
\int_0^1 x dx ; (1+1,2) ; \{2\cdot 3\} ; [0,1+1)
10^{8}\cdot 10^{3} ; -(5-3) ; \log_2 8 ; \frac{1+2}{3}
\frac{17}{1/23} ; 389\frac{4}{2} ; 7/(1/1) ; -(-7) ; --7 ; e^{\ln 7} ; \gcd(7,14) ; \operatorname{lcm}(7,1)
\begin{vmatrix}7&0\\0&1\end{vmatrix} ; \max(7,1)
"""


def texts(block):
    return [text for line in block.strip().split("\n") for text in line.split(" ; ")]


def tree(text):
    return read(readable(text))[0]


@pytest.mark.parametrize("text", texts(FINISHED))
def test_finished(text):
    assert not unfinished(text, tree(text), tree("7"))


@pytest.mark.parametrize("text", texts(IRRATIONAL))
def test_irrational_numbers_are_finished_where_the_truth_is_irrational(text):
    assert not unfinished(text, tree(text), tree("\\sqrt{7}"))
    assert unfinished(text, tree(text), tree("7"))


@pytest.mark.parametrize("text", texts(UNFINISHED))
def test_unfinished(text):
    assert unfinished(text, tree(text), tree("7"))
    assert unfinished(text, tree(text), tree("\\sqrt{7}"))


def test_what_the_parser_evaluates_by_itself():
    assert unfinished("e^{2\\pi i}", tree("e^{2\\pi i}"), tree("1"))
    assert unfinished("\\frac{\\sqrt{4}}{2}", tree("\\frac{\\sqrt{4}}{2}"), tree("1"))


def test_operations_that_the_truth_has_too_are_no_work_left():
    assert not unfinished("\\binom{8}{2}", tree("\\binom{8}{2}"), tree("\\binom{8}{6}"))
    assert unfinished("\\int x dx", tree("\\int x dx"), tree("\\frac{x^2}{2}"))


def test_formulas_of_a_question():
    question = "Let $f(x)=x^2$ and \\(a<b\\). Find \\[x+1\\] and $$y$$."
    assert list(formulas(question)) == ["f(x)=x^2", "f(x)", "x^2", "a<b", "a", "b", "x+1", "y"]


@pytest.mark.parametrize(
    ("given", "wanted", "question", "found"),
    [
        ("(x+1)^2", "x^2+2x+1", "Expand $(x+1)^2$.", True),
        ("(1+x)^2", "x^2+2x+1", "Expand $(x+1)^2$.", True),
        ("(x+1)^2+0", "x^2+2x+1", "Expand $(x+1)^2$.", True),
        ("(x+1)^2", "x^2+2x+1", "Let $f(x)=(x+1)^2$. Expand it.", True),
        ("(x+1)^2", "x^2+2x+1", "Expand (x+1)^2, please.", True),
        ("x^2+1+2x", "x^2+2x+1", "Expand $(x+1)^2$.", False),
        ("1+x", "x+1", "Is it $x+1$ or $1+x$?", False),
        ("12", "12", "It is $12$.", False),
        ("\\frac{2^{2012}}{2^{1006}}", "2^{1006}", "Simplify $\\frac{2^{2012}}{2^{1006}}$.", True),
        ("(1,2)", "(1,2)", "Is it $(1,2)$?", False),
    ],
)
def test_copies_of_the_question(given, wanted, question, found):
    assert copied(given, tree(given), tree(wanted), question, _parsed) is found
