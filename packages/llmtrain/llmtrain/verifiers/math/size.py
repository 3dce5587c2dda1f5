"""Upper limit for the size of numbers in an answer: towers of powers are not evaluated.

require_small(tree of 2^{1009})          fine
require_small(tree of 9^{9^{9}})         UndecidedError
"""

from math import inf, log2
from typing import Any

from sympy import Add, Basic, Integer, Mul, Pow, Rational, factorial, postorder_traversal


class UndecidedError(Exception):
    """Two answers that cannot be told apart and are not known to be equal; the text says why."""


MOST_BITS = 200_000
"""Bits of the largest number that is evaluated: 60,000 digits."""


def require_small(tree: Any) -> None:
    """Raise UndecidedError if a number in a tree may have more than MOST_BITS bits."""
    if not isinstance(tree, Basic):
        return
    bits: dict[Basic, float] = {}
    for node in postorder_traversal(tree):
        bits[node] = found = _bits(node, bits)
        if found > MOST_BITS:
            raise UndecidedError("a number is too large to be evaluated")


def _bits(node: Any, bits: dict[Basic, float]) -> float:
    """Return an upper limit for the bits of a number; 1 for what is none."""
    if isinstance(node, Integer | Rational):
        return float(max(abs(node.p), node.q).bit_length())
    parts = [bits[part] for part in node.args if part in bits]
    if isinstance(node, Pow) and not node.free_symbols:
        base, exponent = (bits[part] for part in node.args)
        return base * 2.0**exponent if exponent < 60 else inf
    if isinstance(node, factorial) and not node.free_symbols:
        most = 2.0 ** parts[0] if parts[0] < 60 else inf
        return most * log2(most + 2)
    if isinstance(node, Add):
        return max(parts, default=1.0) + len(parts)
    return sum(parts) if isinstance(node, Mul) else max(parts, default=1.0)
