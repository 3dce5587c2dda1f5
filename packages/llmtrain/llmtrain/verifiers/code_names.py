"""Names in Python text: those that it defines, and those that it needs from elsewhere. Nothing is executed."""

import builtins
import re
import symtable
import warnings
from collections.abc import Iterator
from functools import lru_cache

_DEFINES = re.compile(r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*=(?!=)", re.MULTILINE)
"""Definition in text that is no Python."""
_ALL = re.compile(r"^\s*from\s+\S+\s+import\s+\*", re.MULTILINE)

_IMPORTED = re.compile(r"^[ \t]*from solution import (?:\(([^)]*)\)|(.*))", re.MULTILINE)


def _table(code: str) -> symtable.SymbolTable | None:
    """Return the symbols of a text; None if it is no Python."""
    try:
        with warnings.catch_warnings(action="ignore"):  # such as one of an escape in a pattern
            return symtable.symtable(code, "text", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_python(code: str) -> bool:
    """Return True if a text is whole Python."""
    return _table(code) is not None


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


def defined(code: str) -> set[str]:
    """Return the names that a text binds at its top, imports left out."""
    if table := _table(code):
        return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
    return {name or other for name, other in _DEFINES.findall(code)}


@lru_cache(maxsize=64)
def needed(code: str) -> frozenset[str]:
    """Return the names that a text uses and does not bind, built-in ones too; none if it is no Python."""
    if not (table := _table(code)):
        return frozenset()
    used, bound = set(), set()
    for scope in _tables(table):
        for symbol in scope.get_symbols():
            top = scope is table
            if symbol.is_referenced() and (top or symbol.is_global()):
                used.add(symbol.get_name())
            if (top or symbol.is_declared_global()) and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
    return frozenset(name for name in used - bound if not (name.startswith("__") and name.endswith("__")))


def asked(tests: str) -> frozenset[str]:
    """Return the names that tests ask for, by using or importing them; built-in ones among them."""
    listed = " ".join(one or other for one, other in _IMPORTED.findall(tests))
    return needed(tests) | {*re.findall(r"\w+", listed), *re.findall(r"\bsolution\.(\w+)", tests)}


def unknown(code: str) -> frozenset[str]:
    """Return the names that a text needs and that are not built in; none if it imports all names of a module."""
    return frozenset() if _ALL.search(code) else needed(code) - {*dir(builtins)}
