"""Are two answers mathematically equal? By math-verify (github.com/huggingface/Math-Verify), made quicker.

math-verify reads LaTeX with an ANTLR parser in Python and compares with SymPy. Two things take most of its time:

- full-context prediction. SLL prediction gives the same tree wherever it gives one (Parr, Harwell & Fisher, "Adaptive
  LL(*) Parsing", 2014), so it is tried first;
- simplifying the difference of two expressions. Where their values differ in the first digits, at numbers put in for
  the variables, it is not zero.

SymPy may take forever, and its parser evaluates text: this is for the processes of a CheckPool.
"""

import logging
import re
from functools import lru_cache
from typing import Any
from zlib import crc32

import latex2sympy2_extended.latex2sympy2 as latex2sympy
from antlr4 import PredictionMode
from latex2sympy2_extended.antlr_parser import PSParser
from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
from sympy import Expr

from .answer_value import far

_CONFIG = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())
_FORMS = r"""
-3x^{2}+2x-1 ; \frac{3\sqrt{5}}{2} ; (1,2) ; [0, \infty) ; \{1,2,3\} ; x=3 ; a < b ; \frac{2\pi}{3} ; 2^{10}! ; 3-4i
\begin{pmatrix} 1 & -2 \\ 0 & 3 \end{pmatrix} ; \text{(A)} ; 30^\circ ; x \in (-\infty, 1] \cup [2, 3) ; \pm 3 ; 12\%
1.5 \times 10^{-3} ; \sin^2(x) + e^{-t} ; \log_{2} 3 ; f(x)=2x+1 ; y = \frac{a+b}{c} ; \sqrt[3]{7} ; a \cdot b ; |x-2|
1 \leq x \leq 5 ; \binom{5}{2} ; (x-1)(y+2)/3 ; x_{1}=1, x_{2}=2 ; 1,2,3
"""
"""Answers of the forms that benchmarks have, one between two semicolons."""
_NAME = re.compile(r"[a-zA-Z\\]")

logging.getLogger("math_verify").setLevel(logging.CRITICAL)
logging.getLogger("latex2sympy2_extended").setLevel(logging.CRITICAL)


class _Parser(PSParser):
    """math-verify's parser with the prediction mode that `mode` says."""

    mode = PredictionMode.SLL
    failed = False
    """Whether something was not LaTeX by this mode."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._interp.predictionMode = _Parser.mode

    def notifyErrorListeners(self, *args: Any) -> None:
        _Parser.failed = True
        super().notifyErrorListeners(*args)


latex2sympy.PSParser = _Parser


@lru_cache(maxsize=4096)
def equal(given: str, wanted: str) -> bool:
    """Is `given` mathematically equal to `wanted`, both LaTeX or plain expressions?"""
    a, b = _read(given), _read(wanted)
    if _apart(a, b):
        return False
    return verify(list(b), list(a), timeout_seconds=None)


def _apart(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Are both expressions whose values are plainly different, at the same numbers for the same variables?"""
    if not (a and b and isinstance(a[0], Expr) and isinstance(b[0], Expr)):
        return False
    if "%" in a[-1] or "%" in b[-1]:  # 50% may stand for 50
        return False
    try:
        x, y = _value(a[0]), _value(b[0])
    except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError, RecursionError):
        return False
    return far(x, y)


def _value(expression: Expr) -> complex:
    """With a number between 1 and 2 for each variable, the same for the same name; NaN where there is none.

    Raises:
        ValueError: for a symbol that is no variable, such as the 42 of \\text{42}.
    """
    if not all(_NAME.match(str(x)) for x in expression.free_symbols):
        raise ValueError("no variable")
    numbers = {x: 1 + crc32(str(x).encode()) % 9973 / 9973 for x in expression.free_symbols}
    return complex(expression.evalf(12, subs=numbers))


@lru_cache(maxsize=1024)
def _read(answer: str) -> tuple[Any, ...]:
    """What math-verify reads in `answer`: an expression, where it can, and its text."""
    found = _read_by(PredictionMode.SLL, answer)
    if _Parser.failed:  # and math-verify has looked for something else in the answer, such as the 5 of x^{2} + 5
        found = _read_by(PredictionMode.LL, answer)
    return tuple(found)


def _read_by(mode: Any, answer: str) -> list[Any]:
    _Parser.mode, _Parser.failed = mode, False
    return parse(f"\\boxed{{{answer}}}", _CONFIG, parsing_timeout=None)


def _warm_up() -> None:
    """Read answers of many forms: the parser learns its tables from what it reads, and forks inherit them."""
    for answer in _FORMS.replace("\n", " ; ").split(" ; "):
        if answer:
            _read(answer)
    _read.cache_clear()


_warm_up()
