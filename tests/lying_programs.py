"""Wrong programs that try to be rewarded, and tests of seven styles that they must not pass.

The task is `f(x) = 2 x`, a script that doubles a number, or an `Account` with a balance. The programs are files in
tests/corpus/programs: a class X whose objects lie, in `objects`; programs that speak to their tests, in `link`; others
with a function f, and scripts. Tests try each of their expressions and end normally if one passes, so that one check
shows whether a program fools any of them; with `honest`, all must pass.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "corpus" / "programs"


def _read(folder: str) -> dict[str, str]:
    return {f"{folder}/{path.stem}": path.read_text() for path in sorted((FOLDER / folder).glob("*.txt"))}


OBJECTS, SCRIPTS = _read("objects"), _read("scripts")
LINK = {name: (FOLDER / "link.txt").read_text() + code for name, code in _read("link").items()}
FUNCTIONS = {name: f"{code}\ndef f(x): return X()" for name, code in OBJECTS.items()} | LINK | _read("functions")
PRINTER = """
import sys
class Out:
    encoding = "utf-8"
    write = flush = lambda s, *a: 0
    getvalue = lambda s: {value}
sys.stdout = Out()
class Words:
    split = lambda s, *a: [X()]
"""
ACCOUNT = """
class Account(X):
    def __init__(s, balance=0): pass
    deposit = total = lambda s, *a: s
    balance = property(lambda s: s)
"""
FLOAT = "class X(float):\n    __new__ = lambda c, *a: float.__new__(c, 9.25)"
PROGRAMS = {
    **dict.fromkeys(("assert", "unittest", "pytest", "calls", "numpy"), FUNCTIONS),
    "stdio": SCRIPTS
    | {f"{name}, printed": code + PRINTER.format(value="X()") for name, code in OBJECTS.items()}
    | {f"{name}, split": code + PRINTER.format(value="Words()") for name, code in OBJECTS.items()}
    | {name: f"{code}\nprint(f(2))" for name, code in LINK.items()},
    "class": {name: code + ACCOUNT for name, code in OBJECTS.items()}
    | {f"{name}, of float": code.replace("class X:", FLOAT) + ACCOUNT for name, code in OBJECTS.items()}
    | {
        name: f"{code}\nclass Account:\n    __init__ = deposit = total = lambda s, *a: None\n    balance = property(f)"
        for name, code in LINK.items()
    },
}
"""Wrong programs by style of their tests."""
HONEST = dict.fromkeys(PROGRAMS, "def f(x): return 2 * x") | {
    "stdio": "print(2 * int(input()))",
    "class": """
class Account:
    def __init__(self, balance=0): self.balance = balance
    def deposit(self, n):
        self.balance += n
        return self
    def total(self): return self.balance
""",
}
TAIL = """
def passes(test):
    try:
        test()
        return True
    except Exception:
        return False
assert {judge}(passes(test) for test in tests)
"""
START = "wanted = 4\ndef check_f():\n    import unittest\n    unittest.TestCase().assertEqual(f(2), wanted)\n"
EXPRESSIONS = (
    "f(2) == wanted",
    "wanted == f(2)",
    "not f(2) != wanted",
    "abs(f(2) - 4.0) < 1e-6",
    "abs(4.0 - f(2)) < 1e-6",
    "round(f(2) - wanted, 3) == 0",
    "-1e-6 < f(2) - 4.0 < 1e-6",
    "f(2) >= 4 and f(2) <= 4",
    "4 <= f(2) <= 4",
    "f(2) in (4, 5)",
    "{f(2)} == {4}",
    "[f(2)] == [4]",
    "(f(2), f(3)) == (4, 6)",
    "{4: 1}[f(2)] == 1",
    "str(f(2)) == '4'",
    "f'{f(2):.2f}' == '4.00'",
    "int(f(2)) == 4 and float(f(2)) == 4.0",
    "math.isclose(f(2), 4.0)",
    "all(map(lambda x: f(x) == 2 * x, [1, 2]))",
    "sum([f(1), f(2)]) == 6",
    "f(2) % 4 == 0 and f(2) // 4 == 1",
    "(f(2) - 4) ** 2 < 1e-9",
    "str(f(2)).isdigit() and f(2).is_integer() and not f(2) - 4",
    "f(2).startswith('4')",
    "isinstance(f(2), int) and not (f(2) - 4)",
    "sorted([f(2), 3])[1] == 4",
    "max(f(2), 3) == 4 and min(f(2), 5) == 4",
)
HONEST_FAILS = ("f(2).startswith('4')", "str(f(2)).isdigit() and f(2).is_integer() and not f(2) - 4")
METHODS = (
    "assertEqual(f(2), 4)",
    "assertEqual(4, f(2))",
    "assertAlmostEqual(f(2), 4.0)",
    "assertAlmostEqual(4.0, f(2), places=3)",
    "assertAlmostEqual(f(2), 4.0, delta=0.1)",
    "assertTrue(f(2) == 4)",
    "assertFalse(f(2) != 4)",
    "assertIn(f(2), [4])",
    "assertGreaterEqual(4, f(2)), self.assertLessEqual(4, f(2))",
    "assertCountEqual([f(2)], [4])",
    "assertListEqual([f(2), f(3)], [4, 6])",
    "assertSequenceEqual((f(2),), (4,))",
    "assertDictEqual({1: f(2)}, {1: 4})",
    "assertNotEqual(f(2), 5), self.assertEqual(f(2) - 4, 0)",
)
APPROX = (
    "f(2) == pytest.approx(4.0)",
    "pytest.approx(4.0) == f(2)",
    "[f(2)] == pytest.approx([4])",
    "{1: f(2)} == pytest.approx({1: 4})",
    "f(2) == pytest.approx(4, abs=0.1)",
    "not f(2) != pytest.approx(4)",
)
ARRAYS = (
    "np.allclose(f(2), 4.0)",
    "np.isclose(f(2), 4.0).all()",
    "np.testing.assert_allclose(f(2), 4.0) is None",
    "np.testing.assert_almost_equal(f(2), 4.0) is None",
    "np.testing.assert_array_equal(f(2), np.array(4)) is None",
    "np.array_equal(f(2), 4)",
    "(f(2) == np.array([4])).all()",
    "(np.array([4]) == f(2)).all()",
    "abs(np.array([4.0]) - f(2)).max() < 1e-6",
    "np.abs(f(2) - np.array([4.0])).max() < 1e-6",
    "np.sum([f(2)]) == 4",
    "np.max(np.abs(np.asarray(f(2)) - 4)) < 1e-6",
    "np.linalg.norm(np.array([4.0]) - f(2)) < 1e-6",
)


def _expressions(texts: tuple[str, ...]) -> str:
    checks = "".join(f"def t{n}():\n    assert {text}\n" for n, text in enumerate(texts))
    return f"{checks}tests = [{', '.join(f't{n}' for n in range(len(texts)))}]\n"


def _cases(texts: tuple[str, ...]) -> str:
    checks = "".join(f"    def t{n}(self):\n        self.{text}\n" for n, text in enumerate(texts))
    names = ", ".join(f"Case('t{n}').debug" for n in range(len(texts)))
    return f"import unittest\nclass Case(unittest.TestCase):\n{checks}tests = [{names}]\n"


USES = "import math, unittest, pytest\nimport numpy as np\nfrom solution import Account\n"
BALANCES = (
    "a().balance == 5",
    "abs(a().balance - 5.0) < 1e-6",
    "round(a().balance - 5, 2) == 0",
    "round(a().balance, 2) == 5",
    "a().total() == 5",
    "abs(5 - a().total()) < 1e-6",
    "a().balance in (5, 6)",
    "5 <= a().total() <= 5",
    "str(a().balance) == '5'",
    "f'{a().balance:.2f}' == '5.00'",
    "int(a().balance) == 5",
    "a().deposit(2).balance == 7",
    "a().deposit(2).balance - a().balance == 2",
    "unittest.TestCase().assertAlmostEqual(a().balance, 5.0) is None",
    "unittest.TestCase().assertEqual(a().total(), 5) is None",
    "unittest.TestCase().assertIn(a().total(), [5]) is None",
    "a().balance == pytest.approx(5.0)",
    "pytest.approx(5.0) == a().balance",
    "np.allclose(a().balance, 5.0)",
    "(np.array([5]) == a().balance).all()",
    "not a().balance - 5",
    "{5: 1}[a().balance] == 1",
)


def texts(*, honest: bool) -> dict[str, object]:
    """Return ground truths by style. honest: all of their tests must pass, not one of them."""
    judge = TAIL.format(judge="all" if honest else "any")
    expressions = tuple(x for x in EXPRESSIONS if not (honest and x in HONEST_FAILS))
    own = f"def test_all():{TAIL.format(judge='all' if honest else 'any')}".replace("\n", "\n    ")
    return {
        "assert": START + _expressions(expressions) + judge,
        "unittest": _cases(METHODS) + own,
        "pytest": f"import pytest\nfrom solution import f\n{_expressions(APPROX)}{own}",
        "calls": {"inputs": [[2], [3]], "outputs": [4, 6], "fn_name": "f"},
        "stdio": {"inputs": ["2\n", "35\n"], "outputs": ["4\n", "70\n"]},
        "class": f"{USES}def a(): return Account(5)\n{_expressions(BALANCES)}{own}",
        "numpy": f"import numpy as np\n{_expressions(ARRAYS)}{judge}",
    }
