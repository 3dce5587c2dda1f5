"""Answers in the form that a question asks for."""

import pytest

from llmtrain.verifiers.math.answer_latex import readable
from llmtrain.verifiers.math.asked_form import in_another_form
from llmtrain.verifiers.math.math_reading import read


def is_another(given, wanted, question):
    return in_another_form(read(readable(given))[0], read(readable(wanted))[0], question)


@pytest.mark.parametrize(
    ("given", "wanted", "question"),
    [
        ("x(x-5)+6", "(x-2)(x-3)", "Factor it."),
        ("5(0.2x^2-x+1.2)", "(x-2)(x-3)", "Factorise it."),
        ("x(x-5+\\frac{6}{x})", "(x-2)(x-3)", "Factor it."),
        ("x(x^2-1)", "x(x-1)(x+1)", "Factor completely."),
        ("x(x+2)+1", "x^2+2x+1", "Expand it."),
        ("(-x-1)^2", "x^2+2x+1", "Expand it."),
        ("x^2+x+x+1", "x^2+2x+1", "Expand it."),
        ("x\\cdot x+2x+1", "x^2+2x+1", "Multiply out."),
        ("\\frac{1-x^2}{1-x}", "x+1", "Simplify it."),
        ("\\frac{x^2}{x-1}-\\frac{1}{x-1}", "x+1", "Simplify it."),
        ("\\frac{x^2-1}{(x-1)(x-2)}", "\\frac{x+1}{x-2}", "Simplify it."),
        ("2\\cdot 3x", "6x", "Simplify it."),
        ("\\frac{1}{x}+\\frac{2}{x}", "\\frac{3}{x}", "Combine them."),
    ],
)
def test_another_form_than_the_question_asks_for(given, wanted, question):
    assert is_another(given, wanted, question)
    assert not is_another(given, wanted, "What is it?")
    assert not is_another(wanted, wanted, question)


@pytest.mark.parametrize(
    ("given", "wanted", "question"),
    [
        ("(x-3)(x-2)", "(x-2)(x-3)", "Factor it."),
        ("(2-x)(3-x)", "(x-2)(x-3)", "Factor it."),
        ("-(x-1)(x+1)", "(1-x)(1+x)", "Factor it."),
        ("(x+1)(x+1)", "(x+1)^2", "Factor it."),
        ("2(x-1)(x+1)", "(2x-2)(x+1)", "Factor it."),
        ("1+2x+x^2", "x^2+2x+1", "Expand it."),
        ("5(x+1)", "5x+5", "Simplify it."),
        ("\\frac{x}{2}+\\frac{1}{2}", "\\frac{x+1}{2}", "Simplify it."),
        ("\\frac{1}{x}+\\frac{1}{y}", "\\frac{x+y}{xy}", "Simplify it."),
        ("x^{-1}", "\\frac{1}{x}", "Simplify it."),
        ("\\frac{\\sqrt{x}}{x}", "\\frac{1}{\\sqrt{x}}", "Simplify it."),
        ("\\frac{3x}{2}", "1.5x", "Simplify it."),
        ("x^a x^b", "x^a x^b", "Simplify it."),
        ("(1,2)", "(1,2)", "Expand it."),
        ("\\frac{2}{4}", "\\frac{1}{2}", "Simplify it."),
    ],
)
def test_forms_that_a_question_may_mean(given, wanted, question):
    assert not is_another(given, wanted, question)
