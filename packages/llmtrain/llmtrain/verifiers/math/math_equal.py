"""Compare two answers by math-verify (github.com/huggingface/Math-Verify), behind a cache.

math-verify reads LaTeX with an ANTLR parser in Python and compares with SymPy. It is changed in these places:

- Prediction. Most of its time goes to full-context prediction. SLL prediction gives the same tree wherever it gives one
  (Parr, Harwell & Fisher, "Adaptive LL(*) Parsing", 2014), so it is tried first.
- Whole answers. An answer is read as a whole or not at all: math-verify looks for a number in what it cannot read.
- Letters. E_1 is not e_1, i is the imaginary unit, and I is a variable.
- Mixed numbers. 2\\frac{1}{2} is 2.5, but 2(3) is 6, not 5.
- Plain differences. Expressions whose values differ in the first digits, at numbers put in for the variables,
  are not simplified; two sides of an equation that differ so, as in 4=5, make it no answer.
- Small differences. 1+10^{-17} is not 1. The order of a chain does not matter: 2 > x > 1 is 1 < x < 2.

SymPy may take forever, so this runs in the processes of a CheckPool. A check that times out ends its process and leaves
nothing in the cache.
"""

import logging
import re
from functools import lru_cache
from importlib.metadata import version
from math import isinf
from typing import Any
from zlib import crc32

import latex2sympy2_extended.latex2sympy2 as latex2sympy
from antlr4 import PredictionMode
from latex2sympy2_extended.antlr_parser import PSParser
from latex2sympy2_extended.logic import And
from latex2sympy2_extended.math_normalization import NormalizationConfig, normalize_latex
from math_verify import verify
from sympy import Basic, Eq, Expr, Float, GreaterThan, I, Rational, StrictGreaterThan

from .answer_latex import readable
from .answer_text import compact
from .plain_number import same_number

Read = tuple[Basic, ...]
"""One expression, relation, set, matrix or tuple of SymPy; empty if an answer is not read."""
PATCHED = {"math-verify": "0.9.0", "latex2sympy2_extended": "1.11.0"}
"""Versions whose parser the classes below change."""
CACHED, CACHED_CHARS = 4096, 1000
"""Upper limits of the cache: pairs of answer and truth, and characters of a pair."""
NEAR, NEAR_SHARE, ZERO = 1e-6, 1e-3, 1e-60
"""Values differ plainly from this share on; by twice that or the larger share for small ones. Less than ZERO is 0."""
ROUNDED_SHARE = 1e-2
"""Share by which a rounded decimal may differ from the other side of its equation, as in \\sqrt{2}=1.414."""

_NORMAL = NormalizationConfig(basic_latex=True, units=False, malformed_operators=False, nits=True, boxed="none")
_CONVERSION = latex2sympy.ConversionConfig(lowercase_symbols=False)
_FORMS = r"""
-3x^{2}+2x-1 ; \frac{3\sqrt{5}}{2} ; (1,2) ; [0, \infty) ; \{1,2,3\} ; x=3 ; a < b ; \frac{2\pi}{3} ; 2^{10}! ; 3-4i
\begin{pmatrix} 1 & -2 \\ 0 & 3 \end{pmatrix} ; \text{(A)} ; 30^\circ ; x \in (-\infty, 1] \cup [2, 3) ; \pm 3 ; 12\%
1.5 \times 10^{-3} ; \sin^2(x) + e^{-t} ; \log_{2} 3 ; f(x)=2x+1 ; y = \frac{a+b}{c} ; \sqrt[3]{7} ; a \cdot b ; |x-2|
1 \leq x \leq 5 ; \binom{5}{2} ; (x-1)(y+2)/3 ; x_{1}=1, x_{2}=2 ; 1,2,3
"""
"""Answers of the forms that benchmarks have, one between two semicolons."""
_NAME = re.compile(r"[a-zA-Z\\]")
_NO_VALUE = (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
"""Errors of SymPy for an expression without a value."""
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]")

logging.getLogger("math_verify").setLevel(logging.CRITICAL)
logging.getLogger("latex2sympy2_extended").setLevel(logging.CRITICAL)


def require_patched() -> None:
    """Raise ImportError unless the versions that are patched here are installed."""
    for package, written_for in PATCHED.items():
        if (found := version(package)) != written_for:
            needed = f"math-verify=={PATCHED['math-verify']}"
            raise ImportError(f"{package} {found} is not {written_for}, which is patched: pip install {needed}")


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


require_patched()
latex2sympy.PSParser = _Parser


def equal(given: str, wanted: str) -> bool:
    """Return whether `given` is mathematically equal to `wanted`, both tidy answers."""
    compare = _compare if len(given) + len(wanted) <= CACHED_CHARS else _compare.__wrapped__
    return compare(given, wanted)


@lru_cache(maxsize=CACHED)
def _compare(given: str, wanted: str) -> bool:
    wanted = readable(wanted)
    given = readable(given, letters=not _LETTER.search(wanted))
    if compact(given) == compact(wanted):
        return True
    same = same_number(given, wanted)
    return _verified(_read(given), _read(wanted)) if same is None else same


def _verified(read_a: Read, read_b: Read) -> bool:
    if not read_a or not read_b or _apart(read_a, read_b):
        return False
    a, b = read_a[0], read_b[0]
    if _contradicts(a) or _contradicts(b):
        return False
    if not (isinstance(a, Expr) and isinstance(b, Expr)):
        return _same(a, b)
    decimals = a.has(Float) or b.has(Float)
    if _same(a, b):
        return decimals or not _distinct(a, b)
    # math-verify compares a symbol by its name only, and decimals of expressions to the last digit
    return (bool(a.free_symbols) or decimals) and _same(_exact(a) + 1, _exact(b) + 1)


def _distinct(a: Expr, b: Expr) -> bool:
    """Return whether the values differ at all; math-verify takes 1+10^{-17} for 1."""
    try:
        return bool(_value(a - b, digits=3) != 0)
    except (*_NO_VALUE, NotImplementedError):
        return False


def _exact(expression: Expr) -> Expr:
    return expression.xreplace({x: Rational(str(x)) for x in expression.atoms(Float)})


def _same(a: Basic, b: Basic) -> bool:
    return bool(verify(b, a, allow_set_relation_comp=True, timeout_seconds=None))


@lru_cache(maxsize=256)
def _read(latex: str) -> Read:
    """Return what math-verify reads in all of `latex`, or nothing if it does not read it."""
    return _read_by(PredictionMode.SLL, latex) or _read_by(PredictionMode.LL, latex)


def _read_by(mode: Any, latex: str) -> Read:
    if "%" in latex:  # within an expression: 50\% may stand for 50 and for 0.5
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


def _contradicts(found: Basic) -> bool:
    """Return whether two numbers that are said to be equal, as in x=4=5, are not; a decimal among them is rounded."""
    equations = found._unsorted_args if isinstance(found, And) else [found]
    return any(
        isinstance(x, Eq) and not x.free_symbols and _differ(x.lhs, x.rhs, ROUNDED_SHARE if x.has(Float) else 0)
        for x in equations
    )


def _apart(read_a: Read, read_b: Read) -> bool:
    """Return whether both are expressions of plainly different values, at the same numbers for the same variables."""
    a, b = (read[0] if read else None for read in (read_a, read_b))
    if isinstance(a, Eq) and isinstance(b, Eq):
        return a.free_symbols != b.free_symbols
    return isinstance(a, Expr) and isinstance(b, Expr) and _differ(a, b)


def _differ(a: Basic, b: Basic, allowed: float = 0) -> bool:
    """Return whether two values differ plainly, and by more than a share of them; False if one has no value."""
    try:
        x, y = _value(a), _value(b)
    except _NO_VALUE:
        return False
    larger = max(abs(x), abs(y))
    if isinf(larger):
        return x != y
    return larger > ZERO and abs(x - y) > max(NEAR * larger, min(2 * NEAR, NEAR_SHARE * larger), allowed * larger)


def _value(expression: Expr, digits: int = 12) -> complex:
    """Return the value with a number between 1 and 2 for each variable, the same for the same name.

    Raises:
        ValueError: for a symbol that is no variable, such as the 42 of \\text{42}.
        ArithmeticError: for a value whose digits cancel, such as 0 written as x-x.
    """
    if not all(_NAME.match(str(x)) for x in expression.free_symbols):
        raise ValueError("no variable")
    numbers = {x: 1 + Rational(crc32(str(x).encode()) % 9973, 9973) for x in expression.free_symbols}
    return complex(expression.evalf(digits, subs=numbers, strict=True))


def _warm_up() -> None:
    """Read answers of many forms: the parser learns its tables from what it reads, and forks inherit them."""
    for answer in _FORMS.replace("\n", " ; ").split(" ; "):
        if answer:
            _read(readable(answer))
    _read.cache_clear()


_warm_up()
