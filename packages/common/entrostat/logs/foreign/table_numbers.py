"""Numbers in the cells of a table, with decimal points or decimal commas, and with thousands apart.

    mark = decimal_mark([["1", "0,53"], ["2", "1,234"]], ".")     ","
    number("1,234", mark)                                         1.234

1,234 and 1.234 alone may be either. What the other cells of their table are written with decides; if these are written
with both, such a cell stays text.
"""

import re
from collections.abc import Iterable, Sequence

from .rows import BLANKS, NUMBER

SIGN, EXPONENT = r"[-+]?", r"(?:[eE][-+]?\d{1,4})?"
EITHER = re.compile(rf"{SIGN}[1-9]\d{{0,2}}[.,]\d{{3}}")
"""Number whose mark is decimal, or sets thousands apart."""
WRITTEN = {
    mark: re.compile(
        rf"{SIGN}(?:\d*\{mark}\d+{EXPONENT}"
        rf"|\d{{1,3}}(?:\{apart}\d{{3}})+\{mark}\d*|\d{{1,3}}(?:\{apart}\d{{3}}){{2,}})"
    )
    for mark, apart in ((".", ","), (",", "."))
}
"""Numbers with a decimal mark, by that mark: of a comma 0,53 and 1.234,5 and 1.000.000."""


MINUS = "\u2212"
"""Minus of typography, which people paste."""


def decimal_mark(rows: Iterable[Sequence[str]], usual: str) -> str:
    """Return the decimal mark of a table; "" if it has both.

    rows: cells of its first lines. usual: mark if all that a cell tells is 1,234.
    """
    cells = {cell.strip() for row in rows for cell in row}
    known, unknown = set[str](), set[str]()
    for mark, written in WRITTEN.items():
        found = [cell for cell in cells if written.fullmatch(cell)]
        if any(not EITHER.fullmatch(cell) for cell in found):
            known.add(mark)
        elif found:
            unknown.add(mark)
    if known:
        return known.pop() if len(known) == 1 else ""
    return "" if len(unknown) > 1 else "." if "." in unknown else usual


def number(cell: str, mark: str) -> float | str | None:
    """Return the number in a cell, which may be NaN or infinite; None if it is blank; the text if it is no number.

    60% is 0.6. mark: decimal mark of the table, "" if it has both.
    """
    text = cell.strip()
    if text.lower() in BLANKS:
        return None
    if mark == "." and NUMBER.fullmatch(text):  # most cells
        return float(text)
    if text.endswith("%") and not text.endswith("%%"):
        share = number(text[:-1], mark)
        return share / 100 if isinstance(share, float) else cell
    text = text.replace(MINUS, "-")
    if not EITHER.fullmatch(text):
        mark = next((one for one, written in WRITTEN.items() if written.fullmatch(text)), "")
    elif not mark:
        return cell
    if mark:
        text = text.replace("." if mark == "," else ",", "").replace(mark, ".")
    return float(text) if NUMBER.fullmatch(text) else cell
