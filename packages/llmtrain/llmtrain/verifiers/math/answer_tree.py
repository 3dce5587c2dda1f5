"""Answers as trees: (operation, operands), down to numbers and letters.

("*", ("/", ("number", "1"), ("number", "2")), ("letter", "x"))       half of x
("=", ("letter", "x"), ("tuple", "[)", ("number", "2"), ("infinity", "+")))      x is 2 or more
"""

from collections.abc import Iterable
from typing import Any

from .answer_tokens import UnreadError

Tree = tuple[Any, ...]
"""(operation, operands), down to ("number", text), ("letter", name), ("pi",) and ("infinity", sign)."""
STRUCTURES = ("set", "tuple", "union", "matrix", "=", "inequality")
"""Operations whose trees have parts instead of a value."""


def parts(tree: Tree) -> tuple[Tree, ...]:
    """Of a tuple, set, union or matrix, or the right side of an equation."""
    return tree[2:] if tree[0] in ("tuple", "matrix", "=") else tree[1:]


def letters(tree: Tree) -> frozenset[str]:
    """Its variables without index, primes and case; d, e and i may be something else."""
    if tree[0] == "unnamed":
        return frozenset(tree[1:])
    inner = (letters(operand) for operand in tree[1:] if isinstance(operand, tuple))
    name = {tree[1].partition("_")[0].rstrip("'").lower()} if tree[0] in ("letter", "apply") else set()
    return frozenset(name - {"d", "e", "i"}).union(*inner)


def unnamed(trees: Iterable[Tree]) -> Tree:
    """The left side of an equation that is not a variable or a function of one: its letters."""
    return "unnamed", *sorted(letters(("set", *trees)))


def with_signs(parts: list[Tree]) -> list[Tree]:
    """Each part, or, in the place of one with ±, that with plus and that with minus."""
    out = []
    for part in parts:
        count = repr(part).count("'±'")
        if count > 1 or (count and part[0] in ("tuple", "union", "matrix")):
            raise UnreadError
        out += [_signed(part, "+"), _signed(part, "-")] if count else [part]
    return out


def _signed(tree: Any, sign: str) -> Any:
    if not isinstance(tree, tuple):
        return tree
    return tuple(sign if operand == "±" else _signed(operand, sign) for operand in tree)
