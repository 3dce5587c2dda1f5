"""Read LaTeX as trees of SymPy, by the parser of math-verify (github.com/huggingface/Math-Verify).

Trees are not evaluated: 141-623 stays a sum. The parser is changed in these places:

- Prediction. Most of its time goes to full-context prediction. SLL prediction gives the same tree wherever it gives one
  (Parr, Harwell & Fisher, "Adaptive LL(*) Parsing", 2014), so it is tried first.
- Whole answers. An answer is read as a whole or not at all: math-verify looks for a number in what it cannot read.
- Letters. E_1 is not e_1, i is the imaginary unit, and I is a variable.
- Mixed numbers. 2\\frac{1}{2} is 2.5, but 2(3) is 6, not 5, and 2 3 is nothing.
- x^T is a transpose, and nothing if x is no matrix. The order of a chain does not matter: 2 > x > 1 is 1 < x < 2.
"""

import logging
import re
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import latex2sympy2_extended.latex2sympy2 as latex2sympy
from antlr4 import PredictionMode
from latex2sympy2_extended.antlr_parser import PSParser
from latex2sympy2_extended.logic import And
from latex2sympy2_extended.math_normalization import NormalizationConfig, normalize_latex
from sympy import Basic, GreaterThan, I, StrictGreaterThan, binomial

from .answer_latex import readable

Read = tuple[Basic, ...]
"""One expression, relation, set, matrix or tuple of SymPy; empty if an answer is not read."""
PATCHED = {"math-verify": "0.9.0", "latex2sympy2_extended": "1.11.0"}
"""Versions whose parser the classes below change."""
_NORMAL = NormalizationConfig(basic_latex=True, units=False, malformed_operators=False, nits=True, boxed="none")
_CONVERSION = latex2sympy.ConversionConfig(lowercase_symbols=False)
_FORMS = r"""
-3x^{2}+2x-1 ; \frac{3\sqrt{5}}{2} ; (1,2) ; [0, \infty) ; \{1,2,3\} ; x=3 ; a < b ; \frac{2\pi}{3} ; 2^{10}! ; 3-4i
\begin{pmatrix} 1 & -2 \\ 0 & 3 \end{pmatrix} ; \text{(A)} ; 30^\circ ; x \in (-\infty, 1] \cup [2, 3) ; \pm 3 ; 12\%
1.5 \times 10^{-3} ; \sin^2(x) + e^{-t} ; \log_{2} 3 ; f(x)=2x+1 ; y = \frac{a+b}{c} ; \sqrt[3]{7} ; a \cdot b ; |x-2|
1 \leq x \leq 5 ; \binom{5}{2} ; (x-1)(y+2)/3 ; x_{1}=1, x_{2}=2 ; 1,2,3
"""
"""Answers of the forms that benchmarks have, one between two semicolons."""
_ROW = re.compile(r"(?<![\d.,\w{])\d+(?:\.\d+)? +\d++(?! ?[/^])")
"""Numbers in a row, which are no product."""

logging.getLogger("math_verify").setLevel(logging.CRITICAL)
logging.getLogger("latex2sympy2_extended").setLevel(logging.CRITICAL)


class _Parser(PSParser):
    """math-verify's parser with the prediction mode `mode`."""

    mode = PredictionMode.SLL

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._interp.predictionMode = _Parser.mode


class _Reader(latex2sympy._Latex2Sympy):
    """math-verify's conversion of a tree to SymPy; i is a number, and only fractions make mixed numbers."""

    def create_symbol(self, text: str, enforce_case: bool = False) -> Basic:
        return I if text == "i" else super().create_symbol(text, enforce_case)

    def convert_binom(self, binom: Any) -> Any:
        return binomial(self.convert_expr(binom.upper), self.convert_expr(binom.lower), evaluate=False)

    def convert_postfix(self, postfix: Any) -> Any:
        if any(op.transpose() for op in postfix.postfix_op()):
            exp = postfix.exp() if hasattr(postfix, "exp") else postfix.exp_nofunc()
            if not getattr(self.convert_exp(exp), "is_Matrix", False):
                raise ValueError("x^T is no number")
        return super().convert_postfix(postfix)

    def convert_postfix_list(self, arr: list[Any], i: int = 0) -> Any:
        following = arr[i + 1].getText() if i + 1 < len(arr) else "\\frac"
        if not following.startswith("\\frac"):
            first = self.convert_postfix(arr[i])
            if getattr(first, "is_Integer", False):
                rest = self.convert_postfix_list(arr, i + 1)
                if getattr(rest, "is_Rational", False) or getattr(rest, "is_Float", False):
                    if following[0].isdigit():
                        raise ValueError("2 3 is two numbers")
                    return self.mul_flat(first, rest)
        return super().convert_postfix_list(arr, i)


def require_patched() -> None:
    """Raise ImportError unless the versions that are patched here are installed."""
    for package, written_for in PATCHED.items():
        if (found := version(package)) != written_for:
            needed = f"math-verify=={PATCHED['math-verify']}"
            raise ImportError(f"{package} {found} is not {written_for}, which is patched: pip install {needed}")


require_patched()
latex2sympy.PSParser = _Parser


@lru_cache(maxsize=256)
def read(latex: str) -> Read:
    """Return what math-verify reads in all of `latex`, or nothing if it does not read it."""
    return read_by(PredictionMode.SLL, latex) or read_by(PredictionMode.LL, latex)


def read_by(mode: Any, latex: str) -> Read:
    if "%" in latex or _ROW.search(latex):  # within an expression: 50\% may stand for 50 and for 0.5
        return ()
    _Parser.mode = mode
    try:
        found = _Reader(is_real=True, config=_CONVERSION).parse(normalize_latex(latex, _NORMAL))
    except Exception:  # the listener raises nothing more special if something is not LaTeX
        return ()
    return (_ascending(found),)


def _ascending(found: Basic) -> Basic:
    """Return 2 > x > 1 as 1 < x < 2; math-verify compares the parts of a chain in their order."""
    parts = found._unsorted_args if isinstance(found, And) else []
    if parts and all(isinstance(part, GreaterThan | StrictGreaterThan) for part in parts):
        return And(*(part.reversed for part in reversed(parts)))
    return found


def _warm_up() -> None:
    """Read answers of many forms: the parser learns its tables from what it reads, and forks inherit them."""
    for answer in _FORMS.replace("\n", " ; ").split(" ; "):
        if answer:
            read(readable(answer))
    read.cache_clear()


_warm_up()
