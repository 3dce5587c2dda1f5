"""Answers that are called different are different: by hand, and against math-verify itself."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmtrain.verifiers.quick_value import apart


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("\\frac{x+1}{2}", "x+1"),
        ("(-1,6)", "-2"),
        ("(-1,6)", "(-1,7)"),
        ("(-\\infty,2)", "(2,\\infty)"),
        ("\\{1,2\\}", "1,2,3"),
        ("3-4i", "3+4i"),
        ("2\\sqrt{3}", "3\\sqrt{2}"),
        ("x_{1}+1", "x_{2}+1"),
        ("6r^2-4r-24", "1"),
        ("2^{10}", "1025"),
        ("\\frac12", "2"),
        ("\\frac{\\pi}{6}", "\\frac{\\pi}{3}"),
        ("A", "B"),
    ],
)
def test_different(a, b):
    assert apart(a, b)
    assert apart(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("x^2-1", "(x-1)(x+1)"),
        ("2\\sqrt{2}", "\\sqrt{8}"),
        ("\\frac{1}{2}+\\frac{1}{3}", "5/6"),
        ("[1,2]", "(1,2)"),  # whether that is equal is math-verify's to say
        ("\\{2,1\\}", "1,2"),
        ("e^{\\pi i}", "-1"),
        ("\\omega t", "t\\omega"),
        ("\\frac12", "0.5"),
    ],
)
def test_perhaps_equal(a, b):
    assert not apart(a, b)


@pytest.mark.parametrize(
    "text",
    [
        *("3\\frac{1}{2}", "1,234", "12 5", "2^10", "1e5", "5cm", "5m", "5 m", "xy", "even", "1/2x", "f(x,y)", "50%"),
        *("\\cotx", "\\sin x", "y=2", "12_5", "3!", "|x|", "2^{999}", "9^{9^{9}}", "\\sqrt[3]{2}", "\\frac{1}{0}", ""),
        *(
            "(" * 150,
            "1" + "+1" * 150,
            "\\text{A}",
            "3\\pm 2",
            "(1,2)\\cup(3,4)",
            "x<2",
            "1/0",
            "\\frac123",
            "{",
            "^",
            ",",
        ),
    ],
)
def test_what_is_not_read_is_left_to_others(text):
    assert not apart(text, "77")
    assert not apart("77", text)


numbers = st.integers(0, 30).map(str)
atoms = st.one_of(numbers, st.sampled_from(["x", "y", "\\pi", "\\theta", "x_{1}", "i", "e"]))


def joined(inner):
    """Larger expressions; sums and products in brackets, so that a text says what it is made of."""
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: f"({p[0]}+{p[1]})"),
        pair.map(lambda p: f"({p[0]}-{p[1]})"),
        pair.map(lambda p: f"({p[0]}\\cdot {p[1]})"),
        pair.map(lambda p: f"\\frac{{{p[0]}}}{{{p[1]}}}"),
        inner.map(lambda x: f"\\sqrt{{{x}}}"),
        st.tuples(inner, st.integers(0, 3)).map(lambda p: f"({p[0]})^{{{p[1]}}}"),
    )


expressions = st.recursive(atoms, joined, max_leaves=4)
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(expressions, expressions)
def test_math_verify_never_finds_equal_what_is_apart(a, b):
    from llmtrain.verifiers.math_equal import _read, verify

    if apart(a, b):
        assert not verify(list(_read(b)), list(_read(a)), timeout_seconds=None)


@settings(deadline=None)
@given(expressions, expressions)
def test_equal_expressions_are_never_apart(a, b):
    for one, same in (
        (f"{a}+{b}", f"{b}+{a}"),
        (f"({a})({b})", f"{b} \\cdot {a}"),
        (f"({a}+{b})^{{2}}", f"({a})^2+2({a})({b})+({b})^2"),
        (f"{a}-({b})", f"-({b}-({a}))"),
        (f"({a},{b})", f"({a},{b})"),
    ):
        assert not apart(one, same)
