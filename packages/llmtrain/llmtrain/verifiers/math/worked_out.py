"""Answers that are worked out: finished numbers, and no formulas of the question.

    finished: 7, -0.5, 3/4, 2\\frac{1}{3}, 3\\times 10^8, 2\\sqrt{3}, \\frac{\\pi}{6}, 1+\\sqrt{2}, 3+4i
    not:      141-623, 840/7, 2\\cdot 3, 2^{10}, 5!, \\binom{6}{2}, \\sqrt{2}\\sqrt{3}, |-3|, \\sin 1, \\sum, \\lim

An answer is read without evaluating it, so what is still to be done stands in its tree.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from latex2sympy2_extended.logic import And
from sympy import (
    Add,
    Basic,
    Complement,
    Derivative,
    E,
    Expr,
    FiniteSet,
    I,
    Integer,
    Integral,
    Intersection,
    Interval,
    Limit,
    MatrixBase,
    Max,
    Min,
    Mul,
    Number,
    Pow,
    Product,
    Reals,
    Sum,
    Tuple,
    UnevaluatedExpr,
    Union,
    binomial,
    exp,
    factorial,
    factorial2,
    pi,
    preorder_traversal,
    srepr,
)
from sympy.core.relational import Relational

from ..asked import stands_in
from .asked_form import terms
from .plain_number import comes_out_even
from .same_tree import same_value

TO_DO = (Integral, Sum, Product, Limit, Derivative, binomial, factorial, factorial2, Max, Min)
"""Operations that an answer has only if the truth has them."""
_CONTAINERS = (Tuple, FiniteSet, Interval, Union, Complement, Intersection)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_SIDE = re.compile(r"<=|>=|[=<>]|\\(?:leq?|geq?|leqslant|geqslant|neq?|lt|gt|approx|equiv|to)(?![a-zA-Z])")
_COMMAND = re.compile(r"\\[a-zA-Z]+(?:\s*\{[vV]matrix\})?")
_COMMANDS = {
    f"\\{name}"
    for name in (
        *(
            "frac",
            "sqrt",
            "pi",
            "infty",
            "cdot",
            "times",
            "overline",
            "cup",
            "cap",
            "setminus",
            "mathbb",
            "in",
            "pm",
            "mp",
        ),
        *(
            "le",
            "leq",
            "leqslant",
            "ge",
            "geq",
            "geqslant",
            "lt",
            "gt",
            "ne",
            "neq",
            "emptyset",
            "left",
            "right",
            "text",
            "lor",
            "vee",
            "land",
            "wedge",
        ),
        *("begin", "end", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "quad", "vec", "variable"),
        *("theta", "alpha", "beta", "gamma", "lambda", "mathrm", "displaystyle", "circ"),
    )
}
"""Commands in finished numbers, and in sets, tuples, intervals and inequalities of such."""
_SIGNS = re.compile(r"[-+]\s*[({\s]*[-+]|\||\^\s*\{?\s*(?:\(|T|\\top)|\d/\(|/\s*\(?\d+/")
"""Two signs in a row, bars, transposes, fractions in fractions: something is still to be done."""
_MIXED = re.compile(r"\d\s*\\frac\s*\{(\d{1,9})\}\s*\{(\d{1,9})\}")
_QUOTIENT = re.compile(r"\\frac\s*\{(\d{1,9})\}\s*\{(\d{1,9})\}|(?<![\d.}])(\d{1,9})\s*/\s*(\d{1,9})(?![\d.])")
_POWER_OF_E = re.compile(r"(?<![a-zA-Z\\])e\s*\^")
_WHOLE_POWER = re.compile(r"(?<![\d.}])(?!10\D)\d+\s*\^\s*\{?\s*-?\d+\s*\}?(?![\d\s]*/)")
_NESTED = re.compile(r"\\frac\s*\{[^{}]*(?:\\frac|/)|\\frac\s*\{[^{}]*\}\s*\{[^{}]*(?:\\frac|/)")
MOST_FORMULAS, MOST_CHARS = 60, 300
"""Upper limits for the formulas of a question that are read, and for their length."""


def unfinished(text: str, given: Basic, wanted: Basic, converted: bool = False) -> bool:
    """Return whether `given`, an answer of the right value, leaves work to do that `wanted` does not leave.

    text: the answer as written; what the parser evaluates by itself, such as gcd, is seen there alone. converted: they
    have different units, so that one may have a pi that the other has not.
    """
    if _finished(wanted):
        irrational = converted or _irrational(wanted)
        known = _COMMANDS if irrational else _COMMANDS - {"\\sqrt", "\\pi"}
        improper = any(int(found[1]) >= int(found[2]) for found in _MIXED.finditer(text))
        if (
            improper
            or any(comes_out_even(*map(int, filter(None, found.groups()))) for found in _QUOTIENT.finditer(text))
            or _WHOLE_POWER.search(text)
            or _NESTED.search(text)
            or _SIGNS.search(text)
            or not known.issuperset(_COMMAND.findall(text))
        ):
            return True
        if not irrational and _POWER_OF_E.search(text):
            return True
    if any(given.has(kind) and not wanted.has(kind) for kind in TO_DO):
        return True
    return _finished(wanted) and not (_finished(given) and (converted or _irrational(wanted) or not _irrational(given)))


def copied(text: str, given: Basic, wanted: Basic, question: str, read: Callable[[str], tuple[Basic, ...]]) -> bool:
    """Return whether `given`, written as `text`, is a formula of the question that is not the truth itself.

    read: function that reads a formula.
    """
    if (_finished(given) and not _irrational(given)) or _key(given) == _key(wanted):
        return False
    if stands_in(text, question):
        return True
    found = _formulas(question, read)
    if any(_key(given) == _key(formula) for formula in found):
        return True
    if any(_holds_copy(given, formula) and not _holds_copy(wanted, formula) for formula in found):
        return True
    return any(_alike(given, formula) for formula in found) and not _alike(given, wanted)


def _holds_copy(given: Basic, formula: Basic) -> bool:
    """Return whether a formula of the same value stands in an answer, as in 2(f)/2 and -(-f)."""
    if not (isinstance(given, Expr) and isinstance(formula, Expr)) or formula.is_Atom:
        return False
    key = _key(formula)
    return any(_key(part) == key for part in preorder_traversal(given)) and same_value(given, formula)


def _alike(a: Basic, b: Basic) -> bool:
    """Return whether two trees are the same up to the order of terms; with variables, once they are evaluated."""
    if _key(a) == _key(b):
        return True
    both = isinstance(a, Expr) and isinstance(b, Expr) and a.free_symbols and a.free_symbols == b.free_symbols
    return bool(both) and a.doit() == b.doit()


def formulas(question: str) -> Iterator[str]:
    """Yield the formulas of a question, then both sides of each equation or inequality among them."""
    for found in _FORMULA.finditer(question):
        formula = next(filter(None, found.groups()))
        yield formula
        sides = [side.strip(" ,.") for side in _SIDE.split(formula)]
        yield from sides if len(sides) > 1 else ()


@lru_cache(maxsize=64)
def _formulas(question: str, read: Callable[[str], tuple[Basic, ...]]) -> tuple[Basic, ...]:
    texts = [text for text in dict.fromkeys(formulas(question)) if 1 < len(text) <= MOST_CHARS]
    return tuple(tree for text in texts[:MOST_FORMULAS] for tree in read(text.strip(" ,.")))


def _finished(tree: Any) -> bool:
    """Return whether a tree is a finished number, or holds such alone."""
    if isinstance(tree, MatrixBase):
        return all(map(_finished, tree.flat()))
    if isinstance(tree, Relational):
        return all(side.is_Symbol or _finished(side) for side in (tree.lhs, tree.rhs))
    if isinstance(tree, And):
        return all(map(_finished, tree._unsorted_args))
    if isinstance(tree, _CONTAINERS) or tree == Reals:
        return all(_finished(part) for part in tree.args if not getattr(part, "is_Boolean", False))
    return bool(tree.is_infinite) if tree.is_Atom and tree.is_infinite else _rational(tree) or _surd(tree)


def _irrational(tree: Any) -> bool:
    """Return whether a tree has a root, pi, e or i."""
    if isinstance(tree, MatrixBase):
        return any(map(_irrational, tree.flat()))
    return bool(tree.has(pi, E, I, exp)) or any(not x.exp.is_Integer for x in tree.atoms(Pow))


def _rational(tree: Any) -> bool:
    """Return whether a tree is one rational number as people write it: 7, 3/4, 3 · 10^8."""
    if isinstance(tree, UnevaluatedExpr):
        return _rational(tree.args[0])
    if isinstance(tree, Number):
        return bool(tree.is_finite)
    if isinstance(tree, Pow):  # a power of ten, or a divisor
        return (tree.base == 10 and tree.exp.is_Integer) or (tree.exp == -1 and isinstance(tree.base, Integer))
    if isinstance(tree, Mul):
        parts = [part for part in Mul.make_args(tree) if part != -1]
        tops = [part for part in parts if not isinstance(part, Pow)]
        whole = all(isinstance(top, Integer) for top in tops) or not any(
            part.exp == -1 for part in parts if part not in tops
        )
        return len(tops) <= 1 and len(parts) - len(tops) <= 1 and whole and all(map(_rational, parts))
    return False


def _atom(tree: Any) -> bool:
    """Return whether a tree is pi, e, i, a power of these, a root, or one of these as a divisor."""
    if tree in (pi, E, I):
        return True
    if isinstance(tree, exp):
        return _finished(tree.args[0])
    if not isinstance(tree, Pow):
        return False
    if tree.exp == -1:
        return _finished(tree.base) and not _rational(tree.base) and not isinstance(tree.base, Add)
    if tree.exp.is_Integer:
        return tree.base in (pi, E)
    return bool(tree.exp.is_Rational) and _finished(tree.base) and not tree.base.is_negative


def _surd(tree: Any) -> bool:
    """Return whether a tree is a sum of different irrational terms and at most one rational one."""
    seen: set[str] = set()
    for term in terms(tree):
        if _rational(term):
            rest: list[Any] = []
        else:
            factors = list(terms(term, Mul))
            rest = [x for x in factors if not _rational(x)]
            whole = [x for x in factors if _rational(x) and x != -1]
            tops = [x for x in whole if not (isinstance(x, Pow) and x.exp == -1)]
            roots = [x for x in rest if isinstance(x, Pow) and not x.exp.is_Integer]
            if len(tops) > 1 or len(whole) - len(tops) > 1 or len(roots) > 1:
                return False
            if len(rest) == 1 and isinstance(rest[0], Add):  # a multiple of a sum, as (1+\sqrt{5})/2
                if len(factors) == 1 or not _surd(rest[0]):
                    return False
            elif not all(map(_atom, rest)):
                return False
        key = srepr(term.doit().as_coeff_Mul()[1])
        if key in seen:
            return False
        seen.add(key)
    return True


@lru_cache(maxsize=1024)
def _key(tree: Any) -> str:
    """Return a text that is the same for trees that differ in the order of terms and factors, or in 0 and 1."""
    if isinstance(tree, MatrixBase):
        return f"{tree.shape}{[_key(x) for x in tree.flat()]}"
    if isinstance(tree, Add | Mul):
        parts = terms(tree) if isinstance(tree, Add) else terms(tree, Mul)
        nothing = [Integer(0)] if isinstance(tree, Add) else [Integer(1), Pow(1, -1, evaluate=False)]
        keys = sorted(_key(part) for part in parts if part not in nothing)
        return keys[0] if len(keys) == 1 else f"{type(tree).__name__}{keys}"
    if not tree.args:
        return srepr(tree)
    return f"{type(tree).__name__}{[_key(part) for part in tree.args]}"
