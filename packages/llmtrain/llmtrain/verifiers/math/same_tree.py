"""Compare two trees of SymPy by math-verify (github.com/huggingface/Math-Verify), which is changed in these places:

- Plain differences. Expressions whose values differ in the first digits, at numbers put in for the variables,
  are not simplified; two sides of an equation that differ so, as in 4=5, make it no answer.
- Small differences. 1+10^{-17} is not 1, and no value is too small to compare.
- Equations and inequalities are answers if they are solved, or identities.
- What is neither shown to be equal nor to differ is undecided.
"""

import re
from typing import Any
from zlib import crc32

from latex2sympy2_extended.logic import And
from math_verify import verify
from mpmath import isinf, mp
from sympy import Basic, Eq, Expr, FiniteSet, Float, Interval, Rational, Symbol, Tuple
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from .size import UndecidedError, require_small

NEAR, NEAR_SHARE = 1e-6, 1e-3
"""Values differ plainly from this share on; by twice that or the larger share for small ones."""
DIGITS = 30
"""Digits of values that are compared where math-verify does not find two answers equal."""
SHIFTS = (0, 5, 58)
"""Numbers at which they are compared, see `_value`."""
ROUNDED_SHARE = 1e-2
"""Share by which a rounded decimal may differ from the other side of its equation, as in \\sqrt{2}=1.414."""
NO_VALUE = (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
"""Errors of SymPy for an expression without a value."""
_NAME = re.compile(r"[a-zA-Z\\]")


def same_tree(read_a: tuple[Basic, ...], read_b: tuple[Basic, ...], positive: bool = False) -> bool:
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
    if isinstance(a, Interval | Tuple) and isinstance(b, FiniteSet):  # (1, 2) is not {1, 2}
        return False
    related = isinstance(a, Relational | And), isinstance(b, Relational | And)
    if related[0] and not related[1]:
        chain = a._unsorted_args if isinstance(a, And) else [a]
        told = chain[-1].rhs if all(isinstance(x, Eq) for x in chain) else None
        if isinstance(b, FiniteSet) and (told is None or isinstance(told, Interval)):  # 1 < x < 2 is not {1, 2}
            return False
        if told is not None:
            return all(map(_holds, chain)) and same_tree((told,), read_b)
        if not is_solved(read_a):
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


def is_solved(read: tuple[Basic, ...]) -> bool:
    """Return whether relations are solved: a variable alone on one side of each, and a number on the other."""
    found = read[0] if read else None
    relations = found._unsorted_args if isinstance(found, And) else [found]
    return all(
        isinstance(x, Relational)
        and any(a.is_Symbol and not b.free_symbols for a, b in ((x.lhs, x.rhs), (x.rhs, x.lhs)))
        for x in relations
    )


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
    """Return whether two values agree in all digits that are computed, at several numbers for each variable."""
    try:
        values = [(_value(a, DIGITS, shift), _value(b, DIGITS, shift)) for shift in SHIFTS]
    except NO_VALUE:
        return False
    return all(abs(x - y) <= abs(x) * 10 ** -(DIGITS - 5) for x, y in values)


def same_value(a: Basic, b: Basic) -> bool:
    """Return whether two expressions have values, at the same numbers for the same variables, that do not differ."""
    try:
        _value(a), _value(b)
    except NO_VALUE:
        return False
    return not _differ(a, b)


def _distinct(a: Expr, b: Expr) -> bool:
    """Return whether the values differ at all; math-verify takes 1+10^{-17} for 1."""
    try:
        return bool(_value(a - b, digits=3) != 0)
    except (*NO_VALUE, NotImplementedError):
        return False


def _exact(expression: Expr) -> Expr:
    return expression.xreplace({x: Rational(str(x)) for x in expression.atoms(Float)})


def _same(a: Basic, b: Basic) -> bool:
    return bool(verify(b, a, allow_set_relation_comp=True, timeout_seconds=None))


def _contradicts(found: Basic) -> bool:
    """Return whether two numbers that are said to be equal, as in x=4=5, are not; a decimal among them is rounded."""
    equations = found._unsorted_args if isinstance(found, And) else [found]
    return any(
        isinstance(x, Eq) and not x.free_symbols and _differ(x.lhs, x.rhs, ROUNDED_SHARE if x.has(Float) else 0)
        for x in equations
    )


def _apart(read_a: tuple[Basic, ...], read_b: tuple[Basic, ...]) -> bool:
    """Return whether both are expressions of plainly different values, at the same numbers for the same variables."""
    a, b = (read[0] if read else None for read in (read_a, read_b))
    if isinstance(a, Eq) and isinstance(b, Eq):
        return a.free_symbols != b.free_symbols
    return isinstance(a, Expr) and isinstance(b, Expr) and _differ(a, b)


def _differ(a: Basic, b: Basic, allowed: float = 0) -> bool:
    """Return whether two values differ plainly, and by more than a share of them; False if one has no value."""
    try:
        x, y = _value(a), _value(b)
    except NO_VALUE:
        return False
    larger = max(abs(x), abs(y))
    if isinf(larger):
        return bool(x != y)
    return bool(abs(x - y) > max(NEAR * larger, min(2 * NEAR, NEAR_SHARE * larger), allowed * larger))


def _value(expression: Expr, digits: int = 12, shift: int = 0) -> Any:
    """Return the value, of any magnitude, with a number for each variable, the same for the same name.

    shift: the number lies between this plus 1 and this plus 2.

    Raises:
        ValueError: for a symbol that is no variable, such as the 42 of \\text{42}.
        ArithmeticError: for a value whose digits cancel, such as 0 written as x-x.
    """
    if not all(_NAME.match(str(x)) for x in expression.free_symbols):
        raise ValueError("no variable")
    numbers = {x: 1 + shift + Rational(crc32(str(x).encode()) % 9973, 9973) for x in expression.free_symbols}
    found = expression.evalf(digits, subs=numbers, strict=True)
    if not found.is_number:
        raise ValueError("no number")
    with mp.workdps(digits):
        return found._to_mpmath(mp.prec)
