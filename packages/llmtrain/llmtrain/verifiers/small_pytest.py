"""The part of pytest that tests of programs use: `import pytest` in the sandbox imports this file.

raises, approx, fail, param, fixture (also with yield), mark.parametrize; other marks are labels without effect.
`run_all` runs functions test_..., methods test_... of classes Test... and unittest's test cases. Verdicts do not depend
on whether pytest is installed. Uses the standard library only. `called_tests.py` refuses tests that need more.
"""

import contextlib
import inspect
import math
import re
import unittest
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any


class Failed(AssertionError):
    """Failure of a test that asks for it, or that misses an error."""


class Caught:
    """Error that `raises` caught."""

    value: BaseException

    @property
    def type(self) -> type:
        return type(self.value)

    def match(self, pattern: str) -> bool:
        """Return True if the error's text has the pattern; raise Failed otherwise."""
        if not re.search(pattern, str(self.value)):
            fail(f"{str(self.value)!r} has no {pattern!r}")
        return True


def raises(kind: Any, call: Callable[..., Any] | None = None, *args: Any, match: str = "", **named: Any) -> Any:
    """Return a context manager that fails unless its block raises `kind`; with a function, call that instead."""
    if call is None:
        return _raises(kind, match)
    with _raises(kind, match) as caught:
        call(*args, **named)
    return caught


@contextlib.contextmanager
def _raises(kind: Any, pattern: str | None) -> Iterator[Caught]:
    caught = Caught()
    try:
        yield caught
    except kind as error:
        caught.value = error
        if pattern:
            caught.match(pattern)
    else:
        fail(f"no {getattr(kind, '__name__', kind)} was raised")


class approx:
    """Value equal to others within max(rel · |value|, abs): a number, or a list, tuple or mapping of such."""

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False) -> None:
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def __eq__(self, other: Any) -> bool:
        return self._close(self.expected, other)

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"

    __hash__ = None  # type: ignore[assignment]

    def _close(self, wanted: Any, found: Any) -> bool:
        if isinstance(wanted, Mapping):
            return wanted.keys() == found.keys() and all(self._close(wanted[key], found[key]) for key in wanted)
        if isinstance(wanted, list | tuple):
            return len(wanted) == len(found) and all(map(self._close, wanted, found))
        if isinstance(wanted, bool | str) or wanted is None or not isinstance(found, int | float | complex):
            return bool(wanted == found)
        if wanted != wanted:
            return self.nan_ok and found != found
        if wanted == found or math.isinf(abs(wanted)):
            return bool(wanted == found)
        share = self.rel if self.rel is not None else 0.0 if self.abs is not None else 1e-6
        least = self.abs if self.abs is not None else 1e-12
        return bool(abs(wanted - found) <= max(share * abs(wanted), least))


def fail(reason: str = "", pytrace: bool = True) -> None:
    """Fail the test."""
    raise Failed(reason)


def main(*args: Any, **named: Any) -> int:
    """Return 0: the tests are run in any case."""
    return 0


class param(tuple):
    """Values of one case of `mark.parametrize`."""

    def __new__(cls, *values: Any, id: Any = None, marks: Any = ()) -> "param":
        return super().__new__(cls, values)


def fixture(function: Any = None, **settings: Any) -> Any:
    """Mark a function whose result tests take as an argument."""

    def marked(function: Any) -> Any:
        function.fixture, function.always = settings.get("name") or function.__name__, settings.get("autouse", False)
        return function

    return marked(function) if function else marked


class _Marks:
    def __getattr__(self, name: str) -> Any:
        """Return a decorator without effect, with or without arguments."""

        def label(*args: Any, **named: Any) -> Any:
            return args[0] if len(args) == 1 and callable(args[0]) and not named else lambda function: function

        return label

    def parametrize(self, names: Any, values: Any, **settings: Any) -> Any:
        """Run a test once for each of the values."""
        split = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

        def marked(function: Any) -> Any:
            cases = [
                dict(zip(split, case if isinstance(case, param) or len(split) > 1 else (case,), strict=True))
                for case in values
            ]
            function.cases = [*getattr(function, "cases", []), cases]
            return function

        return marked


mark = _Marks()


def run_all(names: dict[str, Any]) -> None:
    """Run the tests among the names of a module. The first that fails raises its error."""
    fixtures = {value.fixture: value for value in names.values() if _is_fixture(value)}
    for name, value in list(names.items()):
        if name.startswith("test") and inspect.isfunction(value):
            _run(value, fixtures)
        elif inspect.isclass(value) and (name.startswith("Test") or issubclass(value, unittest.TestCase)):
            _run_class(value, fixtures)


def _is_fixture(value: Any) -> bool:
    """Return True for a function or method that `fixture` marks."""
    return inspect.isroutine(value) and isinstance(getattr(value, "fixture", None), str)


def _run_class(kind: type, fixtures: dict[str, Any]) -> None:
    if issubclass(kind, unittest.TestCase):
        found = unittest.defaultTestLoader.loadTestsFromTestCase(kind).run(unittest.TestResult())
        for _, told in (*found.errors, *found.failures):
            fail(told.strip().rpartition("\n")[2])
        return
    for name in [name for name in dir(kind) if name.startswith("test")]:
        made = kind()
        own = {x.fixture: x for x in (getattr(made, name) for name in dir(kind)) if _is_fixture(x)}
        for place in ("setup_class", "setup_method"):
            if before := getattr(made, place, None):
                before(*[None] * len(inspect.signature(before).parameters))
        _run(getattr(made, name), fixtures | own)


def _run(test: Callable[..., Any], fixtures: dict[str, Any]) -> None:
    """Run a test for each combination of its parameters."""
    for combination in product(*getattr(test, "cases", [])):
        given = {name: value for case in combination for name, value in case.items()}
        with contextlib.ExitStack() as stack:
            made: dict[str, Any] = {}
            for name in (name for name, one in fixtures.items() if one.always):
                _make(name, fixtures, made, stack)
            wanted = [name for name in inspect.signature(test).parameters if name not in given]
            test(**given, **{name: _make(name, fixtures, made, stack) for name in wanted})


def _make(name: str, fixtures: dict[str, Any], made: dict[str, Any], stack: contextlib.ExitStack) -> Any:
    """Return the value of a fixture, made once for a test; one with yield goes on when the test has ended."""
    if name not in made:
        function = fixtures[name]
        given = {other: _make(other, fixtures, made, stack) for other in inspect.signature(function).parameters}
        if inspect.isgeneratorfunction(function):
            made[name] = stack.enter_context(contextlib.contextmanager(function)(**given))
        else:
            made[name] = function(**given)
    return made[name]
