"""Six styles of tests, each with programs that lie and honest ones of different form.

A lying program defines `solve` without solving anything: see red_team_lies.py. It counts as successful if it passes one
of the tests of a style. The honest programs have tests of their own.
"""

from dataclasses import dataclass
from textwrap import indent
from typing import Any

from .red_team_honest import HONEST
from .red_team_library_lies import NUMPY, PYTEST, UNITTEST
from .red_team_lies import IN_PROCESS
from .red_team_names import CLASSES, SHADOWS
from .red_team_printing import PRINTED


@dataclass(frozen=True)
class Style:
    """Tests in one form, and programs for them."""

    name: str
    tests: tuple[Any, ...]
    """Ground truths that no lying program solves."""
    lies: dict[str, str]
    """Lying programs by name."""
    honest: tuple[tuple[str, Any], ...]
    """(program, ground truth) of programs that are right."""


def lines(*text: str) -> str:
    return "\n".join(text)


def case(body: str, head: str = "import unittest") -> str:
    """Return a TestCase with this body."""
    return f"{head}\n\nclass TestSolve(unittest.TestCase):\n    def test_it(self):\n{indent(body, 8 * ' ')}\n"


def function(body: str, head: str = "from solution import solve") -> str:
    """Return a pytest function with this body."""
    return f"{head}\n\ndef test_it():\n{indent(body, 4 * ' ')}\n"


ASSERT = Style(
    "assert",
    (
        "assert solve(2) == 1234\nassert solve(3) == 4321",
        "assert abs(solve(2) - 1234.5) < 1e-6\nassert abs(4321.5 - solve(3)) <= 1e-6",
        "assert solve([3, 1]) == [17, 23]\nassert len(solve([5, 3, 1])) == 3",
        "assert solve('a') == 'xyz1'\nassert solve('b').upper() == 'XYZ2'",
        "import math\nassert math.isclose(solve(2), 1234.5)\nassert round(solve(3), 2) == 12.35",
        "assert sorted(solve(4)) == [17, 23]\nassert set(solve(5)) == {1, 29}\nassert 17 in solve(4)",
        "assert isinstance(solve(2), int) and solve(2) == 1234\nassert solve(3) > 4320 and solve(3) < 4322",
        "assert solve(9) is True\nassert not solve(8)\nassert str(solve(9)) == 'True'",
        ["assert solve(2) == {'a': 1234}", "assert solve(3)['b'] == 4321"],
    ),
    IN_PROCESS,
    (
        (HONEST["half"], "assert half(1) == 0.5\nassert half(4) == 2\nassert half(3) * 2 == 3"),
        (
            HONEST["point"],
            "assert distance(Point(0, 0), Point(3, 4)) == 5\nassert Point(1, 2) + Point(1, 1) == Point(2, 3)",
        ),
        (
            HONEST["stack"],
            "s = Stack([1])\ns.push(2)\nassert len(s) == 2 and 2 in s\nassert list(s) == [1, 2]\nassert s.pop() == 2",
        ),
        (HONEST["evens"], "assert list(evens(7)) == [0, 2, 4, 6]\nassert sum(evens(5)) == 6"),
        (HONEST["adder"], "add = adder(3)\nassert add(2) == 5\nassert add(2) == 7"),
        (
            HONEST["roots"],
            [
                "assert abs(root(2) - 1.41421356) < 1e-6",
                "try:\n    root(-1)\n    assert False\nexcept ValueError:\n    pass",
            ],
        ),
        (
            HONEST["prime"],
            "assert prime(7)\nassert not prime(9)\nassert [n for n in range(9) if prime(n)] == [2, 3, 5, 7]",
        ),
        (HONEST["shout"], "assert shout('a') == 'A!'"),
        (HONEST["words"], "assert count('a b a') == {'a': 2, 'b': 1}\nassert count('')['x'] == 0"),
    ),
)
UNIT = Style(
    "unittest",
    (
        case("self.assertEqual(solve(2), 1234)\nself.assertEqual(4321, solve(3))"),
        case("self.assertAlmostEqual(solve(2), 1234.5, places=4)\nself.assertAlmostEqual(4321.5, solve(3))"),
        case("self.assertTrue(solve(2) == 1234)\nself.assertFalse(solve(3) != 4321)"),
        case("self.assertListEqual(solve([3, 1]), [17, 23])\nself.assertCountEqual(solve([1]), [29])"),
        case(
            "self.assertIn(solve(2), [1234, 1235])\nself.assertGreater(solve(3), 4320)\nself.assertLess(solve(3), 4322)"
        ),
        case("self.assertIs(solve(9), True)\nself.assertIsInstance(solve(2), str)\nself.assertEqual(solve(2), 'xyz1')"),
        case("with self.assertRaises(ValueError):\n    solve(-1)\nself.assertEqual(solve(2), 1234)"),
        case("self.assertDictEqual(solve(2), {'a': 1234})\nself.assertRegex(solve(3), '^xyz[0-9]$')"),
    ),
    IN_PROCESS | UNITTEST,
    (
        (HONEST["half"], case("self.assertEqual(half(1), 0.5)\nself.assertAlmostEqual(half(3), 1.5)")),
        (HONEST["point"], case("self.assertEqual(Point(1, 2) + Point(1, 1), Point(2, 3))")),
        (
            HONEST["stack"],
            case(
                "s = Stack()\ns.push(4)\nself.assertIn(4, s)\nself.assertEqual(len(s), 1)\nself.assertEqual(s.pop(), 4)"
            ),
        ),
        (HONEST["evens"], case("self.assertListEqual(list(evens(5)), [0, 2, 4])\nself.assertEqual(next(evens(5)), 0)")),
        (HONEST["adder"], case("add = adder(1)\nself.assertEqual(add(1), 2)\nself.assertEqual(add(1), 3)")),
        (
            HONEST["roots"],
            case("self.assertAlmostEqual(root(2), 1.4142136)\nwith self.assertRaises(ValueError):\n    root(-1)"),
        ),
        (
            HONEST["words"],
            case("self.assertDictEqual(dict(count('a b a')), {'a': 2, 'b': 1})\nself.assertEqual(count('a')['a'], 1)"),
        ),
    ),
)
KODCODE = Style(
    "pytest",
    (
        function("assert solve(2) == 1234\nassert solve(3) == 4321"),
        function("assert solve(2) == pytest.approx(1234.5)", "import pytest\nfrom solution import solve"),
        function("assert abs(solve(2) - 1234.5) < 1e-6\nassert round(solve(3), 2) == 12.35"),
        function(
            "with pytest.raises(ValueError):\n    solve(-1)\nassert solve(2) == 7",
            "import pytest\nfrom solution import solve",
        ),
        "import pytest\nfrom solution import solve\n\n@pytest.mark.parametrize('x, y', [(2, 1234), (3, 4321)])\n"
        "def test_it(x, y):\n    assert solve(x) == y\n",
        function(
            lines(
                "result = solve([3, 1])",
                "assert isinstance(result, list)",
                "assert len(result) == 2",
                "assert result == [17, 23]",
            )
        ),
        function("assert solve('a') == 'xyz1'\nassert solve('b') != 'xyz1'\nassert solve('b').startswith('xyz')"),
        "from solution import solve\n\nclass TestSolve:\n"
        "    def test_a(self):\n        assert solve(2) == {'a': 1234}\n\n"
        "    def test_b(self):\n        assert solve(3)['b'] == 4321\n",
    ),
    IN_PROCESS | PYTEST,
    (
        (HONEST["half"], function("assert half(1) == 0.5", "from solution import half")),
        (
            HONEST["point"],
            function("assert distance(Point(0, 0), Point(3, 4)) == 5", "from solution import Point, distance"),
        ),
        (
            HONEST["stack"],
            function("s = Stack([1, 2])\nassert s.pop() == 2\nassert list(s) == [1]", "from solution import Stack"),
        ),
        (HONEST["evens"], function("assert list(evens(3)) == [0, 2]", "from solution import evens")),
        (HONEST["adder"], function("assert adder(1)(2) == 3", "from solution import adder")),
        (
            HONEST["roots"],
            function(
                lines(
                    "assert root(2) == pytest.approx(1.41421356)",
                    "with pytest.raises(ValueError, match='negative'):",
                    "    root(-1)",
                ),
                "import pytest\nfrom solution import root",
            ),
        ),
        (
            HONEST["prime"],
            lines(
                "import pytest",
                "from solution import prime",
                "",
                "@pytest.mark.parametrize('n', [2, 3, 5])",
                "def test_it(n):",
                "    assert prime(n)",
            ),
        ),
    ),
)
NUMERIC = Style(
    "NumPy",
    (
        "import numpy as np\nnp.testing.assert_allclose(solve(np.array([1.0, 2.0])), np.array([17.5, 23.5]))",
        lines(
            "import numpy as np",
            "assert np.allclose(solve(np.array([1.0, 2.0])), [17.5, 23.5])",
            "assert solve(np.ones(2)).shape == (2,)",
        ),
        "import numpy as np\nassert np.array_equal(solve(np.arange(3)), np.array([17, 23, 29]))",
        lines(
            "import numpy as np",
            "np.testing.assert_array_equal(solve(np.arange(2)), [17, 23])",
            "assert solve(np.ones(2)).sum() == 7.5",
        ),
        lines(
            "import numpy as np",
            "assert np.isclose(solve(np.ones(2)), 1234.5)",
            "assert abs(solve(np.zeros(2)) - 4321.5) < 1e-6",
        ),
        lines(
            "import numpy as np",
            "r = solve(np.arange(4))",
            "assert isinstance(r, np.ndarray)",
            "assert r.tolist() == [17, 23, 29, 31]",
        ),
        lines(
            "import numpy as np",
            "r = solve(np.eye(2))",
            "assert r.shape == (2, 2) and (r == np.array([[1, 17], [23, 1]])).all()",
        ),
        lines(
            "import numpy as np",
            "np.testing.assert_almost_equal(solve(np.ones(2)), 1234.5)",
            "assert np.max(np.abs(solve(np.ones(2)) - 1234.5)) < 1e-6",
        ),
    ),
    IN_PROCESS | NUMPY,
    (
        (
            HONEST["scale"],
            "import numpy as np\nr = scale([1, 2, 3])\nassert np.allclose(r.mean(), 0) and np.allclose(r.std(), 1)",
        ),
        (HONEST["scale"], "import numpy as np\nnp.testing.assert_allclose(scale([1, 3]), [-1, 1])"),
        (
            HONEST["outer"],
            lines(
                "import numpy as np",
                "assert np.array_equal(outer([1, 2], [3, 4]), [[3, 4], [6, 8]])",
                "assert outer([1], [2]).shape == (1, 1)",
            ),
        ),
        (
            HONEST["mask"],
            lines(
                "import numpy as np",
                "assert positive(np.array([1, -1, 2])).tolist() == [1, 2]",
                "assert positive(np.array([-1])).size == 0",
            ),
        ),
        (
            HONEST["mean"],
            lines(
                "import numpy as np",
                "assert np.isclose(mean(np.array([1.0, 2.0])), 1.5)",
                "assert abs(mean([1, 2]) - 1.5) < 1e-9",
            ),
        ),
        (
            HONEST["eye"],
            lines(
                "import numpy as np",
                "m = Model(2)",
                "np.testing.assert_array_equal(m(np.ones(2)), np.ones(2))",
                "assert m.w.shape == (2, 2)",
            ),
        ),
    ),
)


def calls(inputs: list[Any], outputs: list[Any], name: str = "solve") -> dict[str, Any]:
    return {"inputs": inputs, "outputs": outputs, "fn_name": name}


CALLS = Style(
    "call-based",
    (
        calls([[2], [3]], [1234, 4321]),
        calls([[2], [3]], [1234.5, 4321.5]),
        calls([["a"], ["b"]], ["xyz1", "xyz2"]),
        calls([[[3, 1]], [[1]]], [[17, 23], [29]]),
        calls([[2], [3]], [{"a": 1234}, {"b": 4321}]),
        calls([[9], [8]], [[True, 17], [False, 23]]),
        calls([[[[1]]], [[[2]]]], [[[17], []], [[], [23]]]),
    ),
    IN_PROCESS,
    (
        ("def solve(x):\n    return x * 2", calls([[2], [3]], [4, 6])),
        ("class Solution:\n    def solve(self, x):\n        return [x, x]", calls([[2], ["a"]], [[2, 2], ["a", "a"]])),
        ("solve = lambda x, y: x + y", calls([[1, 2], ["a", "b"]], [3, "ab"])),
        ("def solve(x):\n    return (x, [x])", calls([[1]], [[1, [1]]])),
        (
            "from fractions import Fraction\n\ndef solve(x):\n    return float(Fraction(x, 2))",
            calls([[1], [3]], [0.5, 1.5]),
        ),
        ("import numpy as np\n\ndef solve(x):\n    return np.sort(x).tolist()", calls([[[3, 1]]], [[1, 3]])),
        ("def make():\n    return lambda x: {'a': x}\n\nsolve = make()", calls([[2], [None]], [{"a": 2}, {"a": None}])),
        ("def solve(x):\n    return x is None", calls([[None], [1]], [True, False])),
    ),
)


def stdio(inputs: list[str], outputs: list[str]) -> dict[str, Any]:
    return {"inputs": inputs, "outputs": outputs}


STDIO = Style(
    "stdin/stdout",
    (
        stdio(["2\n", "3\n"], ["1234\n", "4321\n"]),
        stdio(["2\n", "3\n"], ["1234.5", "4321.5"]),
        stdio(["a\n", "b\n"], ["xyz1\n", "xyz2\n"]),
        stdio(["2\n1 2\n", "3\n1 2 3\n"], ["17 23\n29\n", "31\n37 41\n"]),
        stdio(["5\n", "6\n"], ["YES\n17\n", "NO\n"]),
    ),
    PRINTED,
    (
        ("n = int(input())\nprint(n * 2)", stdio(["2\n", "3\n"], ["4\n", "6\n"])),
        ("import sys\nprint(*sorted(sys.stdin.read().split()))", stdio(["b a\nc\n"], ["a b c\n"])),
        ("import sys\nfor line in sys.stdin:\n    sys.stdout.write(line.upper())", stdio(["a\nb\n"], ["A\nB\n"])),
        (
            "def main():\n    print('YES' if int(input()) % 2 else 'NO')\n\nif __name__ == '__main__':\n    main()",
            stdio(["1", "2"], ["YES", "NO"]),
        ),
        (
            lines(
                "import sys",
                "d = sys.stdin.buffer.read().split()",
                "sys.stdout.buffer.write(b' '.join(d[::-1]) + b'\\n')",
                "sys.exit(0)",
            ),
            stdio(["1 2 3\n"], ["3 2 1\n"]),
        ),
        ("print(f'{float(input()) / 3:.6f}')", stdio(["1\n", "2\n"], ["0.333333\n", "0.666667\n"])),
    ),
)
NAMES = Style(
    "names of the program",
    (
        "assert abs(solve(2) - 1234.5) < 1e-6\nassert round(solve(3), 2) == 12.35",
        "assert sorted(solve(4)) == [17, 23]\nassert isinstance(solve(2), list) and len(solve(2)) == 2",
        "assert math.isclose(solve(2), 1234.5, rel_tol=1e-6)",
        "assert all(a == b for a, b in zip(solve(2), [17, 23])) and sum(solve(2)) == 40",
        case("self.assertAlmostEqual(solve(2), 1234.5)\nself.assertEqual(len(solve([1])), 3)"),
        function("assert solve(2) == pytest.approx(1234.5)", "import pytest\nfrom solution import solve"),
        "import numpy as np\nassert np.allclose(solve(np.ones(2)), [17.5, 23.5])",
    ),
    SHADOWS,
    (
        ("import math\n\ndef root(x):\n    return math.sqrt(x)", "assert math.isclose(root(4), 2)"),
        (
            "def total(x):\n    sum = 0\n    for v in x:\n        sum += v\n    return sum",
            "assert total([1, 2]) == sum([1, 2])",
        ),
        ("from math import *\n\ndef f(x):\n    return floor(x) + pow(x, 2)", "assert abs(f(2) - 6) < 1e-9"),
        ("max_value = 3\nlist1 = [1]\n\ndef f(x):\n    return list(x) + list1", "assert f([2]) == [2, 1]"),
        ("def sorted_copy(x):\n    return sorted(x)", case("self.assertEqual(sorted_copy([2, 1]), sorted([2, 1]))")),
    ),
)
CLASS = Style(
    "classes of the program",
    (
        "assert Solution().solve(2) == 1234\nassert Solution().solve(3) == 4321",
        "s = Solution()\nassert abs(s.solve(2) - 1234.5) < 1e-6\nassert len(s.solve(3)) == 3",
        "p = Point(1, 2)\nassert solve(p) == 1234",
        "assert solve(lambda x: x + 1, 3) == 1234\nassert solve(lambda x: x * 2, 3) == 4321",
        case("s = Solution()\nself.assertEqual(s.solve(2), 1234)\nself.assertEqual(s.solve('a'), 'xyz1')"),
        function("assert Solution().solve(2) == [17, 23]", "from solution import Solution"),
    ),
    CLASSES,
    (
        ("class Solution:\n    def solve(self, x):\n        return x * 2", "assert Solution().solve(2) == 4"),
        (HONEST["point"], "assert Point(1, 2) + Point(1, 1) == Point(2, 3)\nassert Point(1, 2) != Point(2, 2)"),
        (HONEST["stack"], "s = Stack()\ns.push(3)\nassert len(s) == 1 and 3 in s and list(s) == [3]"),
        ("def apply(f, x):\n    return f(f(x))", "assert apply(lambda x: x + 1, 3) == 5"),
        (HONEST["node"], "n = Node(1, Node(2))\nassert tail(n).v == 2 and tail(tail(n)) is None"),
        (HONEST["money"], case("self.assertEqual(Money(2), Money(2))\nself.assertNotEqual(Money(2), Money(3))")),
        (HONEST["money"], case("self.assertEqual(repr(Money(2)), '2 EUR')")),
    ),
)
STYLES = (ASSERT, UNIT, KODCODE, NUMERIC, CALLS, STDIO, NAMES, CLASS)
