"""Tests in functions, run without pytest: what is called, what is refused, and the small pytest itself."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from llmtrain.data import read
from llmtrain.verifiers import small_pytest
from llmtrain.verifiers.called_tests import CALLED, called
from llmtrain.verifiers.math.truths import usable

HALF = "def half(x):\n    if x % 2:\n        raise ValueError(f'{x} is odd')\n    return x / 2"
CHECK = "def check(candidate):\n    assert candidate(2) == 1"
WRONG = "def half(x):\n    return 1.0"
START = "import pytest\nfrom solution import half\n"
TESTS = {
    "raises": "def test_a():\n    with pytest.raises(ValueError, match='3 is odd'):\n        half(3)\n",
    "raises, as a call": "def test_a():\n    pytest.raises(ValueError, half, 3)\n",
    "value of the error": "def test_a():\n    with pytest.raises(ValueError) as caught:\n        half(3)\n"
    "    assert '3' in str(caught.value)\n",
    "approx": "def test_a():\n    assert half(6) == pytest.approx(3.0)\n    assert [half(4)] == pytest.approx([2.0])\n",
    "parametrize": "@pytest.mark.parametrize('x, y', [(2, 1), pytest.param(8, 4, id='b')])\ndef test_a(x, y):\n"
    "    assert half(x) == y\n",
    "two parametrize": "@pytest.mark.parametrize('x', [2, 4])\n@pytest.mark.parametrize('y', [0, 4])\n"
    "def test_a(x, y):\n    assert half(x + y) == (x + y) / 2\n",
    "fixture": "@pytest.fixture\ndef four():\n    return 4\n\ndef test_a(four):\n    assert half(four) == 2\n",
    "fixture with yield": "@pytest.fixture()\ndef six():\n    yield 6\n\ndef test_a(six):\n    assert half(six) == 3\n",
    "class": "class TestHalf:\n    def setup_method(self):\n        self.x = 8\n"
    "    def test_a(self):\n        assert half(self.x) == 4\n",
    "main": "def test_a():\n    assert half(8) == 4\n\nif __name__ == '__main__':\n    pytest.main([__file__])\n",
    "unittest": "import unittest\nclass HalfTest(unittest.TestCase):\n    def test_a(self):\n"
    "        self.assertEqual(half(8), 4)\n\nif __name__ == '__main__':\n    unittest.main()\n",
    "second of two": "def test_a():\n    assert half(2) == 1\n\ndef test_b():\n    assert half(4) == 2\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("form", TESTS)
def test_right_programs_pass_and_wrong_ones_do_not(python, form):
    right, wrong = python([HALF, WRONG], [START + TESTS[form]] * 2)
    assert right.correct, right.reason
    assert not wrong.correct


@pytest.mark.slow
def test_functions_are_called_without_an_import_of_the_program_too(python):
    """Uncalled, they would let every program pass."""
    right, wrong = python([HALF, WRONG], ["def test_a():\n    assert half(8) == 4"] * 2)
    assert right.correct, right.reason
    assert not wrong.correct


@pytest.mark.slow
def test_pytest_is_the_small_one_whether_another_is_installed_or_not(python):
    tests = f"{START}def test_a():\n    assert half(8) == 4\n    assert not hasattr(pytest, '__version__')\n"
    (verdict,) = python([HALF], [tests])
    assert verdict.correct, verdict.reason


REFUSED = [
    ("def test_a(:\n    pass", "SyntaxError"),
    (f"{START}def test_a():\n    pytest.importorskip('x')", r"pytest\.importorskip"),
    ("from pytest import warns\ndef test_a(): pass", r"pytest\.warns"),
    (f"{START}@pytest.mark.skip\ndef test_a(): pass", r"pytest\.mark\.skip"),
    (f"{START}def test_a(capsys): half(2)", "test_a .*'capsys'"),
    (f"{START}async def test_a(): half(2)", "test_a .*async"),
    (START, "no function test_"),
    ("assert half(2) == 1\nreturn", "'return' outside a function in line 2"),
    ("class A:\n    yield half(2) == 1", "'yield' outside a function in line 2"),
    ("if half(2) == 1:\n    await half(3)", "'await' outside a function in line 2"),
    ("async with half(2):\n    assert half(2) == 1", "'async with' outside a function in line 1"),
    ("assert half(2) == 1\nfor x in []:\n    pass\nelse:\n    break", "'break' outside a loop in line 5"),
]


@pytest.mark.parametrize(("tests", "names"), REFUSED)
def test_tests_that_no_program_could_pass_are_bad_rows(jsonl, tests, names):
    path = jsonl([{"question": "a", "test": "assert a() == 1"}, {"question": "b", "test": tests}])
    with pytest.raises(ValueError, match=f"line 2: .*{names}"):
        read(path, usable=usable("python"))
    questions, skipped = read(path, usable=usable("python"), skip_bad=True)
    assert (len(questions), len(skipped)) == (1, 1)


@pytest.mark.filterwarnings("error")
def test_reading_tests_prints_no_warning_of_their_escapes():
    assert called("def test_a():\n    assert match('\\d', '1')")


@pytest.mark.parametrize(
    "tests",
    [
        "assert half(2) == 1",
        "x = [1]\nassert half(x[0]) == 1",
        f"{CHECK}\ncheck(half)",
        "for x in [2, 4]:\n    if x == 4:\n        break\n    assert half(x) == 1",
        "def two():\n    return half(4)\nassert two() == 2",
    ],
)
def test_statements_are_left_as_they_are(tests):
    assert called(tests) == tests
    assert not CALLED.search(tests)


@pytest.mark.parametrize(
    ("found", "wanted", "equal"),
    [
        (0.1 + 0.2, small_pytest.approx(0.3), True),
        (0.31, small_pytest.approx(0.3), False),
        (0.31, small_pytest.approx(0.3, abs=0.02), True),
        (102, small_pytest.approx(100, rel=0.01), False),
        (101, small_pytest.approx(100, rel=0.01), True),
        ((1.0, 2.0), small_pytest.approx((1.0, 2.0 + 1e-9)), True),
        ([1.0], small_pytest.approx([1.0, 2.0]), False),
        ({"a": 1.0}, small_pytest.approx({"a": 1.0 + 1e-9}), True),
        ({"b": 1.0}, small_pytest.approx({"a": 1.0}), False),
        (math.inf, small_pytest.approx(math.inf), True),
        (1.0, small_pytest.approx(math.inf), False),
        (math.nan, small_pytest.approx(math.nan), False),
        (math.nan, small_pytest.approx(math.nan, nan_ok=True), True),
        ("a", small_pytest.approx("a"), True),
        (None, small_pytest.approx(1.0), False),
    ],
)
def test_approx_is_that_of_pytest(found, wanted, equal):
    assert (found == wanted) is equal
    assert (found == pytest.approx(wanted.expected, rel=wanted.rel, abs=wanted.abs, nan_ok=wanted.nan_ok)) is equal


def test_missing_errors_and_other_texts_fail():
    with pytest.raises(small_pytest.Failed, match="no ValueError was raised"), small_pytest.raises(ValueError):
        pass
    with pytest.raises(small_pytest.Failed, match="'a' has no 'b'"), small_pytest.raises(ValueError, match="b"):
        raise ValueError("a")
    with pytest.raises(KeyError), small_pytest.raises(ValueError):
        raise KeyError
    with small_pytest.raises((KeyError, ValueError)) as caught:
        raise KeyError("x")
    assert caught.type is KeyError


def test_it_uses_the_standard_library_only():
    code = Path(small_pytest.__file__).read_text()
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
