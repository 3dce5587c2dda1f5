"""Checks in the tests of a program: tests that cannot fail would reward every program.

    assert f(2) == 3              a check, also in a function that is called, and in test functions
    f(2) == 3                     a comparison on its own counts as the assertion that it means
    try: assert f(2) == 3         no check if the handler goes on: reached_code.py tells which failures are caught
    except AssertionError: ...
    def check(candidate): ...     HumanEval's: called with the entry point, or with the only name from `solution`
    f(2)                          no check

The text is read, not executed.
"""

import ast

from .code_names import unknown
from .reached_code import Function, definitions, ends_in, reached

PREDICATES = ("isclose", "allclose", "array_equal", "isinstance")
"""Functions whose result on its own line is meant as an assertion."""
CHECKS = ("assert", "check", "expect", "fail", "verify", "validate", "raises", "exit", "_exit", "abort")
"""Beginnings of names of functions from elsewhere that end the tests if something is wrong."""
NUMPY = ("np", "numpy")
"""Names that the sandbox imports for the tests, with functions that check."""
EXITS = ("exit", "_exit", "abort")
"""Those of them that end the process."""
FIX = "write what they expect, such as assert f(2) == 3"


def with_checks(tests: str, tree: ast.Module, entry_point: str = "") -> str:
    """Return tests that check something: comparisons asserted, and HumanEval's check called.

    tree: the tests, parsed. entry_point: name of the function that is checked, "" if unknown.

    Raises:
        ValueError: for tests in which nothing is checked, or nothing of the program.
    """
    if _waits_for_candidate(tree):
        if not (name := entry_point or _imported(tree)):
            raise ValueError(_why(tree))
        tests += f"\n\ncheck({name})\n"
        tree = ast.parse(tests)
    asserted = _Asserted()
    tree = ast.fix_missing_locations(asserted.visit(tree))
    if asserted.found:
        tests = ast.unparse(tree)
    _require_checks(tree, tests)
    if "solution" not in tests and not unknown(tests) and not _builtin_calls(tree):
        raise ValueError(f"the tests name nothing of the program: {FIX}")
    return tests


def _imported(tree: ast.Module) -> str:
    """Return the only name that the tests import from the program, or ""."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "solution"]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    return names.pop() if len(names) == 1 and names != {"*"} else ""


def _waits_for_candidate(tree: ast.Module) -> bool:
    """Return True if there is a function check(candidate) that nothing calls."""
    made = any(isinstance(x, ast.FunctionDef) and x.name == "check" and len(x.args.args) == 1 for x in tree.body)
    return made and not any(isinstance(x, ast.Name) and x.id == "check" for x in ast.walk(tree))


def _why(tree: ast.Module) -> str:
    """Return the reason why tests check nothing."""
    uncalled = [x for x in tree.body if isinstance(x, Function) and any(_error(y, set()) for y in ast.walk(x))]
    uncalled.sort(key=lambda x: x.name != "check")
    if not uncalled:
        return f"the tests check nothing, so every program would pass: {FIX}"
    name, arguments = uncalled[0].name, ast.unparse(uncalled[0].args)
    fix = f"end them with {name}({'NAME' if arguments else ''})"
    fix += ', or give {"test": ..., "entry_point": NAME}' if name == "check" else ""
    return f"the tests define {name}({arguments:.60}) and never call it, so every program would pass: {fix}"


def _require_checks(tree: ast.Module, tests: str) -> None:
    """Raise ValueError unless running the tests reaches a check whose failure ends them."""
    own = unknown(tests) - {*NUMPY} | {*definitions(tree)} | _lambdas(tree)
    again = {node.name or "" for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)}

    def error(node: ast.AST) -> str:
        return _error(node, own)

    found = [
        (raised, nets)
        for node, nets in reached(tree, lambda node: isinstance(node, ast.Raise) or bool(error(node)))
        if (raised := error(node)) not in again | {""}
    ]
    if not found:
        raise ValueError(_why(tree))
    if all(ends_in(raised, nets) for raised, nets in found):
        raise ValueError(
            "the tests catch each failure of their own checks, so every program would pass: "
            "take the check out of what catches it, or raise in its except"
        )


def _lambdas(tree: ast.Module) -> set[str]:
    """Return the names of functions that are one expression."""
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)]
    return {target.id for node in made for target in node.targets if isinstance(target, ast.Name)}


def _error(node: ast.AST, own: frozenset[str] | set[str]) -> str:
    """Return the name of the error that ends the tests if a check fails; "" for what is no check.

    own: names of the program, whose functions do not check, and of functions of the tests, whose checks are in them.
    """
    if isinstance(node, ast.Assert):
        return "" if isinstance(node.test, ast.Constant) and node.test.value else "AssertionError"
    if isinstance(node, ast.Raise):
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return ast.unparse(raised).rpartition(".")[2] if raised else ""
    if not isinstance(node, ast.Call):
        return ""
    root: ast.AST = node.func
    while isinstance(root, ast.Attribute | ast.Call):
        root = root.value if isinstance(root, ast.Attribute) else root.func
    name = ast.unparse(node.func).rpartition(".")[2]
    if not name.lower().startswith(CHECKS) or name in own or (isinstance(root, ast.Name) and root.id in own):
        return ""
    return "SystemExit" if name in EXITS else "AssertionError"


def _builtin_calls(tree: ast.Module) -> bool:
    """Return True if a name is called that the tests do not define: the program may be called like a built-in one."""
    made = {x.id for x in ast.walk(tree) if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load)}
    made |= {x.name for x in ast.walk(tree) if isinstance(x, Function | ast.ClassDef)}
    called = [x.func for x in ast.walk(tree) if isinstance(x, ast.Call)]
    return any(isinstance(x, ast.Name) and x.id not in made for x in called)


class _Asserted(ast.NodeTransformer):
    """Change of comparisons on their own, and of assertions of (condition, "message"), into assertions."""

    found = False

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return self._asserted(node, node.value) if _meant(_parts(node.value)[0]) else node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return self._asserted(node, node.test) if isinstance(node.test, ast.Tuple) and node.test.elts else node

    def _asserted(self, node: ast.stmt, value: ast.expr) -> ast.stmt:
        self.found = True
        condition, message = _parts(value)
        return ast.copy_location(ast.Assert(condition, message), node)


def _parts(value: ast.expr) -> tuple[ast.expr, ast.expr | None]:
    """Return condition and message: `x == 1, "text"` has both."""
    if isinstance(value, ast.Tuple) and len(value.elts) == 2 and not _meant(value.elts[1]):
        return value.elts[0], value.elts[1]
    if isinstance(value, ast.Tuple) and value.elts:
        return ast.BoolOp(ast.And(), value.elts) if len(value.elts) > 1 else value.elts[0], None
    return value, None


def _meant(value: ast.expr) -> bool:
    """Return True for an expression that is of no use unless it is asserted."""
    if isinstance(value, ast.BoolOp):
        return all(map(_meant, value.values))
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return _meant(value.operand)
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in PREDICATES
    return isinstance(value, ast.Compare)
