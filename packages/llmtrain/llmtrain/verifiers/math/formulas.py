"""Formulas between dollar signs or LaTeX's brackets in the text of a response."""

import re
from collections.abc import Iterator

FORMULA = (
    r"\$\$(?P<shown>.+?)\$\$|\\\[(?P<set>.+?)\\\]|\\\((?P<inline>.+?)\\\)"
    r"|\$(?P<tight>[^\s$](?:[^$\n]*[^\s$])?)\$(?!\d)|\$(?P<loose>\s[^$]*\s)\$(?!\d)"
)
"""Formula; between dollar signs with a space at both ends or at neither: "$18 a day, not $20" has none."""
FORMULA_UNNAMED = FORMULA.replace("?P<", "?P<_")
_FORMULA = re.compile(FORMULA, re.DOTALL)


def inside(formula: re.Match[str]) -> str:
    """Return the LaTeX of a match of FORMULA."""
    return next(filter(None, formula.group("shown", "set", "inline", "tight", "loose"))).strip()


def formulas(text: str) -> Iterator[re.Match[str]]:
    """Yield the formulas of a text."""
    return _FORMULA.finditer(text)


def with_dollars(text: str) -> str:
    """Return the text with a dollar sign at both ends of each formula."""
    return _FORMULA.sub(lambda found: f"${inside(found)}$", text)
