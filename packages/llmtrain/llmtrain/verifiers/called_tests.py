"""Tests as Python text that runs them: statements, HumanEval's check, and functions, as pytest calls them.

    from solution import add                     `solution` is the program
    def test_sum(): assert add(1, 2) == 3

`pytest` is small_pytest.py. Tests that need more of it, or a fixture that they do not define, are refused: with them
no program would pass. So are tests that check nothing, which every program would pass: see checks_in_tests.py.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from .checks_in_tests import with_checks
from .reached_code import Function

CALLED = re.compile(
    r"^(from (solution|pytest) import|import (solution|pytest)\b|def test|class Test|class \w+\(.*TestCase\))",
    re.MULTILINE,
)
"""Line of tests that are functions or methods to be called, or import the program as a module."""
MISSING_MARKS = ("asyncio", "skip", "skipif", "usefixtures", "xfail")
"""Marks whose effect small_pytest.py does not have."""
KNOWN = ("approx", "fail", "fixture", "main", "mark", "param", "raises")
"""Names of pytest that small_pytest.py has, and main, which is called for the module as a script only."""
OF_FUNCTIONS = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
"""Parts of a program that belong in a function."""
UNITTEST_MAIN = re.compile(r"\bunittest\.main\(\)")
"""Call that runs test cases and ends the process; small_pytest.py runs them instead."""
SOURCE = Path(__file__).with_name("small_pytest.py").read_text()
BEFORE = f"""
__file__ = "tests.py"
import sys as _sys, types as _types
class _Solution(_types.ModuleType):
    def __getattr__(self, name):
        try:
            return of_answer(name)
        except KeyError:
            raise AttributeError(name) from None
_sys.modules["solution"] = _Solution("solution")
_sys.modules["pytest"] = _types.ModuleType("pytest")
exec({SOURCE!r}, vars(_sys.modules["pytest"]))
"""
AFTER = """
_sys.modules["pytest"].run_all(globals())
"""


@lru_cache(maxsize=64)  # of the question of a group
def called(tests: str, entry_point: str = "") -> str:
    """Return tests with what runs them: themselves if they are statements that check something.

    entry_point: name of the function that HumanEval's check is called with, "" if unknown.

    Raises ValueError for tests that are no Python, check nothing, or need more than small_pytest.py has.
    """
    functions = CALLED.search(tests) is not None
    try:
        with warnings.catch_warnings(action="ignore"):  # such as one of an escape in a pattern
            tree = ast.parse(tests)
            _check_places(tree)
            if functions:
                _check_functions(tree)
            tests = with_checks(tests, tree, entry_point)
    except (SyntaxError, RecursionError, MemoryError, UnicodeError) as error:
        raise ValueError(f"the tests are no Python: {type(error).__name__}") from None
    return f"{BEFORE}\n{UNITTEST_MAIN.sub('None', tests)}\n{AFTER}" if functions else tests


def _check_places(tree: ast.Module) -> None:
    """Raise ValueError for a return, yield or await outside functions, or a break outside loops: the parser takes them.

    The tests would end before they run, and no program would pass.
    """
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, loop = todo.pop()
        if isinstance(node, Function | ast.Lambda):
            continue
        if isinstance(node, OF_FUNCTIONS) or (isinstance(node, ast.Break | ast.Continue) and not loop):
            where = "a function" if isinstance(node, OF_FUNCTIONS) else "a loop"
            word = type(node).__name__.lower().removesuffix("from").replace("async", "async ")
            raise ValueError(
                f"the tests have {word!r} outside {where} in line {getattr(node, 'lineno', 1)}, so they never run: "
                "write statements, or put it in a function test_..."
            )
        body = getattr(node, "body", []) if isinstance(node, ast.For | ast.While) else []
        loop = loop and not isinstance(node, ast.ClassDef)
        todo += [(inside, loop or inside in body) for inside in ast.iter_child_nodes(node)]


def _check_functions(tree: ast.Module) -> None:
    """Raise ValueError for tests in functions that cannot be run."""
    _check_names(tree)
    functions = [*_tests(tree)]
    if not functions and not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        raise ValueError("the tests have no function test_... and no assertion")
    _check_arguments(tree, functions)


def _check_names(tree: ast.Module) -> None:
    """Raise ValueError for a name of pytest that small_pytest.py does not have."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "pytest"]
    used = [alias.name for node in imports for alias in node.names]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pytest":
            used.append(node.attr)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("pytest.mark", "mark"):
            used += [f"mark.{node.attr}"] * (node.attr in MISSING_MARKS)
    if gone := [name for name in used if name not in KNOWN]:
        raise ValueError(f"the tests need pytest.{gone[0]}, which the sandbox does not have")


def _tests(tree: ast.Module) -> Iterator[Function]:
    """Yield functions test... and methods test... of classes."""
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from (x for x in inside if isinstance(x, Function) and x.name.startswith("test"))


def _check_arguments(tree: ast.Module, functions: list[Function]) -> None:
    """Raise ValueError for an argument that is neither a fixture of the tests nor a parameter."""
    known = {node.name for node in ast.walk(tree) if isinstance(node, Function) and _decorators(node, "fixture")}
    for function in functions:
        if isinstance(function, ast.AsyncFunctionDef):
            raise ValueError(f"{function.name} is async, which the sandbox does not run")
        given = (
            {"self"} | known | {x for text in _decorators(function, "parametrize") for x in re.findall(r"\w+", text)}
        )
        needed = [argument.arg for argument in function.args.args]
        needed = needed[: len(needed) - len(function.args.defaults)]
        if gone := [name for name in needed if name not in given]:
            raise ValueError(f"{function.name} needs {gone[0]!r}, which is no fixture of the tests")


def _decorators(function: Function, name: str) -> list[str]:
    """Return the decorators of a function that have `name` in theirs, as text."""
    texts = [ast.unparse(decorator) for decorator in function.decorator_list]
    return [text for text in texts if name in text.partition("(")[0]]
