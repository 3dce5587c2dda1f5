"""Parts of tests that are run, each with what catches the errors that it raises. The text is read, not executed.

def run(): assert f(2) == 3         not run unless something that is run names it
try: run()                          an AssertionError in `run` ends here,
except AssertionError: print("no")  because nothing in this handler ends the tests

for node, nets in reached(tree, ends):
    ends_in("AssertionError", nets)         True if that error, raised at the node, reaches no end of the tests
"""

import ast
import builtins
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
REFLECTION = ("globals", "locals", "vars", "eval", "exec", "getattr", "dir")
"""Functions that may call any other."""
MOST_NETS = 4
"""Upper limit for the nets around a node; further ones count as catching nothing."""


class Catch(NamedTuple):
    """Handler of a `try`, or a context that suppresses errors."""

    errors: tuple[str, ...]
    """Names of the errors that it catches."""
    ends: bool
    """Something in it ends the tests, or raises an error that may."""


Net = tuple[Catch, ...]
"""Handlers of one `try`: the first that fits an error gets it."""


def definitions(tree: ast.AST) -> dict[str, list[Definition]]:
    """Return the functions and classes that a text defines, by name."""
    made: dict[str, list[Definition]] = {}
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            made.setdefault(node.name, []).append(node)
    return made


def reached(tree: ast.Module, ends: Callable[[ast.AST], bool]) -> Iterator[tuple[ast.AST, tuple[Net, ...]]]:
    """Yield the nodes that are run: functions and classes of tests, and others that something reached names.

    Each comes with the nets around it, outermost first, once for every set of nets. ends: True for a node that ends the
    tests if something is wrong.
    """
    made = definitions(tree)
    seen: set[tuple[int, tuple[Net, ...]]] = set()
    todo: list[tuple[ast.AST, tuple[Net, ...]]] = [(node, ()) for node in tree.body]
    while todo:
        node, nets = todo.pop()
        if isinstance(node, Definition) and not _of_tests(node):
            continue  # until something names it
        yield node, nets
        todo += _inside(node, () if isinstance(node, Definition) else nets, made, ends)
        for definition in _named(node, made):
            if (id(definition), nets) not in seen:
                seen.add((id(definition), nets))
                yield definition, nets
                todo += _inside(definition, nets, made, ends)


def ends_in(error: str, nets: tuple[Net, ...]) -> bool:
    """Return True if one of the nets, from the innermost on, catches an error and lets the tests go on."""
    kind = getattr(builtins, error, Exception)
    kind = kind if isinstance(kind, type) and issubclass(kind, BaseException) else Exception

    def fits(name: str) -> bool:
        other = getattr(builtins, name, None)
        return name == error or (isinstance(other, type) and issubclass(kind, other))

    caught = (next((one for one in net if any(map(fits, one.errors))), None) for net in reversed(nets))
    return any(one is not None and not one.ends for one in caught)


def _named(node: ast.AST, made: dict[str, list[Definition]]) -> list[Definition]:
    """Return the definitions that a node names; all of them if it may call any."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return [*chain.from_iterable(made.values())] if name in REFLECTION else made.get(name, [])


def _of_tests(node: Definition) -> bool:
    """Return True for what is run without being named: test functions and classes, and what is decorated."""
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)
    return isinstance(node, ast.FunctionDef) and (node.name.startswith("test") or bool(node.decorator_list))


def _inside(
    node: ast.AST, nets: tuple[Net, ...], made: dict[str, list[Definition]], ends: Callable[[ast.AST], bool]
) -> list[tuple[ast.AST, tuple[Net, ...]]]:
    """Return the nodes in a node, with the nets around them."""
    net, caught = _net(node, made, ends), getattr(node, "body", [])
    inside = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.ClassDef):  # any of its methods may be called
        inside = [y for x in inside for y in (ast.iter_child_nodes(x) if isinstance(x, Function) else [x])]
    around = (*nets, net) if net and net not in nets and len(nets) < MOST_NETS else nets
    return [(x, around if net and x in caught else nets) for x in inside]


def _net(node: ast.AST, made: dict[str, list[Definition]], ends: Callable[[ast.AST], bool]) -> Net:
    """Return what catches the errors of a node's body; empty if nothing does."""
    if isinstance(node, ast.Try | ast.TryStar):
        return tuple(
            Catch(_names([one.type] if one.type else []) or ("BaseException",), any(map(ends, _all(one.body, made))))
            for one in node.handlers
        )
    calls = [one.context_expr for one in node.items] if isinstance(node, ast.With | ast.AsyncWith) else []
    return tuple(
        Catch(_names(call.args), False)
        for call in calls
        if isinstance(call, ast.Call) and _last(call.func) == "suppress"
    )


def _all(body: list[ast.stmt], made: dict[str, list[Definition]]) -> Iterator[ast.AST]:
    """Yield the nodes of a handler, and of the functions that it names."""
    todo: list[ast.AST] = [*body]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        yield node
        more = [one for one in _named(node, made) if id(one) not in seen]
        seen |= {id(one) for one in more}
        todo += [*ast.iter_child_nodes(node), *more]


def _names(errors: list[ast.expr]) -> tuple[str, ...]:
    return tuple(_last(x) for error in errors for x in (error.elts if isinstance(error, ast.Tuple) else [error]))


def _last(node: ast.expr) -> str:
    """Return the last part of a dotted name."""
    return ast.unparse(node).rpartition(".")[2]
