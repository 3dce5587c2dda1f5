"""Are two answers equal? Decided by their values, where both are understood.

    equal_by_value("x^2-1", "(x-1)(x+1)")                 True
    equal_by_value("\\frac{\\sqrt{3}}{2}", "\\sin 60")       False
    equal_by_value("\\log_2 8", "3")                       True
    equal_by_value("\\{1,2\\}", "\\{2,1\\}")                 True
    equal_by_value("0.333333", "\\frac{1}{3}")             True: six places are right
    equal_by_value("x \\ge 2", "[2, \\infty)")              True
    equal_by_value("\\int x dx", "2")                      None: not understood

Letters stand for numbers drawn by their names. Answers that are equal have equal values whatever these are; answers
whose values agree to 60 digits at such a point are equal but for a chance that no run will see. Nothing is evaluated
but by arithmetic and functions of bounded numbers, and it cannot hang.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from .answer_readings import readings
from .answer_tokens import UnreadError
from .answer_tree import STRUCTURES, Tree, letters, parts
from .answer_value import CONTEXT, LOGS, Values, far

ROUNDED, ROUNDED_SHARE = 5e-7, 2e-6
"""By which a decimal may differ from the number it stands for, as math-verify has it, and by which share of it."""
EQUAL = CONTEXT.mpf("1e-60")
"""The share by which equal values differ."""

_UNREAD = (UnreadError, ArithmeticError, ValueError, RecursionError)
_POINTS = (1.0, 0.2)
"""Where letters begin: functions that are not defined at the first may be at the second."""


def equal_by_value(given: str, wanted: str) -> bool | None:
    """Whether answers are equal; None where that is not sure."""
    try:
        (a, perhaps_a), (b, perhaps_b) = readings(given), readings(wanted)
    except _UNREAD:
        return None
    if all(_apart(x, y) for x in (*a, *perhaps_a) for y in (*b, *perhaps_b)):
        return False
    return True if any(_same(x, y) for x in a for y in b) else None


def _apart(a: Tree, b: Tree) -> bool:
    """Do they differ, wherever their letters begin and whatever \\log means?"""
    if a[0] == b[0] == "=":
        if letters(a) != letters(b):
            return True
        if a[1] != b[1] or a[1][0] == "unnamed":  # y = 2x is x = y/2
            return False
    a, b = (tree[2] if tree[0] == "=" else tree for tree in (a, b))
    many = [tree[0] in ("inequality", "union", "set", "tuple", "infinity") for tree in (a, b)]
    if {a[0], b[0]}.intersection(("inequality", "union")) and not all(many):
        return True
    if "inequality" in (a[0], b[0]):
        return False
    for low in _POINTS:
        try:
            return all(_differ_at(a, b, Values(low, log)) for log in LOGS)
        except _UNREAD:
            continue
    return False


def _differ_at(a: Tree, b: Tree, values: Values) -> bool:
    """Has one of them a part that none of the other's is near to, at its place where they have places?"""
    kinds = {a[0], b[0]}
    if kinds in ({"tuple"}, {"matrix"}):
        return len(a) != len(b) or any(_differ_at(x, y, values) for x, y in zip(parts(a), parts(b), strict=True))
    if not kinds.intersection(STRUCTURES):
        return far(values(a), values(b))
    mine, others = (_elements(tree, values) for tree in (a, b))
    return any(
        all(_differ_at(x, y, values) for y in those) for these, those in ((mine, others), (others, mine)) for x in these
    )


def _elements(tree: Tree, values: Values) -> Sequence[Tree]:
    """What is compared with the elements of other sets."""
    if tree[0] not in STRUCTURES:
        return (tree,)
    if tree[0] != "union":
        return parts(tree)
    ends = [leaf for part in parts(tree) for leaf in (parts(part) if part[0] in STRUCTURES else (part,))]
    points = [values(end) for end in ends]
    if any(CONTEXT.im(x) for x in points) or any(x >= y for x, y in pairwise(points)):  # ends inside others vanish
        raise UnreadError
    return ends


def _same(a: Tree, b: Tree) -> bool:
    """Are they equal in form, but for the order of sets, and in value, whatever \\log means?"""
    kinds = {a[0], b[0]}
    if len(kinds) == 2 and "=" in kinds:  # x = 3 is 3
        name, right, other = (*a[1:], b) if a[0] == "=" else (*b[1:], a)
        return name[0] != "unnamed" and _same(right, other)
    if len(kinds) == 1 and kinds <= {"=", "tuple", "matrix", "union"}:
        mine, others = parts(a), parts(b)
        alike = a[0] == "union" or (a[1] == b[1] and (a[0] != "=" or a[1][0] != "unnamed"))
        return alike and len(mine) == len(others) and all(map(_same, mine, others))
    if kinds == {"set"}:
        return _covers(a[1:], b[1:]) and _covers(b[1:], a[1:])
    return not kinds.intersection(STRUCTURES) and all(_same_at(a, b, Values(log=log, branches=False)) for log in LOGS)


def _covers(a: Sequence[Tree], b: Sequence[Tree]) -> bool:
    return all(any(_same(x, y) for y in b) for x in a)


def _same_at(a: Tree, b: Tree, values: Values) -> bool:
    if (exact := _exact(a)) is not None and (other := _exact(b)) is not None:
        return exact == other
    try:
        x, y = values(a), values(b)
    except _UNREAD:
        return False
    if CONTEXT.isinf(x) or CONTEXT.isinf(y):
        return bool(x == y)
    if _is_decimal(a) or _is_decimal(b):
        return bool(abs(x - y) <= min(ROUNDED, ROUNDED_SHARE * max(abs(x), abs(y))))
    return bool(x == y or abs(x - y) <= EQUAL * max(abs(x), abs(y)))


def _exact(tree: Tree) -> Fraction | None:
    """The value of a whole number or a fraction of such; None for others."""
    match tree:
        case ("neg", of):
            value = _exact(of)
            return None if value is None else -value
        case ("/", top, bottom):
            x, y = _exact(top), _exact(bottom)
            return None if x is None or not y else x / y
        case ("number", str(text)) if text.isdigit():
            return Fraction(int(text))
    return None


def _is_decimal(tree: Tree) -> bool:
    return _is_decimal(tree[1]) if tree[0] == "neg" else tree[0] == "number" and "." in tree[1]
