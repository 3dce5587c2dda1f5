"""Compare two answers by math-verify (github.com/huggingface/Math-Verify), behind a cache.

math-verify reads LaTeX with an ANTLR parser in Python and compares with SymPy. It is changed in these places:

- Prediction. Most of its time goes to full-context prediction. SLL prediction gives the same tree wherever it gives one
  (Parr, Harwell & Fisher, "Adaptive LL(*) Parsing", 2014), so it is tried first.
- Whole answers. An answer is read as a whole or not at all: math-verify looks for a number in what it cannot read.
- Letters. E_1 is not e_1, i is the imaginary unit, and I is a variable.
- Mixed numbers. 2\\frac{1}{2} is 2.5, but 2(3) is 6, not 5.
- Plain differences. Expressions whose values differ in the first digits, at numbers put in for the variables,
  are not simplified; two sides of an equation that differ so, as in 4=5, make it no answer.
- Equations and inequalities. They are answers if they are solved, see relations.py.
- Small differences. 1+10^{-17} is not 1, and no value is too small to compare. The order of a chain does not matter:
  2 > x > 1 is 1 < x < 2.

SymPy may take forever, so this runs in the processes of a CheckPool. A check that times out ends its process and leaves
nothing in the cache.
"""

import logging
import re
from functools import lru_cache
from importlib.metadata import version
from typing import Any, NamedTuple
from zlib import crc32

import latex2sympy2_extended.latex2sympy2 as latex2sympy
from antlr4 import PredictionMode
from latex2sympy2_extended.antlr_parser import PSParser
from latex2sympy2_extended.logic import And
from latex2sympy2_extended.math_normalization import NormalizationConfig, normalize_latex
from math_verify import verify
from mpmath import isinf, mp
from sympy import (
    Basic,
    Eq,
    Expr,
    Float,
    GreaterThan,
    I,
    Integer,
    Rational,
    StrictGreaterThan,
    Symbol,
    Union,
    binomial,
    pi,
)
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from .answer_latex import measured, readable, symbols
from .answer_text import WORD, compact
from .plain_number import same_number
from .relations import parts_of_union, reduced, split
from .sequences import same_sequence
from .size import UndecidedError, require_small
from .units import conversion
from .units import unit as unit_of
from .worked_out import copied, unfinished

Read = tuple[Basic, ...]
"""One expression, relation, set, matrix or tuple of SymPy; empty if an answer is not read."""
PATCHED = {"math-verify": "0.9.0", "latex2sympy2_extended": "1.11.0"}
"""Versions whose parser the classes below change."""
CACHED, CACHED_CHARS = 4096, 1000
"""Upper limits of the cache: pairs of answer and truth, and characters of a pair."""
NEAR, NEAR_SHARE = 1e-6, 1e-3
"""Values differ plainly from this share on; by twice that or the larger share for small ones."""
DIGITS = 30
"""Digits of values that are compared where math-verify does not find two answers equal."""
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
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_SIZES = re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])")
_PERCENT = re.compile(r"(?<=[\d}])\s*\\?%$")
_VECTOR = re.compile(r"\\begin\{[pbv]?matrix\}([^&]*)\\end\{[pbv]?matrix\}")
_LINE = "\\\\"
_ROW = re.compile(r"(?<![\d.,\w{])\d+(?:\.\d+)? +\d++(?! ?[/^])")
"""Numbers in a row, which are no product."""
ANGLE, RADIAN = unit_of("degree")[0], unit_of("radian")  # type: ignore[index]

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


require_patched()
latex2sympy.PSParser = _Parser


class Answer(NamedTuple):
    """Answer as it is compared."""

    text: str
    """Readable LaTeX, as written."""
    tree: Read
    converted: bool = False
    """True if its unit is not that of the other answer."""


def equal(given: str, wanted: str, question: str = "") -> bool:
    """Return whether `given` is mathematically equal to `wanted`, both tidy answers.

    With a question, an answer that is still to be worked out is not; and variables are positive if it says so.

    Raises:
        UndecidedError: if neither this nor the opposite can be shown.
    """
    compare = _compare if len(given) + len(wanted) <= CACHED_CHARS else _compare.__wrapped__
    found = compare(given, wanted, "positive" in question)
    if not found or not question:  # different, or plain numbers, which are worked out
        return found is not None
    one, other = found
    trees = one.tree[0], other.tree[0]
    return not (unfinished(*trees, converted=one.converted) or copied(one.text, *trees, question, _parsed))


def _parsed(formula: str) -> Read:
    """Return what is read in a formula of a question."""
    text = measured(formula)[0]
    return _read(symbols(reduced(text, "") or text))


@lru_cache(maxsize=CACHED)
def _compare(given: str, wanted: str, positive: bool = False) -> tuple[Answer, ...] | None:
    """Return both answers as they were read, or () if they are plain numbers or texts; None if they differ.

    positive: all variables are.
    """
    wanted_text, wanted_unit = measured(wanted)
    given_text, given_unit = measured(given, letters=not _LETTER.search(wanted_text))
    if given_unit and not wanted_unit:
        text, letter = measured(wanted, letters=True)
        if letter and unit_of(letter) and conversion(given_unit, letter):  # "5 m" beside "500 cm"
            wanted_text, wanted_unit = text, letter
    if _shape(given_text) < 0 or _shape(wanted_text) < 0:
        given_text, wanted_text = map(_column, (given_text, wanted_text))
    factor = _factor((given_text, given_unit), (wanted_text, wanted_unit))
    if factor is None or _shape(given_text) * _shape(wanted_text) < 0:
        return None
    sequence = same_sequence(given_text, wanted_text)
    if sequence is not None:
        return () if sequence else None
    reduced_text = reduced(given_text, wanted_text)
    if reduced_text is None:
        return None
    given_text = reduced_text
    if factor == 1:
        if compact(given_text) == compact(wanted_text):
            return ()
        same = same_number(given_text, wanted_text)
        if same is not None:
            return () if same else None
    one = Answer(given_text, _read_solved(given_text), factor != 1)
    other = Answer(wanted_text, _read(symbols(_without_percent(wanted_text))))
    if not one.tree or not other.tree:
        if (
            WORD.fullmatch(given_text)
            or WORD.fullmatch(wanted_text)
            or re.search("[a-zA-Z]{4}", _COMMAND.sub("", given))
        ):
            return None
        raise UndecidedError(f"{given if not one.tree else wanted} was not read")
    scaled = one.tree if factor == 1 else tuple(factor * x for x in one.tree if isinstance(x, Expr))
    return (one, other) if _verified(scaled, other.tree, positive) else None


def _factor(given: tuple[str, str], wanted: tuple[str, str]) -> Expr | None:
    """Return the factor from the unit of an answer to that of the truth; None if they differ in kind.

    An answer or truth without a unit is in the unit of the other, but for angles: a multiple of pi is in radians.
    """
    (text, unit), (truth, wanted_unit) = given, wanted
    kinds = unit_of(unit), unit_of(wanted_unit)
    degree, other_degree = (kind is not None and kind[0] == ANGLE for kind in kinds)
    if degree != other_degree:
        radians = (wanted_unit if degree else unit) in ("", "rad") or unit_of(wanted_unit if degree else unit) == RADIAN
        if not radians:
            return None
        if "\\pi" in (truth if degree else text) or (unit and wanted_unit):
            size = (kinds[0] if degree else kinds[1] or (None, Integer(1)))[1]  # type: ignore[index]
            scale = Rational(size) * pi
            return scale if degree else 1 / scale
        return Integer(1)
    if not unit or not wanted_unit:
        return Integer(1)
    found = conversion(unit, wanted_unit)
    return None if found is None else Rational(found)


def _shape(text: str) -> int:
    """Return 1 for a set in braces, -1 for a tuple in parentheses, 0 for all else."""
    text = _SIZES.sub("", text).strip()
    if text.startswith("\\{") and text.endswith("\\}") and len(split(text[2:-2], "()[]{}")) >= 1:
        return 1
    if text.startswith("(") and text.endswith(")") and len(split(text, ",")) == 1 < len(split(text[1:-1], ",")):
        return -1
    return 0


def _column(text: str) -> str:
    """Return a matrix of one column as a tuple, which is how the same vector is written in a line."""
    found = _VECTOR.fullmatch(_SIZES.sub("", text).strip())
    return "(" + ",".join(found[1].strip().removesuffix(_LINE).split(_LINE)) + ")" if found else text


def _without_percent(text: str) -> str:
    return _PERCENT.sub("", text)


def _read_solved(text: str) -> Read:
    """Return what is read in an answer; inequalities joined by "or" as the union of their solutions."""
    parts = [_read(symbols(part)) for part in parts_of_union(text)]
    if not parts:
        return _read(symbols(_without_percent(text)))
    try:
        return (Union(*(part[0].as_set() for part in parts)),) if all(map(_is_solved, parts)) else ()
    except _NO_VALUE:
        return ()


def _is_solved(read: Read) -> bool:
    """Return whether relations are solved: a variable alone on one side of each, and a number on the other."""
    found = read[0] if read else None
    relations = found._unsorted_args if isinstance(found, And) else [found]
    return all(
        isinstance(x, Relational)
        and any(a.is_Symbol and not b.free_symbols for a, b in ((x.lhs, x.rhs), (x.rhs, x.lhs)))
        for x in relations
    )


def _verified(read_a: Read, read_b: Read, positive: bool = False) -> bool:
    for read in (read_a, read_b):
        for tree in read:
            require_small(tree)
    if not read_a or not read_b:
        return False
    a, b = _renamed(read_a[0], read_b[0]), read_b[0]
    if _apart((a,), (b,)):
        return False
    if _contradicts(a) or _contradicts(b):
        return False
    related = isinstance(a, Relational | And), isinstance(b, Relational | And)
    if related[0] and not related[1]:
        chain = a._unsorted_args if isinstance(a, And) else [a]
        if all(isinstance(x, Eq) for x in chain):
            return all(map(_holds, chain)) and _verified((chain[-1].rhs,), read_b)
        if not _is_solved(read_a):
            return False
    if not (isinstance(a, Expr) and isinstance(b, Expr)):
        return _same(a, b)
    decimals = a.has(Float) or b.has(Float)
    if _same(a, b):
        return decimals or not _distinct(a, b)
    # math-verify compares a symbol by its name only, and decimals of expressions to the last digit
    if (bool(a.free_symbols) or decimals) and _same(_exact(a) + 1, _exact(b) + 1):
        return True
    if positive and _same(_with_positive(a), _with_positive(b)):
        return True
    if not decimals and _agree(a, b):
        raise UndecidedError("the values agree, but the answers were not shown to be equal")
    return False


def _holds(equation: Eq) -> bool:
    """Return whether an equation in an answer is an identity, a rounded value, or says what set a variable is in."""
    if equation.lhs.is_Symbol:
        return True
    rounded = equation.has(Float) and not equation.free_symbols  # and _contradicts found the sides to agree
    return bool(rounded) or (not _differ(equation.lhs, equation.rhs) and _same(equation.lhs, equation.rhs))


def _renamed(a: Basic, b: Basic) -> Basic:
    """Return f(t) = t + 1 as f(x) = x + 1 if `b` defines f(x)."""
    if not (isinstance(a, Eq) and isinstance(b, Eq) and isinstance(a.lhs, AppliedUndef) and a.lhs.func == b.lhs.func):
        return a
    names = a.lhs.args, b.lhs.args
    if any(len(args) != 1 or not args[0].is_Symbol for args in names) or not a.rhs.has(*a.lhs.args):
        return a
    return a if b.lhs.args[0] in a.free_symbols else a.xreplace({a.lhs.args[0]: b.lhs.args[0]})


def _with_positive(expression: Expr) -> Expr:
    return expression.xreplace({x: Symbol(x.name, positive=True) for x in expression.free_symbols})


def _agree(a: Expr, b: Expr) -> bool:
    """Return whether two values agree in all digits that are computed, where both have one."""
    try:
        return abs(_value(a, DIGITS) - _value(b, DIGITS)) <= abs(_value(a, DIGITS)) * 10 ** -(DIGITS - 5)
    except _NO_VALUE:
        return False


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
        return bool(x != y)
    return bool(abs(x - y) > max(NEAR * larger, min(2 * NEAR, NEAR_SHARE * larger), allowed * larger))


def _value(expression: Expr, digits: int = 12) -> Any:
    """Return the value, of any magnitude, with a number between 1 and 2 for each variable, the same for the same name.

    Raises:
        ValueError: for a symbol that is no variable, such as the 42 of \\text{42}.
        ArithmeticError: for a value whose digits cancel, such as 0 written as x-x.
    """
    if not all(_NAME.match(str(x)) for x in expression.free_symbols):
        raise ValueError("no variable")
    numbers = {x: 1 + Rational(crc32(str(x).encode()) % 9973, 9973) for x in expression.free_symbols}
    found = expression.evalf(digits, subs=numbers, strict=True)
    if not found.is_number:
        raise ValueError("no number")
    with mp.workdps(digits):
        return found._to_mpmath(mp.prec)


def _warm_up() -> None:
    """Read answers of many forms: the parser learns its tables from what it reads, and forks inherit them."""
    for answer in _FORMS.replace("\n", " ; ").split(" ; "):
        if answer:
            _read(readable(answer))
    _read.cache_clear()


_warm_up()
