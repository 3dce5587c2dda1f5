"""Answers written as equations or inequalities."""

import pytest
from sympy import Intersection, Union

from llmtrain.verifiers.math.math_equal import equal
from llmtrain.verifiers.math.relations import is_name, joined, reduced


@pytest.mark.parametrize(
    "name", ["x", "x_1", "f(x)", "f'(2)", "\\theta", "\\angle ABC", "AB", "P(A)", "(x,y)", "\\text{area}"]
)
def test_names(name):
    assert is_name(name)


@pytest.mark.parametrize(
    "text",
    ["2x", "x+1", "m+n", "xy", "|x|", "\\cos x", "x^2", "\\frac{x}{2}", "\\sqrt{x}", "5", "-x"],
)
def test_what_is_no_name(text):
    assert not is_name(text)


@pytest.mark.parametrize(
    ("given", "wanted", "part"),
    [
        ("x=5", "5", "5"),
        ("f(x)=2x", "2x", "2x"),
        ("x=2+3=5", "5", "2+3=5"),
        ("x=1, x=2", "1,2", "1,2"),
        ("y=2, x=1", "(1,2)", "(1,2)"),
        ("x=1 \\text{ and } y=2", "(1,2)", "(1,2)"),
        ("m+n=5", "5", "m+n=5"),
        ("m+n=5, x=2", "5,2", None),
        ("x+3=8", "x=5", None),
        ("2x-5y=-7", "2x-5y+7=0", "2x-5y=-7"),
        ("x \\approx 3.14", "3.14", "3.14"),
        ("3 \\approx 4", "3", None),
        ("\\approx 3", "3", None),
        ("\\le 3", "3", None),
        ("3 \\to 4", "4", None),
    ],
)
def test_the_part_of_a_relation_that_is_the_answer(given, wanted, part):
    assert reduced(given, wanted) == part


def test_joined_inequalities():
    assert joined("x<1 or x>2") == (Union, ["x<1", "x>2"])
    assert joined("x<1 \\text{ or } x\\ge 2") == (Union, ["x<1", "x\\ge 2"])
    assert joined("x>1 \\text{ and } x<2") == (Intersection, ["x>1", "x<2"])
    assert joined("x<1, x>2") == (None, ["x<1", "x>2"])
    assert joined("1 or 2") == joined("x>1") == joined("1, 2") == (None, [])


@pytest.mark.parametrize("given", ["x<1 or y>2", "x>0 and y<1"])
def test_inequalities_of_two_variables_are_no_set(given):
    assert not equal(given, "(0,1)")
    assert not equal(given, "(-\\infty,1)\\cup(2,\\infty)")
