"""Forms that a question asks for, of answers with variables: expanded, factored, simplified.

If the truth has the form, an answer has it too:

    expand      no product of sums                               x(x+2)+1      for x^2+2x+1
    factor      a product of as many factors                     x(x-5)+6      for (x-2)(x-3)
    simplify    no two terms or factors alike                    x^2+x+x+1     for x^2+2x+1
    each        denominators of no higher degree                 (1-x^2)/(1-x) for 1+x
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import reduce
from math import ceil
from operator import add, or_
from typing import Any

from sympy import Add, Basic, Expr, Mul, Number, PolynomialError, Pow, srepr, total_degree

_EXPAND = re.compile(r"\b(?:expand|multiply out)\b", re.IGNORECASE)
_FACTOR = re.compile(r"\bfactor(?:i[sz]e)?\b", re.IGNORECASE)
_SIMPLIFY = re.compile(r"\b(?:simplif(?:y|ied)|reduce|combine)\b", re.IGNORECASE)


def in_another_form(given: Any, wanted: Any, question: str) -> bool:
    """Return whether a question asks for a form which `wanted`, the truth, has and `given` has not."""
    if not (isinstance(given, Expr) and isinstance(wanted, Expr) and wanted.free_symbols):
        return False
    expand, factor, simplify = (bool(words.search(question)) for words in (_EXPAND, _FACTOR, _SIMPLIFY))
    if not (expand or factor or simplify):
        return False
    if _denominators(given).total() > _denominators(wanted).total():
        return True
    if factor and isinstance(wanted, Mul | Pow) and _number_of_factors(given) < _number_of_factors(wanted):
        return True
    if (expand or simplify) and _has_alike(given) and not _has_alike(wanted):
        return True
    return expand and isinstance(wanted, Add) and _has_products_of_sums(given) and not _has_products_of_sums(wanted)


def terms(tree: Any, kind: type[Basic] = Add) -> Iterator[Any]:
    """Yield the terms of a sum of sums, or the factors of a product of products; the tree itself if it is neither."""
    for part in tree.args if isinstance(tree, kind) else [tree]:
        yield from terms(part, kind) if isinstance(part, kind) else [part]


def _denominators(tree: Expr) -> Counter[str]:
    """Return the degrees of the denominators with variables; of a sum, each once."""
    if isinstance(tree, Pow) and tree.base.free_symbols and tree.exp.could_extract_minus_sign():
        return Counter({srepr(tree.base): ceil(_degree(tree.base) * (-tree.exp if tree.exp.is_number else 1))})
    if not isinstance(tree, Add | Mul):
        return Counter()
    return reduce(or_ if isinstance(tree, Add) else add, map(_denominators, tree.args))


def _degree(tree: Expr) -> int:
    try:
        return int(total_degree(tree))
    except PolynomialError:
        return 1


def _number_of_factors(tree: Expr) -> int:
    """Return the number of factors with variables."""
    if isinstance(tree, Mul):
        return sum(map(_number_of_factors, tree.args))
    if isinstance(tree, Pow) and tree.exp.is_Integer:
        return max(0, int(tree.exp)) * _number_of_factors(tree.base)
    return bool(tree.free_symbols)


def _has_alike(tree: Expr) -> bool:
    """Return whether a sum has two terms, or a product two numbers or two powers, that can be put together."""
    for part in tree.atoms(Add, Mul):
        if isinstance(part, Add):
            found = [srepr(term.doit().as_coeff_Mul()[1]) for term in terms(part)]
        else:
            found = [_put_together(factor) for factor in terms(part, Mul) if factor != -1]
        if len(found) > len(set(found)):
            return True
    return False


def _put_together(factor: Expr) -> str:
    """Return a text that is the same for factors which can be put together."""
    if isinstance(factor, Number):
        return "number"
    below = isinstance(factor, Pow) and factor.base.is_Number and factor.exp == -1
    whole = isinstance(factor, Pow) and factor.free_symbols and factor.exp.is_Integer
    return "divisor" if below else srepr(factor.base if whole else factor)


def _has_products_of_sums(tree: Expr) -> bool:
    return any(part.has(Add) and (isinstance(part, Mul) or part.exp.is_positive) for part in tree.atoms(Mul, Pow))
