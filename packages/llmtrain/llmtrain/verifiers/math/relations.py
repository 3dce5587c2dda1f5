"""Answers written as equations or inequalities: the part that is the answer, as text.

x = 3                   3                       m + n = 5       not an answer to "5": its left side is no name
f(x) = 2x               2x                      x = 1, y = 2    (1, 2), if the truth is a pair
\\frac{2}{4} = 0.5      left as it is: math_equal.py checks that its sides are equal
"""

import re

from sympy import Intersection, Union

from .brackets import split

_NO_NAME = "text|frac|sqrt|sin|cos|tan|cot|sec|csc|ln|log|exp|lim|int|sum|prod"
_LETTER = rf"(?:\\(?!{_NO_NAME})[a-zA-Z]+|[a-zA-Z])"
_INDEX = r"(?:\s*_\s*(?:\{[^{}]*\}|\w))?"
_INDEXED = rf"{_LETTER}{_INDEX}(?:'|\^\s*\{{?\\prime\}}?|\^\s*\{{?\*\}}?)*"
_WORDS = rf"(?:\\(?:text|mathrm|textbf|operatorname|mbox)\s*\{{[^{{}}]*\}}|[a-zA-Z]{{4,}}|[A-Z]{{2,4}}){_INDEX}"
_MARKS = "angle|triangle|overline|vec|hat|bar|dot|ddot|mathbf|mathbb|mathcal|boldsymbol"
_ONE = rf"(?:\\(?:{_MARKS})\s*\{{?\s*(?:{_WORDS}|{_INDEXED})\s*\}}?|{_WORDS}|{_INDEXED})"
_NAME = re.compile(
    rf"\s*(?:m\s*)?(?:{_ONE}(?:(?:\s*\^\s*\{{?-1\}}?)?\s*\([^()=]*\)|\s*\[[^\[\]=]*\])?"
    rf"|\(\s*{_ONE}(?:\s*,\s*{_ONE})+\s*\)|\\frac\s*\{{d\^?\d?\s*\w*\}}\s*\{{d\s*\w+(?:\^\d)?\}})\s*"
)
APPROXIMATE = re.compile(r"\\(?:approx|simeq|approxeq|doteq|thickapprox|cong|sim)(?![a-zA-Z])|≈|≃")
_HEDGE = re.compile(
    r"^\s*(?:[<>]|\\(?:l|g)e(?:q|qslant)?(?![a-zA-Z])|\\neq?(?![a-zA-Z]))"
    r"|\\(?:to|mapsto|[rR]ightarrow|implies|iff)(?![a-zA-Z])"
)
"""Bound without what it bounds, or an arrow."""
_AND, _OR = (
    rf"\\text\s*\{{\s*{word}\s*\}}|(?<![a-zA-Z]){word}(?![a-zA-Z])|\\{signs}(?![a-zA-Z])"
    for word, signs in (("and", "(?:land|wedge|qquad|quad)"), ("or", "(?:lor|vee)"))
)
_BETWEEN = re.compile(f"{_AND}|{_OR}")
_INEQUALITY = re.compile(r"[<>]|\\(?:l|g)e(?:q|qslant)?(?![a-zA-Z])|\\neq?(?![a-zA-Z])")
_VALUE = re.compile(r"\\(?:frac|sqrt|pi|cdot|times|infty|left|right|text|mathrm)(?![a-zA-Z])|[\d\s.,+\-*/^{}()\[\]ei]")


def members(text: str) -> list[str]:
    """Return the parts of a list, between commas, semicolons, "and" and "or"; a text that is no list has one."""
    return [part for part in split(_BETWEEN.sub(",", text), ",;") if part.strip()]


def is_name(text: str) -> bool:
    """Return whether `text` names a thing: a symbol, f(x), (x, y), \\angle ABC or words, but no product or function."""
    return _NAME.fullmatch(text) is not None


def reduced(given: str, wanted: str) -> str | None:
    """Return the part of `given` to compare with `wanted`, both readable; None if a relation in it is no answer."""
    if _HEDGE.search(given) and not _HEDGE.search(wanted):
        return None
    if APPROXIMATE.search(given) and not APPROXIMATE.search(wanted):
        left, *right = APPROXIMATE.split(given)
        rounded = len(right) == 1 and re.search(r"\d\.\d", right[0] + wanted) is not None
        if not rounded or not (not left.strip() or is_name(left)):
            return None
        given = right[0].strip()
    if "=" not in _plain(given):
        return given
    parts = members(given)
    if "=" in _plain(wanted):
        left, *rest = _sides(wanted)
        solved = is_name(left) and not _VALUE.sub("", "".join(rest))
        return None if solved and not all(is_name(_sides(part)[0]) for part in parts if "=" in _plain(part)) else given
    named = [_sides(part) for part in parts]
    if len(named) == 1:
        sides = named[0]
        return "=".join(sides[1:]).strip() if is_name(sides[0]) else given
    if not all(len(sides) == 1 or is_name(sides[0]) for sides in named):
        return None
    values = [(sides[0].strip(), "=".join(sides[1:] or sides).strip()) for sides in named]
    names = [name for (name, _), sides in zip(values, named, strict=True) if len(sides) > 1]
    if len(names) == len(set(names)) == len(values) and re.match(r"\s*(?:\\left)?\(|\\begin", wanted):
        return "(" + ",".join(value for _, value in sorted(values)) + ")"
    letters = {re.sub(r"\s*_.*", "", name) for name in names}
    return None if len(letters) > 1 else ",".join(value for _, value in values)  # x=1, y=2 is no set; x_1, x_2 is


def _plain(text: str) -> str:
    """Return `text` without the signs that only contain an equals sign."""
    return re.sub(r"[<>!:]=|=[<>]|_\s*\{[^{}]*\}", "", text)


def _sides(text: str) -> list[str]:
    """Return the sides of a chain of equations; the name first in 3 = k."""
    sides = split(text, "=")
    return sides[::-1] if len(sides) == 2 and is_name(sides[1]) and not _VALUE.sub("", sides[0]) else sides


def joined(text: str) -> tuple[type[Union] | type[Intersection] | None, list[str]]:
    """Return how inequalities are joined, by "or", "and" or (None) commas, and each of them; no part if none is."""
    for kind, between in ((Union, _OR), (Intersection, _AND)):
        parts = [part.strip() for part in re.split(between, text)]
        if len(parts) > 1 and all(map(_INEQUALITY.search, parts)):
            return kind, parts
    parts = [part.strip() for part in split(text, ",")]
    return (None, parts if len(parts) > 1 and all(map(_INEQUALITY.search, parts)) else [])
