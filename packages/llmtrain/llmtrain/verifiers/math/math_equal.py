"""Compare two answers: as text, as plain numbers, then as trees of SymPy, behind a cache.

    equal("\\frac{x^2-1}{x-1}", "x+1")         True
    equal("500\\text{ cm}", "5\\text{ m}")     True
    equal("141-623", "-482", question)       False: it is still to be worked out

SymPy may take forever, so this runs in the processes of a CheckPool. A check that times out ends its process and leaves
nothing in the cache.
"""

import re
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from latex2sympy2_extended.logic import And
from math_verify.grader import take_last_relation
from sympy import Eq, Expr, FiniteSet, Integer, Intersection, Rational, Union, pi

from .answer_latex import measured, symbols
from .answer_text import WORD, compact
from .answer_words import STYLE, has_words
from .asked_form import in_another_form
from .brackets import split
from .colons import pairs, same_colon
from .math_reading import Read, read
from .plain_number import number, same_number, to_be_worked_out
from .relations import joined, members, reduced
from .rounding import exact_or_rounded, percentage
from .same_tree import NO_VALUE, is_solved, same_tree
from .size import UndecidedError
from .units import conversion
from .units import unit as unit_of
from .worked_out import copied, unfinished

ELLIPSIS = re.compile(r"\\(?:ldots|dots|cdots|dotsc|dotsb)(?![a-zA-Z])|\.\.\.|…")
_SEPARATOR = re.compile(r"[,;:+]")
FEWEST = 2
"""Members that two lists must share before the ellipsis."""


def same_sequence(given: str, wanted: str) -> bool | None:
    """Return whether lists with an ellipsis agree in all members that both write; None if neither has one.

    A list that ends is not one that goes on.
    """
    a, b = (ELLIPSIS.split(text) for text in (given, wanted))
    if len(a) == len(b) == 1:
        return None
    if len(a) != 2 or len(b) != 2:
        return compact(given) == compact(wanted)
    (before_a, after_a), (before_b, after_b) = map(_members, a), map(_members, b)
    shared = min(len(before_a), len(before_b))
    if _SEPARATOR.findall(a[0])[:1] != _SEPARATOR.findall(b[0])[:1] or shared < FEWEST:
        return compact(given) == compact(wanted)
    return before_a[:shared] == before_b[:shared] and all(x == y for x, y in zip_longest(after_a, after_b))


def _members(text: str) -> list[str]:
    return [part for part in (compact(part.strip()) for part in _SEPARATOR.split(text)) if part]


CACHED, CACHED_CHARS = 4096, 1000
"""Upper limits of the cache: pairs of answer and truth, and characters of a pair."""
ANGLE, RADIAN = unit_of("degree")[0], unit_of("radian")  # type: ignore[index]
_THOUSAND = re.compile(r"\dK")
"""Number that may be in thousands or in kelvins."""
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]")
_SIZES = re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])")
_PERCENT = re.compile(r"(?<=[\d}])\s*\\?%$")
_CHOICE = re.compile(r"\(?[A-Z]\)?")
"""Choice, which is right as text or not at all."""
_STYLED = re.compile(rf"(?:{STYLE}|\\displaystyle\s*)(?:\{{([^{{}}]*)\}})?")
_MARKED = re.compile(r"\d\s*(?:'|_\s*\{?\s*(?:\\[a-z]+\s*\{)?[a-zA-Z])")
"""Minutes and seconds of an angle, or feet and inches; a number with letters for an index."""
_VECTOR = re.compile(r"\\begin\{[pbv]?matrix\}([^&]*)\\end\{[pbv]?matrix\}")
_ONE_TUPLE = re.compile(r"\\\{\s*(\(.*\))\s*\\\}")
"""Set of one tuple, as solutions of systems are written."""
_LINE = "\\\\"
_TUPLE_OF = re.compile(r"^\s*\([a-zA-Z](?:\s*,\s*[a-zA-Z])+\)\s*=")
"""Names before a tuple, as in (x, y) = (2, 3)."""


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
    same = same_colon(given, wanted, question)
    if same is not None:
        return same
    if (ratios := pairs(given, wanted)) is not None:
        return all(equal(a, b, question) for a, b in ratios)
    compare = _compare if len(given) + len(wanted) <= CACHED_CHARS else _compare.__wrapped__
    found = compare(given, wanted, "positive" in question)
    if not found or not question:  # different, or plain numbers, which are worked out
        return found is not None and not (
            question and to_be_worked_out(measured(given)[0], measured(wanted)[0], question)
        )
    one, other = found
    given_tree, text = one.tree[0], one.text
    chain = given_tree._unsorted_args if isinstance(given_tree, And) else [given_tree]
    if all(isinstance(part, Eq) for part in chain):  # 17*23=391
        given_tree, text = take_last_relation(given_tree).rhs, text.rpartition("=")[2]
    trees = given_tree, other.tree[0]
    return not (
        unfinished(text, *trees, converted=one.converted)
        or in_another_form(*trees, question)
        or copied(text, *trees, question, _parsed)
    )


def _parsed(formula: str) -> Read:
    """Return what is read in a formula of a question."""
    text = measured(formula)[0]
    return read(symbols(reduced(text, "") or text))


@lru_cache(maxsize=CACHED)
def _compare(given: str, wanted: str, positive: bool = False) -> tuple[Answer, ...] | None:
    """Return both answers as they were read, or () if they are plain numbers or texts; None if they differ.

    positive: all variables are.
    """
    given = percentage(given)
    one, other = _measured(given, wanted)
    factor = None if not other[1] and _THOUSAND.search(given) else _factor(one, other)
    if factor is None or _of_another_kind(one[0], other, factor):
        return None
    (given_text, _), (wanted_text, _) = one, other
    same = _same_writing(given, given_text, wanted_text)
    if same is None:
        reduced_text = reduced(exact_or_rounded(given_text, wanted_text), wanted_text)
        if reduced_text is None or (number(wanted_text) == 0 and has_words(reduced_text)):
            return None
        given_text = reduced_text
        if factor == 1:
            same = compact(given_text) == compact(wanted_text) or same_number(given_text, wanted_text)
    if same is not None:
        return () if same else None
    return _same_mathematics(given_text, wanted_text, factor, positive)


def _measured(given: str, wanted: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return answer and truth as (text, unit), read alike: letters as units, vectors and values of equations."""
    wanted_text, wanted_unit = measured(wanted)
    given_text, given_unit = measured(given, letters=not _LETTER.search(wanted_text))
    if given_unit and not wanted_unit:
        text, letter = measured(wanted, letters=True)
        if letter and unit_of(letter) and conversion(given_unit, letter):  # "5 m" beside "500 cm"
            wanted_text, wanted_unit = text, letter
    if wanted_text[:1] == "0" and not wanted_unit and number((zero := measured(wanted, letters=True))[0]) == 0:
        (wanted_text, wanted_unit), (given_text, given_unit) = zero, measured(given, letters=True)  # as in "0 C"
    if _shape(wanted_text) < 0 and (only := _ONE_TUPLE.fullmatch(given_text)) and _shape(only[1]) < 0:
        given_text = only[1]
    if _shape(given_text) < 0 or _shape(wanted_text) < 0:
        given_text, wanted_text = map(_column, (given_text, wanted_text))
    if "=" in wanted_text:
        wanted_text = _values(wanted_text, _TUPLE_OF.sub("", given_text))
    return (given_text, given_unit), (wanted_text, wanted_unit)


def _of_another_kind(given: str, wanted: tuple[str, str], factor: Expr) -> bool:
    """Return True for a set beside a tuple, a list whose members have other units, and a percentage beside a unit."""
    text, unit = wanted
    if _shape(given) * _shape(text) < 0 or (factor != 1 and len(members(given)) > 1):
        return True
    return "%" in given and "%" not in text and bool(unit or number(text) is None)


def _same_writing(given: str, given_text: str, wanted_text: str) -> bool | None:
    """Return whether choices, marked numbers and sequences are written alike; None for other answers.

    given: the answer with its unit.
    """
    if _CHOICE.fullmatch(wanted_text):
        return _STYLED.sub(r"\1", given).strip("() ") == wanted_text.strip("()")
    if _MARKED.search(given_text) or (":" in given_text and ":" not in wanted_text):
        return False
    return same_sequence(given_text, wanted_text)


def _same_mathematics(given: str, wanted: str, factor: Expr, positive: bool) -> tuple[Answer, ...] | None:
    """Return both answers as they were read if one, times the factor of its unit, is the other; None if not."""
    one = Answer(given, _read_solved(given), factor != 1)
    other = Answer(wanted, _read_solved(wanted) or read(symbols(_without_percent(wanted))))
    if not other.tree and not WORD.fullmatch(wanted):
        raise UndecidedError(f"the truth {wanted} was not read")
    if not one.tree or not other.tree:  # no mathematics
        return None
    if isinstance(other.tree[0], Expr) and isinstance(one.tree[0], FiniteSet) and len(members(given)) > 1:
        return None  # 1, 1 is two numbers
    scaled = one.tree if factor == 1 else tuple(factor * x for x in one.tree if isinstance(x, Expr))
    return (one, other) if same_tree(scaled, other.tree, positive) else None


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


def _values(wanted: str, given: str) -> str:
    """Return the values of equations such as x = 2, y = 3 if an answer only has values: a tuple if names differ."""
    shape = _shape(given)
    if "=" in given or len(members(wanted)) == 1 or not (shape or len(members(given)) > 1):
        return wanted
    return (shape >= 0 and reduced(wanted, "")) or reduced(wanted, "(") or wanted


def _column(text: str) -> str:
    """Return a matrix of one column as a tuple, which is how the same vector is written in a line."""
    found = _VECTOR.fullmatch(_SIZES.sub("", text).strip())
    return "(" + ",".join(found[1].strip().removesuffix(_LINE).split(_LINE)) + ")" if found else text


def _without_percent(text: str) -> str:
    return _PERCENT.sub("", text)


def _read_solved(text: str) -> Read:
    """Return what is read in an answer; inequalities joined by "or", "and" or commas as their solutions."""
    kind, parts = joined(text)
    whole = () if kind else read(symbols(_without_percent(text)))
    if not parts:
        return whole
    found = [read(symbols(part)) for part in parts]
    try:
        if not all(map(is_solved, found)) or len({x for part in found for x in part[0].free_symbols}) > 1:
            return whole
        sets = [part[0].as_set() for part in found]
        if kind is None:  # x < 2, x > 3 can only mean "or"
            return (Union(*sets),) if Intersection(*sets).is_empty else whole
        return (kind(*sets),)
    except NO_VALUE:
        return whole
